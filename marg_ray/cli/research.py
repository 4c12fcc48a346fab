"""`marg research`: ask, watch, get the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marg_ray.errors import UsageError
from marg_ray.kinds import Depth, RequestClass

if TYPE_CHECKING:
    from marg_ray.records import Request

CLASSES = [c.value for c in RequestClass]


def research(
    question: Annotated[str, typer.Argument(help="What you want to know. `-` reads it from standard input.")],
    docs: Annotated[
        list[Path] | None, typer.Option("--docs", "-d", help="A folder (or file) to research in. Repeatable.")
    ] = None,
    depth: Annotated[Depth, typer.Option(help="How much to write.")] = Depth.STANDARD,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            help="Write the report here; the ending picks the format (.md .html .json). "
            "Repeatable. Without it the report goes to standard output.",
        ),
    ] = None,
    web: Annotated[
        bool | None, typer.Option("--web/--no-web", help="Search the web too (default: only without --docs).")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Let nothing leave this machine.")] = False,
    model: Annotated[str, typer.Option("--model", "-m", help="auto, extractive, or provider:model.")] = "",
    request_class: Annotated[str, typer.Option("--class", help=f"Fix the kind of request: {', '.join(CLASSES)}.")] = "",
    focus: Annotated[
        list[str] | None, typer.Option("--focus", help="Something to look at in particular. Repeatable.")
    ] = None,
    section: Annotated[
        list[str] | None, typer.Option("--section", help="Your own outline: a section's title. Repeatable.")
    ] = None,
    text: Annotated[
        list[Path] | None, typer.Option("--text", help="A file to analyse or to write from. Repeatable.")
    ] = None,
    language: Annotated[str, typer.Option(help="Of the report, as a two-letter code; default: the question's.")] = "",
    strict: Annotated[bool, typer.Option("--strict", help="No report rather than one with a warning.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Events and the report as JSON, one object a line.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No timeline.")] = False,
) -> None:
    """Research QUESTION and write a report whose every sentence can be checked."""
    import sys

    from marg_ray.cli.run import Output, run
    from marg_ray.client import make_request
    from marg_ray.report.writers import check_path
    from marg_ray.settings import load

    if question == "-":
        question = sys.stdin.buffer.read().decode("utf-8", "replace")
    settings = load(model=model or None)
    for path in out or ():
        check_path(path)
    fields: dict[str, Any] = {
        "request_class": _class(request_class),
        "focus_areas": tuple(focus or ()),
        "outline": tuple({"title": s} for s in section or ()),
        "language": language or None,
        "strict": strict,
        "provided": _provided(text or [], settings.home),
    }
    request: Request = make_request(question, docs=docs or (), depth=depth, web=web, offline=offline, **fields)
    raise typer.Exit(run(settings, request, Output(files=tuple(out or ()), as_json=as_json, quiet=quiet)))


def _class(name: str) -> RequestClass | None:
    if name and name not in CLASSES:
        raise UsageError(f"there is no request class {name!r}", f"the classes are {', '.join(CLASSES)}")
    return RequestClass(name) if name else None


def _provided(files: list[Path], home: Path) -> tuple[str, ...]:
    """Freeze the texts that were handed in; their snapshot ids."""
    if not files:
        return ()
    from marg_ray.grounding.injection import cut_injections
    from marg_ray.grounding.snapshots import Snapshots
    from marg_ray.sources.parse import parse

    ids = []
    for path in files:
        try:
            body = path.read_bytes()
        except OSError as exc:
            raise UsageError(f"{path}: {exc.strerror or exc}", "check the path given with --text") from None
        ids.append(Snapshots(home / "snapshots").put(cut_injections(parse(body, name=path.name))))
    return tuple(ids)
