"""Several coordinators on one store: one session has one of them, and a silent one's sessions go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from marg_ray.actors.admission import Desk
from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.formatter import Formatter
from marg_ray.actors.ledger import LedgerBook
from marg_ray.errors import RuntimeUnavailable, SessionMoved, StaleEpoch, StoreUnavailable, TooBusy
from marg_ray.messages import Message
from marg_ray.records import Priority, ReportStatus, Request, Role, Usage
from marg_ray.seams import CallKey, in_thread
from marg_ray.settings import AdmissionSettings
from marg_ray.store.artefacts import Artefacts
from marg_ray.store.memory import MemoryStore
from marg_ray.store.protocol import LogEntry, Store
from marg_ray.store.sql import SqlStore, sqlite_url
from marg_ray.tasks import FormatTask, Task
from tests.answers import answer
from tests.postgres import Postgres

LIMIT_S = 20
ENDED = ("passed", "quality_warning", "insufficient_evidence", "budget_stopped")
REQUEST = Request.model_validate({"question": "How do tides make power?", "request_class": "full_research"})


async def agents(task: Task) -> Message:
    await asyncio.sleep(0)
    return answer(task, Random(f"5/{task.id}"))


async def silent(task: Task) -> Message:
    await asyncio.Event().wait()
    raise AssertionError(task)


@pytest.fixture
async def made() -> AsyncIterator[list[Coordinator]]:
    coordinators: list[Coordinator] = []
    yield coordinators
    for coordinator in coordinators:
        await coordinator.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    match request.param:
        case "sqlite":
            return await SqlStore.open(sqlite_url(tmp_path / "marg.db"))
        case "postgres":
            server: Postgres = request.getfixturevalue("postgres")
            return await SqlStore.open(server.database())
    return MemoryStore()


async def until(coordinator: Coordinator, *statuses: str, session: str = "S") -> str:
    async with asyncio.timeout(LIMIT_S):
        after = 0
        while True:
            progress = await coordinator.progress(session, after, wait_s=1.0)
            after += len(progress.entries)
            if progress.status in statuses:
                return progress.status


async def test_a_silent_coordinator_s_sessions_are_taken_over_by_the_next(
    store: Store, made: list[Coordinator]
) -> None:
    dead, next_one, last = (
        Coordinator(store, dispatch, holder="us", shard=n, beat_s=0.02, dead_after_s=0.3)
        for n, dispatch in enumerate((silent, agents, agents))
    )
    made += [next_one, last]
    await store.beat("us", 0)
    for name in ("S", "T"):
        await dead.submit(name, REQUEST)
    watching = [asyncio.ensure_future(c.watch()) for c in (next_one, last)]
    try:
        for _ in range(1000):
            if {(await store.session(s)).shard for s in ("S", "T")} == {1}:
                break
            await asyncio.sleep(0.02)
        for name in ("S", "T"):
            assert await until(next_one, *ENDED, session=name) in ENDED
        with pytest.raises(StaleEpoch):
            await dead.cancel("S")
    finally:
        for work in watching:
            work.cancel()


async def test_a_living_one_s_session_is_not_taken_but_named(made: list[Coordinator]) -> None:
    store = MemoryStore()
    one, two = (Coordinator(store, silent, holder="us", shard=n) for n in (0, 1))
    stranger = Coordinator(store, silent, holder="other-host/1/2", shard=0)
    made += [one, two, stranger]
    await store.beat("us", 0)
    await one.submit("S", REQUEST)
    with pytest.raises(SessionMoved) as caught:
        await two.progress("S")
    assert (caught.value.shard, caught.value.holder) == (0, "")
    with pytest.raises(SessionMoved) as caught:
        await stranger.resume("S")
    assert caught.value.holder == "us"
    assert (await store.session("S")).epoch == 1


async def test_two_who_resume_at_once_are_one_coordinator(store: Store, made: list[Coordinator]) -> None:
    first = Coordinator(store, silent, holder="dead/1/1")
    await first.submit("S", REQUEST)
    second, third = (Coordinator(store, agents, holder=f"h{n}/1/1") for n in (2, 3))
    made += [second, third]
    await store.beat("h2/1/1", 0)
    await store.beat("h3/1/1", 0)
    told = await asyncio.gather(second.resume("S"), third.resume("S"), return_exceptions=True)
    refused = [t for t in told if isinstance(t, BaseException)]
    assert len(refused) == 1
    assert isinstance(refused[0], StaleEpoch | SessionMoved)
    winner = second if told[1] is refused[0] else third
    assert await until(winner, *ENDED) in ENDED
    entries = await store.read("S")
    assert [e.seq for e in entries] == list(range(1, len(entries) + 1))


async def test_nothing_of_a_replaced_coordinator_is_kept(store: Store, made: list[Coordinator], tmp_path: Path) -> None:
    """Its append, its calls' results and its report are refused; the new one's are not."""
    handed: list[Task] = []

    async def asked(task: Task) -> Message:
        handed.append(task)
        return await silent(task)

    old = Coordinator(store, asked, holder="dead/1/1")
    new = Coordinator(store, silent, holder="us")
    made.append(new)
    await old.submit("S", REQUEST)
    await asyncio.wait_for(_until_handed(handed), LIMIT_S)
    (task,) = handed
    key = CallKey.of("S", "model", Role.PLANNER, "asked", task_id=task.id, epoch=task.epoch)
    ledger = LedgerBook(store)
    await ledger.begin(key, Usage(calls=1))
    assert await new.resume("S") == "running"
    with pytest.raises(StaleEpoch):
        await ledger.end(key, "{}", Usage(calls=1))
    with pytest.raises(StaleEpoch):
        await store.begin_call(key.model_copy(update={"key": "k" * 64}), Usage(calls=1))

    async def opened() -> Store:
        return store

    artefacts = Artefacts(tmp_path / "reports")
    formatter = Formatter(artefacts=artefacts, open_store=opened, model_name="m", light=in_thread)
    late = FormatTask(id="S/format/0", session_id="S", epoch=task.epoch, status=ReportStatus.PASSED)
    with pytest.raises(StaleEpoch):
        await formatter.handle(late)
    assert not artefacts_in(tmp_path)
    with pytest.raises(StaleEpoch):
        await old.pause("S")
    current = key.model_copy(update={"epoch": (await store.session("S")).epoch})
    await ledger.begin(current, Usage(calls=1))
    await ledger.end(current, "{}", Usage(calls=1))
    assert [c.status for c in await store.calls("S")] == ["settled"]


def artefacts_in(folder: Path) -> list[Path]:
    return list(folder.glob("reports/*"))


async def _until_handed(handed: list[Task]) -> None:
    for _ in range(2000):
        if handed:
            return
        await asyncio.sleep(0.005)


class StoreWithGaps(MemoryStore):
    """Does not answer appends numbered in `away`."""

    def __init__(self, away: set[int]) -> None:
        super().__init__()
        self.away, self.count = away, 0

    async def append(
        self, session_id: str, message: Message, *, expected_seq: int, epoch: int, status: str
    ) -> LogEntry:
        self.count += 1
        if self.count in self.away:
            raise StoreUnavailable("gone for a moment")
        return await super().append(session_id, message, expected_seq=expected_seq, epoch=epoch, status=status)


async def test_a_store_that_was_away_is_no_end(made: list[Coordinator], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marg_ray.actors.coordinator.STORE_AWAY_S", (0.01,) * 5)
    store = StoreWithGaps({4, 9, 10, 15})
    coordinator = Coordinator(store, agents)
    made.append(coordinator)
    await coordinator.submit("S", REQUEST)
    assert await until(coordinator, *ENDED) in ENDED
    entries = await store.read("S")
    assert [e.seq for e in entries] == list(range(1, len(entries) + 1))
    assert len({e.message.task_id for e in entries}) == len(entries)


async def test_a_task_whose_worker_died_is_handed_out_again(made: list[Coordinator]) -> None:
    deaths: dict[str, int] = {}

    async def dying(task: Task) -> Message:
        deaths[task.id] = deaths.get(task.id, 0) + 1
        if deaths[task.id] <= 2 and task.kind in ("search", "draft"):
            raise RuntimeUnavailable("", "the worker died")
        return await agents(task)

    store = MemoryStore()
    coordinator = Coordinator(store, dying)
    made.append(coordinator)
    await coordinator.submit("S", REQUEST)
    assert await until(coordinator, *ENDED) in ENDED
    assert not any(e.message.kind == "task_failed" for e in await store.read("S"))


async def test_sessions_wait_for_their_place_and_no_more_than_the_limit_run(made: list[Coordinator]) -> None:
    desk = Desk(AdmissionSettings(sessions=2, waiting=3))

    class AtDesk:
        enter, leave = desk.enter, desk.leave

        async def renew(self, owners: dict[str, str]) -> None:
            await desk.renew(owners, owners)

        async def position(self, session_id: str) -> int | None:
            return desk.position(session_id)

    going = asyncio.Event()
    under_way: set[str] = set()
    most = 0

    async def counted(task: Task) -> Message:
        nonlocal most
        under_way.add(task.session_id)
        most = max(most, len(under_way))
        await going.wait()
        message = await agents(task)
        if task.kind == "format":
            under_way.discard(task.session_id)
        return message

    coordinator = Coordinator(MemoryStore(), counted, admission=AtDesk())  # type: ignore[arg-type]
    made.append(coordinator)
    for n in range(5):
        await coordinator.submit(
            f"S{n}", REQUEST.model_copy(update={"priority": Priority.BATCH if n == 2 else "interactive"})
        )
    with pytest.raises(TooBusy):
        await coordinator.submit("S5", REQUEST)
    assert len(await coordinator.sessions()) == 5, "what is refused leaves nothing behind"
    places = [(await coordinator.progress(f"S{n}", 1, wait_s=0)).position for n in range(5)]
    assert places == [0, 0, 3, 1, 2], "batch comes after the interactive ones"
    assert len(under_way) == 2
    going.set()
    for n in range(5):
        assert await until(coordinator, *ENDED, session=f"S{n}") in ENDED
    assert most <= 2
