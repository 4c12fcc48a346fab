"""A real PostgreSQL for tests, started once per session in a temporary folder and reached over its Unix socket."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest


@dataclass
class Postgres:
    server: Any
    _numbers: Iterator[int] = field(default_factory=count)

    def run(self, sql: str) -> str:
        return str(self.server.psql(sql))

    def database(self) -> str:
        """The address of a new, empty database."""
        name = f"marg_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name}")
        return str(self.server.get_uri(database=name)).replace("postgresql://", "postgresql+asyncpg://", 1)

    def stop(self) -> None:
        import pgserver

        commands: Any = pgserver._commands
        arguments = ["-w", "-m", "immediate", "stop"]  # as in a crash: clients are cut off
        commands.pg_ctl(arguments, pgdata=self.server.pgdata, user=self.server.system_user, timeout=30)

    def start(self) -> None:
        self.server.ensure_postgres_running()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where it keeps its lock
        pgserver = pytest.importorskip("pgserver", reason="pgserver, which brings a PostgreSQL, is not installed")
    pytest.importorskip("asyncpg", reason="asyncpg is not installed")
    server = pgserver.get_server(tempfile.mkdtemp(prefix="marg-pg-"), cleanup_mode="delete")
    try:
        running = Postgres(server)
        running.run("ALTER SYSTEM SET fsync = off;\nSELECT pg_reload_conf();")  # nobody pulls the plug in a test
        yield running
    finally:
        server.cleanup()
