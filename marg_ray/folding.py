"""The fold that makes a session's state from its log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from marg_ray.decisions import (
    limit_reached,
    next_round,
    noted,
    plan_decided,
    plan_edited,
    planned,
    reopened,
    review_decided,
    steered,
    task_limit,
)
from marg_ray.messages import (
    SCOUT,
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
from marg_ray.records import Analysis, Answerability, Review, ReviewVerdict, Usage
from marg_ray.sections import draft_failed, drafted, ground_failed, grounded, read, searched, skipped
from marg_ray.state import Halt, ResearchState, Stop, changed, role_of

HALTING = frozenset({"ModelUnavailable", "SearchUnavailable"})
NEVER_PASSED_OVER = frozenset({"NotRecorded"})  # a replay that goes on without something is none
LATE = frozenset({"ground", "analyse", "review", "summarise", "format"})


def apply(state: ResearchState, message: Message) -> ResearchState:
    """Fold one message into the state. No clock, no I/O, no Ray: replaying the log gives the state."""
    if message.task_id in state.answered:  # redelivered, or the task ran twice
        return state
    if state.halt is not None and isinstance(message, TaskFailed):  # due again after the resume
        return state
    return task_limit(_folded(_booked(state, message), message))


def replay(messages: Iterable[Message]) -> ResearchState:
    """The state after a log."""
    state = ResearchState()
    for message in messages:
        state = apply(state, message)
    return state


def _folded(state: ResearchState, message: Message) -> ResearchState:
    match message:
        case SessionStarted():
            request = message.request
            return changed(
                state,
                session_id=message.session_id,
                request=request,
                limits=request.limits,
                started_at=message.started_at,
            )
        case PlanReady():
            return planned(state, message.plan)
        case PlanEdited():
            return plan_edited(state, message)
        case PlanDecided():
            return plan_decided(state, message)
        case SearchDone():
            return searched(state, message)
        case SourceRead():
            return read(state, message)
        case DraftReady():
            return drafted(state, message.draft)
        case DraftGrounded():
            return grounded(state, message.grounding)
        case AnalysisReady():
            return changed(state, analysis=message.analysis, analysed_from=len(state.evidence))
        case ReviewDone():
            return _reviewed(state, message.review)
        case ReviewDecided():
            return review_decided(state, message)
        case ReportReady():
            return changed(state, report=message)
        case TaskFailed():
            return _failed(state, message)
        case Steered():
            return steered(state, message)
        case LimitReached():
            return limit_reached(state, message)
        case SessionPaused():
            return changed(state, paused=True)
        case SessionCancelled():
            return changed(state, cancelled=True) if state.report is None else state
        case SessionResumed():
            return changed(state, halt=None, paused=False)
    assert_never(message)


def _booked(state: ResearchState, message: Message) -> ResearchState:
    """Every message: remember its task, add its notes and what it cost."""
    changes: dict[str, object] = {"answered": state.answered | {message.task_id}}
    fresh = tuple(n for n in message.notes if n not in state.notes)
    if fresh:
        changes["notes"] = state.notes + fresh
    role = role_of(message)
    if role is not None:
        changes["tasks_done"] = state.tasks_done + 1
        if message.usage != Usage():
            changes["usage"] = {**state.usage, role: state.usage.get(role, Usage()) + message.usage}
    return changed(state, **changes)


def _reviewed(state: ResearchState, review: Review) -> ResearchState:
    seen = {s.section.id: s.draft.revision for s in state.sections.values() if s.draft}
    state = changed(state, reviews=(*state.reviews, review), reviewed=seen)
    final = review.verdict in (ReviewVerdict.PASS, ReviewVerdict.INSUFFICIENT_EVIDENCE)
    if final or state.stop or state.iteration >= state.cap:
        return state
    return reopened(next_round(state, review))


# ---- failures


def _failed(state: ResearchState, failed: TaskFailed) -> ResearchState:
    """What a failed task means: a halt that can be resumed, or a run that goes on without it and says so."""
    if failed.error == "BudgetExceeded":
        state = _out_of_budget(state, failed)
        if failed.stage in ("search", "read"):
            return state
    if failed.error in NEVER_PASSED_OVER:
        return _halted(state, failed)
    aside = failed.stage == "search" and failed.section != SCOUT
    if failed.error in HALTING and failed.stage not in LATE and not aside:
        return _halted(state, failed)
    match failed.stage:
        case "search" if failed.section != SCOUT:
            state = _noted(state, failed, "a search failed")
            return searched(state, SearchDone(task_id=failed.task_id, section=failed.section, query=failed.target))
        case "read":
            state = _noted(state, failed, "a source could not be read")
            return read(
                state,
                SourceRead(
                    task_id=failed.task_id,
                    section=failed.section,
                    location=failed.target,
                    status="unavailable",
                    reason=failed.detail,
                ),
            )
        case "draft" if failed.section in state.sections:
            return draft_failed(_noted(state, failed, "quoted instead of written"), failed)
        case "ground":
            return ground_failed(_noted(state, failed, "not checked"), failed)
        case "analyse":
            state = _noted(state, failed, "findings across the sources are missing")
            return changed(state, analysis=state.analysis or Analysis(), analysed_from=len(state.evidence))
        case "review":
            return changed(_noted(state, failed, "the draft was not reviewed"), review_failed=True)
        case "summarise":
            return changed(_noted(state, failed, "the summary is made of the sections' sentences"), summary_failed=True)
        case "format" if state.format_failures == 0:
            return changed(state, format_failures=1)
    return _halted(state, failed)


def _out_of_budget(state: ResearchState, failed: TaskFailed) -> ResearchState:
    """Research that the budget has no room for is left out; raised limits make it due again.

    What others have under way goes on: each call is refused or granted by itself.
    """
    state = noted(state, "budget", f"research stopped: {failed.detail}")
    state = changed(state, stop=state.stop or Stop.RESEARCH)
    match failed.stage:
        case "search" if failed.section == SCOUT:
            return changed(state, scouted=True, answerability=Answerability())
        case "search" | "read":
            return skipped(state, failed)
    return state


def _halted(state: ResearchState, failed: TaskFailed) -> ResearchState:
    """Stop here. The task counts as not answered, so that it is due again after a resume."""
    halt = Halt(error=failed.error, detail=failed.detail, stage=failed.stage, exit_code=failed.exit_code)
    return changed(state, halt=halt, halts=state.halts + 1, answered=state.answered - {failed.task_id})


def _noted(state: ResearchState, failed: TaskFailed, what: str) -> ResearchState:
    return noted(state, f"{failed.stage}_failed", f"{what}: {failed.detail}", failed.section)
