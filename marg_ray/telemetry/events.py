"""What happens in a run, said in one call each: a line where lines are wanted, and figures.

Lines at `info` bear no text of a question, a document or a model: ids, counts, times and names of classes. At `debug`
they also name what a task is about (a query, an address) and why something failed.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, assert_never

from marg_ray.errors import AddressBlocked
from marg_ray.messages import (
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
from marg_ray.records import Usage
from marg_ray.state import ResearchState, role_of
from marg_ray.tasks import Task
from marg_ray.telemetry import lines
from marg_ray.telemetry.figures import FIGURES

log = logging.getLogger(__name__)

DUE_SHOWN = 20
TELLING = frozenset(
    {"ModelUnavailable", "SearchUnavailable", "StoreUnavailable", "RuntimeUnavailable", "BudgetExceeded"}
)
"""Errors whose words are ours alone: they name endpoints, engines and limits, never what was asked or read."""
_NOTHING = Usage()

P = ParamSpec("P")


def harmless(tell: Callable[P, None]) -> Callable[P, None]:
    """What goes wrong in telling of a run does not go wrong in the run."""

    @wraps(tell)
    def told(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            tell(*args, **kwargs)
        except Exception:
            log.warning("telemetry: %s failed", tell.__name__, exc_info=True)

    return told


# ---- the coordinator


@harmless
def handed_out(task: Task, iteration: int) -> None:
    """A task goes to its agent for the first time in this life of its session."""
    if lines.on():
        about = task.target if lines.on(lines.DEBUG) else ""
        lines.say(
            "ENTER", **_where(task.session_id, task.id, task.role, task.section), iteration=iteration, about=about
        )


@harmless
def handed_out_again(task: Task, reason: str, times: int) -> None:
    """A task got no answer (`silent`), or whoever had it died (`died`)."""
    FIGURES.count("marg_tasks_again_total", task.kind, reason)
    if lines.on():
        lines.say("AGAIN", **_where(task.session_id, task.id, task.role, task.section), reason=reason, times=times)


@harmless
def recorded(state: ResearchState, message: Message, due: Sequence[str]) -> None:
    """A fact is in the log; `state` is the one after it, `due` the tasks that were handed out because of it."""
    role, stage = role_of(message), stage_of(message)
    failed = isinstance(message, TaskFailed)
    if role is not None:
        FIGURES.count("marg_tasks_total", role, stage, "failed" if failed else "done")
        FIGURES.observe("marg_task_seconds", message.seconds, role, stage)
    match message:
        case DraftGrounded():
            for verdict, times in Counter(v.verdict for v in message.grounding.verdicts).items():
                FIGURES.count("marg_sentences_total", verdict, by=times)
        case ReviewDone():
            for name, score in message.review.scores:
                FIGURES.observe("marg_review_scores", score, name)
        case SessionStarted():
            FIGURES.count("marg_sessions_started_total", message.request.priority)
    if lines.on():
        event = "ERROR" if failed else "EXIT" if role is not None else "SESSION"
        lines.say(event, **_told(state, message, role or "", stage, due))


@harmless
def ended(status: str, worked_s: float) -> None:
    """A session came to an end, or a halt, after `worked_s` seconds of work."""
    FIGURES.count("marg_sessions_ended_total", status)
    FIGURES.observe("marg_session_seconds", worked_s, status)


def stage_of(message: Message) -> str:
    """The kind of the task that a message answers, or of the fact."""
    match message:
        case PlanReady():
            return "plan"
        case SearchDone():
            return "search"
        case SourceRead():
            return "read"
        case DraftReady():
            return "summarise" if message.draft.section == SUMMARY else "draft"
        case DraftGrounded():
            return "ground"
        case AnalysisReady():
            return "analyse"
        case ReviewDone():
            return "review"
        case ReportReady():
            return "format"
        case TaskFailed():
            return message.stage
        case (
            SessionStarted()
            | PlanEdited()
            | PlanDecided()
            | ReviewDecided()
            | Steered()
            | LimitReached()
            | SessionPaused()
            | SessionCancelled()
            | SessionResumed()
        ):
            return message.kind
    assert_never(message)


def _where(session: str, task: str, role: str, section: str) -> dict[str, Any]:
    return {"session": session, "task": task.removeprefix(f"{session}/"), "role": str(role), "section": section}


def _told(state: ResearchState, message: Message, role: str, stage: str, due: Sequence[str]) -> dict[str, Any]:
    """A fact's fields. `iteration` counts the critic's rounds that are done; `due` is the routing decision."""
    session, usage = state.session_id, message.usage
    short = [task.removeprefix(f"{session}/") for task in due[:DUE_SHOWN]]
    fields = {
        **_where(session, message.task_id, role, getattr(message, "section", "")),
        "kind": stage,
        "iteration": state.iteration,
        "latency": message.seconds,
        **(_spent(usage) if usage != _NOTHING else {}),
        **_said(message),
        "sources": len(state.sources),
        "due": short or None,
        "due_more": len(due) - DUE_SHOWN if len(due) > DUE_SHOWN else None,
        "notes": tuple(sorted({note.kind for note in message.notes})),
    }
    return fields


def _said(message: Message) -> dict[str, Any]:
    """What a fact says, in numbers and words of closed sets."""
    match message:
        case SessionStarted():
            return {"priority": message.request.priority.value, "depth": message.request.depth.value}
        case PlanReady():
            return {
                "sections": len(message.plan.sections),
                "queries": sum(len(s.queries) for s in message.plan.sections),
            }
        case SearchDone():
            return {"found": len(message.hits), "zone": message.answerability.zone.value} | _about(query=message.query)
        case SourceRead():
            about = _about(location=message.location, reason=message.reason)
            return {"outcome": message.status, "evidence": len(message.evidence)} | about
        case DraftReady():
            draft = message.draft
            return {"section": draft.section, "revision": draft.revision, "sentences": len(draft.sentences)}
        case DraftGrounded():
            grounding = message.grounding
            counts = Counter(v.verdict.value for v in grounding.verdicts)
            return {"section": grounding.section, "coverage": grounding.coverage, "verdicts": dict(counts)}
        case AnalysisReady():
            found = message.analysis
            return {"findings": len(found.findings), "contradictions": len(found.contradictions)}
        case ReviewDone():
            review = message.review
            scores, issues = review.scores.model_dump(), len(review.issues)
            return {"scores": scores, "verdict": review.verdict.value, "issues": issues, "sections": review.sections}
        case ReportReady():
            return {"status": message.status.value, "words": message.words, "artefact": message.artefact[:12]}
        case TaskFailed():
            detail = message.detail if message.error in TELLING or lines.on(lines.DEBUG) else ""
            return {"error": message.error, "detail": detail, "exit_code": message.exit_code}
        case PlanDecided():
            return {"approved": message.approved, "by": message.by}
        case ReviewDecided():
            return {"decision": message.decision, "by": message.by}
        case Steered():
            return {"action": message.action, "by": message.by}
        case LimitReached():
            return {"limit": message.limit, "hard": message.hard}
        case PlanEdited() | SessionPaused() | SessionCancelled() | SessionResumed():
            return {"by": message.by}
    assert_never(message)


def _about(**texts: str) -> dict[str, str]:
    return texts if lines.on(lines.DEBUG) else {}


def _spent(usage: Usage) -> dict[str, Any]:
    return {
        "tokens": usage.tokens_in + usage.tokens_out,
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "cost": round(usage.cost, 6),
        "reused": usage.reused or None,
    }


# ---- calls to the outside


class tool:
    """A call to a model, an engine or a page: TOOL_CALL before, TOOL_RESULT or ERROR after it.

    `fields` of what came back may be set while it is under way; `seconds` is there afterwards.
    """

    __slots__ = ("_began", "_where", "fields", "seconds", "tool", "usage")

    def __init__(self, tool: str, session: str, task: str, role: str, section: str = "") -> None:
        self.tool, self._where = tool, (session, task, role, section)
        self.fields: Mapping[str, Any] = {}
        self.usage = _NOTHING
        self.seconds = 0.0

    def __enter__(self) -> tool:
        if lines.on():
            self._say_call()
        self._began = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.perf_counter() - self._began
        if lines.on():
            self._say(value)

    @harmless
    def _say_call(self) -> None:
        lines.say("TOOL_CALL", **_where(*self._where), tool=self.tool)

    @harmless
    def _say(self, exc: BaseException | None) -> None:
        fields = {**_where(*self._where), "tool": self.tool, "latency": round(self.seconds, 4), **self.fields}
        if exc is None:
            spent = _spent(self.usage) if self.usage != _NOTHING else {}
            lines.say("TOOL_RESULT", **fields, **spent)
        elif isinstance(exc, Exception):
            name = type(exc).__name__
            lines.say(
                "ERROR", **fields, error=name, detail=str(exc) if name in TELLING or lines.on(lines.DEBUG) else ""
            )
        else:
            lines.say("TOOL_RESULT", **fields, outcome="cancelled")


@harmless
def model_tried(tier: str, model: str, usage: Usage, *, useless: bool = False, raised: bool = False) -> None:
    """A model was asked, and answered or did not (`useless`); `raised` because another tier's answer was useless."""
    FIGURES.count("marg_model_calls_total", tier, model, "useless" if useless else "ok", by=max(1, usage.calls))
    if usage.tokens_in or usage.tokens_out:
        FIGURES.count("marg_model_tokens_total", tier, model, "in", by=usage.tokens_in)
        FIGURES.count("marg_model_tokens_total", tier, model, "out", by=usage.tokens_out)
    if usage.cost:
        FIGURES.count("marg_model_cost_dollars_total", tier, model, by=usage.cost)
    if usage.throttled:
        FIGURES.count("marg_model_throttled_total", model, by=usage.throttled)
    if raised:
        FIGURES.count("marg_escalations_total", "useless" if useless else "ok")


@contextmanager
def fetching() -> Iterator[None]:
    """One page, from its address to its frozen text: it `came`, `failed`, or was `blocked` for its address."""
    began = time.perf_counter()
    outcome = "left"
    try:
        yield
        outcome = "came"
    except Exception as exc:
        outcome = "blocked" if isinstance(exc, AddressBlocked) else "failed"
        raise
    finally:
        FIGURES.count("marg_fetches_total", outcome)
        if outcome == "came":
            FIGURES.observe("marg_fetch_seconds", time.perf_counter() - began)


@harmless
def searched(engine: str, outcome: str, seconds: float) -> None:
    """An engine `answered`, found `nothing`, or `failed`."""
    FIGURES.count("marg_searches_total", engine, outcome)
    FIGURES.observe("marg_search_seconds", seconds, engine)
