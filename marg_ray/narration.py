"""A session's log in words: one line per fact, for the timeline, the trace and the web page."""

from __future__ import annotations

from typing import assert_never

from marg_ray.decisions import steering_words
from marg_ray.messages import (
    SCOUT,
    SUMMARY,
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
from marg_ray.records import Verdict


def describe(message: Message) -> str:
    """What happened, in one line without the agent's name."""
    match message:
        case SessionStarted():
            return f"asked: {message.request.question}"
        case PlanReady():
            queries = sum(len(s.queries) for s in message.plan.sections)
            return f"planned {_count(len(message.plan.sections), 'section')} with {_count(queries, 'query', 'queries')}"
        case PlanEdited():
            return f"plan edited by {message.by}: {_count(len(message.sections), 'section')}"
        case PlanDecided():
            return f"plan {'approved' if message.approved else 'rejected'} by {message.by}"
        case SearchDone():
            return _search(message)
        case SourceRead():
            if message.status == "unavailable":
                return f"could not read {message.location}: {message.reason}"
            title = message.source.title if message.source else message.location
            return f"read {title}: {_count(len(message.evidence), 'passage')}"
        case DraftReady():
            return f"wrote {_place(message.draft.section)}{_revision(message.draft.revision)}"
        case DraftGrounded():
            return _grounded(message)
        case AnalysisReady():
            found = message.analysis
            return (
                f"compared the evidence: {_count(len(found.findings), 'finding')}, "
                f"{_count(len(found.contradictions), 'disagreement')}, {_count(len(found.unknowns), 'open point')}"
            )
        case ReviewDone():
            scores = ", ".join(f"{k} {v:.2f}" for k, v in message.review.scores.model_dump().items())
            return f"reviewed, round {message.review.iteration}: {message.review.verdict} ({scores})"
        case ReviewDecided():
            return f"{message.decision} by {message.by}"
        case ReportReady():
            return f"report ready: {message.status}" if not message.reason else f"no report: {message.reason}"
        case TaskFailed():
            return f"{message.stage} failed: {message.detail}"
        case Steered():
            return f"{message.by}: {steering_words(message)}"
        case LimitReached():
            return message.detail
        case SessionPaused():
            return f"paused by {message.by}"
        case SessionCancelled():
            return f"cancelled by {message.by}"
        case SessionResumed():
            return "resumed"
    assert_never(message)


def _search(message: SearchDone) -> str:
    where = "looked around" if message.section == SCOUT else f'searched "{message.query}"'
    again = f', then "{message.rewritten}"' if message.rewritten else ""
    return f"{where}{again}: {_count(len(message.hits), 'hit')}"


def _grounded(message: DraftGrounded) -> str:
    grounding = message.grounding
    counts = {v: sum(s.verdict is v for s in grounding.verdicts) for v in Verdict}
    faults = counts[Verdict.UNSUPPORTED] + counts[Verdict.CONTRADICTED]
    text = f"checked {_place(grounding.section)}: {counts[Verdict.SUPPORTED]} of {len(grounding.verdicts)} supported"
    return text + (f", {faults} not" if faults else "")


def _place(section: str) -> str:
    return "the summary" if section == SUMMARY else f"section {section.removeprefix('s')}"


def _revision(number: int) -> str:
    return f" again (revision {number})" if number > 1 else ""


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
