"""What a session's owner may say while it runs, checked against where the session stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from marg_ray.actors.live import plan_decision_id, review_decision_id
from marg_ray.errors import DecisionConflict, UsageError
from marg_ray.messages import Message, PlanDecided, PlanEdited, ReviewDecided, Steered
from marg_ray.narration import describe
from marg_ray.records import OutlineEntry, Record, Section
from marg_ray.routing import waiting_for
from marg_ray.state import ResearchState

MAX_SECTIONS = 20


class Decision(Record):
    """A decision at a gate. `on` is the plan's revision or the review's round it was made on; 0: the present one."""

    what: Literal["approve", "reject", "extend", "edit"]
    on: int = 0
    outline: tuple[OutlineEntry, ...] = ()  # of an edited plan
    note: str = ""
    by: str = "owner"


def decided(state: ResearchState, decision: Decision, said: Sequence[Message]) -> Message | None:
    """The decision as a fact; None where just this was decided already.

    Raises:
        DecisionConflict: nothing waits for it, or not any more, or it was made on something else.
        UsageError: it makes no sense at this gate.
    """
    gate = waiting_for(state)
    if not gate:
        _refuse_unless_repeated(state, decision, said)
        return None
    current = state.plan_revision if gate == "plan" else state.iteration
    if decision.on not in (0, current):
        what = f"revision {current} of the plan" if gate == "plan" else f"round {current} of the review"
        raise DecisionConflict(state.session_id, f"{what} waits now; the decision was made on {decision.on}", current)
    if gate == "plan":
        return _on_plan(state, decision)
    if decision.what == "edit":
        raise UsageError("the plan is approved already: a draft waits for review", "steer it, or reject with a note")
    return ReviewDecided(
        task_id=review_decision_id(state),
        decision=decision.what,
        round=current,
        note=decision.note,
        by=decision.by,
    )


def _on_plan(state: ResearchState, decision: Decision) -> Message:
    if decision.what == "extend":
        raise UsageError("a plan waits for approval: there is no review to extend", "approve, edit or reject it")
    task_id = plan_decision_id(state)
    if decision.what == "edit":
        sections = edited(decision.outline)
        return PlanEdited(task_id=task_id, revision=state.plan_revision, sections=sections, by=decision.by)
    return PlanDecided(
        task_id=task_id,
        approved=decision.what == "approve",
        revision=state.plan_revision,
        sections=edited(decision.outline) if decision.outline else (),
        note=decision.note,
        by=decision.by,
    )


def edited(outline: Sequence[OutlineEntry]) -> tuple[Section, ...]:
    """An owner's outline as sections of equal weight.

    Raises:
        UsageError: it has no sections, too many, or one without a title.
    """
    titled = [entry for entry in outline if entry.title.strip()]
    if not 0 < len(titled) <= MAX_SECTIONS or len(titled) != len(outline):
        raise UsageError(f"a plan has 1 to {MAX_SECTIONS} sections, each with a title")
    weight = round(1 / len(titled), 6)
    return tuple(
        Section(
            id=f"s{n}",
            title=" ".join(entry.title.split())[:200],
            weight=weight,
            queries=tuple(q for q in entry.queries if q.strip()) or (" ".join(entry.title.split())[:200],),
        )
        for n, entry in enumerate(titled, 1)
    )


def _refuse_unless_repeated(state: ResearchState, decision: Decision, said: Sequence[Message]) -> None:
    decisions = [m for m in said if isinstance(m, PlanDecided | PlanEdited | ReviewDecided)]
    last = decisions[-1] if decisions else None
    if last is not None and not state.over and _same(last, decision):
        return
    if state.over:
        raise DecisionConflict(state.session_id, "the session is over: nothing waits for a decision")
    if last is None:
        raise DecisionConflict(state.session_id, "nothing waits for a decision yet")
    current = state.plan_revision if isinstance(last, PlanDecided | PlanEdited) else state.iteration
    raise DecisionConflict(state.session_id, f"it was decided already: {describe(last)}", current)


def _same(last: Message, decision: Decision) -> bool:
    """Whether a decision repeats the one that stands: a client that did not hear the answer asks again."""
    match last:
        case PlanDecided():
            what = "approve" if last.approved else "reject"
            asked = edited(decision.outline) if decision.outline else ()
            same = (decision.what, decision.note, asked) == (what, last.note, last.sections)
            return same and decision.on in (0, last.revision)
        case ReviewDecided():
            return (decision.what, decision.note) == (last.decision, last.note) and decision.on in (0, last.round)
    return False


def steering(state: ResearchState, wish: Steered) -> Steered:
    """The owner's wish, checked.

    Raises:
        UsageError: it names nothing that is in the session.
        DecisionConflict: the session is over.
    """
    if state.over and state.halt is None:
        raise DecisionConflict(state.session_id, "the session is over: it cannot be steered any more")
    known = ", ".join(f"{key} ({s.section.title})" for key, s in state.sections.items()) or "none yet"
    if wish.section and wish.section not in state.sections:
        raise UsageError(f"there is no section {wish.section!r}", f"the sections are {known}")
    match wish.action:
        case "add" if not wish.query.strip():
            raise UsageError("a sub-question to add is missing")
        case "drop" if not wish.query and not wish.section:
            raise UsageError("what is to be dropped is missing", f"the sections are {known}")
        case "drop" if wish.query and all(q.query != wish.query for s in state.sections.values() for q in s.searches):
            raise UsageError(f"no section asks {wish.query!r}", f"the sections are {known}")
        case "drop" if not wish.query and len(state.sections) == 1:
            raise UsageError("the last section cannot be dropped", "cancel the session, or add another first")
        case "pin" if wish.hit is None:
            raise UsageError("the source to read is missing")
        case "ban" if not wish.location.strip():
            raise UsageError("the source to ban is missing")
        case "raise" if wish.limits is None:
            raise UsageError("the limits to raise are missing")
    return wish
