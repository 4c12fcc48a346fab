"""`marg show`: a session's report, its log, or the exact text of one of its sources."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marg_ray.errors import UsageError

if TYPE_CHECKING:
    from marg_ray.report.model import Report
    from marg_ray.settings import Settings
    from marg_ray.state import ResearchState
    from marg_ray.store.protocol import Account, CallRow, LogEntry, Store


def show(
    session: Annotated[str, typer.Argument(help="A session's id, its beginning, or `last`.")],
    source: Annotated[
        str, typer.Option("--source", help="Print the frozen text of this source (its id), exactly.")
    ] = "",
    log: Annotated[bool, typer.Option("--log", help="Print what happened, a line each.")] = False,
    checks: Annotated[
        bool, typer.Option("--checks", help="Print what the check of each sentence found, and the words that decided.")
    ] = False,
    calls: Annotated[bool, typer.Option("--calls", help="Print every paid call, one JSON object a line.")] = False,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Print the run's figures: JSON, and tables on standard error.")
    ] = False,
    trace: Annotated[
        bool,
        typer.Option(
            "--trace", help="Print what ran when and what waited for what; with --calls each call; -f json: as spans."
        ),
    ] = False,
    fmt: Annotated[str, typer.Option("--format", "-f", help="Of the report: md, html, json, bib or ris.")] = "md",
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            help="Write the report to this file (.pdf .docx .html .md .json .bib .ris) instead. Repeatable.",
        ),
    ] = None,
) -> None:
    """Print a session's report, and on standard error its account: limits, what was spent, who decided what."""
    from marg_ray.actors.assembly import Places
    from marg_ray.cli.local import find_session, with_store
    from marg_ray.report.writers import TEXTS, check_path
    from marg_ray.settings import load

    if fmt not in TEXTS:
        raise UsageError(f"there is no text format {fmt!r}", f"choose one of {', '.join(TEXTS)}, or `marg export`")
    for path in out or ():
        check_path(path)
    settings = load()

    async def read(store: Store) -> tuple[str, list[LogEntry], list[CallRow], Account]:
        found = await find_session(store, session)
        entries = await store.read(found)
        rows = await store.calls(found) if calls or metrics or trace else []
        return found, entries, rows, await store.account(found)

    session_id, entries, rows, spent = with_store(settings, read)
    if source:
        sys.stdout.buffer.write(Places.of(settings).snapshots.text(source).encode("utf-8"))
    elif metrics:
        _print_figures(entries, rows)
    elif trace:
        _print_trace(session_id, entries, rows, with_calls=calls, as_json=fmt == "json")
    elif calls:
        for row in rows:
            typer.echo(row.model_dump_json(exclude={"result"}))
    elif log:
        _print_log(entries)
    elif checks:
        _print_checks(settings, session_id, entries)
    else:
        _print_report(settings, session_id, entries, spent, fmt, tuple(out or ()))


def _print_log(entries: list[LogEntry]) -> None:
    from marg_ray.narration import describe
    from marg_ray.state import teller_of

    for entry in entries:
        line = " ".join(describe(entry.message).split())
        typer.echo(f"{entry.seq:4d} {entry.at:%H:%M:%S} {teller_of(entry.message):12s} {line}")


def _print_trace(
    session_id: str, entries: list[LogEntry], calls: list[CallRow], *, with_calls: bool, as_json: bool
) -> None:
    from marg_ray.actors.trace import trace_of
    from marg_ray.cli.stored import Unfinished
    from marg_ray.cli.trace import print_trace

    if not entries:
        raise Unfinished(session_id, "nothing has happened in it")
    found = trace_of(session_id, entries, calls)
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        print_trace(found, calls=with_calls)


def _print_figures(entries: list[LogEntry], calls: list[CallRow]) -> None:
    """JSON for programs, and on standard error for people."""
    from rich.console import Console

    from marg_ray.cli.figures import figures_of, figures_table

    figures = figures_of(entries, calls)
    typer.echo(figures.model_dump_json())
    Console(stderr=True).print(figures_table(figures))


def _print_checks(settings: Settings, session_id: str, entries: list[LogEntry]) -> None:
    from marg_ray.cli.checks import lines
    from marg_ray.cli.stored import Unfinished, stands, stored
    from marg_ray.folding import replay

    state = replay(e.message for e in entries)
    report = stored(settings, state)
    if report is None:
        raise Unfinished(session_id, stands(state))
    for line in lines(report):
        typer.echo(line)


def _print_report(
    settings: Settings, session_id: str, entries: list[LogEntry], spent: Account, fmt: str, files: tuple[Path, ...]
) -> None:
    from marg_ray.cli.export import export, tell
    from marg_ray.cli.stored import Unfinished, stands, stored
    from marg_ray.client import error_of
    from marg_ray.folding import replay
    from marg_ray.report.writers import render

    state = replay(e.message for e in entries)
    report = stored(settings, state)
    if fmt == "md":
        _print_account(state, entries, spent, report)
    error = error_of(state, session_id)
    if error is not None and (report is None or fmt != "json"):
        raise error
    if report is None:
        raise Unfinished(session_id, stands(state))
    if not files:
        typer.echo(render(report, fmt), nl=False)
        return
    delivered = export(report, files, otherwise_text=False)
    for file in delivered.files:
        typer.echo(os.fsencode(file))
    tell(delivered)
    raise typer.Exit(1 if delivered.nothing else 0)


def _print_account(state: ResearchState, entries: list[LogEntry], spent: Account, report: Report | None) -> None:
    from rich.console import Console

    from marg_ray.actors.live import status_word
    from marg_ray.cli.account import account_of, cited_in, closing_stats

    if not entries:
        return
    console = Console(stderr=True)
    elapsed = (entries[-1].at - entries[0].at).total_seconds()
    model = report.model if report else ""
    account = account_of(
        state,
        entries,
        status=status_word(state),
        elapsed=elapsed,
        model=model,
        lost=spent.lost,
        citations=cited_in(report),
    )
    console.print(closing_stats(account, console.width))
