"""docs/settings.md, written from the settings themselves: `python -m marg_ray.settings_doc > docs/settings.md`."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from marg_ray.settings import Settings

HEAD = """\
# Settings

<!-- Written by `python -m marg_ray.settings_doc` from marg_ray/settings.py. -->

A setting is looked for in this order, and the first place that has it wins:

1. flags of the command, such as `--model`;
2. environment variables, such as `MARG_MODEL` or `MARG_SEARCH__SEARXNG_URL` (two underscores between area and name);
3. `marg.toml` in the working directory;
4. `config.toml` in the folder that `MARG_HOME` names;
5. the defaults below.

Lists and tables are written as JSON in a variable: `MARG_SEARCH__ENGINES='["ddgs"]'`. A value that is not allowed ends
the command with exit code 2 and the name of the setting. `marg doctor` shows which model was picked, and why.

```toml
# marg.toml
model = "ollama:llama3.1:8b"

[models]
strong = "openai:gpt-4o"

[search]
searxng_url = "https://searx.example.org"
```
"""
HOME_DEFAULT = "the user's data folder of the platform"


def settings_markdown() -> str:
    """Every setting with its variable, type, default and meaning, as Markdown."""
    top = {k: f for k, f in Settings.model_fields.items() if not _area(f)}
    parts = [HEAD, _table("General", "", top, "")]
    for name, field in Settings.model_fields.items():
        if (area := _area(field)) is not None:
            parts += _tables(name, area)
    return "\n".join(parts)


def _tables(path: str, area: type[BaseModel]) -> Iterator[str]:
    """The table of an area, and those of the areas in it. `path` is its name in a TOML file."""
    inner = {name: a for name, field in area.model_fields.items() if (a := _area(field)) is not None}
    fields = {name: field for name, field in area.model_fields.items() if name not in inner}
    yield _table(f"`[{path}]`", area.__doc__ or "", fields, path.replace(".", "__"))
    for name, deeper in inner.items():
        yield from _tables(f"{path}.{name}", deeper)


def _area(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _table(title: str, about: str, fields: dict[str, FieldInfo], area: str) -> str:
    lines = [f"## {title}", ""]
    if about:
        lines += [about.strip(), ""]
    lines += ["| setting | variable | type | default | meaning |", "| --- | --- | --- | --- | --- |"]
    for name, field in fields.items():
        variable = "MARG_" + (f"{area}__{name}" if area else name).upper()
        limits = ", ".join(_limits(field))
        kind = _kind(field.annotation) + (f", {limits}" if limits else "")
        meaning = (field.description or "").replace("|", "\\|")
        lines.append(f"| `{name}` | `{variable}` | {kind} | {_default(name, field)} | {meaning} |")
    return "\n".join(lines) + "\n"


def _kind(annotation: Any) -> str:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        return f"list of {_kind(args[0])}" if Ellipsis in args else " and ".join(_kind(a) for a in args)
    if origin is dict:
        return f"table of {_kind(args[0])} to {_kind(args[1])}"
    if origin is Literal:
        return " or ".join(f"`{a}`" for a in args)
    if origin in (types.UnionType, Union):
        return " or ".join(_kind(a) for a in args)
    names = {str: "text", int: "integer", float: "number", bool: "true or false", Path: "folder", SecretStr: "secret"}
    return names.get(annotation) or ("none" if annotation is type(None) else str(annotation.__name__).lower())


def _limits(field: FieldInfo) -> Iterator[str]:
    for rule in field.metadata:
        match rule:
            case Ge(ge=least):
                yield f"at least {least}"
            case Gt(gt=bound):
                yield f"above {bound}"
            case Le(le=most):
                yield f"at most {most}"
            case Lt(lt=bound):
                yield f"below {bound}"


def _default(name: str, field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if name == "home":
        return HOME_DEFAULT
    if isinstance(value, SecretStr) or value in ("", (), {}, None):
        return "none"
    return f"`{json.dumps(list(value))}`" if isinstance(value, tuple) else f"`{value}`"


if __name__ == "__main__":
    sys.stdout.write(settings_markdown())
