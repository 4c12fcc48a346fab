from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from marg_ray.store.memory import MemoryStore
from marg_ray.store.protocol import Store
from marg_ray.store.sql import SqlStore, sqlite_url
from tests.postgres import Postgres


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Every kind of store in turn, with a session "S"."""
    made: Store = MemoryStore()
    if request.param != "memory":
        made = await SqlStore.open(database_url(request.param, request, tmp_path))
    await made.create("S", owner="o", question="q?")
    yield made
    await made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind in turn."""
    return database_url(request.param, request, tmp_path)


def database_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if kind == "sqlite":
        return sqlite_url(tmp_path / "marg.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.database()
