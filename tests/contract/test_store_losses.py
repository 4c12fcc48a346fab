"""Connections that are lost, answers that are lost, and other processes that write: nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from marg_ray.errors import StoreUnavailable
from marg_ray.messages import SearchDone
from marg_ray.records import Limits, Role, Usage
from marg_ray.seams import CallKey
from marg_ray.store import database as database_module
from marg_ray.store.calls import BeginCall
from marg_ray.store.database import Database, Operation, T, connect
from marg_ray.store.protocol import Store
from marg_ray.store.sql import SqlStore, sqlite_url
from tests.answers import started
from tests.postgres import Postgres

SESSIONS = 5
ENTRIES = 24
ENDINGS = 5


def found(session: str, number: int) -> SearchDone:
    return SearchDone(task_id=f"{session}/{number}", section="s1", query=f"q{number}", usage=Usage(searches=1))


async def fill(store: Store, session: str, written: asyncio.Queue[int] | None = None) -> None:
    """A session's log, with a paid call for each entry; tells `written` of each."""
    await store.create(session, owner="o", question="q?")
    epoch = await store.take_over(session)
    for number in range(ENTRIES):
        call = CallKey.of(session, "search", Role.RESEARCHER, number, epoch=epoch)
        await store.begin_call(call, Usage(searches=1))
        await store.settle_call(call, "{}", Usage(searches=1))
        await store.append(session, found(session, number), expected_seq=number, epoch=epoch, status="running")
        if written is not None:
            written.put_nowait(number)


async def look_at(store: Store, session: str) -> None:
    log = await store.read(session)
    assert [(e.seq, e.message) for e in log] == [(n + 1, found(session, n)) for n in range(ENTRIES)]
    row = await store.session(session)
    assert (row.epoch, row.seq) == (1, ENTRIES)
    account = await store.account(session)
    assert (account.spent, account.lost) == (Usage(searches=ENTRIES), Usage())


async def test_backends_that_are_ended_lose_and_double_nothing(postgres: Postgres) -> None:
    store = await SqlStore.open(postgres.database())
    written: asyncio.Queue[int] = asyncio.Queue()
    ended = 0
    async with asyncio.TaskGroup() as work:
        for n in range(SESSIONS):
            work.create_task(fill(store, f"S{n}", written))
        for _ in range(ENDINGS):
            for _ in range(SESSIONS * ENTRIES // (ENDINGS + 1)):
                await written.get()
            ended += await asyncio.to_thread(_end_backends, postgres)
    assert ended >= ENDINGS
    for n in range(SESSIONS):
        await look_at(store, f"S{n}")
    await store.close()


def _end_backends(postgres: Postgres) -> int:
    query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'marg_%'"
    return postgres.run(f"{query};").count(" t\n")


async def test_a_server_that_restarts_is_waited_for(postgres: Postgres) -> None:
    store = await SqlStore.open(postgres.database())
    written: asyncio.Queue[int] = asyncio.Queue()
    async with asyncio.TaskGroup() as work:
        under_way = [work.create_task(fill(store, f"S{n}", written)) for n in range(SESSIONS)]
        for _ in range(SESSIONS * ENTRIES // 4):
            await written.get()
        await asyncio.to_thread(postgres.stop)
        try:
            assert not all(task.done() for task in under_way)
        finally:
            await asyncio.to_thread(postgres.start)
    for n in range(SESSIONS):
        await look_at(store, f"S{n}")
    await store.close()


async def test_a_server_that_stays_away_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        await SqlStore.open(f"postgresql+asyncpg://postgres@/postgres?host={tmp_path}", retry_s=0.2)


async def test_a_file_that_is_no_database_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "marg.db").write_bytes(b"This is a letter, not a database." * 100)
    with pytest.raises(StoreUnavailable, match="not a database"):
        await SqlStore.open(sqlite_url(tmp_path / "marg.db"), retry_s=0.2)


class LosesAnswers:
    """A database each of whose transactions is committed, its answer lost, and run again."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner

    async def read(self, operation: Operation[T]) -> T:
        return await self._inner.read(operation)

    async def write(self, operation: Operation[T]) -> T:
        await self._inner.write(operation)
        return await self._inner.write(operation)

    async def close(self) -> None:
        await self._inner.close()


@pytest.fixture
async def losing(url: str) -> AsyncIterator[Store]:
    await (await SqlStore.open(url)).close()
    store = SqlStore(LosesAnswers(connect(url)))
    yield store
    await store.close()


async def test_every_operation_may_run_again_after_its_commit(losing: Store) -> None:
    await fill(losing, "S")
    await look_at(losing, "S")
    assert await losing.take_over("S", expected_epoch=1) == 2
    await losing.append("S", started(limits=Limits(usd=1.0)), expected_seq=ENTRIES, epoch=2, status="running")
    call = CallKey.of("S", "model", Role.PLANNER, "asked", epoch=2)
    assert (await losing.begin_call(call, Usage(calls=1))).begun == 1
    again = await losing.begin_call(call, Usage(calls=2))  # this time its process did die
    assert (again.begun, again.lost) == (2, Usage(calls=1))
    await losing.release_call(call)
    assert (await losing.begin_call(call)).lost == Usage(calls=1)
    assert await losing.claim_key("o", "k", "b", "S") == ("S", "b")
    await losing.beat("me", 0)
    assert len(await losing.shards()) == 1


WRITER = """
import asyncio, sys
from tests.contract.test_store_losses import fill, look_at
from marg_ray.store.sql import SqlStore
async def main(url, session):
    store = await SqlStore.open(url)
    print("open", flush=True)
    sys.stdin.readline()
    await fill(store, session)
    print(*await store.claim_key("o", "the one key", session, session))
    await store.close()
asyncio.run(main(*sys.argv[1:]))
"""


async def test_processes_write_the_same_database(url: str) -> None:
    pipe = asyncio.subprocess.PIPE
    root = Path(__file__).parents[2]
    writers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, url, f"S{n}", stdin=pipe, stdout=pipe, cwd=root
        )
        for n in range(3)
    ]
    async with asyncio.timeout(60):
        for writer in writers:
            assert writer.stdout is not None
            assert await writer.stdout.readline() == b"open\n"
        answers = await asyncio.gather(*(writer.communicate(b"go\n") for writer in writers))
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert len({out for out, _ in answers}) == 1
    store = await SqlStore.open(url)
    for n in range(3):
        await look_at(store, f"S{n}")
    await store.close()


async def test_stores_on_one_file_that_read_before_they_write_do_not_fail(url: str) -> None:
    stores = [await SqlStore.open(url, retry_s=0) for _ in range(3)]
    await stores[0].create("S", owner="o", question="q?")
    epoch = await stores[0].take_over("S")
    call = CallKey.of("S", "model", Role.PLANNER, "asked", epoch=epoch)
    rows = await asyncio.gather(*(store.begin_call(call, Usage(calls=1)) for store in stores for _ in range(15)))
    assert sorted(row.begun for row in rows) == list(range(1, 46))
    for store in stores:
        await store.close()


async def test_a_takeover_waits_for_a_call_that_has_passed_the_fence(postgres: Postgres) -> None:
    """Otherwise the call would be written after the takeover, and be missing in the new coordinator's account."""
    url = postgres.database()
    store, engine = await SqlStore.open(url), create_async_engine(url)
    await store.create("S", owner="o", question="q?")
    call = CallKey.of("S", "model", Role.PLANNER, "asked", epoch=await store.take_over("S"))
    blocked = sa.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    async with engine.begin() as held, engine.connect() as watch:
        await held.run_sync(BeginCall(call, Usage(calls=1), "token"))
        takeover = asyncio.ensure_future(store.take_over("S"))
        while not takeover.done() and not (await watch.execute(blocked)).scalar():
            await watch.rollback()
        assert not takeover.done()
    assert await takeover == 2
    await engine.dispose()
    await store.close()


async def test_a_writer_that_takes_long_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "BUSY_S", 0.01)
    path = tmp_path / "marg.db"
    store, hasty = await SqlStore.open(sqlite_url(path)), await SqlStore.open(sqlite_url(path), retry_s=0.1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    patient = asyncio.ensure_future(store.create("S", owner="o", question="q?"))
    with pytest.raises(StoreUnavailable, match="locked"):
        await hasty.create("S", owner="hasty", question="q?")
    assert not patient.done()
    assert await store.sessions() == []  # reading goes on
    other.execute("ROLLBACK")
    other.close()
    await patient
    assert (await store.session("S")).owner == "o"
    for opened in (store, hasty):
        await opened.close()


async def test_a_store_is_read_by_a_second_process_s_store(url: str) -> None:
    one, two = await SqlStore.open(url), await SqlStore.open(url)
    await one.create("S", owner="o", question="潮汐 🌊")
    await one.append("S", started(), expected_seq=0, epoch=await one.take_over("S"), status="running")
    assert [e.message for e in await two.read("S")] == [started()]
    assert (await two.session("S")).question == "潮汐 🌊"
    await one.close()
    await two.close()
