"""Operations that wait at the same time share a transaction or a hop to a thread; each is answered for itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from marg_ray.errors import StaleEpoch, StoreConflict, StoreUnavailable
from marg_ray.messages import SearchDone
from marg_ray.records import Role, Usage
from marg_ray.seams import CallKey
from marg_ray.store import database as database_module
from marg_ray.store.database import Database, connect
from marg_ray.store.protocol import Store
from marg_ray.store.sql import sqlite_url

SESSIONS = 20


def found(session: str, n: int = 0) -> SearchDone:
    return SearchDone(task_id=f"{session}/{n}", section="s1", query="q", usage=Usage(searches=1))


async def several(store: Store) -> dict[str, int]:
    names = [f"S{n}" for n in range(SESSIONS)]
    await asyncio.gather(*(store.create(name, owner="o", question="q?") for name in names))
    return dict(zip(names, await asyncio.gather(*map(store.take_over, names)), strict=True))


async def test_an_append_that_is_refused_takes_no_other_with_it(store: Store) -> None:
    epochs = await several(store)
    stale, late = "S3", "S7"
    await store.take_over(stale)
    outcomes = await asyncio.gather(
        *(
            store.append(name, found(name), expected_seq=5 * (name == late), epoch=epoch, status="running")
            for name, epoch in epochs.items()
        ),
        return_exceptions=True,
    )
    for name, outcome in zip(epochs, outcomes, strict=True):
        if name in (stale, late):
            assert isinstance(outcome, StaleEpoch if name == stale else StoreConflict)
            assert await store.read(name) == []
        else:
            assert await store.read(name) == [outcome]
            assert (await store.session(name)).seq == 1


async def test_a_call_that_is_refused_takes_no_other_with_it(store: Store) -> None:
    epochs = await several(store)
    await store.take_over("S3")
    calls = [CallKey.of(name, "search", Role.RESEARCHER, "q", epoch=epoch) for name, epoch in epochs.items()]
    begun = await asyncio.gather(*(store.begin_call(c, Usage(searches=1)) for c in calls), return_exceptions=True)
    assert [isinstance(row, StaleEpoch) for row in begun] == [name == "S3" for name in epochs]
    assert {row.begun for row in begun if not isinstance(row, BaseException)} == {1}
    ends = await asyncio.gather(*(store.settle_call(c, "1", Usage(searches=1)) for c in calls), return_exceptions=True)
    assert [isinstance(end, StaleEpoch) for end in ends] == [name == "S3" for name in epochs]
    rows = await asyncio.gather(*(store.call(c.session_id, c.key) for c in calls))
    assert [None if row is None else (row.status, row.usage.searches) for row in rows] == [
        None if name == "S3" else ("settled", 1) for name in epochs
    ]


async def test_of_results_that_are_settled_at_once_one_stays(store: Store) -> None:
    call = CallKey.of("S", "search", Role.RESEARCHER, "q", epoch=await store.take_over("S"))
    await asyncio.gather(*(store.settle_call(call, f"{n}", Usage(searches=1)) for n in range(SESSIONS)))
    [row] = await store.calls("S")
    assert (row.status, row.usage) == ("settled", Usage(searches=1))
    await store.settle_call(call, "later", Usage(searches=1))
    assert await store.calls("S") == [row]


# ---- SQLite's threads


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = connect(sqlite_url(tmp_path / "marg.db"), retry_s=0)
    await opened.write(lambda db: db.execute(sa.text("CREATE TABLE t (n INTEGER PRIMARY KEY)")) and None)
    yield opened
    await opened.close()


def inserting(n: int, seen: list[object] | None = None) -> database_module.Operation[int]:
    def insert(db: sa.Connection) -> int:
        if seen is not None:
            seen.append(db.get_transaction())
        db.execute(sa.text("INSERT INTO t VALUES (:n)"), {"n": n})
        return n

    return insert


async def rows(database: Database) -> list[int]:
    return await database.read(lambda db: list(db.execute(sa.text("SELECT n FROM t ORDER BY n")).scalars()))


class Gate:
    """An operation that holds its thread until it is let go."""

    def __init__(self) -> None:
        self._loop, self.entered, self._go = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def __call__(self, db: sa.Connection) -> None:
        self._loop.call_soon_threadsafe(self.entered.set)
        assert self._go.wait(30)

    def let_go(self) -> None:
        self._go.set()


async def held(database: Database) -> tuple[Gate, asyncio.Future[None]]:
    gate = Gate()
    waits = asyncio.ensure_future(database.write(gate))
    await gate.entered.wait()
    return gate, waits


async def behind(database: Database, *operations: database_module.Operation[int]) -> list[asyncio.Future[int]]:
    """The operations, all of which wait for the writer by now."""
    tasks: list[asyncio.Future[int]] = [asyncio.ensure_future(database.write(operation)) for operation in operations]
    await asyncio.sleep(0)
    return tasks


async def test_what_waits_together_shares_a_transaction(database: Database) -> None:
    gate, first = await held(database)
    seen: list[object] = []
    tasks = await behind(database, *(inserting(n, seen) for n in range(10)))
    gate.let_go()
    assert await asyncio.gather(*tasks) == list(range(10))
    await first
    assert (len(seen), len(set(map(id, seen)))) == (10, 1)
    assert await rows(database) == list(range(10))


async def test_one_that_fails_fails_alone_and_leaves_nothing(database: Database) -> None:
    def fails(db: sa.Connection) -> int:
        inserting(100)(db)
        raise ValueError("its own")

    gate, first = await held(database)
    tasks = await behind(database, inserting(1), fails, inserting(2), inserting(1), inserting(3))
    gate.let_go()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    await first
    assert [type(o) for o in outcomes] == [int, ValueError, int, sa.exc.IntegrityError, int]
    assert await rows(database) == [1, 2, 3]


async def test_one_whose_caller_is_gone_is_left_out(database: Database) -> None:
    gate, first = await held(database)
    one, two = await behind(database, inserting(1), inserting(2))
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    gate.let_go()
    assert await two == 2
    await first
    assert await rows(database) == [2]


async def test_a_locked_file_is_waited_for_once_by_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "BUSY_S", 0.01)
    url = sqlite_url(tmp_path / "marg.db")
    one, other = connect(url, retry_s=0), connect(url, retry_s=0)
    await one.write(lambda db: db.execute(sa.text("CREATE TABLE t (n INTEGER PRIMARY KEY)")) and None)
    gate, first = await held(other)
    outcomes = await asyncio.gather(*(one.write(inserting(n)) for n in range(5)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 5
    gate.let_go()
    await first
    assert await one.write(inserting(7)) == 7  # the same connection, or a new one
    assert await rows(one) == [7]
    await one.close()
    await other.close()


async def test_reads_that_wait_together_are_answered_each(database: Database) -> None:
    await database.write(inserting(1))

    def fails(db: sa.Connection) -> list[int]:
        raise ValueError("its own")

    outcomes = await asyncio.gather(
        rows(database), database.read(fails), *(rows(database) for _ in range(40)), return_exceptions=True
    )
    assert isinstance(outcomes.pop(1), ValueError)
    assert outcomes == [[1]] * 41
    await database.write(inserting(2))
    assert await rows(database) == [1, 2]  # nobody looks at an old state of the file


async def test_a_closed_database_says_so(tmp_path: Path) -> None:
    database = connect(sqlite_url(tmp_path / "marg.db"))
    await database.read(lambda db: None)
    await database.close()
    for asked in (database.read, database.write):
        with pytest.raises(RuntimeError, match="closed"):
            await asked(lambda db: None)
    await database.close()
