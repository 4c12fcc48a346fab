"""A log entry as clients see it. Pure, and small: what an agent found or wrote stays in the report and its evidence."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from pathlib import PurePath
from typing import Annotated, Any, assert_never

from pydantic import BaseModel, ConfigDict, Field

from marg_ray.messages import (
    AnalysisReady,
    DraftGrounded,
    DraftReady,
    LimitReached,
    Message,
    PlanDecided,
    PlanEdited,
    PlanReady,
    ReportReady,
    ReviewDecided,
    ReviewDone,
    SearchDone,
    SessionCancelled,
    SessionPaused,
    SessionResumed,
    SessionStarted,
    SourceRead,
    Steered,
    TaskFailed,
)
from marg_ray.narration import describe
from marg_ray.records import Verdict
from marg_ray.state import teller_of
from marg_ray.store.protocol import LogEntry

MOST_LETTERS = 500  # of one text: titles and error messages come from anywhere

Fields = dict[str, Any]


class EventOut(BaseModel):
    """One fact of a session's log. Beside these fields each kind has a few of its own."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "seq": 7,
                    "at": "2026-11-30T12:00:04.210000+00:00",
                    "kind": "source_read",
                    "role": "researcher",
                    "section": "s2",
                    "text": "read La Rance: 3 passages",
                    "seconds": 1.82,
                    "tokens": 2140,
                    "cost": 0.0004,
                    "title": "La Rance",
                    "location": "https://example.org/rance",
                    "status": "read",
                    "evidence": 3,
                }
            ]
        },
    )

    seq: Annotated[int, Field(description="its number in the log, from 1 without holes: the event's id")]
    at: datetime
    kind: Annotated[str, Field(description="what happened; also the event's name", examples=["search_done"])]
    role: Annotated[str, Field(description="who says it: an agent's role, owner or clock", examples=["researcher"])]
    section: Annotated[str, Field(description="the section's id, summary, or empty")]
    text: Annotated[str, Field(description="in words")]
    seconds: Annotated[float, Field(description="that the agent took")]
    tokens: Annotated[int, Field(description="in and out")]
    cost: Annotated[float, Field(description="US dollars")]


def public(entry: LogEntry) -> Fields:
    """The event of a log entry, as plain JSON values; its fields are those of `EventOut`."""
    message = entry.message
    usage = message.usage
    return {
        "seq": entry.seq,
        "at": entry.at.isoformat(),
        "kind": message.kind,
        "role": teller_of(message),
        "section": _section(message),
        "text": _words(message),
        "seconds": _number(message.seconds),
        "tokens": usage.tokens_in + usage.tokens_out,
        "cost": _number(usage.cost),
        **{name: cut(value) if isinstance(value, str) else value for name, value in _own(message).items()},
    }


def cut(text: str) -> str:
    """Text on one line, and not too long."""
    line = " ".join(text[: 4 * MOST_LETTERS].split())
    return line if len(line) <= MOST_LETTERS else line[: MOST_LETTERS - 1] + "…"


def place(location: str) -> str:
    """Where a source is: a web address as it stands, a document by its name. Paths of this machine are nobody's."""
    return PurePath(location).name if location.startswith("/") else location


def _number(value: float) -> float:
    return round(value, 6) if math.isfinite(value) else 0.0


def _words(message: Message) -> str:
    return cut(_placed(describe(message), _location(message)))


def _placed(text: str, location: str) -> str:
    return text.replace(location, place(location)) if location else text


def _location(message: Message) -> str:
    """The source that it is about."""
    match message:
        case SourceRead():
            return message.location
        case TaskFailed():
            return message.target
        case Steered():
            return message.hit.location if message.hit else message.location
    return ""


def _section(message: Message) -> str:
    match message:
        case DraftReady():
            return message.draft.section
        case DraftGrounded():
            return message.grounding.section
        case SearchDone() | SourceRead() | TaskFailed() | Steered():
            return message.section
    return ""


def _own(message: Message) -> Fields:
    """What this kind has to say beside the words."""
    match message:
        case SessionStarted():
            return {"question": message.request.question, "depth": message.request.depth.value}
        case PlanReady():
            sections = [{"id": s.id, "title": cut(s.title), "queries": len(s.queries)} for s in message.plan.sections]
            return {"title": message.plan.title, "language": message.plan.language, "sections": sections}
        case PlanEdited():
            return {"revision": message.revision, "sections": len(message.sections), "by": message.by}
        case PlanDecided():
            return {"revision": message.revision, "approved": message.approved, "note": message.note, "by": message.by}
        case SearchDone() | SourceRead():
            return _research(message)
        case DraftReady() | DraftGrounded() | AnalysisReady() | ReviewDone():
            return _writing(message)
        case ReviewDecided():
            return {"round": message.round, "decision": message.decision, "note": message.note, "by": message.by}
        case ReportReady():
            status = message.status.value
            return {"status": status, "words": message.words, "reason": message.reason, "artefact": message.artefact}
        case TaskFailed():
            target, detail = place(message.target), _placed(message.detail, message.target)
            return {"stage": message.stage, "target": target, "error": message.error, "detail": detail}
        case Steered():
            location = place(_location(message))
            return {"action": message.action, "query": message.query, "location": location, "by": message.by}
        case LimitReached():
            return {"limit": message.limit, "hard": message.hard}
        case SessionPaused() | SessionCancelled() | SessionResumed():
            return {"by": message.by}
    assert_never(message)


def _research(message: SearchDone | SourceRead) -> Fields:
    if isinstance(message, SearchDone):
        zone = message.answerability.zone.value
        return {"query": message.query, "rewritten": message.rewritten, "hits": len(message.hits), "zone": zone}
    source = message.source
    return {
        "title": source.title if source else "",
        "location": place(message.location),
        "source": source.id if source else "",
        "status": message.status,
        "reason": _placed(message.reason, message.location),
        "evidence": len(message.evidence),
    }


def _writing(message: DraftReady | DraftGrounded | AnalysisReady | ReviewDone) -> Fields:
    match message:
        case DraftReady(draft=draft):
            words = sum(len(s.text.split()) for s in draft.sentences)
            return {"revision": draft.revision, "words": words, "incomplete": draft.incomplete}
        case DraftGrounded(grounding=grounding):
            found = Counter(v.verdict for v in grounding.verdicts)
            verdicts = {v.value: found[v] for v in Verdict if found[v]}
            coverage = _number(grounding.coverage)
            return {"revision": grounding.revision, "verdicts": verdicts, "coverage": coverage}
        case AnalysisReady(analysis=analysis):
            return {
                "findings": len(analysis.findings),
                "contradictions": len(analysis.contradictions),
                "unknowns": len(analysis.unknowns),
            }
        case ReviewDone(review=review):
            scores = {name: _number(score) for name, score in review.scores}
            verdict = review.verdict.value
            return {"round": review.iteration, "verdict": verdict, "scores": scores, "issues": len(review.issues)}
    assert_never(message)
