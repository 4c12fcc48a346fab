"""A session under way as the timeline shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marg_ray.cli.account import counts, stopped_by, total
from marg_ray.cli.timeline import Board, LogLine
from marg_ray.cli.words import ordinal
from marg_ray.narration import describe
from marg_ray.state import ResearchState, teller_of

if TYPE_CHECKING:
    from marg_ray.client import Step
    from marg_ray.store.protocol import LogEntry

VERBS = {
    "plan": "planning",
    "search": "searching",
    "read": "reading",
    "draft": "writing",
    "ground": "checking",
    "analyse": "comparing the evidence",
    "review": "reviewing the draft",
    "summarise": "summarising",
    "format": "putting the report together",
}


def board_of(step: Step, *, elapsed: float, waited: float, index_line: str) -> Board:
    """`elapsed` seconds since the command began, `waited` of them for the owner."""
    state = step.state
    running = [(r.role, _doing(r.kind, r.section, r.target, state)) for r in step.progress.running]
    if index_line:
        running.insert(0, ("library", index_line))
    spent = total(state)
    return Board(
        running=tuple(running),
        counts=counts(state),
        tokens=spent.tokens_in + spent.tokens_out,
        cost=spent.cost,
        elapsed=elapsed,
        limits=state.limits,
        searches=spent.searches,
        tasks=state.tasks_done,
        worked=elapsed - waited,
        notice=_notice(state, step.progress.position),
    )


def line_of(entry: LogEntry, at: float) -> LogLine:
    """A log entry as a line, `at` seconds after the command began."""
    return LogLine(
        seq=entry.seq,
        at=at,
        role=teller_of(entry.message),
        kind=entry.message.kind,
        text=describe(entry.message),
        section=getattr(entry.message, "section", ""),
    )


def _notice(state: ResearchState, position: int) -> str:
    if position > 0:
        return f"{ordinal(position)} in the queue"
    return stopped_by(state)


def _doing(kind: str, section: str, target: str, state: ResearchState) -> str:
    titles = {key: s.section.title for key, s in state.sections.items()}
    what = target or titles.get(section, "the summary" if section == "summary" else "")
    return f"{VERBS.get(kind, kind)} {what}".strip()
