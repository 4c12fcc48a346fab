from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest

from marg_ray.actors.coordinator import Coordinator
from marg_ray.errors import ModelUnavailable, SessionNotFound, StaleEpoch
from marg_ray.folding import replay
from marg_ray.messages import Message, SearchDone, TaskFailed
from marg_ray.records import Request, RequestClass
from marg_ray.store.memory import MemoryStore
from marg_ray.store.protocol import LogEntry
from marg_ray.tasks import PlanTask, ReadTask, Task
from tests.answers import answer

REQUEST = Request(question="How do tides make power?", request_class=RequestClass.FULL_RESEARCH)
LIMIT_S = 20
STEPS = 30  # the appends of the session that ScriptedAgents() plays


class Crash(BaseException):
    """The process died."""


class ScriptedAgents:
    """Answers every task, the same way each time it is asked the same, and keeps what it was asked."""

    def __init__(self, seed: int = 3) -> None:
        self.seed, self.asked = seed, Counter[str]()

    async def __call__(self, task: Task) -> Message:
        self.asked[task.id] += 1
        await asyncio.sleep(0)
        return answer(task, Random(f"{self.seed}/{task.id}"))


class CrashingStore(MemoryStore):
    """Dies at the n-th append, before or after it is on disk."""

    def __init__(self, disk: MemoryStore, at: int, point: str) -> None:
        self.__dict__ = disk.__dict__  # the same disk
        self._left, self._point = at, point
        self.crashed = asyncio.Event()

    async def append(
        self, session_id: str, message: Message, *, expected_seq: int, epoch: int, status: str
    ) -> LogEntry:
        if self.crashed.is_set():
            raise Crash
        self._left -= 1
        if self._left < 0 and self._point == "before_append":
            self._die()
        entry = await super().append(session_id, message, expected_seq=expected_seq, epoch=epoch, status=status)
        if self._left < 0:
            self._die()
        return entry

    def _die(self) -> None:
        self.crashed.set()
        raise Crash


async def finished(coordinator: Coordinator, session: str = "S") -> str:
    """Wait for the session's end; returns its status."""
    async with asyncio.timeout(LIMIT_S):
        after = 0
        while True:
            progress = await coordinator.progress(session, after)
            after += len(progress.entries)
            if progress.status != "running":
                return progress.status


async def _undisturbed() -> tuple[MemoryStore, ScriptedAgents]:
    store, agents = MemoryStore(), ScriptedAgents()
    coordinator = Coordinator(store, agents)
    await coordinator.submit("S", REQUEST)
    await finished(coordinator)
    return store, agents


async def test_a_session_runs_to_its_report() -> None:
    store, agents = await _undisturbed()
    entries = await store.read("S")
    assert [e.seq for e in entries] == list(range(1, len(entries) + 1))
    assert replay(e.message for e in entries).report is not None
    assert set(agents.asked.values()) == {1}
    assert len(entries) == STEPS
    assert (await store.session("S")).artefact


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("point", ["before_append", "after_append"])
@pytest.mark.parametrize("crash_at", range(STEPS))
async def test_a_crash_anywhere_changes_nothing(crash_at: int, point: str) -> None:
    whole, _ = await _undisturbed()
    disk, agents = MemoryStore(), ScriptedAgents()
    await disk.create("S", owner="local", question=REQUEST.question)
    crashing = CrashingStore(disk, crash_at, point)
    first = Coordinator(crashing, agents)
    # the process dies inside an append: whatever it was doing is gone, the disk stays
    victim = asyncio.ensure_future(first.submit("S", REQUEST))
    waiter = asyncio.ensure_future(crashing.crashed.wait())
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)
    async with asyncio.timeout(LIMIT_S):
        await waiter
        await asyncio.gather(victim, return_exceptions=True)
    for live in first._live.values():
        works = [w for _, w, _ in live.in_flight.values()]
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)

    before = {e.message.task_id for e in await disk.read("S")}
    asked = Counter(agents.asked)
    survivor = Coordinator(disk, agents)
    await survivor.submit("S", REQUEST)
    assert await finished(survivor) == (await whole.session("S")).status

    entries = await disk.read("S")
    said = [e.message.task_id for e in entries]
    assert len(said) == len(set(said)), "a fact is in the log twice"
    assert set(said) == {e.message.task_id for e in await whole.read("S")}
    assert all(agents.asked[t] == asked[t] for t in before), "an answered task was handed out again"


async def test_deliveries_may_overlap_and_repeat() -> None:
    store, agents = MemoryStore(), ScriptedAgents()
    coordinator = Coordinator(store, agents)
    await coordinator.submit("S", REQUEST)
    (scout,) = [t for t in agents.asked if "scout" in t] or ["S/scout/search/0"]
    found = SearchDone(task_id=scout, section="scout", query=REQUEST.question)
    await asyncio.gather(*(coordinator.deliver("S", found) for _ in range(20)))
    await finished(coordinator)
    said = [e.message.task_id for e in await store.read("S")]
    assert said.count(scout) == 1


async def test_two_coordinators_for_one_session_the_stale_one_is_refused() -> None:
    store = MemoryStore()
    hold = asyncio.Event()

    async def slow(task: Task) -> Message:
        await hold.wait()
        return answer(task, Random(1))

    old, new = Coordinator(store, slow), Coordinator(store, ScriptedAgents())
    await old.submit("S", REQUEST)
    await new.resume("S")
    await finished(new)
    length = len(await store.read("S"))
    with pytest.raises(StaleEpoch):
        await old.cancel("S")
    hold.set()
    assert len(await store.read("S")) == length


async def test_what_an_agent_raises_becomes_a_fact() -> None:
    good = ScriptedAgents()

    async def failing(task: Task) -> Message:
        if isinstance(task, ReadTask):
            raise ZeroDivisionError("boom")
        return await good(task)

    store = MemoryStore()
    coordinator = Coordinator(store, failing)
    await coordinator.submit("S", REQUEST)
    await finished(coordinator)
    failed = [e.message for e in await store.read("S") if isinstance(e.message, TaskFailed)]
    assert failed
    assert "ZeroDivisionError: boom" in failed[0].detail


async def test_a_model_that_is_away_halts_and_resume_goes_on() -> None:
    good = ScriptedAgents()
    away = True

    async def agents(task: Task) -> Message:
        if away and isinstance(task, PlanTask):
            raise ModelUnavailable("http://m", "refused")
        return await good(task)

    store = MemoryStore()
    coordinator = Coordinator(store, agents)
    await coordinator.submit("S", REQUEST)
    assert await finished(coordinator) == "halted"
    assert "refused" in (await coordinator.progress("S")).halt
    away = False
    await coordinator.resume("S")
    assert await finished(coordinator) not in ("halted", "running")


async def test_a_task_that_hangs_is_handed_out_again() -> None:
    good = ScriptedAgents()
    hung: list[str] = []

    async def agents(task: Task) -> Message:
        if isinstance(task, PlanTask) and not hung:
            hung.append(task.id)
            await asyncio.Event().wait()
        return await good(task)

    coordinator = Coordinator(MemoryStore(), agents, lease_s=0.05)
    await coordinator.submit("S", REQUEST)
    assert await finished(coordinator) != "halted"
    assert hung


async def test_cancelling_aborts_what_is_under_way() -> None:
    aborted = asyncio.Event()
    reached = asyncio.Event()

    async def agents(task: Task) -> Message:
        reached.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            aborted.set()
            raise
        raise AssertionError

    coordinator = Coordinator(MemoryStore(), agents)
    await coordinator.submit("S", REQUEST)
    async with asyncio.timeout(LIMIT_S):
        await reached.wait()
        assert await coordinator.cancel("S") == "cancelled"
        await aborted.wait()


async def test_a_restarted_coordinator_takes_up_its_own_sessions() -> None:
    store = MemoryStore()

    async def never(task: Task) -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    first = Coordinator(store, never, holder="me")
    await first.submit("S", REQUEST)
    await store.create("T", owner="o", question="another's")
    await store.take_over("T", holder="you")

    second = Coordinator(store, ScriptedAgents(), holder="me")
    assert await second.recover() == ["S"]
    assert await finished(second) != "running"


async def test_the_id_of_another_owners_session_leads_nowhere() -> None:
    coordinator = Coordinator(MemoryStore(), ScriptedAgents())
    await coordinator.submit("S", Request(question="Whose is it?", owner="ada"))
    with pytest.raises(SessionNotFound):
        await coordinator.submit("S", Request(question="Whose is it?", owner="bob"))
    await coordinator.close()
