"""A session as a client sees it: pure, from its row, its state and its coordinator's word."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from marg_ray.actors.live import Progress, Running
from marg_ray.api.schemas import SessionOut
from marg_ray.api.views import LEFT, at_rest, session_summary, session_view
from marg_ray.folding import replay
from marg_ray.records import Draft, Hit, Plan, Request, RequestClass, Section, SourceChoice, SourceKind
from marg_ray.state import Halt, ReadSlot, ResearchState, SearchSlot, SectionState
from marg_ray.store.protocol import LogEntry, SessionRow
from tests.flow import World

NOW = datetime(2026, 3, 14, 9, 26, tzinfo=UTC)


def row(**fields: object) -> SessionRow:
    values = {
        "id": "S",
        "owner": "local",
        "question": "How much power do tidal stations produce?",
        "created_at": NOW,
        "updated_at": NOW,
        "status": "running",
        "seq": 3,
    }
    return SessionRow.model_validate({**values, **fields})


def section(**fields: object) -> SectionState:
    values = {
        "section": Section(id="s1", title="Plants", weight=1.0, queries=("plants",)),
        "searches": (SearchSlot(query="plants", iteration=1),),
    }
    return SectionState.model_validate({**values, **fields})


def planned(one: SectionState, **fields: object) -> ResearchState:
    plan = Plan(title="Tides", request_class=RequestClass.FULL_RESEARCH, language="en", sections=(one.section,))
    values = {
        "session_id": "S",
        "request": Request(question="How much?"),
        "plan": plan,
        "plan_revision": 1,
        "plan_approved": True,
        "sections": {"s1": one},
    }
    return ResearchState.model_validate({**values, **fields})


def stage_of(state: ResearchState) -> str:
    return session_view(row(), state, at_rest(state)).sections[0].state


def test_a_section_is_at_the_first_thing_that_is_not_done() -> None:
    searched = (SearchSlot(query="plants", iteration=1, done=True),)
    hit = Hit(location="https://tides.test/a", title="A", kind=SourceKind.WEB)
    assert stage_of(planned(section(), plan_approved=False)) == "planned"
    assert stage_of(planned(section())) == "searching"
    assert stage_of(planned(section(searches=searched, reads=(ReadSlot(hit=hit),)))) == "reading"
    assert stage_of(planned(section(searches=searched))) == "gap"
    found = {"searches": searched, "evidence": ("e1",)}
    assert stage_of(planned(section(**found))) == "drafting"
    draft = Draft(section="s1", revision=1, blocks=())
    assert stage_of(planned(section(**found, draft=draft))) == "grounding"
    assert stage_of(planned(section(**found, draft=draft, wanted=2))) == "drafting"


async def test_a_finished_session_shows_plan_sections_cost_and_outcome(tmp_path: Path) -> None:
    world = World(tmp_path)
    state = await world.ask()
    entries = await world.store.read("S")
    stored = await world.store.session("S")
    view = session_view(stored, state, at_rest(state))
    assert view.report is not None
    assert state.report is not None
    assert (view.status, view.report.artefact) == (str(state.report.status), state.report.artefact)
    assert view.report.verdict
    assert view.plan is not None
    assert [s.title for s in view.plan.sections] == [s.title for s in view.sections]
    assert all(s.state in ("done", "gap") for s in view.sections)
    assert sum(s.evidence for s in view.sections) >= len(state.evidence)
    assert view.spent.searches == sum(u.searches for u in state.usage.values()) > 0
    assert view.review is not None
    assert view.review.round == len(state.reviews)
    assert view.seq == len(entries)
    assert SessionOut.model_validate_json(view.model_dump_json()) == view


async def test_the_view_follows_the_log_entry_by_entry(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.ask()
    entries = await world.store.read("S")
    views = []
    for n in range(len(entries) + 1):
        state = replay(e.message for e in entries[:n])
        views.append(session_view(row(seq=n), state, at_rest(state)))
    assert views[0].request is None
    assert views[1].request is not None
    assert [v.plan is not None for v in views] == sorted(v.plan is not None for v in views)
    spent = [v.spent.calls + v.spent.searches + v.spent.fetches for v in views]
    assert spent == sorted(spent)
    assert [v.status for v in views[1:-1]] == ["running"] * (len(views) - 2)


def test_entries_that_are_newer_than_the_row_date_the_view(tmp_path: Path) -> None:
    later = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
    state = planned(section())
    started = {"kind": "session_paused", "task_id": "S/pause/1"}
    entry = LogEntry.model_validate({"seq": 7, "at": later, "message": started})
    running = (Running(id="t", role="planner", kind="plan", section="", target="", since=1.5),)
    progress = Progress(entries=(entry,), running=running, status="running", position=2)
    view = session_view(row(), state, progress)
    assert (view.seq, view.updated_at, view.position) == (7, later, 2)
    assert [(t.role, t.since) for t in view.running] == [("planner", 1.5)]
    assert session_view(row(seq=9), state, progress).seq == 9


def test_no_path_of_the_machine_is_shown() -> None:
    sources = SourceChoice(folders=("/srv/secret/papers",), web=False)
    request = Request(question="How much?", sources=sources, provided=("a" * 64,), owner="alice")
    state = planned(section(), request=request)
    view = session_view(row(owner="alice"), state, at_rest(state))
    assert view.request is not None
    assert (view.request.folders, view.request.texts, view.request.web) == (1, 1, False)
    assert "secret" not in view.model_dump_json()
    assert "alice" not in view.model_dump_json()


def test_who_is_left_alone_is_said_to_have_halted() -> None:
    state = planned(section())
    assert (at_rest(state).status, at_rest(state, abandoned=True).status) == ("running", "halted")
    assert at_rest(state, abandoned=True).halt == LEFT
    waits = planned(section(), plan_approved=False)
    assert at_rest(waits, abandoned=True).status == "waiting", "it can be decided on all the same"
    halt = Halt(error="ModelUnavailable", detail="nobody", stage="plan", exit_code=5)
    assert at_rest(planned(section(), halt=halt), abandoned=True).halt == "ModelUnavailable: nobody"


@pytest.mark.parametrize(
    ("status", "abandoned", "shown"),
    [("running", True, "halted"), ("running", False, "running"), ("waiting", True, "waiting")],
)
def test_a_line_of_the_list(status: str, abandoned: bool, shown: str) -> None:
    line = session_summary(row(status=status), abandoned=abandoned)
    assert (line.status, line.report) == (shown, False)
    assert session_summary(row(status="passed", artefact="a" * 64)).report
