"""Help text in groups: an option's `rich_help_panel` is a heading of its own, in plain text."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class Grouped(TyperCommand):
    """A command with many options. Those without a group come first."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                named = "Arguments" if param.param_type_name == "argument" else "Options"
                groups.setdefault(getattr(param, "rich_help_panel", None) or named, []).append(record)
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)
