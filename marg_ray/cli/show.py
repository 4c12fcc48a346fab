"""`marg show`: a session's report, its log, or the exact text of one of its sources."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from marg_ray.errors import MargError, UsageError

if TYPE_CHECKING:
    from marg_ray.store.protocol import CallRow, LogEntry, Store

FORMATS = ("md", "html", "json")


def show(
    session: Annotated[str, typer.Argument(help="A session's id, its beginning, or `last`.")],
    source: Annotated[
        str, typer.Option("--source", help="Print the frozen text of this source (its id), exactly.")
    ] = "",
    log: Annotated[bool, typer.Option("--log", help="Print what happened, a line each.")] = False,
    calls: Annotated[bool, typer.Option("--calls", help="Print every paid call, one JSON object a line.")] = False,
    fmt: Annotated[str, typer.Option("--format", "-f", help="Of the report: md, html or json.")] = "md",
) -> None:
    """Print a session's report (or, with --source, what a citation was checked against)."""
    from marg_ray.actors.assembly import Places
    from marg_ray.cli.local import find_session, with_store
    from marg_ray.settings import load

    if fmt not in FORMATS:
        raise UsageError(f"there is no format {fmt!r}", f"the formats are {', '.join(FORMATS)}")
    settings = load()
    places = Places(settings.home)

    async def read(store: Store) -> tuple[str, list[LogEntry], list[CallRow]]:
        found = await find_session(store, session)
        return found, await store.read(found), await store.calls(found) if calls else []

    session_id, entries, rows = with_store(settings, read)
    if source:
        sys.stdout.buffer.write(places.snapshots.text(source).encode("utf-8"))
    elif calls:
        for row in rows:
            typer.echo(row.model_dump_json(exclude={"result"}))
    elif log:
        _print_log(entries)
    else:
        typer.echo(_report(session_id, entries, fmt), nl=False)


def _print_log(entries: list[LogEntry]) -> None:
    from marg_ray.narration import describe
    from marg_ray.state import teller_of

    for entry in entries:
        line = " ".join(describe(entry.message).split())
        typer.echo(f"{entry.seq:4d} {entry.at:%H:%M:%S} {teller_of(entry.message):12s} {line}")


def _report(session_id: str, entries: list[LogEntry], fmt: str) -> str:
    from marg_ray.actors.assembly import Places
    from marg_ray.client import error_of
    from marg_ray.folding import replay
    from marg_ray.report.model import from_json
    from marg_ray.report.writers import render
    from marg_ray.settings import load

    state = replay(e.message for e in entries)
    error = error_of(state, session_id)
    if error is not None and (state.report is None or fmt != "json"):
        raise error
    if state.report is None:
        raise _Unfinished(session_id)
    return render(from_json(Places(load().home).artefacts.get(state.report.artefact)), fmt)


class _Unfinished(MargError):
    exit_code = 2

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id

    def __str__(self) -> str:
        return f"session {self.session_id} has no report yet"

    @property
    def hint(self) -> str:
        return f"`marg resume {self.session_id}` goes on with it"
