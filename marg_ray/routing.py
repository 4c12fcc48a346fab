"""Everything that may run now, from the state alone: routing, the critic loop, its cap, the gates.

Sections do not wait for each other: each is searched, read, drafted and grounded as its own evidence arrives.
The critic sees the whole. Whatever fails after there is evidence, the formatter is reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from marg_ray.messages import SCOUT, SUMMARY
from marg_ray.records import Depth, Draft, Evidence, GateMode, RequestClass, Source, Zone
from marg_ray.state import ReadSlot, ResearchState, SectionState, Stop, slot_of, status_of
from marg_ray.tasks import (
    AnalyseTask,
    DraftTask,
    FormatTask,
    GroundTask,
    Judged,
    PlanTask,
    ReadTask,
    ReviewTask,
    SearchTask,
    SummariseTask,
    Task,
)

WORDS = {Depth.OVERVIEW: 700, Depth.STANDARD: 2000, Depth.DEEP: 4000}
NEAREST_WORDS = 180  # of a section that shows the nearest material to a question nobody answers
GATE_SCORE = 0.70
NONE: Mapping[str, Task] = MappingProxyType({})
UNREVIEWED = frozenset({RequestClass.RESEARCH_ONLY})
UNANALYSED = frozenset({RequestClass.QUICK_RESEARCH, RequestClass.WRITE_ONLY})


def next_tasks(state: ResearchState, known: Mapping[str, Task] = NONE) -> tuple[Task, ...]:
    """Every task that this state calls for and that is not answered. Pure: the whole flow is one table to walk.

    `known` are tasks that an earlier state called for, by id: they are not built again.
    """
    if state.request is None or state.over or state.paused:
        return ()
    return tuple(task for task in _due(state, known) if task.id not in state.answered)


def waiting_for(state: ResearchState) -> str:
    """`plan` or `review` while the owner's decision is awaited, otherwise empty."""
    if state.over or state.request is None:
        return ""
    if state.plan is not None and not state.plan_approved:
        return "plan"
    return "review" if _researching_over(state) and _gate_closed(state) else ""


def _due(state: ResearchState, known: Mapping[str, Task]) -> Iterator[Task]:
    assert state.request is not None
    if not state.scouted:
        yield _search(state, SCOUT, state.request.question, state.request.question, "0")
    elif state.plan is None:
        yield PlanTask(
            id=f"{state.session_id}/plan/{len(state.plan_rejections)}",
            session_id=state.session_id,
            request=state.request,
            scout=state.scout_hits,
            answerability=state.answerability,
            rejections=state.plan_rejections,
        )
    elif state.plan_approved:
        for section in state.sections.values():
            yield from _due_in(state, section, known)
        yield from _due_over_all(state)


def _due_in(state: ResearchState, section: SectionState, known: Mapping[str, Task]) -> Iterator[Task]:
    """One section's own next steps."""
    assert state.request is not None
    name, sid = section.section.id, state.session_id
    for n, slot in enumerate(section.searches):
        if slot.open:
            number = f"{slot.iteration}.{n}{_again(slot.opened)}"
            yield known.get(f"{sid}/{name}/search/{number}") or _search(
                state, name, section.section.title, slot.query, number
            )
    for read in section.reads:
        if read.open:
            task_id = f"{sid}/{name}/read/{slot_of(read.hit.location)}{_again(read.opened)}"
            yield known.get(task_id) or _read(state, section, read, task_id)
    if not section.researched or not section.evidence:
        return
    if section.draft is None or section.draft.revision < section.wanted:
        yield known.get(f"{sid}/{name}/draft/{section.wanted}") or _draft(state, section)
    elif not section.grounded:
        yield _ground(state, section.draft)


def _due_over_all(state: ResearchState) -> Iterator[Task]:
    """What needs every section: analysis as soon as the evidence is in, then review, summary, report."""
    if not all(s.researched for s in state.sections.values()):
        return
    if _refused(state):
        yield _format(state)
        return
    if not _analysed(state):
        yield _analyse(state)
    if not all(s.settled for s in state.sections.values()) or not _analysed(state):
        return
    if not _researching_over(state):
        yield _review(state)
        if _last_review(state):  # nobody waits for the summary that could be there when the review is
            yield from _summing_up(state)
        return
    if _gate_closed(state):
        return
    yield from _summing_up(state) or (_format(state),)


def _summing_up(state: ResearchState) -> tuple[Task, ...]:
    """The summary and its check, where they are still to be made."""
    if state.summary is None and not state.summary_failed and _summarised(state):
        return (_summarise(state),)
    if state.summary is not None and state.summary_grounding is None:
        return (_ground(state, state.summary),)
    return ()


def _last_review(state: ResearchState) -> bool:
    """Whether the review that is due will hardly send anything back: the cap is reached, or faults were mended once."""
    assert state.request is not None
    return state.request.gate is GateMode.NEVER and (state.iteration >= state.cap or state.iteration > 1)


def _refused(state: ResearchState) -> bool:
    """No evidence at all, or none of it answers: no report is written."""
    found = any(s.evidence for s in state.sections.values())
    return not found or state.answerability.zone is Zone.NOTHING


def _analysed(state: ResearchState) -> bool:
    if state.request_class in UNANALYSED or state.stop is Stop.ALL:
        return True
    return state.analysis is not None and state.analysed_from == len(state.evidence)


def _researching_over(state: ResearchState) -> bool:
    """Every section is settled and the critic has nothing more to say.

    A round that changed no draft ends the loop too: the same text would get the same review.
    """
    if not state.sections or not all(s.settled for s in state.sections.values()) or not _analysed(state):
        return False
    if state.request_class in UNREVIEWED or state.review_failed or state.stop is Stop.ALL:
        return True
    return bool(state.reviews) and not state.drafts_changed


def _gate_closed(state: ResearchState) -> bool:
    assert state.request is not None
    if state.decided or not state.reviews or state.stop is Stop.ALL:
        return False
    match state.request.gate:
        case GateMode.ALWAYS:
            return True
        case GateMode.AUTO:
            return state.reviews[-1].scores.lowest < GATE_SCORE
        case GateMode.NEVER:
            return False


def _summarised(state: ResearchState) -> bool:
    return state.request_class is not RequestClass.RESEARCH_ONLY and state.stop is not Stop.ALL


# ---- tasks, with just what their agents may read


def _search(state: ResearchState, section: str, title: str, query: str, number: str) -> SearchTask:
    assert state.request is not None
    return SearchTask(
        id=f"{state.session_id}/{section}/search/{number}",
        session_id=state.session_id,
        section=section,
        request=state.request,
        request_class=state.request_class,
        title=title,
        query=query,
    )


def _read(state: ResearchState, section: SectionState, slot: ReadSlot, task_id: str) -> ReadTask:
    assert state.request is not None
    return ReadTask(
        id=task_id,
        session_id=state.session_id,
        section=section.section.id,
        question=state.request.question,
        title=section.section.title,
        queries=tuple(s.query for s in section.searches),
        hit=slot.hit,
        offline=state.request.sources.offline,
        owner=state.request.owner,
        fresh=state.request.fresh,
    )


def _again(opened: int) -> str:
    return f"+{opened}" if opened else ""


def _sources(state: ResearchState, evidence: tuple[Evidence, ...]) -> dict[str, Source]:
    wanted = {e.source for e in evidence}
    return {key: source for key, source in state.sources.items() if key in wanted}


def _language(state: ResearchState) -> str:
    assert state.plan is not None
    return state.plan.language


def _draft(state: ResearchState, section: SectionState) -> DraftTask:
    assert state.request is not None
    assert state.plan is not None
    evidence = tuple(state.evidence[e] for e in section.evidence)
    words = round(WORDS[state.request.depth] * section.section.weight)
    nearest = state.answerability.zone is Zone.NEAREST
    return DraftTask(
        id=f"{state.session_id}/{section.section.id}/draft/{section.wanted}",
        session_id=state.session_id,
        section=section.section.id,
        question=state.request.question,
        report_title=state.plan.title,
        title=section.section.title,
        queries=tuple(s.query for s in section.searches),
        other_sections=tuple(s.title for s in state.plan.sections if s.id != section.section.id),
        evidence=evidence,
        sources=_sources(state, evidence),
        language=_language(state),
        words=min(words, NEAREST_WORDS) if nearest else max(words, 80),
        revision=section.wanted,
        feedback=section.feedback,
        previous=section.draft,
    )


def _ground(state: ResearchState, draft: Draft) -> GroundTask:
    cited = {c for s in draft.sentences for c in s.citations}
    evidence = {e: state.evidence[e] for e in sorted(cited) if e in state.evidence}
    sources = {e.source: state.sources[e.source] for e in evidence.values() if e.source in state.sources}
    return GroundTask(
        id=f"{state.session_id}/{draft.section}/ground/{draft.revision}",
        session_id=state.session_id,
        section=draft.section,
        draft=draft,
        evidence=evidence,
        titles={key: source.title for key, source in sources.items()},
        sources=sources,
    )


def _analyse(state: ResearchState) -> AnalyseTask:
    assert state.request is not None
    assert state.plan is not None
    evidence = tuple(state.evidence[e] for s in state.sections.values() for e in s.evidence)
    unique = tuple({e.id: e for e in evidence}.values())
    return AnalyseTask(
        id=f"{state.session_id}/analyse/{state.iteration}.{len(state.evidence)}",
        session_id=state.session_id,
        question=state.request.question,
        language=_language(state),
        hypotheses=state.plan.hypotheses,
        evidence=unique,
        sources=state.sources,
    )


def _review(state: ResearchState) -> ReviewTask:
    assert state.request is not None
    judged = []
    for s in state.sections.values():
        cited = {c for sentence in s.draft.sentences for c in sentence.citations} if s.draft else set()
        judged.append(
            Judged(
                section=s.section,
                draft=s.draft,
                grounding=s.grounding,
                evidence=len(s.evidence),
                sources=len({state.evidence[c].source for c in cited if c in state.evidence}),
                gap=s.gap,
            )
        )
    used = {c for j in judged if j.draft for sentence in j.draft.sentences for c in sentence.citations}
    return ReviewTask(
        id=f"{state.session_id}/review/{len(state.reviews) + 1}",
        session_id=state.session_id,
        question=state.request.question,
        language=_language(state),
        depth=state.request.depth,
        iteration=state.iteration,
        cap=state.cap,
        sections=tuple(judged),
        evidence={e: state.evidence[e] for e in sorted(used) if e in state.evidence},
    )


def _summarise(state: ResearchState) -> SummariseTask:
    assert state.request is not None
    assert state.plan is not None
    return SummariseTask(
        id=f"{state.session_id}/{SUMMARY}/draft/{state.summary_round}",
        session_id=state.session_id,
        section=SUMMARY,
        question=state.request.question,
        language=_language(state),
        plan=state.plan,
        drafts={s.section.id: s.draft for s in state.sections.values() if s.draft},
        revision=state.summary_round,
    )


def _format(state: ResearchState) -> FormatTask:
    return FormatTask(
        id=f"{state.session_id}/format/{state.format_failures}",
        session_id=state.session_id,
        status=status_of(state),
    )


__all__ = ["next_tasks", "status_of", "waiting_for"]
