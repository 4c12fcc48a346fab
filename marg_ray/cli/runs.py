"""`marg runs`: the sessions there are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from marg_ray.store.protocol import SessionRow, Store


def runs(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many to list.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """List the sessions, newest first."""
    from marg_ray.cli.local import with_store
    from marg_ray.settings import load

    async def read(store: Store) -> list[SessionRow]:
        return await store.sessions(limit=limit)

    rows = [shown(row) for row in with_store(load(), read)]
    if as_json:
        for row in rows:
            typer.echo(row.model_dump_json(exclude={"holder"}))
        return
    if not rows:
        typer.echo("no sessions yet: ask something with `marg research`", err=True)
        return
    if not sys.stdout.isatty():  # whole, for other programs
        for row in rows:
            question = " ".join(row.question.split())
            typer.echo(f"{row.id}\t{row.created_at.astimezone():%Y-%m-%d %H:%M}\t{row.status}\t{question}")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("session", "when", "status"):
        table.add_column(column, no_wrap=True)
    table.add_column("question", overflow="ellipsis", no_wrap=True)
    for row in rows:
        when = f"{row.created_at.astimezone():%Y-%m-%d %H:%M}"
        table.add_row(row.id, when, row.status, Text(" ".join(row.question.split())))
    Console().print(table)


def shown(row: SessionRow) -> SessionRow:
    """A session whose process is gone is not running, whatever was written last."""
    from marg_ray.actors.holder import is_alive

    if row.status == "running" and not is_alive(row.holder):
        return row.model_copy(update={"status": "interrupted"})
    return row
