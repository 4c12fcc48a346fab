"""`marg steer`: change the course of a session under way."""

from __future__ import annotations

import asyncio
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marg_ray.cli import options as opt
from marg_ray.errors import UsageError

if TYPE_CHECKING:
    from marg_ray.records import Hit
    from marg_ray.settings import Settings


class Action(StrEnum):
    ADD = "add"
    DROP = "drop"
    PIN = "pin"
    BAN = "ban"
    BUDGET = "budget"


_MISSING = {
    Action.ADD: ("the sub-question is missing", 'marg steer SESSION add "question"'),
    Action.DROP: ("what is to be dropped is missing", 'name a section (s3), or a query as "it stands in the plan"'),
    Action.PIN: ("the source is missing", "give a URL or a file"),
    Action.BAN: ("the source is missing", "give a URL, a host or a path"),
}


def steer(
    session: opt.Session,
    action: Annotated[
        Action, typer.Argument(help="Add or drop a sub-question, pin or ban a source, or set another budget.")
    ],
    what: Annotated[
        str,
        typer.Argument(
            help="add: the question. drop: a section (s3) or a query. pin: a URL or a file. ban: a URL, host or path."
        ),
    ] = "",
    section: Annotated[
        str, typer.Option("--section", help="The section concerned (s2); without it: all, or new.")
    ] = "",
    usd: Annotated[float | None, typer.Option("--usd", min=0, help="US dollars, in all.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=0, help="Model tokens, in all.")] = None,
    minutes: Annotated[float | None, typer.Option("--minutes", min=0.01, help="Of work, in all.")] = None,
    deadline: Annotated[str, typer.Option("--deadline", help='When the report is due: "17:30", "20m", or ISO.')] = "",
    searches: Annotated[int | None, typer.Option("--searches", min=0, help="Web searches, in all.")] = None,
    tasks: Annotated[int | None, typer.Option("--tasks", min=1, help="Agents' tasks, in all.")] = None,
    by: opt.By = "owner",
) -> None:
    """Steer a session while it runs; one that does not run is steered in its log, and resumed later."""
    from marg_ray.cli.limits import named
    from marg_ray.settings import load

    settings = load()
    given = named(usd=usd, tokens=tokens, minutes=minutes, deadline=deadline, searches=searches, tasks=tasks)
    if (action is Action.BUDGET) != bool(given):
        raise UsageError(
            "limits go with `budget`, and `budget` with limits", "marg steer SESSION budget --usd 2 --minutes 20"
        )
    if action in _MISSING and not what.strip():
        raise UsageError(*_MISSING[action])
    if action is Action.BUDGET and what:
        raise UsageError(f"{what!r} is no limit", "give --usd, --tokens, --minutes, --deadline, --searches or --tasks")
    typer.echo(asyncio.run(_steer(settings, session, wish(action, what.strip(), section, given, settings), by)))


async def _steer(settings: Settings, session: str, fields: dict[str, Any], by: str) -> str:
    from uuid import uuid4

    from marg_ray.cli.local import reach
    from marg_ray.decisions import steering_words
    from marg_ray.messages import Steered

    async with reach(settings, session) as reached:
        task_id = f"{reached.session_id}/steer/{uuid4().hex[:8]}"
        steered = Steered.model_validate({"task_id": task_id, "by": by, **fields})
        status = await reached.to.steer(reached.session_id, steered)
        return f"{reached.told(status)} ({steering_words(steered)})"


def wish(action: Action, what: str, section: str, given: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """The fields of `Steered`. A file that is pinned is frozen here.

    Raises:
        UsageError: a pinned file cannot be read, or a limit is no number.
    """
    match action:
        case Action.ADD:
            return {"action": "add", "query": what, "section": section}
        case Action.DROP if re.fullmatch(r"s\d+", what) and section in ("", what):
            return {"action": "drop", "section": what}
        case Action.DROP:
            return {"action": "drop", "query": what, "section": section}
        case Action.PIN:
            return {"action": "pin", "hit": _source(what, settings), "section": section}
        case Action.BAN:
            path = Path(what).expanduser()
            return {"action": "ban", "location": str(path.resolve()) if path.exists() else what}
        case Action.BUDGET:
            from marg_ray.cli.limits import limits

            return {"action": "raise", "limits": limits(**given)}


def _source(what: str, settings: Settings) -> Hit:
    from marg_ray.records import Hit, SourceKind

    if re.match(r"https?://", what, re.IGNORECASE):
        return Hit(location=what, title=what, kind=SourceKind.WEB, relevance=1.0)
    if "://" in what:
        raise UsageError(f"{what}: only http and https addresses can be read", "give a web address or a file")
    from marg_ray.cli.local import freeze

    path = Path(what).expanduser().resolve()
    source_id, document = freeze(path, settings)
    title = document.title or path.name
    return Hit(location=str(path), title=title, kind=SourceKind.PROVIDED, source_id=source_id, relevance=1.0)
