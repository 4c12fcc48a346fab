from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marg_ray.folding import apply, replay
from marg_ray.messages import (
    MESSAGES,
    PlanDecided,
    ReportReady,
    ReviewDecided,
    ReviewDone,
    SearchDone,
    SessionCancelled,
    SessionResumed,
    TaskFailed,
)
from marg_ray.records import (
    Answerability,
    GateMode,
    ReportStatus,
    RequestClass,
    ReviewVerdict,
    Role,
    Scores,
    Section,
    Verdict,
    Zone,
)
from marg_ray.routing import next_tasks, waiting_for
from marg_ray.state import status_of
from marg_ray.tasks import DraftTask, FormatTask, PlanTask, ReadTask, SearchTask
from tests.answers import answer, begin
from tests.walk import STEPS, Walk

fields = st.fixed_dictionaries(
    {
        "depth": st.sampled_from(["overview", "standard", "deep"]),
        "request_class": st.sampled_from([None, *RequestClass]),
        "strict": st.booleans(),
        "gate": st.sampled_from(list(GateMode)),
        "approve_plan": st.booleans(),
        "max_iterations": st.integers(1, 3),
    }
)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32), failing=st.sampled_from([0.0, 0.1, 0.4]), request=fields)
def test_every_run_ends_in_a_report_or_a_refusal(seed: int, failing: float, request: dict[str, object]) -> None:
    walk = Walk(seed, failing, **request)
    walk.run()
    assert walk.state.report is not None
    assert replay(walk.log) == walk.state


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), request=fields)
def test_no_task_is_done_twice_and_the_loop_is_bounded(seed: int, request: dict[str, object]) -> None:
    walk = Walk(seed, **request)
    walk.run()
    assert len(walk.issued) == len(set(walk.issued))
    assert walk.rounds <= 3
    assert walk.state.iteration <= 3
    for section in walk.state.sections.values():
        assert section.wanted <= 9


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), failing=st.sampled_from([0.0, 0.3]), request=fields)
def test_with_evidence_the_formatter_is_reached(seed: int, failing: float, request: dict[str, object]) -> None:
    walk = Walk(seed, failing, **request)
    walk.run()
    state = walk.state
    assert state.report is not None
    if any(s.evidence for s in state.sections.values()) and state.answerability.zone is not Zone.NOTHING:
        assert any("/format/" in t for t in walk.issued)
        assert all(s.draft is not None for s in state.sections.values() if s.evidence)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_passed_report_has_no_sentence_that_fails(seed: int) -> None:
    walk = Walk(seed)
    walk.run()
    if status_of(walk.state) is not ReportStatus.PASSED:
        return
    bad = (Verdict.UNSUPPORTED, Verdict.CONTRADICTED, Verdict.NOT_CHECKED, None)
    for section in walk.state.sections.values():
        assert not [s for s in (section.draft.sentences if section.draft else ()) if s.verdict in bad]


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), cut=st.integers(0, 400))
def test_the_log_survives_writing_and_reading_at_any_point(seed: int, cut: int) -> None:
    walk = Walk(seed)
    for _ in range(cut):
        if not walk.step():
            break
    copies = [MESSAGES.validate_json(MESSAGES.dump_json(m)) for m in walk.log]
    restored = replay(copies)
    assert restored == walk.state
    assert [t.id for t in next_tasks(restored)] == [t.id for t in next_tasks(walk.state)]


def test_sections_do_not_wait_for_each_other() -> None:
    """One section is drafted while another is still being searched: its own evidence is enough."""
    walk = next(w for seed in range(100) if len((w := _planned(seed)).state.sections) > 2)
    while not any(isinstance(t, DraftTask) for t in next_tasks(walk.state)):
        due = [t for t in next_tasks(walk.state) if t.section != "s3"]
        assert due, "no section but the last found anything"
        walk.say(answer(due[0], walk.chance))
    assert any(isinstance(t, SearchTask) and t.section == "s3" for t in next_tasks(walk.state))


def _planned(seed: int = 3, **request: object) -> Walk:
    walk = Walk(seed, **request)
    while walk.state.plan is None:
        walk.step()
    return walk


def test_a_fresh_session_looks_around_before_it_plans() -> None:
    state = begin()
    (scout,) = next_tasks(state)
    assert isinstance(scout, SearchTask)
    assert scout.query == "How do tides make power?"
    state = apply(state, SearchDone(task_id=scout.id, section="scout", query=scout.query))
    (plan,) = next_tasks(state)
    assert isinstance(plan, PlanTask)


def test_nothing_found_anywhere_is_a_refusal() -> None:
    walk = _planned()
    for _ in range(STEPS):
        due = next_tasks(walk.state)
        if not due or isinstance(due[0], FormatTask):
            break
        task = due[0]
        assert isinstance(task, SearchTask)
        walk.say(SearchDone(task_id=task.id, section=task.section, query=task.query))
    (task,) = next_tasks(walk.state)
    assert isinstance(task, FormatTask)
    assert status_of(walk.state) is ReportStatus.INSUFFICIENT_EVIDENCE


def test_a_question_that_nothing_answers_is_refused_although_words_match() -> None:
    walk = Walk(3)
    (scout,) = next_tasks(walk.state)
    walk.say(SearchDone(task_id=scout.id, section="scout", query="q", answerability=Answerability(zone=Zone.NOTHING)))
    while walk.state.plan is None:
        walk.step()
    while due := [t for t in next_tasks(walk.state) if isinstance(t, SearchTask)]:
        hits = answer(due[0], Random(5))
        assert isinstance(hits, SearchDone)
        walk.say(hits.model_copy(update={"answerability": Answerability(zone=Zone.NEAREST)}))
    (task,) = next_tasks(walk.state)
    assert isinstance(task, FormatTask)
    assert walk.state.evidence == {}


@pytest.mark.parametrize("stage", ["ground", "analyse", "review", "summarise"])
def test_a_late_stage_that_fails_leaves_a_report_with_a_note(stage: str) -> None:
    walk = Walk(11, request_class="full_research")
    for _ in range(STEPS):
        due = next_tasks(walk.state)
        if not due:
            break
        task = due[0]
        if task.kind == stage:
            walk.say(
                TaskFailed(
                    task_id=task.id, role=task.role, stage=stage, section=task.section, error="Boom", detail="boom"
                )
            )
        else:
            walk.say(answer(task, walk.chance))
    assert isinstance(walk.state.report, ReportReady)
    assert any(n.kind == f"{stage}_failed" for n in walk.state.notes)


def test_a_model_that_is_away_halts_the_run_and_a_resume_goes_on_with_the_same_task() -> None:
    walk = _planned()
    task = next_tasks(walk.state)[0]
    assert isinstance(task, SearchTask)
    while not isinstance(task, ReadTask):
        walk.say(answer(task, walk.chance))
        task = next_tasks(walk.state)[0]
    away = TaskFailed(
        task_id=task.id,
        role=Role.RESEARCHER,
        stage="read",
        section=task.section,
        target=task.target,
        error="ModelUnavailable",
        detail="nothing answered",
        exit_code=5,
    )
    walk.say(away)
    assert next_tasks(walk.state) == ()
    assert walk.state.halt is not None
    walk.say(SessionResumed(task_id="S/resume/1"))
    assert task.id in [t.id for t in next_tasks(walk.state)]


def test_cancelling_stops_everything() -> None:
    walk = _planned()
    walk.say(SessionCancelled(task_id="S/cancel"))
    assert next_tasks(walk.state) == ()
    assert status_of(walk.state) is ReportStatus.CANCELLED


def test_an_edited_plan_is_the_plan() -> None:
    walk = _planned(approve_plan=True)
    assert waiting_for(walk.state) == "plan"
    assert next_tasks(walk.state) == ()
    mine = (Section(id="s1", title="Mine", weight=1.0, queries=("my query",)),)
    walk.say(PlanDecided(task_id="S/plan/decided", approved=True, sections=mine))
    assert [t.target for t in next_tasks(walk.state)] == ["my query"]


def test_a_rejected_plan_is_made_again_with_the_note() -> None:
    walk = _planned(approve_plan=True)
    walk.say(PlanDecided(task_id="S/plan/decided", approved=False, note="more on cost"))
    (task,) = next_tasks(walk.state)
    assert isinstance(task, PlanTask)
    assert task.rejections == ("more on cost",)


def _reviewed(gate: GateMode, score: float) -> Walk:
    walk = Walk(11, request_class="full_research", gate=gate, max_iterations=1)
    for _ in range(STEPS):
        due = next_tasks(walk.state)
        if not due:
            break
        message = answer(due[0], walk.chance)
        if isinstance(message, ReviewDone):
            scores = Scores(accuracy=score, coverage=0.9, clarity=0.9, objectivity=0.9)
            review = message.review.model_copy(update={"scores": scores, "verdict": ReviewVerdict.PASS})
            message = message.model_copy(update={"review": review})
        walk.say(message)
    return walk


@pytest.mark.parametrize(
    ("gate", "score", "asked"),
    [
        (GateMode.NEVER, 0.1, False),
        (GateMode.AUTO, 0.69, True),
        (GateMode.AUTO, 0.70, False),
        (GateMode.ALWAYS, 1.0, True),
    ],
)
def test_the_gate(gate: GateMode, score: float, asked: bool) -> None:
    walk = _reviewed(gate, score)
    assert (waiting_for(walk.state) == "review") is asked
    assert (walk.state.report is None) is asked


def test_a_rejection_at_the_gate_becomes_feedback_to_the_writer() -> None:
    walk = _reviewed(GateMode.ALWAYS, 1.0)
    walk.say(ReviewDecided(task_id="S/gate/1", decision="reject", note="shorter please"))
    due = next_tasks(walk.state)
    assert due
    assert all(isinstance(t, DraftTask) and t.feedback[-1] == "shorter please" for t in due)
