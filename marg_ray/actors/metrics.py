"""A run's figures, for dashboards and comparisons: what it did, how long each stage worked, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from marg_ray.messages import TaskFailed
from marg_ray.records import Record, Scores, Usage
from marg_ray.state import ResearchState, role_of
from marg_ray.store.protocol import LogEntry


class StageTime(Record):
    """How often agents of a role answered, and the seconds they took in all (they work side by side)."""

    answers: int
    seconds: float


class RunMetrics(Record):
    status: str
    wall_seconds: float  # from the question to the last entry, waiting for the owner included
    worked_seconds: float  # without waiting, pauses and time in nobody's hands
    iterations: int
    sections: int
    searches: int
    sources: int
    unavailable: int
    passages: int
    sentences: dict[str, int]  # by verdict
    scores: Scores | None
    stages: dict[str, StageTime]  # by role
    usage: dict[str, Usage]  # by role, what was spent by answers that are in the log
    failed_tasks: int
    takeovers: int  # how often another coordinator took the session up


def metrics_of(state: ResearchState, entries: Sequence[LogEntry], status: str, worked: float) -> RunMetrics:
    """The figures of a session as its log has them now."""
    answers: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for entry in entries:
        role = role_of(entry.message)
        if role is not None:
            answers[role] += 1
            seconds[role] += entry.message.seconds  # type: ignore[assignment]
    sections = state.sections.values()
    verdicts = Counter(str(s.verdict) for x in sections if x.draft for s in x.draft.sentences if s.verdict)
    return RunMetrics(
        status=status,
        wall_seconds=round((entries[-1].at - entries[0].at).total_seconds(), 3) if entries else 0.0,
        worked_seconds=round(worked, 3),
        iterations=state.iteration,
        sections=len(state.sections),
        searches=sum(slot.done for x in sections for slot in x.searches) + int(state.scouted),
        sources=len(state.sources),
        unavailable=len(state.unavailable),
        passages=len(state.evidence),
        sentences=dict(verdicts),
        scores=state.reviews[-1].scores if state.reviews else None,
        stages={role: StageTime(answers=n, seconds=round(seconds[role], 3)) for role, n in answers.items()},
        usage={str(role): usage for role, usage in state.usage.items()},
        failed_tasks=sum(isinstance(e.message, TaskFailed) for e in entries),
        takeovers=len({e.epoch for e in entries}) - 1 if entries else 0,
    )
