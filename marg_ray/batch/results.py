"""What came of a row, as one line of JSON. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, JsonValue

from marg_ray.errors import MargError, SessionCancelled
from marg_ray.kinds import ReportStatus, Verdict
from marg_ray.records import Request, Scores, Usage

if TYPE_CHECKING:
    from marg_ray.batch.rows import Problem, Row
    from marg_ray.report.model import Report

# letters of scripts without spaces count one each, as word processors do
_WORD = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
FINAL = frozenset(str(s) for s in ReportStatus)
"""Statuses that stay: a row that has one is not asked again by itself."""
DELIVERED = frozenset({"passed", "quality_warning", "budget_stopped"})


class RowError(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    type: str
    detail: str
    hint: str = ""
    retryable: bool = False


class RowResult(BaseModel):
    """One line of `results.jsonl`. Fields are added, never renamed or removed.

    `status` is a report's, or `halted`, `paused`, `error` (it could not be asked, or not to an end) or `invalid` (the
    row is wrong). `supported` is the share of the sentences that state something, `quality` the lowest score.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    key: str
    line: int = 0
    question: str = ""
    status: str
    session: str = ""
    asked: str = ""  # digest of the request
    owner: str = ""
    model: str = ""
    language: str = ""
    words: int = 0
    sentences: int = 0
    verdicts: dict[str, int] = {}  # sentences by verdict
    supported: float | None = None
    quality: float | None = None
    scores: Scores | None = None
    iterations: int = 0
    sources: int = 0  # cited
    read: int = 0  # sources that were read
    calls: int = 0
    searches: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0  # from the question to its end
    kept: bool = False  # the same was asked before: nothing was spent now
    report: str = ""  # the first file
    files: tuple[str, ...] = ()
    error: RowError | None = None
    ended_at: datetime | None = None
    meta: dict[str, JsonValue] = {}

    @property
    def final(self) -> bool:
        return self.status in FINAL

    @property
    def delivered(self) -> bool:
        return self.status in DELIVERED and self.sentences > 0

    @property
    def refused(self) -> bool:
        """Ended as it should without a report: the sources do not answer, or the limits were too low."""
        return self.final and not self.delivered and self.status != ReportStatus.CANCELLED

    @property
    def failed(self) -> bool:
        return not self.delivered and not self.refused

    @property
    def away(self) -> bool:
        """It failed because something it needs did not answer."""
        return self.failed and (self.status == "halted" or (self.error is not None and self.error.retryable))


@dataclass(frozen=True)
class Spent:
    """What a session took: usage and seconds."""

    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    read: int = 0


def asked_of(request: Request) -> str:
    """A digest of what is asked; who asks, what it may cost and how urgent it is make no difference."""
    import hashlib

    from marg_ray.memory.cache import CHANGES_NO_ANSWER

    body = request.model_dump_json(exclude=set(CHANGES_NO_ANSWER))
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def words_of(texts: Iterable[str]) -> int:
    return sum(len(_WORD.findall(text)) for text in texts)


def of_report(
    row: Row,
    asked: str,
    report: Report,
    spent: Spent,
    *,
    files: Sequence[str] = (),
    kept: bool = False,
    now: datetime | None = None,
) -> RowResult:
    """The figures of a row whose report is there (a refusal is one, too)."""
    sentences = report.sentences()
    verdicts = Counter(str(s.verdict) for s in sentences)
    factual = len(sentences) - verdicts[Verdict.NOT_FACTUAL]
    scores = Scores(**report.scores.model_dump()) if report.scores else None
    return _base(row, asked, report.session_id, str(report.status), spent, now).model_copy(
        update={
            "model": report.model,
            "language": report.language,
            "words": words_of(s.text for s in sentences),
            "sentences": len(sentences),
            "verdicts": dict(verdicts),
            "supported": round(verdicts[Verdict.SUPPORTED] / factual, 4) if factual else None,
            "quality": round(scores.lowest, 4) if scores else None,
            "scores": scores,
            "iterations": report.iterations,
            "sources": len(report.references),
            "read": len(report.sources),
            "kept": kept,
            "report": files[0] if files else "",
            "files": tuple(files),
        }
    )


def of_error(
    row: Row, asked: str, session: str, exc: Exception, spent: Spent, status: str = "", now: datetime | None = None
) -> RowResult:
    """A row that did not come to a report. `status`: where the session stands, if there is one."""
    status = status or ("cancelled" if isinstance(exc, SessionCancelled) else "error")
    return _base(row, asked, session, status, spent, now).model_copy(update={"error": error_of(exc)})


def of_problem(problem: Problem, question: str = "", now: datetime | None = None) -> RowResult:
    """A row that is wrong."""
    return RowResult(
        key=problem.key or f"line-{problem.line}",
        line=problem.line,
        question=question,
        status="invalid",
        error=RowError(type="UsageError", detail=problem.what, hint=problem.todo),
        ended_at=now or datetime.now(UTC),
    )


def error_of(exc: Exception) -> RowError:
    if isinstance(exc, MargError):
        return RowError(type=exc.code, detail=_printable(exc), hint=exc.hint, retryable=exc.retryable)
    return RowError(type=type(exc).__name__, detail=_printable(exc))


def _printable(exc: Exception) -> str:
    """Without the lone surrogates of odd file names, which JSON cannot hold."""
    return " ".join(str(exc).split())[:500].encode("utf-8", "replace").decode()


def _base(row: Row, asked: str, session: str, status: str, spent: Spent, now: datetime | None) -> RowResult:
    usage = spent.usage
    return RowResult(
        key=row.key,
        line=row.line,
        question=row.question,
        status=status,
        session=session,
        asked=asked,
        owner=row.owner,
        calls=usage.calls,
        searches=usage.searches,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        tokens=usage.tokens_in + usage.tokens_out,
        usd=round(usage.cost, 6),
        seconds=round(spent.seconds, 3),
        read=spent.read,
        ended_at=now or datetime.now(UTC),
        meta=row.meta,
    )
