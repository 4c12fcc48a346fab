from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from marg_ray.folding import replay
from marg_ray.messages import (
    MESSAGES,
    LimitReached,
    PlanEdited,
    ReportReady,
    SearchDone,
    SourceRead,
    Steered,
    TaskFailed,
)
from marg_ray.records import GateMode, Hit, Limits, ReportStatus, Role, Section, SourceKind, Zone
from marg_ray.routing import next_tasks, waiting_for
from marg_ray.sections import is_banned
from marg_ray.state import Skipped, Stop
from marg_ray.tasks import DraftTask, FormatTask, GroundTask, PlanTask, ReadTask, ReviewTask, SearchTask, SummariseTask
from tests.answers import answer
from tests.walk import STEPS, Walk

fields = st.fixed_dictionaries(
    {
        "depth": st.sampled_from(["overview", "standard"]),
        "request_class": st.sampled_from([None, "full_research", "quick_research", "research_only"]),
        "gate": st.sampled_from(list(GateMode)),
        "approve_plan": st.booleans(),
        "limits": st.sampled_from([{}, {"tasks": 1}, {"tasks": 7}, {"tasks": 40}]),
    }
)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), failing=st.sampled_from([0.0, 0.1]), request=fields)
def test_whatever_the_owner_does_the_run_ends(seed: int, failing: float, request: dict[str, object]) -> None:
    walk = Walk(seed, failing, steering=0.15, **request).run()
    assert walk.state.report is not None
    assert replay(walk.log) == walk.state
    if not walk.state.halts:
        assert len(walk.issued) == len(set(walk.issued)), "a task was done twice"
    copies = [MESSAGES.validate_json(MESSAGES.dump_json(m)) for m in walk.log]
    assert replay(copies) == walk.state
    assert {s.id for s in walk.state.plan.sections} == set(walk.state.sections) if walk.state.plan else True


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), most=st.integers(1, 60))
def test_a_limit_on_tasks_holds_and_still_gives_a_report(seed: int, most: int) -> None:
    walk = Walk(seed, limits={"tasks": most}, request_class="full_research").run()
    assert walk.state.report is not None
    grounding_and_report = len(walk.state.sections) + 3  # what needs no model, and is not cut
    assert walk.state.tasks_done <= most + grounding_and_report
    if walk.state.tasks_done >= most:
        assert walk.state.report.status is ReportStatus.BUDGET_STOPPED


def _researching(sections: int = 2, **request: object) -> Walk:
    """A walk whose plan is there and whose searches are due."""
    walk = Walk(5, request_class="full_research", **request)
    walk.say(answer_scout(walk))
    (task,) = next_tasks(walk.state)
    assert isinstance(task, PlanTask)
    plan = answer(task, walk.chance)
    names = tuple(
        Section(id=f"s{n}", title=f"T{n}", weight=1 / sections, queries=(f"query {n}",)) for n in range(1, sections + 1)
    )
    walk.say(plan.model_copy(update={"plan": plan.plan.model_copy(update={"sections": names})}))  # type: ignore[union-attr]
    return walk


def answer_scout(walk: Walk) -> SearchDone:
    (task,) = next_tasks(walk.state)
    found = answer(task, walk.chance)
    assert isinstance(found, SearchDone)
    zone = found.answerability.model_copy(update={"zone": Zone.ANSWER})
    return found.model_copy(update={"answerability": zone})


def _found(walk: Walk, section: str, *locations: str) -> None:
    task = next(t for t in next_tasks(walk.state) if isinstance(t, SearchTask) and t.section == section)
    hits = tuple(Hit(location=where, title=where, kind=SourceKind.WEB, relevance=0.9) for where in locations)
    found = answer(task, walk.chance)
    assert isinstance(found, SearchDone)
    zone = found.answerability.model_copy(update={"zone": Zone.ANSWER})
    walk.say(found.model_copy(update={"hits": hits, "answerability": zone}))


def _read(walk: Walk, task: ReadTask) -> None:
    """Answer a read with evidence."""
    for _ in range(STEPS):
        read = answer(task, walk.chance)
        assert isinstance(read, SourceRead)
        if read.evidence:
            walk.say(read)
            return


def _due(walk: Walk, kind: type) -> list[str]:
    return [t.target or t.section for t in next_tasks(walk.state) if isinstance(t, kind)]


def _until(walk: Walk, kind: type) -> None:
    for _ in range(STEPS):
        due = next_tasks(walk.state)
        if any(isinstance(t, kind) for t in due) or not due:
            return
        walk.say(answer(due[0], walk.chance))


def test_a_sub_question_is_added_to_a_section_or_as_one() -> None:
    walk = _researching()
    walk.say(Steered(task_id="w/1", action="add", section="s1", query="what else?"))
    walk.say(Steered(task_id="w/2", action="add", query="who pays?"))
    assert set(_due(walk, SearchTask)) == {"query 1", "query 2", "what else?", "who pays?"}
    assert walk.state.plan is not None
    assert [s.id for s in walk.state.plan.sections] == ["s1", "s2", "s3"]
    assert (
        sum(s.weight for s in walk.state.plan.sections) == 1.0
        or abs(1 - sum(s.weight for s in walk.state.plan.sections)) < 1e-4
    )


def test_what_is_asked_before_the_plan_is_in_it() -> None:
    walk = Walk(5, request_class="full_research")
    walk.say(Steered(task_id="w/1", action="add", query="who pays?"))
    walk.say(answer_scout(walk))
    walk.say(answer(next_tasks(walk.state)[0], walk.chance))
    assert "who pays?" in _due(walk, SearchTask)


def test_a_dropped_section_is_gone_and_its_number_is_not_used_again() -> None:
    walk = _researching()
    walk.say(Steered(task_id="w/1", action="drop", section="s2"))
    walk.say(Steered(task_id="w/2", action="add", query="another"))
    assert set(walk.state.sections) == {"s1", "s3"}
    assert set(_due(walk, SearchTask)) == {"query 1", "another"}


def test_a_dropped_sub_question_is_not_searched() -> None:
    walk = _researching()
    walk.say(Steered(task_id="w/1", action="drop", query="query 2"))
    assert _due(walk, SearchTask) == ["query 1"]


def test_a_pinned_source_is_read_for_every_section() -> None:
    walk = _researching()
    walk.say(Steered(task_id="w/1", action="pin", hit=Hit(location="https://p.test/", title="P", kind=SourceKind.WEB)))
    assert _due(walk, ReadTask) == ["https://p.test/", "https://p.test/"]


def test_a_banned_source_is_not_read_and_its_evidence_not_used() -> None:
    walk = _researching(sections=1)
    _found(walk, "s1", "https://good.test/a", "https://bad.test/b")
    for task in next_tasks(walk.state):
        assert isinstance(task, ReadTask)
        _read(walk, task)
    _until(walk, ReviewTask)
    bad = {s.id for s in walk.state.sources.values() if "bad.test" in s.location}
    mine = {e for e in walk.state.sections["s1"].evidence if walk.state.evidence[e].source in bad}
    walk.say(Steered(task_id="w/1", action="ban", location="bad.test"))
    assert not mine & set(walk.state.sections["s1"].evidence)
    _until(walk, FormatTask)
    for section in walk.state.sections.values():
        cited = {c for s in section.draft.sentences for c in s.citations} if section.draft else set()
        assert not cited & mine
    assert any(n.kind == "steering" for n in walk.state.notes)


def test_banned_locations() -> None:
    banned = ("bad.test", "https://a.test/page", "/data/secret")
    assert is_banned("https://www.bad.test/x", banned)
    assert is_banned("http://bad.test", banned)
    assert is_banned("https://a.test/page/", banned)
    assert is_banned("/data/secret/x.pdf", banned)
    assert not is_banned("https://notbad.test/", banned)
    assert not is_banned("https://a.test/pages", banned)
    assert not is_banned("/data/secrets.pdf", banned)
    assert not is_banned("https://x.test/?u=bad.test", banned)
    assert not is_banned("https://x.test/", ("", " "))


def _refused(walk: Walk, task: SearchTask | ReadTask) -> TaskFailed:
    return TaskFailed(
        task_id=task.id,
        role=Role.RESEARCHER,
        stage=task.kind,
        section=task.section,
        target=task.target,
        error="BudgetExceeded",
        detail="the tokens limit of 10 is spent (11 used)",
        exit_code=6,
    )


def test_a_refused_search_is_left_out_and_the_run_goes_on_to_write() -> None:
    walk = _researching()
    _found(walk, "s1", "https://good.test/a")
    search = next(t for t in next_tasks(walk.state) if isinstance(t, SearchTask))
    walk.say(_refused(walk, search))
    assert walk.state.stop is Stop.RESEARCH
    assert _due(walk, ReadTask) == ["https://good.test/a"], "what is not refused goes on"
    _read(walk, next(t for t in next_tasks(walk.state) if isinstance(t, ReadTask)))
    assert _due(walk, DraftTask) == ["s1"]
    walk.run()
    assert walk.state.report is not None
    assert walk.state.report.status is ReportStatus.BUDGET_STOPPED
    assert "budget" in walk.state.sections["s2"].gap
    assert walk.state.reviews, "the critic's share was held back"


def test_a_raised_budget_makes_what_was_left_out_due_again() -> None:
    walk = _researching(limits={"tokens": 10})
    for task in next_tasks(walk.state):
        assert isinstance(task, SearchTask)
        walk.say(_refused(walk, task))
    assert _due(walk, SearchTask) == []
    walk.say(Steered(task_id="w/1", action="raise", limits=Limits(tokens=1000)))
    assert walk.state.limits.tokens == 1000
    assert walk.state.stop is Stop.NOTHING
    assert _due(walk, SearchTask) == ["query 1", "query 2"]
    walk.run()
    assert walk.state.report is not None
    assert walk.state.report.status is not ReportStatus.BUDGET_STOPPED


def test_time_for_research_is_up_then_time_for_everything() -> None:
    walk = _researching()
    _found(walk, "s1", "https://good.test/a", "https://good.test/b")
    _read(walk, next(t for t in next_tasks(walk.state) if isinstance(t, ReadTask)))
    walk.say(LimitReached(task_id="l/1", limit="seconds", detail="60 of 100 s are spent", hard=False))
    assert {t.kind for t in next_tasks(walk.state)} <= {"draft", "analyse"}
    walk.say(LimitReached(task_id="l/2", limit="seconds", detail="100 s are spent", hard=True))
    assert all(isinstance(t, GroundTask | FormatTask) for t in next_tasks(walk.state)), "no model is asked any more"
    walk.run()
    assert walk.state.report is not None
    assert walk.state.report.status is ReportStatus.BUDGET_STOPPED
    assert not any("/draft/" in t or "/review/" in t for t in walk.issued)


def test_time_is_up_before_there_is_a_plan() -> None:
    walk = Walk(1)
    walk.say(LimitReached(task_id="l/1", limit="deadline", detail="due", hard=True))
    (task,) = next_tasks(walk.state)
    assert isinstance(task, FormatTask)
    walk.say(answer(task, walk.chance))
    assert isinstance(walk.log[-1], ReportReady)
    assert walk.state.report is not None
    assert walk.state.report.status is ReportStatus.BUDGET_STOPPED


def test_an_edited_plan_waits_on_as_its_next_revision() -> None:
    walk = _researching(approve_plan=True)
    assert (waiting_for(walk.state), walk.state.plan_revision) == ("plan", 1)
    mine = (Section(id="s1", title="Mine", weight=1.0, queries=("mine",)),)
    walk.say(PlanEdited(task_id="e/1", revision=1, sections=mine))
    assert (waiting_for(walk.state), walk.state.plan_revision) == ("plan", 2)
    walk.say(PlanEdited(task_id="e/2", revision=1, sections=()))
    assert walk.state.plan_revision == 2, "an edit of an older revision changes nothing"
    assert [s.title for s in walk.state.plan.sections] == ["Mine"] if walk.state.plan else False


def test_the_summary_is_of_the_drafts_that_are_delivered() -> None:
    """It may be written beside a review; one that sends sections back makes it void."""
    for seed in range(60):
        walk = Walk(seed, request_class="full_research")
        for _ in range(STEPS):
            due = next_tasks(walk.state)
            if not due:
                break
            for task in due:
                if isinstance(task, SummariseTask):
                    current = {k: s.draft for k, s in walk.state.sections.items() if s.draft}
                    assert task.drafts == current
            before = walk.state
            walk.say(answer(walk.chance.choice(due), walk.chance))
            if walk.state.iteration > before.iteration:
                assert walk.state.summary is None
                assert not walk.state.summary_failed


def test_steering_after_the_summary_has_it_written_again() -> None:
    walk = _researching(sections=1)
    _found(walk, "s1", "https://good.test/a")
    _read(walk, next(t for t in next_tasks(walk.state) if isinstance(t, ReadTask)))
    _until(walk, SummariseTask)
    walk.say(answer(next_tasks(walk.state)[0], walk.chance))
    walk.say(Steered(task_id="w/1", action="add", section="s1", query="what else?"))
    assert walk.state.summary is None
    walk.run()
    assert len([t for t in walk.issued if "summary/draft" in t]) <= 1
    assert not any(s.skipped is Skipped.BUDGET for x in walk.state.sections.values() for s in x.searches)
