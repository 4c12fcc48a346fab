"""`marg batch`: many questions from a file; one line of figures and one report for each."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from marg_ray.cli import options as opt
from marg_ray.cli.grouped import Grouped
from marg_ray.errors import UsageError
from marg_ray.kinds import Depth, ReportStatus

THRESHOLDS, CLUSTER = "Thresholds", "Cluster"
AT_ONCE = 16
RowsAs = StrEnum("RowsAs", {"JSONL": "jsonl", "CSV": "csv", "TEXT": "text"})
EPILOG = (
    "Exit codes: 0 every row ended and the thresholds hold, 2 usage, 5 rows stopped because a model, a search or the "
    "store was away, 6 --total-usd is spent, 8 a threshold is missed, 130 interrupted. After 5, 6 and 130 the same "
    "command goes on."
)


class WithAddress(Grouped):
    """`--submit` may stand alone."""

    def parse_args(self, ctx: object, args: list[str]) -> list[str]:
        from marg_ray.batch.submit import with_address

        return super().parse_args(ctx, with_address(args))  # type: ignore[arg-type]


def batch(
    questions: Annotated[str, typer.Argument(help="JSON lines, CSV, or one question a line; `-`: standard input.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.jsonl and the reports.")],
    rows: Annotated[RowsAs | None, typer.Option("--rows", help="What the file holds; else by its ending.")] = None,
    docs: Annotated[
        list[Path] | None, typer.Option("--docs", "-d", help="Folders of rows that name none. Repeatable.")
    ] = None,
    depth: Annotated[Depth, typer.Option(help="Of rows that name none.")] = Depth.STANDARD,
    web: Annotated[
        bool | None, typer.Option("--web/--no-web", help="Of rows that do not say (default: only without docs).")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Let nothing leave this machine.")] = False,
    model: opt.Model = "",
    language: Annotated[str, typer.Option(help="Of the reports of rows that name none.")] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Research anew what was asked before.")] = False,
    owner: Annotated[str, typer.Option(help="Of rows that name none.")] = "local",
    at_once: Annotated[int, typer.Option("--at-once", min=1, help="Rows under way.")] = AT_ONCE,
    again: Annotated[
        list[ReportStatus] | None,
        typer.Option("--again", help="Ask rows once more that ended so. Repeatable."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Begin nothing when a row is wrong.")] = False,
    max_usd: opt.MaxUsd = None,
    max_tokens: opt.MaxTokens = None,
    max_minutes: opt.MaxMinutes = None,
    deadline: opt.Deadline = "",
    max_searches: opt.MaxSearches = None,
    max_tasks: opt.MaxTasks = None,
    total_usd: Annotated[
        float | None,
        typer.Option(
            "--total-usd", min=0, help="Begin no further row when the batch has cost this.", rich_help_panel=opt.LIMITS
        ),
    ] = None,
    max_failed: Annotated[
        int | None,
        typer.Option(
            "--max-failed", min=0, help="Rows that stopped, or could not be asked.", rich_help_panel=THRESHOLDS
        ),
    ] = 0,
    max_refused: Annotated[
        int | None,
        typer.Option("--max-refused", min=0, help="Rows that nothing answers.", rich_help_panel=THRESHOLDS),
    ] = None,
    min_passed: Annotated[
        float | None,
        typer.Option("--min-passed", min=0, max=1, help="Share of the rows.", rich_help_panel=THRESHOLDS),
    ] = None,
    min_supported: Annotated[
        float | None,
        typer.Option("--min-supported", min=0, max=1, help="Share of all sentences.", rich_help_panel=THRESHOLDS),
    ] = None,
    min_quality: Annotated[
        float | None,
        typer.Option(
            "--min-quality", min=0, max=1, help="Mean of each report's lowest score.", rich_help_panel=THRESHOLDS
        ),
    ] = None,
    submit: Annotated[
        str,
        typer.Option(
            "--submit",
            metavar="[ADDRESS]",
            help="Run as a Ray job on the cluster at ADDRESS (http://HEAD:8265).",
            rich_help_panel=CLUSTER,
        ),
    ] = "",
    env: Annotated[
        list[str] | None,
        typer.Option("--env", help="NAME or NAME=VALUE for the job. Repeatable.", rich_help_panel=CLUSTER),
    ] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Submit, and leave.", rich_help_panel=CLUSTER)] = False,
    fmt: Annotated[
        list[opt.Format] | None,
        typer.Option("--format", "-f", help="Of the reports. Repeatable. Default: md.", rich_help_panel=opt.OUTPUT),
    ] = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Research every row of QUESTIONS. Called again, it goes on: rows that ended are skipped, others are resumed.

    A row is a JSON object with a `question` and, where they differ from the options here, key, docs, depth, web,
    class, focus, sections, text, language, strict, owner, limits. docs/batch.md has them all.
    """
    from marg_ray.batch.thresholds import Thresholds
    from marg_ray.cli.batch_run import Command, RowDefaults, run_batch
    from marg_ray.settings import load

    limits = {
        "usd": max_usd,
        "tokens": max_tokens,
        "minutes": max_minutes,
        "deadline": deadline,
        "searches": max_searches,
        "tasks": max_tasks,
    }
    command = Command(
        questions=questions,
        out=out,
        form=str(rows) if rows else "",
        defaults=RowDefaults(
            docs=tuple(docs or ()),
            depth=depth,
            web=web,
            offline=offline,
            language=language,
            fresh=fresh,
            owner=owner,
            limits={name: value for name, value in limits.items() if value not in (None, "")},
        ),
        thresholds=Thresholds(max_failed, max_refused, min_passed, min_supported, min_quality),
        at_once=at_once,
        again=tuple(str(a) for a in again or ()),
        strict=strict,
        total_usd=total_usd,
        formats=tuple(dict.fromkeys(str(f) for f in fmt or ("md",))),
        as_json=as_json,
        quiet=quiet,
    )
    if not submit and (env or no_wait):
        raise UsageError("--env and --no-wait are for a job", "give --submit too")
    settings = load(model=model or None)
    if submit:
        from marg_ray.cli.batch_submit import Submission, submit_batch

        code = submit_batch(settings, command, Submission(submit, tuple(env or ()), model=model, wait=not no_wait))
    else:
        code = run_batch(settings, command)
    raise typer.Exit(code)
