"""The arguments and options that commands share, each written once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from marg_ray.kinds import GateMode, OnTimeout

DECISIONS, LIMITS, OUTPUT, TAPE = "Decisions", "Limits", "Output", "Record and replay"

Format = StrEnum(
    "Format",
    {"MD": "md", "HTML": "html", "JSON": "json", "PDF": "pdf", "DOCX": "docx", "BIB": "bib", "RIS": "ris"},
)

Session = Annotated[str, typer.Argument(help="A session's id, its beginning, or `last`.")]
By = Annotated[str, typer.Option("--by", help="Who says so; it is written on the report.")]

# ---- where it goes

Out = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        help="Write the report here; the ending picks the format (.pdf .docx .html .md .json .bib .ris). "
        "Repeatable. "
        "Without it the report goes to standard output.",
        rich_help_panel=OUTPUT,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Events and the report as JSON, one object a line.", rich_help_panel=OUTPUT),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No timeline.", rich_help_panel=OUTPUT)]
Record = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="DIR",
        help="Keep everything that models, searches and pages answer in this folder.",
        rich_help_panel=TAPE,
    ),
]
Replay = Annotated[
    Path | None,
    typer.Option(
        "--replay",
        metavar="DIR",
        help="Answer from a recording, and ask nobody. Without a question: the one that was recorded.",
        rich_help_panel=TAPE,
    ),
]
Model = Annotated[str, typer.Option("--model", "-m", help="auto, extractive, or provider:model.")]

# ---- who decides

Review = Annotated[
    bool,
    typer.Option(
        "--review",
        help="Ask me before research begins (the plan) and before delivery (the draft). In a terminal the question "
        "is put there; elsewhere the run stops at it, to be decided with `marg decide`.",
        rich_help_panel=DECISIONS,
    ),
]
ApprovePlan = Annotated[
    bool,
    typer.Option("--approve-plan", help="Research only after the plan was approved.", rich_help_panel=DECISIONS),
]
Gate = Annotated[
    GateMode | None,
    typer.Option(help="Ask before delivery; auto: where a score is below 0.70.", rich_help_panel=DECISIONS),
]
TimeOut = Annotated[
    OnTimeout | None,
    typer.Option(
        "--on-timeout",
        help="What happens when nobody decides in time. Default: approve; with --review alone: wait.",
        rich_help_panel=DECISIONS,
    ),
]
GateTimeout = Annotated[
    float | None,
    typer.Option(
        "--gate-timeout",
        min=0.1,
        metavar="SECONDS",
        help="After which --on-timeout applies. Default: 300.",
        rich_help_panel=DECISIONS,
    ),
]

# ---- what it may spend

MaxUsd = Annotated[
    float | None, typer.Option("--max-usd", min=0, help="US dollars for model calls.", rich_help_panel=LIMITS)
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", min=0, help="Model tokens, in and out.", rich_help_panel=LIMITS)
]
MaxMinutes = Annotated[
    float | None,
    typer.Option(
        "--max-minutes", min=0.01, help="Of work; waiting for a decision does not count.", rich_help_panel=LIMITS
    ),
]
Deadline = Annotated[
    str,
    typer.Option(
        metavar="WHEN",
        help='When the report is due: a time ("17:30"), a duration ("20m", "1h30m"), or an ISO date and time.',
        rich_help_panel=LIMITS,
    ),
]
MaxSearches = Annotated[int | None, typer.Option("--max-searches", min=0, help="Web searches.", rich_help_panel=LIMITS)]
MaxTasks = Annotated[int | None, typer.Option("--max-tasks", min=1, help="Agents' tasks.", rich_help_panel=LIMITS)]
