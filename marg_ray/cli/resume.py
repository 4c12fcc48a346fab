"""`marg resume`: go on with a session from its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from marg_ray.cli import options as opt
from marg_ray.errors import UsageError

if TYPE_CHECKING:
    from marg_ray.records import Request
    from marg_ray.store.protocol import Store


def resume(
    session: opt.Session,
    model: opt.Model = "",
    out: opt.Out = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Go on with a session that was interrupted, paused or halted, or that a decision let go on.

    Nothing that was paid for is paid again. A session that runs elsewhere is followed from here.
    """
    from marg_ray.cli.local import find_session, holder_of, with_store
    from marg_ray.cli.run import Output, run
    from marg_ray.folding import replay
    from marg_ray.report.writers import check_path
    from marg_ray.settings import load

    for path in out or ():
        check_path(path)
    settings = load(model=model or None)

    async def read(store: Store) -> tuple[str, str, Request | None]:
        found = await find_session(store, session)
        holder = await holder_of(store, found, settings)
        return found, holder, replay(e.message for e in await store.read(found)).request

    session_id, holder, request = with_store(settings, read)
    if request is None:
        raise UsageError(f"session {session_id} was never started", "ask the question again with `marg research`")
    output = Output(files=tuple(out or ()), as_json=as_json, quiet=quiet)
    raise typer.Exit(run(settings, request, output, session_id, holder))
