"""The doubles that fail on a schedule, and whole runs in which everything around them does."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from marg_ray.actors import coordinator as coordinator_module
from marg_ray.actors import handing as handing_module
from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.faults import (
    Crash,
    Faults,
    FaultyDispatch,
    FaultyFetcher,
    FaultyModel,
    FaultySearcher,
    faulty_store,
)
from marg_ray.errors import MargError, ModelUnavailable, RuntimeUnavailable, StaleEpoch, StoreUnavailable
from marg_ray.messages import Message, SessionStarted, Steered
from marg_ray.models.client import Call
from marg_ray.records import GateMode, ReportStatus
from marg_ray.store.memory import MemoryStore
from marg_ray.tasks import PlanTask, Task
from tests.answers import answer, started
from tests.lives import REQUEST, SESSION, Life, Server, content, owner, settled, state_of
from tests.model_tasks import draft_section

CALL = Call(session_id="S", task_id="S/s1/draft/1")


# ---- the schedule


def drawn(faults: Faults, point: str, times: int = 50) -> list[str]:
    return [faults.at(point, ("bad", "worse")) for _ in range(times)]


def test_the_same_seed_gives_the_same_faults_whatever_happens_elsewhere() -> None:
    rates = {"a.bad": 0.3, "a.worse": 0.2, "b.bad": 0.5}
    alone = drawn(Faults(7, rates), "a")
    mixed, faults = [], Faults(7, rates)
    for _ in range(50):
        mixed.append(faults.at("a", ("bad", "worse")))
        faults.at("b", ("bad",))
    assert alone == mixed
    assert set(alone) == {"", "bad", "worse"}
    assert alone != drawn(Faults(8, rates), "a")


def test_a_script_names_the_visit() -> None:
    faults = Faults(script=[("a.worse", 2), ("a.bad", 4)])
    assert drawn(faults, "a", 5) == ["", "worse", "", "bad", ""]
    assert faults.happened == ["a.worse", "a.bad"]


def test_after_the_last_fault_there_are_no_more() -> None:
    faults = Faults(1, {"a.bad": 1.0}, most=3)
    assert drawn(faults, "a", 6) == ["bad"] * 3 + [""] * 3


# ---- the doubles


@pytest.mark.parametrize(("kind", "written"), [("lost_before", 0), ("lost_after", 1), ("crash_before", 0)])
async def test_a_store_fails_before_or_after_it_has_written(kind: str, written: int) -> None:
    disk = MemoryStore()
    await disk.create("S", owner="o", question="q")
    store = faulty_store(disk, Faults(script=[(f"store/append.{kind}", 1)]))
    epoch = await store.take_over("S")
    message: SessionStarted = started()
    with pytest.raises(Crash if kind.startswith("crash") else StoreUnavailable):
        await store.append("S", message, expected_seq=0, epoch=epoch, status="running")
    assert len(await disk.read("S")) == written
    if kind.startswith("crash"):
        with pytest.raises(Crash):
            await store.read("S")
    else:  # the same append again is the same entry
        entry = await store.append("S", message, expected_seq=0, epoch=epoch, status="running")
        assert (entry.seq, len(await disk.read("S"))) == (1, 1)


async def test_a_lost_connection_comes_back() -> None:
    store = faulty_store(MemoryStore(), Faults(script=[("store/sessions.away", 1)]))
    failed = 0
    while True:
        try:
            await store.sessions()
            break
        except StoreUnavailable:
            failed += 1
    assert failed == 5


PLAN = PlanTask(id="S/plan/0", session_id="S", request=started().request)


async def good(task: Task) -> Message:
    await asyncio.sleep(0)
    return answer(task, Random(1))


@pytest.mark.parametrize("kind", ["dead", "died", "odd"])
async def test_a_dispatch_loses_its_worker(kind: str) -> None:
    done: list[str] = []

    async def worker(task: Task) -> Message:
        done.append(task.id)
        return await good(task)

    dispatch = FaultyDispatch(worker, Faults(script=[(f"task/plan.{kind}", 1)]))
    with pytest.raises(LookupError if kind == "odd" else RuntimeUnavailable):
        await dispatch(PLAN)
    assert bool(done) == (kind == "died")
    assert (await dispatch(PLAN)).task_id == PLAN.id


@pytest.mark.parametrize("kind", ["hangs", "late"])
async def test_a_dispatch_that_hangs_can_be_given_up(kind: str) -> None:
    dispatch = FaultyDispatch(good, Faults(script=[(f"task/plan.{kind}", 1)]))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(dispatch(PLAN), 0.01)
    await dispatch.settle()


async def test_a_dispatch_that_carries_a_task_out_twice_answers_once() -> None:
    done: list[str] = []

    async def worker(task: Task) -> Message:
        done.append(task.id)
        return await good(task)

    dispatch = FaultyDispatch(worker, Faults(script=[("task.twice", 1)]))
    assert (await dispatch(PLAN)).task_id == PLAN.id
    await dispatch.settle()
    assert done == [PLAN.id] * 2


async def test_a_model_whose_answer_is_lost_has_been_asked() -> None:
    server = Server()
    model = FaultyModel(server, Faults(script=[("model/draft_section.lost", 1)]))
    with pytest.raises(ModelUnavailable):
        await model.run(draft_section(), CALL)
    assert len(server.calls) == 1
    assert (await model.run(draft_section(), CALL)).output
    assert model.name == server.name


@pytest.mark.parametrize("kind", FaultyModel.KINDS)
async def test_every_kind_of_a_models_faults_happens(kind: str) -> None:
    faults = Faults(script=[(f"model.{kind}", 1)])
    model = FaultyModel(Server(), faults)
    if kind == "slow":
        await model.run(draft_section(), CALL)
    else:
        with pytest.raises((MargError, ArithmeticError)):
            await model.run(draft_section(), CALL)
    assert faults.happened == [f"model.{kind}"]


# ---- whole runs


RATES: dict[str, tuple[str, ...]] = {
    "store/append": ("crash_before", "crash_after", "lost_before", "lost_after", "away", "slow"),
    "store/settle_call": ("crash_before", "crash_after", "lost_before", "lost_after", "away", "slow"),
    "store/begin_call": ("crash_before", "lost_before", "lost_after"),
    "store/read": ("lost_before", "slow"),
    "store/take_over": ("crash_after", "lost_after"),
    "task": ("dead", "died", "twice", "odd", "late"),
    "model": FaultyModel.KINDS,
    "search": FaultySearcher.KINDS,
    "fetch": FaultyFetcher.KINDS,
}
ALL = sorted(f"{point}.{kind}" for point, kinds in RATES.items() for kind in kinds)
NO_TRACE = [f for f in ALL if f.startswith(("store/", "task.")) and not f.endswith((".odd", ".late"))]


def schedules(faults: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    rates = st.dictionaries(st.sampled_from(faults), st.sampled_from((0.02, 0.1, 0.3)), min_size=1, max_size=8)
    return st.fixed_dictionaries({"seed": st.integers(0, 2**32), "rates": rates, "most": st.integers(1, 25)})


@pytest.fixture(scope="module", autouse=True)
def impatient() -> Iterator[None]:
    """The coordinator's pauses, without the waiting."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handing_module, "PAUSE_S", 0.001)
        patch.setattr(coordinator_module, "STORE_AWAY_S", (0.001,) * 50)
        yield


async def test_a_late_word_of_an_earlier_life_does_not_stop_the_present_one() -> None:
    """The store was away, the session was taken up again; what was under way before is told that it is stale."""
    disk, seen, planning = MemoryStore(), list[int](), asyncio.Event()

    async def dispatch(task: Task) -> Message:
        seen.append(task.epoch)
        if isinstance(task, PlanTask) and task.epoch == 1:
            planning.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            raise StaleEpoch("S", task.epoch, task.epoch + 1)
        return await good(task)

    store = faulty_store(disk, Faults(script=[("store/append@S/steer/1.lost_before", 1)]))
    coordinator = Coordinator(store, dispatch)
    await coordinator.submit(SESSION, REQUEST.model_copy(update={"approve_plan": False, "gate": GateMode.NEVER}))
    async with asyncio.timeout(20):
        await planning.wait()
        with pytest.raises(StoreUnavailable):
            await coordinator.steer(SESSION, Steered(task_id="S/steer/1", action="ban", location="nowhere.test"))
        while await coordinator.ended(SESSION) == "running":
            pass
    assert max(seen) > 1


async def test_who_follows_a_session_of_a_dead_process_sees_it_go_on() -> None:
    disk = MemoryStore()

    async def nobody(task: Task) -> Message:
        await asyncio.Event().wait()
        raise AssertionError(task)

    await Coordinator(disk, nobody).submit(SESSION, REQUEST.model_copy(update={"approve_plan": False}))
    second = Coordinator(disk, good)
    async with asyncio.timeout(20):
        while await second.ended(SESSION) == "running":
            pass


class Watched(Server):
    """Notes calls that are made although their result is on disk."""

    def __init__(self, disk: MemoryStore) -> None:
        super().__init__()
        self.disk, self.paid_twice = disk, list[str]()

    async def run(self, task: Any, call: Call) -> Any:
        had = await settled(self.disk)
        reply = await super().run(task, call)
        if self.paid[-1] in had:
            self.paid_twice.append(call.task_id)
        return reply


async def insist(coordinator: Coordinator) -> None:
    """An owner who does not give up: asks again after an error, resumes after a halt."""
    for _ in range(100):
        try:
            await owner(coordinator)
            if (await coordinator.progress(SESSION)).status != "halted":
                return
            await coordinator.resume(SESSION)
        except MargError as exc:
            if not exc.retryable:
                raise
            await asyncio.sleep(0.002)
    raise AssertionError("the session does not end")


async def survive(
    place: Path, seed: int, rates: dict[str, float], most: int, lease_s: float = 1.0
) -> tuple[MemoryStore, Watched, Life]:
    disk = MemoryStore()
    server, lives, died = Watched(disk), 0, True
    faults = Faults(seed, rates, most=most)
    while died:
        lives += 1
        assert lives <= most + 1
        life = Life(place, model=server, disk=disk, faults=faults, lease_s=lease_s)
        died = await life.live(insist)
    if faults.happened:
        note(f"{faults.happened} in {lives} lives")
    return disk, server, life


FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
PATIENT_S = 600.0  # a lease that no busy machine oversteps


@FEW
@given(schedules(ALL))
def test_whatever_fails_a_run_ends_honestly_and_nothing_is_lost_or_paid_twice(schedule: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as place:
        disk, server, life = asyncio.run(survive(Path(place), **schedule))
        state = asyncio.run(state_of(disk))
        assert state.report is not None
        assert not server.paid_twice
        report = life.report(state)
        if report.status in (ReportStatus.PASSED, ReportStatus.QUALITY_WARNING):
            snapshots = life.snapshots
            assert all(snapshots.text(e.source)[e.start : e.end] == e.quote for e in report.evidence)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    disk, _, life = asyncio.run(survive(tmp_path_factory.mktemp("whole"), 0, {}, 0, PATIENT_S))
    return content(life.report(asyncio.run(state_of(disk))))


@FEW
@given(schedule=schedules(NO_TRACE))
def test_workers_that_die_and_a_store_that_comes_and_goes_leave_no_trace(
    undisturbed: Any, schedule: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        disk, server, life = asyncio.run(survive(Path(place), **schedule, lease_s=PATIENT_S))
        assert not server.paid_twice
        assert content(life.report(asyncio.run(state_of(disk)))) == undisturbed
