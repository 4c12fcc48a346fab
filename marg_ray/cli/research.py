"""`marg research`: ask, watch, get the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marg_ray.cli import options as opt
from marg_ray.errors import UsageError
from marg_ray.kinds import Depth, GateMode, OnTimeout, Priority, RequestClass

if TYPE_CHECKING:
    from marg_ray.records import Request
    from marg_ray.settings import Settings

CLASSES = [c.value for c in RequestClass]


def research(
    question: Annotated[str, typer.Argument(help="What you want to know. `-` reads it from standard input.")] = "",
    docs: Annotated[
        list[Path] | None, typer.Option("--docs", "-d", help="A folder (or file) to research in. Repeatable.")
    ] = None,
    depth: Annotated[Depth, typer.Option(help="How much to write.")] = Depth.STANDARD,
    web: Annotated[
        bool | None, typer.Option("--web/--no-web", help="Search the web too (default: only without --docs).")
    ] = None,
    mcp: Annotated[bool, typer.Option("--mcp/--no-mcp", help="Ask the MCP servers of the settings too.")] = True,
    offline: Annotated[bool, typer.Option("--offline", help="Let nothing leave this machine.")] = False,
    model: opt.Model = "",
    request_class: Annotated[str, typer.Option("--class", help=f"Fix the kind of request: {', '.join(CLASSES)}.")] = "",
    focus: Annotated[
        list[str] | None, typer.Option("--focus", help="Something to look at in particular. Repeatable.")
    ] = None,
    section: Annotated[
        list[str] | None,
        typer.Option("--section", help='Your own outline: "Title", or "Title: query; query". Repeatable.'),
    ] = None,
    text: Annotated[
        list[Path] | None, typer.Option("--text", help="A file to analyse or to write from. Repeatable.")
    ] = None,
    language: Annotated[str, typer.Option(help="Of the report, as a two-letter code; default: the question's.")] = "",
    strict: Annotated[bool, typer.Option("--strict", help="No report rather than one with a warning.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Research anew, although a report is kept.")] = False,
    batch: Annotated[bool, typer.Option("--batch", help="Let sessions that somebody waits for go first.")] = False,
    review: opt.Review = False,
    approve_plan: opt.ApprovePlan = False,
    gate: opt.Gate = None,
    on_timeout: opt.TimeOut = None,
    gate_timeout: opt.GateTimeout = None,
    max_usd: opt.MaxUsd = None,
    max_tokens: opt.MaxTokens = None,
    max_minutes: opt.MaxMinutes = None,
    deadline: opt.Deadline = "",
    max_searches: opt.MaxSearches = None,
    max_tasks: opt.MaxTasks = None,
    record: opt.Record = None,
    replay: opt.Replay = None,
    out: opt.Out = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Research QUESTION and write a report whose every sentence can be checked."""
    from marg_ray.cli.limits import limits_from
    from marg_ray.cli.outline import outline_of
    from marg_ray.cli.run import Output, run
    from marg_ray.client import make_request
    from marg_ray.report.writers import check_path
    from marg_ray.settings import load

    settings = load(model=model or None, tape=_tape(record, replay))
    for path in out or ():
        check_path(path)
    output = Output(files=tuple(out or ()), as_json=as_json, quiet=quiet)
    if not question:
        raise typer.Exit(run(settings, _recorded(settings), output))
    limits = limits_from(
        settings.budget,
        usd=max_usd,
        tokens=max_tokens,
        minutes=max_minutes,
        deadline=deadline,
        searches=max_searches,
        tasks=max_tasks,
    )
    fields: dict[str, Any] = {
        "request_class": _class(request_class),
        "focus_areas": tuple(focus or ()),
        "outline": outline_of(section or ()),
        "language": language or None,
        "strict": strict,
        "fresh": fresh,
        "priority": Priority.BATCH if batch else Priority.INTERACTIVE,
        "limits": limits,
        "provided": _provided(text or [], settings),
        **_gates(review, approve_plan, gate, on_timeout, gate_timeout),
    }
    fields |= {"mcp": mcp, "others": bool(settings.mcp.servers)}
    request: Request = make_request(_asked(question), docs=docs or (), depth=depth, web=web, offline=offline, **fields)
    if settings.tape.replay:
        from marg_ray.memory.recorded import timeless

        request = timeless(request)
    raise typer.Exit(run(settings, request, output))


def _tape(record: Path | None, replay: Path | None) -> dict[str, str] | None:
    """The setting that the two options make; None: that of the environment or the file."""
    if record is None and replay is None:
        return None
    return {"record": str(record or ""), "replay": str(replay or "")}


def _recorded(settings: Settings) -> Request:
    """What a recording asks."""
    from marg_ray.memory.recorded import to_replay
    from marg_ray.models.tape import Tape

    tape = Tape.of(settings.tape)
    if tape is None or not tape.replays:
        raise UsageError("there is no question", "say what you want to know, or give --replay DIR")
    return to_replay(tape)


def _asked(question: str) -> str:
    import sys

    return sys.stdin.buffer.read().decode("utf-8", "replace") if question == "-" else question


def _class(name: str) -> RequestClass | None:
    if name and name not in CLASSES:
        raise UsageError(f"there is no request class {name!r}", f"the classes are {', '.join(CLASSES)}")
    return RequestClass(name) if name else None


def _gates(
    review: bool,
    approve_plan: bool,
    gate: GateMode | None,
    on_timeout: OnTimeout | None,
    timeout_s: float | None,
) -> dict[str, Any]:
    """`--review` asks at both gates, for as long as it takes; what is said beside it counts more."""
    fields: dict[str, Any] = {"approve_plan": review or approve_plan}
    if review:
        fields |= {"gate": GateMode.ALWAYS, "on_timeout": OnTimeout.WAIT}
        if timeout_s is not None:
            fields["on_timeout"] = OnTimeout.APPROVE
    given = {"gate": gate, "on_timeout": on_timeout, "gate_timeout_s": timeout_s}
    return {**fields, **{name: value for name, value in given.items() if value is not None}}


def _provided(files: list[Path], settings: Settings) -> tuple[str, ...]:
    """Freeze the texts that were handed in; their snapshot ids."""
    from marg_ray.cli.local import freeze

    return tuple(freeze(path, settings)[0] for path in files)
