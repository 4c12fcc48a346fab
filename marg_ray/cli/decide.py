"""`marg decide`: say what is to happen with a plan or a draft that waits."""

from __future__ import annotations

import asyncio
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from marg_ray.cli import options as opt
from marg_ray.errors import UsageError

if TYPE_CHECKING:
    from marg_ray.cli.local import Reached
    from marg_ray.records import OutlineEntry
    from marg_ray.settings import Settings


class What(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    EXTEND = "extend"
    EDIT = "edit"


def decide(
    session: opt.Session,
    what: Annotated[What, typer.Argument(help="extend: a further round of the draft; edit: change the plan.")],
    note: Annotated[
        str, typer.Option("--note", help="What should be different; the planner or the writer is told.")
    ] = "",
    on: Annotated[
        int, typer.Option("--on", min=0, help="The plan's revision or the review's round that was read; 0: as it is.")
    ] = 0,
    section: Annotated[
        list[str] | None,
        typer.Option("--section", help='Of the edited plan: "Title: query; query". Repeatable. Else an editor opens.'),
    ] = None,
    by: opt.By = "owner",
) -> None:
    """Decide on a plan or a draft that waits, wherever the session runs. Of two who decide the first wins."""
    from marg_ray.cli.outline import outline_of
    from marg_ray.settings import load

    outline = outline_of(section or ())
    if outline and what not in (What.EDIT, What.APPROVE):
        raise UsageError(f"--section does not go with {what}", "use it with edit, or with approve")
    if what is What.EDIT and not outline and not sys.stdin.isatty():
        raise UsageError("what the plan is to be is missing", 'give --section "Title: query; query" once or more')
    typer.echo(asyncio.run(_decide(load(), session, what, outline, note, on, by)))


async def _decide(
    settings: Settings, session: str, what: What, outline: tuple[OutlineEntry, ...], note: str, on: int, by: str
) -> str:
    from marg_ray.actors.owner import Decision
    from marg_ray.cli.local import reach

    async with reach(settings, session) as reached:
        if what is What.EDIT and not outline:
            on, outline = await _in_editor(reached, on)
            if not outline:
                return f"{reached.session_id}: nothing was changed"
        decision = Decision(what=what.value, on=on, outline=outline, note=note, by=by)
        status = await reached.to.decide(reached.session_id, decision)
        if what is What.EDIT:
            return f"{reached.session_id}: edited; the plan waits: `marg decide {reached.session_id} approve`"
        return reached.told(status)


async def _in_editor(reached: Reached, on: int) -> tuple[int, tuple[OutlineEntry, ...]]:
    """The revision that was shown, and what the owner made of it.

    Raises:
        DecisionConflict: no plan waits.
    """
    from marg_ray.cli.outline import edited
    from marg_ray.errors import DecisionConflict
    from marg_ray.folding import replay
    from marg_ray.routing import waiting_for

    state = replay(e.message for e in await reached.store.read(reached.session_id))
    if state.plan is None or waiting_for(state) != "plan":
        raise DecisionConflict(reached.session_id, "no plan waits for a decision")
    return on or state.plan_revision, await edited(state.plan)
