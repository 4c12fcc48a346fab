"""A session as a client sees it. Pure: the same row, state and progress give the same view."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from marg_ray.actors.formatter import verdict_text
from marg_ray.actors.live import Progress, status_word
from marg_ray.api.schemas import (
    IssueOut,
    LimitsOut,
    NoteOut,
    OutlineOut,
    PlanOut,
    ReportOut,
    RequestOut,
    ReviewOut,
    RunningOut,
    ScoresOut,
    SectionOut,
    SectionPlan,
    SectionStage,
    SessionOut,
    SessionSummary,
    SpentOut,
)
from marg_ray.records import Request, Usage
from marg_ray.routing import waiting_for
from marg_ray.state import ResearchState, SectionState
from marg_ray.store.protocol import SessionRow

LEFT = "nobody works on it any more: the process that did has ended"


def session_summary(row: SessionRow, *, abandoned: bool = False) -> SessionSummary:
    """A session as a line of a list."""
    return SessionSummary(
        id=row.id,
        question=row.question,
        status="halted" if abandoned and row.status == "running" else row.status,
        created_at=row.created_at,
        updated_at=row.updated_at,
        seq=row.seq,
        report=bool(row.artefact),
    )


def session_view(row: SessionRow, state: ResearchState, progress: Progress) -> SessionOut:
    """Where a session stands: `state` is the fold of its log, `progress` what its coordinator has under way.

    Entries of `progress` that are newer than the row date the view.
    """
    last = progress.entries[-1] if progress.entries else None
    newer = last is not None and last.seq > row.seq
    return SessionOut(
        id=row.id,
        question=row.question,
        status=progress.status,
        depth=state.request.depth if state.request else None,
        created_at=row.created_at,
        updated_at=last.at if last is not None and newer else row.updated_at,
        seq=last.seq if last is not None and newer else row.seq,
        request=_request(state.request) if state.request else None,
        waiting_for=_gate(progress.waiting_for),
        position=progress.position,
        halt=progress.halt,
        plan=_plan(state),
        review=_review(state),
        sections=tuple(_section(state, section) for section in state.sections.values()),
        running=tuple(RunningOut(**task.model_dump()) for task in progress.running),
        limits=LimitsOut.of(state.limits),
        spent=spent(state.usage.values()),
        notes=tuple(NoteOut(kind=note.kind, text=note.text) for note in state.notes),
        report=_report(state),
    )


def at_rest(state: ResearchState, *, abandoned: bool = False) -> Progress:
    """The progress of a session that nobody works on, from its state alone.

    `abandoned`: its process ended on the way. It stands still until it is resumed, as after a halt.
    """
    halt = f"{state.halt.error}: {state.halt.detail}" if state.halt else ""
    status, waits = status_word(state), waiting_for(state)
    if abandoned:
        halt = halt or LEFT
        status = status if waits else "halted"
    return Progress(entries=(), running=(), status=status, waiting_for=waits, halt=halt)


def spent(usages: Iterable[Usage]) -> SpentOut:
    total = sum(usages, Usage())
    return SpentOut(**{name: getattr(total, name) for name in SpentOut.model_fields})


def _gate(waits: str) -> Literal["", "plan", "review"]:
    return "plan" if waits == "plan" else "review" if waits == "review" else ""


def _request(request: Request) -> RequestOut:
    """What was asked for, without paths and ids of this machine."""
    same = request.model_dump(include=set(RequestOut.model_fields) - {"outline"})
    return RequestOut(
        **same,
        outline=tuple(OutlineOut(title=entry.title, queries=entry.queries) for entry in request.outline),
        web=request.sources.web,
        offline=request.sources.offline,
        folders=len(request.sources.folders),
        texts=len(request.provided),
    )


def _plan(state: ResearchState) -> PlanOut | None:
    """The plan, with what was steered since."""
    if state.plan is None:
        return None
    sections = (s.section for s in state.sections.values())
    return PlanOut(
        title=state.plan.title,
        revision=state.plan_revision,
        sections=tuple(SectionPlan(id=s.id, title=s.title, weight=s.weight, queries=s.queries) for s in sections),
    )


def _review(state: ResearchState) -> ReviewOut | None:
    """The last review."""
    if not state.reviews:
        return None
    review = state.reviews[-1]
    issues = (i.model_dump(include=set(IssueOut.model_fields)) for i in review.issues)
    return ReviewOut(
        round=review.iteration,
        scores=ScoresOut(**review.scores.model_dump()),
        issues=tuple(IssueOut.model_validate(issue) for issue in issues),
        verdict=review.verdict,
    )


def _section(state: ResearchState, section: SectionState) -> SectionOut:
    sources = {e.source for e in map(state.evidence.get, section.evidence) if e is not None}
    done = {read.hit.location for read in section.reads if read.done}
    draft = section.draft
    return SectionOut(
        id=section.section.id,
        title=section.section.title,
        state=_stage(state, section),
        searches=sum(slot.done for slot in section.searches),
        sources=max(len(sources), len(done - state.unavailable.keys())),
        evidence=len(section.evidence),
        words=sum(len(s.text.split()) for s in draft.sentences) if draft else 0,
    )


def _stage(state: ResearchState, section: SectionState) -> SectionStage:
    """What a section is at: the first thing that is not done."""
    if not state.plan_approved:
        return "planned"
    if not section.researched:
        return "searching" if any(s.open for s in section.searches) else "reading"
    if not section.evidence:
        return "gap"
    if section.draft is None or section.draft.revision < section.wanted:
        return "drafting"
    return "done" if section.grounded else "grounding"


def _report(state: ResearchState) -> ReportOut | None:
    ready = state.report
    if ready is None:
        return None
    return ReportOut(
        status=ready.status,
        verdict=ready.reason or verdict_text(state, ready.status),
        artefact=ready.artefact,
        words=ready.words,
    )
