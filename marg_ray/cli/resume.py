"""`marg resume` and `marg cancel`: go on with a session from its log, or end it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marg_ray.errors import UsageError

if TYPE_CHECKING:
    from marg_ray.records import Request
    from marg_ray.store.protocol import Store


def resume(
    session: Annotated[str, typer.Argument(help="A session's id, its beginning, or `last`.")],
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", "-o", help="Write the report here (.md .html .json). Repeatable."),
    ] = None,
    model: Annotated[str, typer.Option("--model", "-m", help="auto, extractive, or provider:model.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Events and the report as JSON, one object a line.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No timeline.")] = False,
) -> None:
    """Go on with a session that was interrupted or halted. Nothing that was paid for is paid again."""
    from marg_ray.cli.local import find_session, with_store
    from marg_ray.cli.run import Output, run
    from marg_ray.folding import replay
    from marg_ray.report.writers import check_path
    from marg_ray.settings import load

    for path in out or ():
        check_path(path)
    settings = load(model=model or None)

    async def read(store: Store) -> tuple[str, Request | None]:
        found = await find_session(store, session)
        return found, replay(e.message for e in await store.read(found)).request

    session_id, request = with_store(settings, read)
    if request is None:
        raise UsageError(f"session {session_id} was never started", "ask the question again with `marg research`")
    output = Output(files=tuple(out or ()), as_json=as_json, quiet=quiet)
    raise typer.Exit(run(settings, request, output, session_id))


def cancel(session: Annotated[str, typer.Argument(help="A session's id, its beginning, or `last`.")]) -> None:
    """End a session for good; what it has found stays in its log."""
    import asyncio

    from marg_ray.actors.coordinator import Coordinator
    from marg_ray.actors.holder import is_alive
    from marg_ray.cli.local import find_session, with_store
    from marg_ray.client import Marg
    from marg_ray.messages import Message
    from marg_ray.settings import load
    from marg_ray.tasks import Task

    settings = load()

    async def end(store: Store) -> str:
        session_id = await find_session(store, session)
        row = await store.session(session_id)
        if settings.runtime.ray_address:
            async with Marg(settings) as marg:
                return f"{session_id}: {await marg.runtime.cancel(session_id)}"
        if row.status == "running" and is_alive(row.holder):
            return ""

        async def nobody(task: Task) -> Message:
            await asyncio.Event().wait()
            raise AssertionError(task)

        coordinator = Coordinator(store, nobody)
        return f"{session_id}: {await coordinator.cancel(session_id)}"

    said = with_store(settings, end)
    if not said:
        raise UsageError("another process works on this session", "stop it there with Ctrl-C, then cancel it")
    typer.echo(said)
