"""Gates, decisions, steering, pauses and the clock, through a coordinator on a store."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.live import next_alarm, worked_before
from marg_ray.actors.owner import Decision
from marg_ray.errors import DecisionConflict, KeyReused, UsageError
from marg_ray.folding import replay
from marg_ray.messages import (
    LimitReached,
    Message,
    PlanDecided,
    PlanEdited,
    ReviewDecided,
    SessionCancelled,
    SessionPaused,
    SessionResumed,
    Steered,
)
from marg_ray.records import GateMode, Limits, OnTimeout, OutlineEntry, Request
from marg_ray.store.memory import MemoryStore
from marg_ray.store.protocol import LogEntry, Store
from marg_ray.tasks import Task
from tests.answers import answer, started

LIMIT_S = 20
TWO = (OutlineEntry(title="One"), OutlineEntry(title="Two"))
FIVE = tuple(OutlineEntry(title=f"Part {n}") for n in range(1, 6))


MADE: list[Coordinator] = []


@pytest.fixture(autouse=True)
async def nothing_is_left_running() -> AsyncIterator[None]:
    yield
    while MADE:
        await MADE.pop().close()


def made(store: Store, agents: Agents) -> Coordinator:
    MADE.append(Coordinator(store, agents))
    return MADE[-1]


class Agents:
    """Answers every task the same way each time; counts what it was asked."""

    def __init__(self) -> None:
        self.asked, self.was_asked = Counter[str](), asyncio.Event()
        self.hold: set[str] = set()  # kinds that are not answered
        self.was_aborted = asyncio.Event()

    async def __call__(self, task: Task) -> Message:
        self.asked[task.id] += 1
        self.was_asked.set()
        if task.kind in self.hold:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.was_aborted.set()
                raise
        await asyncio.sleep(0)
        return answer(task, Random(f"5/{task.id}"))

    @property
    def searches(self) -> int:
        return sum(n for t, n in self.asked.items() if "/search/" in t and "/scout/" not in t)


def request(**fields: object) -> Request:
    return Request.model_validate(
        {"question": "How do tides make power?", "request_class": "full_research", "depth": "overview", **fields}
    )


async def until(coordinator: Coordinator, *statuses: str, session: str = "S") -> str:
    """Wait until the session has one of these statuses."""
    async with asyncio.timeout(LIMIT_S):
        after = 0
        while True:
            progress = await coordinator.progress(session, after, wait_s=1.0)
            after += len(progress.entries)
            if progress.status in statuses:
                return progress.status


async def waiting(agents: Agents | None = None, store: Store | None = None, **fields: object) -> Coordinator:
    """A session that waits for the approval of its plan."""
    coordinator = made(store or MemoryStore(), agents or Agents())
    await coordinator.submit("S", request(**{"approve_plan": True, "on_timeout": OnTimeout.WAIT, **fields}))
    await until(coordinator, "waiting")
    return coordinator


async def decisions(coordinator: Coordinator) -> list[Message]:
    entries = (await coordinator.progress("S")).entries
    return [e.message for e in entries if isinstance(e.message, PlanDecided | PlanEdited | ReviewDecided)]


@pytest.mark.parametrize("round_", range(5))
@pytest.mark.parametrize(
    ("clients", "fine"),
    [
        (("approve", "reject"), 1),
        (("reject", "approve"), 1),
        (("approve", "approve"), 2),
        (("approve",) * 20, 20),
    ],
)
async def test_of_several_deciders_at_once_one_wins(clients: tuple[str, ...], fine: int, round_: int) -> None:
    coordinator = await waiting()
    ways = [Decision.model_validate({"what": what, "on": 1}) for what in clients]
    told = await asyncio.gather(*(coordinator.decide("S", d) for d in ways), return_exceptions=True)
    refused = [t for t in told if isinstance(t, BaseException)]
    assert all(isinstance(t, DecisionConflict) for t in refused), refused
    assert len(told) - len(refused) == fine
    made = [d for d in await decisions(coordinator) if getattr(d, "revision", 0) == 1]
    assert len(made) == 1
    for refusal in refused:
        assert "decided already" in str(refusal)
        assert ("approved" if clients[0] == "approve" else "rejected") in str(refusal)


async def test_research_starts_once_however_many_approve() -> None:
    agents = Agents()
    coordinator = await waiting(agents)
    assert agents.searches == 0
    await asyncio.gather(*(coordinator.decide("S", Decision(what="approve", on=1)) for _ in range(20)))
    await until(coordinator, "passed", "quality_warning", "insufficient_evidence")
    assert set(agents.asked.values()) == {1}
    assert agents.searches > 0


async def test_an_approval_of_a_plan_that_was_edited_meanwhile_is_refused() -> None:
    agents = Agents()
    coordinator = await waiting(agents)
    assert await coordinator.decide("S", Decision(what="edit", on=1, outline=TWO)) == "waiting"
    with pytest.raises(DecisionConflict, match="revision 2") as caught:
        await coordinator.decide("S", Decision(what="approve", on=1))
    assert caught.value.current == 2
    assert agents.searches == 0
    await coordinator.decide("S", Decision(what="approve", on=2))
    plan = (await coordinator.state("S")).plan
    assert plan is not None
    assert [s.title for s in plan.sections] == ["One", "Two"]


async def test_an_approval_of_another_outline_is_no_repeat_of_the_one_that_stands() -> None:
    coordinator = await waiting()
    mine = Decision(what="approve", on=1, outline=TWO)
    await coordinator.decide("S", mine)
    await coordinator.decide("S", mine)  # asked again, because the answer was lost
    with pytest.raises(DecisionConflict, match="decided already"):
        await coordinator.decide("S", Decision(what="approve", on=1, outline=FIVE))
    with pytest.raises(DecisionConflict, match="decided already"):
        await coordinator.decide("S", Decision(what="approve", on=1))


@pytest.mark.parametrize("round_", range(5))
async def test_of_two_edits_at_once_one_is_refused_and_the_plan_is_no_mix(round_: int) -> None:
    coordinator = await waiting()
    edits = [Decision(what="edit", on=1, outline=outline) for outline in (TWO, FIVE)]
    told = await asyncio.gather(*(coordinator.decide("S", e) for e in edits), return_exceptions=True)
    assert [isinstance(t, DecisionConflict) for t in told].count(True) == 1
    plan = (await coordinator.state("S")).plan
    assert plan is not None
    assert [s.title for s in plan.sections] in ([e.title for e in TWO], [e.title for e in FIVE])


async def test_what_cannot_be_decided_is_said_and_changes_nothing() -> None:
    agents = Agents()
    agents.hold = {"plan"}
    coordinator = made(MemoryStore(), agents)
    await coordinator.submit("S", request(approve_plan=True))
    before = await coordinator.state("S")
    with pytest.raises(DecisionConflict, match="nothing waits"):
        await coordinator.decide("S", Decision(what="approve", on=1))
    assert await coordinator.state("S") is before
    await coordinator.cancel("S")
    with pytest.raises(DecisionConflict, match="over"):
        await coordinator.decide("S", Decision(what="approve", on=1))
    with pytest.raises(DecisionConflict, match="over"):
        await coordinator.steer("S", Steered(task_id="w", action="add", query="more?"))


async def test_senseless_decisions_and_wishes_are_refused_with_what_to_do() -> None:
    coordinator = await waiting()
    for decision in (Decision(what="extend"), Decision(what="edit"), Decision(what="edit", outline=FIVE * 5)):
        with pytest.raises(UsageError):
            await coordinator.decide("S", decision)
    wishes = [
        Steered(task_id="1", action="add", query=" "),
        Steered(task_id="2", action="add", query="x?", section="s99"),
        Steered(task_id="3", action="drop"),
        Steered(task_id="4", action="drop", query="never asked"),
        Steered(task_id="5", action="pin"),
        Steered(task_id="6", action="ban"),
        Steered(task_id="7", action="raise"),
    ]
    before = await coordinator.state("S")
    for wish in wishes:
        with pytest.raises(UsageError):
            await coordinator.steer("S", wish)
    assert await coordinator.state("S") is before


async def test_a_wait_survives_a_restart() -> None:
    store = MemoryStore()
    first = await waiting(store=store)
    plan = (await first.state("S")).plan
    second = made(store, agents := Agents())
    assert await second.recover() == ["S"]
    state = await second.state("S")
    assert (state.plan, state.plan_revision) == (plan, 1)
    assert await second.decide("S", Decision(what="approve", on=1)) == "running"
    await until(second, "passed", "quality_warning", "insufficient_evidence")
    assert agents.searches > 0


@pytest.mark.parametrize(
    ("policy", "gate", "status"),
    [
        (OnTimeout.APPROVE, "plan", "running"),
        (OnTimeout.CANCEL, "plan", "cancelled"),
        (OnTimeout.APPROVE, "review", ""),
        (OnTimeout.CANCEL, "review", "cancelled"),
    ],
)
async def test_nobody_decides_in_time(policy: OnTimeout, gate: str, status: str) -> None:
    fields = {"approve_plan": gate == "plan", "gate": GateMode.ALWAYS if gate == "review" else GateMode.NEVER}
    coordinator = made(MemoryStore(), Agents())
    await coordinator.submit("S", request(on_timeout=policy, gate_timeout_s=0.05, **fields))
    await until(coordinator, "passed", "quality_warning", "insufficient_evidence", "cancelled")
    state = await coordinator.state("S")
    assert state.cancelled is (policy is OnTimeout.CANCEL)
    said = [e.message for e in (await coordinator.progress("S")).entries]
    if policy is OnTimeout.CANCEL:
        assert any(isinstance(m, SessionCancelled) and m.by == "time-out" for m in said)
    else:
        assert any(n.kind == "gate" and "nobody decided" in n.text for n in state.notes), state.notes


async def test_a_pause_aborts_what_is_under_way_and_resume_goes_on() -> None:
    agents = Agents()
    agents.hold = {"search"}
    coordinator = made(MemoryStore(), agents)
    await coordinator.submit("S", request())
    await _asked(agents, "/search/")
    assert await coordinator.pause("S") == "paused"
    async with asyncio.timeout(LIMIT_S):
        await agents.was_aborted.wait()
    assert (await coordinator.progress("S")).running == ()
    agents.hold = set()
    assert await coordinator.resume("S") == "running"
    await until(coordinator, "passed", "quality_warning", "insufficient_evidence")


async def _asked(agents: Agents, part: str) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not any(part in t for t in agents.asked):
            agents.was_asked.clear()
            await agents.was_asked.wait()


async def test_when_time_is_up_the_session_ends_in_what_there_is() -> None:
    agents = Agents()
    agents.hold = {"read", "draft"}
    store = MemoryStore()
    coordinator = made(store, agents)
    await coordinator.submit("S", request(limits=Limits(seconds=0.3)))
    assert await until(coordinator, "budget_stopped") == "budget_stopped"
    reached = [e.message for e in await store.read("S") if isinstance(e.message, LimitReached)]
    assert [m.hard for m in reached] == [False]  # nothing had been found by then: there is nothing to write
    async with asyncio.timeout(LIMIT_S):
        await agents.was_aborted.wait()


async def test_a_deadline_that_has_passed_gives_a_clear_refusal() -> None:
    coordinator = made(MemoryStore(), Agents())
    past = datetime.now(UTC) - timedelta(seconds=5)
    agents_hold = Agents()
    agents_hold.hold = {"search"}
    coordinator = made(MemoryStore(), agents_hold)
    await coordinator.submit("S", request(limits=Limits(deadline=past)))
    assert await until(coordinator, "budget_stopped") == "budget_stopped"
    assert any("was due" in n.text for n in (await coordinator.state("S")).notes)


async def test_waiting_for_the_owner_is_no_time_of_work() -> None:
    coordinator = await waiting(limits=Limits(seconds=3600))
    live = coordinator._live["S"]
    later = datetime.now(UTC) + timedelta(days=1)
    assert live.since is None
    assert next_alarm(live, later) is None, "the clock has nothing to say while the owner thinks"
    assert await coordinator.decide("S", Decision(what="approve")) == "running"
    due = next_alarm(live, later)
    assert due is not None
    assert due[0] < 0 < 3600 - live.worked


async def test_a_request_that_comes_again_with_its_key_starts_nothing() -> None:
    store = MemoryStore()
    coordinator = made(store, Agents())
    names = await asyncio.gather(*(coordinator.submit(f"S{n}", request(), "k1", "body") for n in range(50)))
    assert len(set(names)) == 1
    assert len(await store.sessions()) == 1
    again = made(store, Agents())  # after a restart
    assert await again.submit("later", request(), "k1", "body") == names[0]
    with pytest.raises(KeyReused) as caught:
        await again.submit("other", request(question="Which wind farms are running?"), "k1", "another body")
    assert caught.value.session_id == names[0]
    assert len(await store.sessions()) == 1
    assert await again.submit("two", request(), "k2", "body") == "two"


async def test_a_steer_is_in_the_log_once_and_on_the_report_s_notes() -> None:
    agents = Agents()
    agents.hold = {"review"}
    store = MemoryStore()
    coordinator = made(store, agents)
    await coordinator.submit("S", request())
    await _asked(agents, "/review/")
    wish = Steered(task_id="S/steer/1", action="add", query="who pays?", by="ann")
    await asyncio.gather(*(coordinator.steer("S", wish) for _ in range(5)))
    await _asked(agents, "s")
    assert sum(e.message.task_id == "S/steer/1" for e in await store.read("S")) == 1
    state = replay(e.message for e in await store.read("S"))
    assert any("who pays?" in n.text and "ann" in n.text for n in state.notes)


async def test_a_session_that_is_over_does_not_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marg_ray.actors.coordinator.KEPT_S", 0.0)
    store = MemoryStore()
    coordinator = made(store, Agents())
    await coordinator.submit("S", request())
    status = await coordinator.ended("S", LIMIT_S)
    epoch = (await store.session("S")).epoch
    coordinator._forget()
    assert not coordinator._live
    progress = await coordinator.progress("S")
    assert (progress.status, progress.entries[-1].message.kind) == (status, "report_ready")
    assert (await store.session("S")).epoch == epoch, "who only reads takes nothing over"


def test_time_between_two_coordinators_is_no_time_of_work() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    first, second = (Steered(task_id=n, action="ban", location="x") for n in "12")
    log = [
        LogEntry(seq=1, epoch=1, at=start, message=started(request_class="full_research")),
        LogEntry(seq=2, epoch=1, at=start + timedelta(seconds=7), message=first),
        LogEntry(seq=3, epoch=2, at=start + timedelta(hours=9), message=second),
        LogEntry(seq=4, epoch=2, at=start + timedelta(hours=9, seconds=3), message=SessionPaused(task_id="3")),
        LogEntry(seq=5, epoch=2, at=start + timedelta(hours=12), message=SessionResumed(task_id="4")),
        LogEntry(seq=6, epoch=2, at=start + timedelta(hours=12, seconds=2), message=SessionCancelled(task_id="5")),
    ]
    assert worked_before(log)[1] == 12
