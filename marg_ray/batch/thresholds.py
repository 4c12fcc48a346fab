"""What a batch came to, and whether that is good enough. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from marg_ray.batch.results import RowResult
from marg_ray.kinds import ReportStatus, Verdict

MISSED = 8  # exit code: the batch ended, and is not good enough
AWAY = 5  # exit code: rows stopped because a model, a search or the store was away; the same command goes on
STOPPED = 6  # exit code: rows were not begun, because the batch's money was spent


@dataclass(frozen=True)
class Thresholds:
    """Bounds on a whole batch; None: none. Shares are of 1."""

    max_failed: int | None = 0
    max_refused: int | None = None
    min_passed: float | None = None  # share of the rows
    min_supported: float | None = None  # share of the sentences of all reports that state something
    min_quality: float | None = None  # mean over the reports of each one's lowest score


@dataclass(frozen=True)
class Summary:
    """All rows of a batch together. `not_begun` are rows that were left for the next time."""

    rows: int = 0
    delivered: int = 0
    refused: int = 0
    failed: int = 0
    not_begun: int = 0
    repeated: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    supported: float | None = None
    quality: float | None = None
    words: int = 0
    sentences: int = 0
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0  # of the command
    missed: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def summarise(
    results: Sequence[RowResult], thresholds: Thresholds, *, not_begun: int = 0, repeated: int = 0, seconds: float = 0.0
) -> Summary:
    """The figures of all rows, and the thresholds that they miss, in words."""
    reports = [r for r in results if r.delivered]
    verdicts: Counter[str] = Counter()
    for r in reports:
        verdicts.update(r.verdicts)
    factual = verdicts.total() - verdicts[Verdict.NOT_FACTUAL]
    qualities = [r.quality for r in reports if r.quality is not None]
    summary = Summary(
        rows=len(results) + not_begun,
        delivered=len(reports),
        refused=sum(r.refused for r in results),
        failed=sum(r.failed for r in results),
        not_begun=not_begun,
        repeated=repeated,
        statuses=dict(Counter(r.status for r in results)),
        supported=round(verdicts[Verdict.SUPPORTED] / factual, 4) if factual else None,
        quality=round(sum(qualities) / len(qualities), 4) if qualities else None,
        words=sum(r.words for r in reports),
        sentences=sum(r.sentences for r in reports),
        tokens=sum(r.tokens for r in results),
        usd=round(sum(r.usd for r in results), 6),
        seconds=round(seconds, 3),
    )
    return replace(summary, missed=tuple(_missed(summary, thresholds)))


def exit_code(summary: Summary, results: Sequence[RowResult], *, money_spent: bool = False) -> int:
    """0, or what stands in the way. What the same command may do away with goes before what it cannot."""
    bounds = [m for m in summary.missed if not m.startswith("failed")]
    if summary.missed and not bounds and all(r.away for r in results if r.failed):
        return AWAY
    if summary.missed:
        return MISSED
    if summary.not_begun:
        return STOPPED if money_spent else AWAY
    return 0


def _missed(summary: Summary, wanted: Thresholds) -> list[str]:
    missed = []
    if wanted.max_failed is not None and summary.failed > wanted.max_failed:
        missed.append(f"failed: {summary.failed}, at most {wanted.max_failed} may")
    if wanted.max_refused is not None and summary.refused > wanted.max_refused:
        missed.append(f"refused: {summary.refused}, at most {wanted.max_refused} may be")
    if wanted.min_passed is not None:
        passed = summary.statuses.get(ReportStatus.PASSED, 0)
        share = passed / summary.rows if summary.rows else 1.0
        if share < wanted.min_passed:
            missed.append(f"passed: {share:.3f} of the rows, at least {wanted.min_passed:g} should")
    for name, value, least in (
        ("supported", summary.supported, wanted.min_supported),
        ("quality", summary.quality, wanted.min_quality),
    ):
        if least is not None and (value is None or value < least):
            found = "nothing to measure" if value is None else f"{value:.3f}"
            missed.append(f"{name}: {found}, at least {least:g} is wanted")
    return missed
