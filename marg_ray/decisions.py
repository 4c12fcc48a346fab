"""What the owner, the critic and the limits change in a session under way. Part of the fold, pure."""

from __future__ import annotations

from marg_ray.messages import LimitReached, PlanDecided, PlanEdited, ReviewDecided, Steered
from marg_ray.records import Hit, Limits, Note, Plan, Review, ReviewVerdict, Section
from marg_ray.sections import Slot, is_banned, quoted, skip, told
from marg_ray.state import (
    MAX_FAILED_REVISIONS,
    ReadSlot,
    ResearchState,
    SearchSlot,
    SectionState,
    Skipped,
    Stop,
    changed,
)

TIME_OUT = "time-out"  # decides in the owner's place


def noted(state: ResearchState, kind: str, text: str, section: str = "") -> ResearchState:
    note = Note(kind=kind, text=text, section=section)
    return state if note in state.notes else changed(state, notes=(*state.notes, note))


# ---- the plan


def planned(state: ResearchState, plan: Plan) -> ResearchState:
    """A plan, with what the owner had asked for before it was there."""
    assert state.request is not None
    closed = Skipped.BUDGET if state.stop else Skipped.NO
    for query in state.asked_too:
        plan = _with_section(plan, query, len(plan.sections) + 1)
    pins = tuple(ReadSlot(hit=hit, skipped=closed) for hit in state.pinned)
    sections = {
        s.id: SectionState(
            section=s,
            searches=tuple(SearchSlot(query=q, iteration=1, skipped=closed) for q in s.queries),
            reads=pins,
        )
        for s in plan.sections
    }
    return changed(
        state,
        plan=plan,
        plan_revision=state.plan_revision + 1,
        sections=sections,
        sections_made=len(sections),
        asked_too=(),
        plan_approved=not state.request.approve_plan,
    )


def plan_edited(state: ResearchState, edited: PlanEdited) -> ResearchState:
    if state.plan is None or state.plan_approved or edited.revision != state.plan_revision:
        return state
    plan = state.plan.model_copy(update={"sections": edited.sections})
    return planned(noted(state, "gate", f"plan edited by {edited.by}"), plan)


def plan_decided(state: ResearchState, decided: PlanDecided) -> ResearchState:
    if state.plan is None or state.plan_approved:
        return state
    plan = state.plan
    state = noted(state, "gate", _plan_words(decided, state))
    if not decided.approved:  # the planner is asked again, with the note
        return changed(state, plan=None, sections={}, plan_rejections=(*state.plan_rejections, decided.note))
    if decided.sections:
        plan = plan.model_copy(update={"sections": decided.sections})
        state = changed(planned(state, plan), plan_revision=state.plan_revision)
    return changed(state, plan_approved=True)


def _plan_words(decided: PlanDecided, state: ResearchState) -> str:
    assert state.request is not None
    if decided.by == TIME_OUT:
        return f"nobody decided on the plan within {state.request.gate_timeout_s:g} s: it was approved by rule"
    what = ("approved as edited" if decided.sections else "approved") if decided.approved else "rejected"
    return f"plan {what} by {decided.by}" + (f": {decided.note}" if decided.note else "")


# ---- the review


def next_round(state: ResearchState, review: Review) -> ResearchState:
    """Send the named sections back: to research where evidence is missing, to the writer where the text is at fault."""
    iteration = state.iteration + 1
    sections = dict(state.sections)
    for section_id in review.sections:
        section = sections.get(section_id)
        if section is None:
            continue
        issues = [i for i in review.issues if i.section in (section_id, "")]
        if review.verdict is ReviewVerdict.RETRIEVAL_GAP:
            known = {s.query for s in section.searches}
            queries = dict.fromkeys(i.fix_query for i in issues if i.fix_query and i.fix_query not in known)
            fresh = tuple(SearchSlot(query=q, iteration=iteration) for q in list(queries)[:3])
            sections[section_id] = section.model_copy(update={"searches": section.searches + fresh})
        elif section.draft is not None:
            feedback = told(section, (i.instruction or i.detail for i in issues))
            sections[section_id] = section.model_copy(
                update={
                    "wanted": section.draft.revision + 1,
                    "feedback": feedback,
                    "failed_revisions": MAX_FAILED_REVISIONS - 1,
                }
            )
    return changed(state, iteration=iteration, sections=sections)


def review_decided(state: ResearchState, decided: ReviewDecided) -> ResearchState:
    assert state.request is not None
    if decided.by == TIME_OUT:
        words = f"nobody decided on the draft within {state.request.gate_timeout_s:g} s: it was delivered by rule"
    else:
        words = f"{decided.decision} by {decided.by}" + (f": {decided.note}" if decided.note else "")
    state = noted(state, "gate", words)
    if decided.decision == "approve":
        return changed(state, decided=True)
    state = changed(state, extra_iterations=state.extra_iterations + 1)
    if decided.decision == "extend" and not decided.note:
        return next_round(state, state.reviews[-1]) if state.reviews else state
    sections = {
        key: s.model_copy(update={"wanted": s.draft.revision + 1, "feedback": told(s, (decided.note,))})
        if s.draft
        else s
        for key, s in state.sections.items()
    }
    return changed(state, sections=sections, iteration=state.iteration + 1)


# ---- steering


def steered(state: ResearchState, message: Steered) -> ResearchState:
    """The owner's wish, as far as it can still be carried out."""
    if state.report is not None or state.cancelled:
        return state
    state = noted(state, "steering", f"{message.by}: {steering_words(message)}")
    match message.action:
        case "add":
            return reopened(_add(state, message.section, message.query))
        case "drop":
            return reopened(_drop(state, message.section, message.query))
        case "pin":
            return reopened(_pin(state, message.section, message.hit)) if message.hit else state
        case "ban":
            return reopened(_ban(state, message.location))
        case "raise":
            return _raise(state, message.limits or Limits())


def steering_words(message: Steered) -> str:
    match message.action:
        case "add":
            return f'asked also "{message.query}"'
        case "drop":
            return f'dropped "{message.query}"' if message.query else f"dropped section {message.section}"
        case "pin":
            return f"asked to read {message.hit.location if message.hit else ''}"
        case "ban":
            return f"banned {message.location}"
        case "raise":
            named = {k: v for k, v in (message.limits or Limits()) if v is not None and k != "writer_share"}
            return "raised the limits: " + ", ".join(f"{k} {v}" for k, v in named.items())


def reopened(state: ResearchState) -> ResearchState:
    """What was summed up or decided before the change holds no longer."""
    if state.summary is None and not state.summary_failed and not state.decided:
        return state
    return changed(
        state,
        decided=False,
        summary=None,
        summary_grounding=None,
        summary_failed=False,
        summary_round=state.summary_round + 1,
    )


def _with_section(plan: Plan, query: str, number: int) -> Plan:
    """The plan with a section of the mean weight for one more question."""
    count = len(plan.sections)
    sections = [s.model_copy(update={"weight": round(s.weight * count / (count + 1), 6)}) for s in plan.sections]
    title = query[:200]
    sections.append(Section(id=f"s{number}", title=title, weight=round(1 / (count + 1), 6), queries=(query,)))
    return plan.model_copy(update={"sections": tuple(sections)})


def _add(state: ResearchState, section_id: str, query: str) -> ResearchState:
    if state.plan is None:
        return changed(state, asked_too=(*state.asked_too, query))
    section = state.sections.get(section_id)
    if section is None:
        number = state.sections_made + 1
        plan = _with_section(state.plan, query, number)
        section = SectionState(section=plan.sections[-1], searches=())
        revision = state.plan_revision + (not state.plan_approved)  # who approves shall have seen it
        state = changed(state, plan=plan, sections_made=number, plan_revision=revision)
    if any(s.query == query for s in section.searches):
        return state
    slot = SearchSlot(query=query, iteration=state.iteration, skipped=Skipped.BUDGET if state.stop else Skipped.NO)
    grown = section.model_copy(update={"searches": (*section.searches, slot), "failure": ""})
    return changed(state, sections={**state.sections, section.section.id: grown})


def _drop(state: ResearchState, section_id: str, query: str) -> ResearchState:
    if query:
        sections = {
            key: s.model_copy(
                update={
                    "searches": tuple(
                        slot.model_copy(update={"skipped": Skipped.DROPPED}) if slot.query == query else slot
                        for slot in s.searches
                    )
                }
            )
            if not section_id or key == section_id
            else s
            for key, s in state.sections.items()
        }
        return changed(state, sections=sections)
    if state.plan is None or section_id not in state.sections or len(state.sections) == 1:
        return state
    kept = tuple(s for s in state.plan.sections if s.id != section_id)
    total = sum(s.weight for s in kept) or 1.0
    kept = tuple(s.model_copy(update={"weight": round(s.weight / total, 6)}) for s in kept)
    return changed(
        state,
        plan=state.plan.model_copy(update={"sections": kept}),
        plan_revision=state.plan_revision + (not state.plan_approved),
        sections={key: s for key, s in state.sections.items() if key != section_id},
    )


def _pin(state: ResearchState, section_id: str, hit: Hit) -> ResearchState:
    if any(p.location == hit.location for p in state.pinned):
        return state
    closed = Skipped.BUDGET if state.stop else Skipped.NO
    sections = {
        key: s.model_copy(update={"reads": (*s.reads, ReadSlot(hit=hit, skipped=closed))})
        if key == (section_id or key) and all(r.hit.location != hit.location for r in s.reads)
        else s
        for key, s in state.sections.items()
    }
    return changed(state, sections=sections, pinned=(*state.pinned, hit))


def _ban(state: ResearchState, location: str) -> ResearchState:
    state = changed(state, banned=(*state.banned, location))
    return changed(state, sections={key: _without_banned(state, s) for key, s in state.sections.items()})


def _without_banned(state: ResearchState, section: SectionState) -> SectionState:
    """The section without what it has from a banned source; a text that cites it is to be written again."""
    reads = tuple(
        r.model_copy(update={"skipped": Skipped.BANNED}) if is_banned(r.hit.location, state.banned) else r
        for r in section.reads
    )
    lost = {e for e in section.evidence if is_banned(_location(state, e), state.banned)}
    evidence = tuple(e for e in section.evidence if e not in lost)
    update: dict[str, object] = {"reads": reads, "evidence": evidence}
    if section.draft is not None and lost:
        update["drafted_from"] = len(evidence)
        if not evidence:
            update |= {"draft": None, "grounding": None, "wanted": section.draft.revision + 1}
        elif any(c in lost for s in section.draft.sentences for c in s.citations):
            update["wanted"] = section.draft.revision + 1
    return section.model_copy(update=update)


def _location(state: ResearchState, evidence: str) -> str:
    source = state.sources.get(state.evidence[evidence].source)
    return source.location if source is not None else ""


# ---- limits


def limit_reached(state: ResearchState, message: LimitReached) -> ResearchState:
    return stopped(state, Stop.ALL if message.hard else Stop.RESEARCH, message.detail)


def stopped(state: ResearchState, stop: Stop, why: str) -> ResearchState:
    """A spent limit ends research (what is there is written up), or everything (what is written is delivered)."""
    if state.stop is Stop.ALL or state.report is not None:
        return state
    what = "stopped" if stop is Stop.ALL else "research stopped"
    state = noted(changed(state, stop=stop), "budget", f"{what}: {why}")
    state = changed(state, sections={key: _closed(s) for key, s in state.sections.items()})
    if stop is Stop.RESEARCH:
        return state
    if state.plan is None:
        state = changed(planned(state, _question_as_plan(state)), plan_approved=True)
    sections = {key: _as_it_stands(state, s) for key, s in state.sections.items()}
    summary_done = state.summary_grounding is not None
    return changed(
        state,
        scouted=True,
        sections=sections,
        summary=state.summary if summary_done else None,
        summary_failed=not summary_done,
    )


def task_limit(state: ResearchState) -> ResearchState:
    """Stop what the limit on tasks stops, if it is reached."""
    most = state.limits.tasks
    if most is None or state.stop is Stop.ALL or state.report is not None:
        return state
    if state.tasks_done >= most:
        return stopped(state, Stop.ALL, f"the limit of {most} tasks is spent")
    if state.stop is Stop.NOTHING and state.tasks_done >= most * (1 - state.limits.writer_share):
        return stopped(state, Stop.RESEARCH, f"{state.tasks_done} of {most} tasks are spent; the rest is for writing")
    return state


def _closed(section: SectionState) -> SectionState:
    return section.model_copy(
        update={
            "searches": tuple(skip(s) for s in section.searches),
            "reads": tuple(skip(r) for r in section.reads),
        }
    )


def _as_it_stands(state: ResearchState, section: SectionState) -> SectionState:
    """Nothing more is written: the draft that is there counts; where none is, the evidence is quoted."""
    if section.draft is not None:
        return section.model_copy(update={"wanted": section.draft.revision})
    return quoted(section, state.evidence) if section.evidence else section


def _question_as_plan(state: ResearchState) -> Plan:
    assert state.request is not None
    question = state.request.question
    section = Section(id="s1", title=question[:200], weight=1.0, queries=(question,))
    return Plan(
        title=question,
        request_class=state.request_class,
        language=state.request.language or "en",
        sections=(section,),
    )


def _raise(state: ResearchState, to: Limits) -> ResearchState:
    """Higher limits: what was skipped for want of budget is due again."""
    state = changed(state, limits=state.limits.raised(to), stop=Stop.NOTHING)
    sections = {key: _opened(s) for key, s in state.sections.items()}
    return task_limit(changed(state, sections=sections))


def _opened(section: SectionState) -> SectionState:
    return section.model_copy(
        update={
            "searches": tuple(_open_again(s) for s in section.searches),
            "reads": tuple(_open_again(r) for r in section.reads),
        }
    )


def _open_again(slot: Slot) -> Slot:
    if slot.skipped is not Skipped.BUDGET:
        return slot
    return slot.model_copy(update={"skipped": Skipped.NO, "opened": slot.opened + 1})
