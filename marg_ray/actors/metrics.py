"""A run's figures, for dashboards and comparisons: what it did, how long each stage worked, what it cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pydantic import Field

from marg_ray.messages import TaskFailed
from marg_ray.models.client import Try
from marg_ray.models.wrappers import ONLY, tries_of
from marg_ray.records import Record, Scores, Usage
from marg_ray.state import ResearchState, role_of
from marg_ray.store.protocol import CallRow, LogEntry


class StageTime(Record):
    """How often agents of a role answered, and the seconds they took in all (they work side by side)."""

    answers: int
    seconds: float


class TierFigures(Record):
    """What one tier did: `fast`, `strong`, `own` (a role's model), or `only` where there are no tiers."""

    calls: int
    share: float  # of the model calls
    tokens: int  # in and out
    usd: float
    useless: int = 0  # answers that failed their check, or did not come


class RaisedFigures(Record):
    """Tasks that went to the strong tier because what was there had failed its check, and what that bought."""

    times: int = 0
    passed: int = 0  # the strong tier's answer was usable
    tokens: int = 0  # of the strong tier's tries
    usd: float = 0.0
    vain_tokens: int = 0  # of the tries before them
    vain_usd: float = 0.0
    stages: dict[str, int] = Field(default_factory=dict)  # times, by stage


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
    spent: dict[str, Usage] = Field(
        default_factory=dict
    )  # by stage, as the ledger has it: calls that failed or died included
    tiers: dict[str, TierFigures] = Field(default_factory=dict)
    raised: RaisedFigures = RaisedFigures()


def metrics_of(
    state: ResearchState, entries: Sequence[LogEntry], status: str, worked: float, calls: Sequence[CallRow] = ()
) -> RunMetrics:
    """The figures of a session as its log has them now, and its `calls` the ledger."""
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
        spent=spent_by_stage(calls),
        tiers=tiers_of(calls),
        raised=raised_of(calls),
    )


def spent_by_stage(calls: Iterable[CallRow]) -> dict[str, Usage]:
    """What each kind of task used (`plan`, `search`, `read`, `draft`, ...)."""
    spent: dict[str, Usage] = defaultdict(Usage)
    for row in calls:
        spent[_stage(row)] += row.usage + row.lost
    return dict(spent)


def tiers_of(calls: Iterable[CallRow]) -> dict[str, TierFigures]:
    """What each tier did, the busiest first."""
    used: dict[str, Usage] = defaultdict(Usage)
    useless: Counter[str] = Counter()
    for row in calls:
        if row.call.kind == "model" and row.usage.calls:
            tries = list(_tries(row))
            for made in tries:
                used[made.tier] += made.usage
                useless[made.tier] += bool(made.fault)
            if not tries:
                used[ONLY] += row.usage
    total = sum(u.calls for u in used.values())
    return {
        tier: TierFigures(
            calls=u.calls,
            share=round(u.calls / total, 4),
            tokens=_tokens(u),
            usd=round(u.cost, 6),
            useless=useless[tier],
        )
        for tier, u in sorted(used.items(), key=lambda item: -item[1].calls)
        if total
    }


def raised_of(calls: Iterable[CallRow]) -> RaisedFigures:
    """What raising tasks to the strong tier cost, and how often it helped."""
    raised: list[Try] = []
    before = Usage()
    stages: Counter[str] = Counter()
    for row in calls:
        tries = list(_tries(row))
        for n, made in enumerate(tries):
            if made.raised:
                raised.append(made)
                stages[_stage(row)] += 1
                before = sum((t.usage for t in tries[:n]), before)
    spent = sum((made.usage for made in raised), Usage())
    return RaisedFigures(
        times=len(raised),
        passed=sum(not made.fault for made in raised),
        tokens=_tokens(spent),
        usd=round(spent.cost, 6),
        vain_tokens=_tokens(before),
        vain_usd=round(before.cost, 6),
        stages=dict(stages),
    )


def _tries(row: CallRow) -> Iterator[Try]:
    """Which tier tried, where the ledger was told: with an answer, and with what a failed call cost."""
    if row.call.kind == "model":
        yield from tries_of(row.result)


def _stage(row: CallRow) -> str:
    """The kind of task: `SESSION/s1/read/...` is a read, `SESSION/plan/0` a plan."""
    parts = row.call.task_id.removeprefix(f"{row.call.session_id}/").split("/")
    return parts[1] if len(parts) > 2 else parts[0]


def _tokens(usage: Usage) -> int:
    return usage.tokens_in + usage.tokens_out
