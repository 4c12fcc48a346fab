"""`marg pause` and `marg cancel`: stop a session for now, or for good, wherever it runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from marg_ray.cli import options as opt

if TYPE_CHECKING:
    from marg_ray.settings import Settings


def pause(session: opt.Session, by: opt.By = "owner") -> None:
    """Stop a session for now; what is under way is aborted, what is settled is not paid again."""
    from marg_ray.settings import load

    typer.echo(asyncio.run(_pause(load(), session, by)))


def cancel(session: opt.Session, by: opt.By = "owner") -> None:
    """End a session for good; what it has found stays in its log."""
    from marg_ray.settings import load

    typer.echo(asyncio.run(_cancel(load(), session, by)))


async def _pause(settings: Settings, session: str, by: str) -> str:
    from marg_ray.actors.neighbours import SETTLED
    from marg_ray.cli.local import reach

    async with reach(settings, session) as reached:
        status = await reached.to.pause(reached.session_id, by)
        more = "" if status in SETTLED else f"; `marg resume {reached.session_id}` goes on"
        return f"{reached.session_id}: {status}{more}"


async def _cancel(settings: Settings, session: str, by: str) -> str:
    from marg_ray.cli.local import reach

    async with reach(settings, session) as reached:
        return f"{reached.session_id}: {await reached.to.cancel(reached.session_id, by)}"
