from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from marg_ray.errors import UsageError
from marg_ray.folding import replay
from marg_ray.records import Limits, Usage
from marg_ray.store import migrations
from marg_ray.store.database import Database, connect
from marg_ray.store.protocol import Store
from marg_ray.store.schema import HEAD, METADATA, VERSION, usage_columns
from marg_ray.store.sql import SqlStore, sqlite_url
from marg_ray.store.upgrade import migrate, version
from tests.contract.test_store_api_keys import key

V1 = Path(__file__).parents[1] / "data" / "store_v1.sql"
LATER = sorted({path.name[1:5] for path in Path(migrations.__file__).parent.glob("versions/r*.py")} - {"0001", HEAD})


def old_file(folder: Path) -> Path:
    """A database as the first version wrote it: one finished session, one that never began, three calls."""
    path = folder / "marg.db"
    with sqlite3.connect(path) as db:
        db.executescript(V1.read_text("utf-8"))
    db.close()
    return path


async def old_database(url: str) -> None:
    """The same on any database: the first version's tables, without a revision, with the rows of the dump."""
    database = connect(url)
    await database.write(lambda db: migrate(db, "0001"))
    await database.write(lambda db: VERSION.drop(db))
    rows = [line for line in V1.read_text("utf-8").splitlines() if line.startswith("INSERT")]
    await database.write(lambda db: [db.exec_driver_sql(row) for row in rows])
    await database.close()


async def look_at_old_sessions(store: Store) -> None:
    entries = await store.read("S")
    assert [e.seq for e in entries] == list(range(1, 16))
    row = await store.session("S")
    state = replay(e.message for e in entries)
    assert state.report is not None
    assert (row.artefact, row.status) == (state.report.artefact, str(state.report.status))
    assert (row.holder, row.shard, row.epoch, row.limits) == ("here", 0, 1, Limits())
    assert row.question == "How do tides make power? 潮汐"
    assert [r.id for r in await store.sessions()] == ["T", "S"]
    calls = await store.calls("S")
    assert [(r.status, r.result, r.begun) for r in calls] == [
        ("settled", '{"a":0}', 1),
        ("settled", '{"a":1}', 1),
        ("begun", "", 1),
    ]
    account = await store.account("S")
    assert account.spent == Usage(calls=2, tokens_in=201, tokens_out=40, cost=0.5, seconds=3.0)
    assert account.lost == Usage()
    assert [s.location for s in await store.snapshots("S")] == [
        e.message.source.location for e in entries if e.message.kind == "source_read" and e.message.source
    ]


async def test_an_old_database_is_upgraded_and_its_session_replays(url: str) -> None:
    await old_database(url)
    for _ in range(2):  # and opened again as it is now
        store = await SqlStore.open(url)
        await look_at_old_sessions(store)
        await store.close()
    assert await _differences(url) == []


async def test_a_file_of_the_first_version_is_upgraded(tmp_path: Path) -> None:
    url = sqlite_url(old_file(tmp_path))
    store = await SqlStore.open(url)
    await look_at_old_sessions(store)
    assert await store.take_over("S", holder="now") == 2
    await store.close()
    assert await _differences(url) == []


@pytest.mark.parametrize("revision", LATER)
async def test_a_database_of_a_later_version_is_upgraded_and_keeps_what_it_holds(url: str, revision: str) -> None:
    await old_database(url)
    database = connect(url)
    await database.write(partial(migrate, revision=revision))
    assert await database.read(version) == revision
    store = await SqlStore.open(url)
    await look_at_old_sessions(store)
    await store.put_api_key(key("a"))
    assert await store.api_keys() == [key("a")]
    assert await store.tally("ann", 1, 0) == {1: 1}
    await store.close()
    assert await database.read(version) == HEAD
    await database.close()
    assert await _differences(url) == []


async def test_a_file_whose_making_was_cut_off_is_completed(tmp_path: Path) -> None:
    path = tmp_path / "marg.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE meta (schema_version INTEGER NOT NULL, PRIMARY KEY (schema_version))")
    db.close()
    store = await SqlStore.open(sqlite_url(path))
    await store.create("S", owner="o", question="q?")
    assert [r.id for r in await store.sessions()] == ["S"]
    await store.close()
    assert await _differences(sqlite_url(path)) == []


async def test_those_who_open_at_once_upgrade_once(url: str) -> None:
    await old_database(url)
    stores = await asyncio.gather(*(SqlStore.open(url) for _ in range(8)))
    for store in stores:
        assert len(await store.read("S")) == 15
        await store.close()


async def test_those_who_open_a_new_database_at_once_share_it(url: str) -> None:
    stores = await asyncio.gather(*(SqlStore.open(url) for _ in range(8)))
    await stores[0].create("S", owner="o", question="q?")
    assert [[r.id for r in await store.sessions()] for store in stores] == [["S"]] * 8
    for store in stores:
        await store.close()


async def test_an_upgrade_that_fails_leaves_the_old_database(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await old_database(url)
    spoilt = (
        "INSERT INTO calls SELECT 'X', key, kind, role, task_id, status, begun, begun_at, result, 'no JSON' FROM calls"
    )
    database = connect(url)
    await database.write(lambda db: db.exec_driver_sql(spoilt))
    with pytest.raises(ValueError, match="Expecting value"):
        await SqlStore.open(url)
    tables = await database.read(lambda db: set(sa.inspect(db).get_table_names()))
    assert tables == {"meta", "sessions", "log", "calls"}
    await database.write(lambda db: db.exec_driver_sql("DELETE FROM calls WHERE session_id = 'X'"))
    await database.close()
    store = await SqlStore.open(url)
    await look_at_old_sessions(store)
    await store.close()


async def test_a_newer_database_is_refused(url: str) -> None:
    await (await SqlStore.open(url)).close()
    database = connect(url)
    await database.write(lambda db: db.execute(sa.update(VERSION).values(version_num="0999")))
    with pytest.raises(UsageError, match="newer") as told:
        await SqlStore.open(url)
    assert "update marg" in told.value.hint
    assert await database.read(version) == "0999"
    await database.close()


async def test_tables_made_at_once_are_those_that_migrations_lead_to(url: str) -> None:
    database = connect(url)
    await database.write(migrate)
    assert await database.read(version) == HEAD
    await database.close()
    assert await _differences(url) == []


async def test_new_databases_need_no_migration(url: str) -> None:
    await (await SqlStore.open(url)).close()
    assert await _differences(url) == []


async def test_the_comparison_can_see(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await (await SqlStore.open(url)).close()
    database = connect(url)
    await database.write(lambda db: db.exec_driver_sql("ALTER TABLE calls ADD COLUMN more INTEGER"))
    await database.close()
    assert await _differences(url) != []


def test_a_usage_s_numbers_are_all_kept() -> None:
    assert [c.name for c in usage_columns("used")] == [f"used_{name}" for name in Usage.model_fields]
    assert {c.name for c in usage_columns("used") if isinstance(c.type, sa.Float)} == {"used_cost", "used_seconds"}


async def _differences(url: str) -> Sequence[object]:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    def compare(db: sa.Connection) -> Sequence[object]:
        options = {"compare_type": True, "compare_server_default": True}
        found: Sequence[object] = compare_metadata(MigrationContext.configure(db, opts=options), METADATA)
        return found

    database: Database = connect(url)
    try:
        return await database.write(compare)
    finally:
        await database.close()


def test_a_current_file_is_opened_without_alembic(tmp_path: Path) -> None:
    script = f"""
import asyncio, sys
from marg_ray.store.sql import SqlStore
async def main():
    for _ in range(2):
        store = await SqlStore.open({sqlite_url(tmp_path / "marg.db")!r})
        await store.create("S", owner="o", question="q")
        await store.close()
asyncio.run(main())
print([name for name in ("alembic", "stamina", "asyncpg", "aiosqlite", "fsspec") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


async def test_an_address_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    for url in ("", "nonsense", "mysql://here/db", "sqlite://", "sqlite:///:memory:", "nosuch+driver://x/y"):
        with pytest.raises(UsageError, match="store"):
            await SqlStore.open(url)
