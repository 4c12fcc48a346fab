"""One database: connections, transactions, and what is tried again when a connection is lost.

An operation is a function of a `sa.Connection`. On PostgreSQL it runs over asyncpg; on SQLite as a whole in one of a
few threads, together with those that wait at the same time: they share a transaction and a hop to the thread and back.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa

from marg_ray.errors import StoreUnavailable, UsageError
from marg_ray.store.threads import Job, Threads

T = TypeVar("T")
Operation = Callable[[sa.Connection], T]

RETRY_S = 30.0
BUSY_S = 10.0  # SQLite's own wait for another process's transaction
MOST_WRITES, MOST_READS = 64, 16  # together
_PASSING = ("08", "57P", "40001", "40P01", "53300")  # SQLSTATEs: connection, shutdown, serialization, deadlock, full
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Database(Protocol):
    async def read(self, operation: Operation[T]) -> T:
        """Run a function of one statement. Nothing it sees is locked."""

    async def write(self, operation: Operation[T]) -> T:
        """Run a function in one transaction, maybe with others' before and after it.

        It may run again: when the connection was lost, even after a commit, and when another one has failed. So it
        must change nothing but the database.
        """

    async def close(self) -> None: ...


def connect(url: str, *, retry_s: float = RETRY_S) -> Database:
    """The database at `url`; nothing is opened yet.

    Raises:
        UsageError: `url` is no address of a database that can be used.
    """
    try:
        where = sa.make_url(url)
        backend = where.get_backend_name()
        if backend == "sqlite":
            return SqliteDatabase(where, retry_s)
        if backend == "postgresql":
            return PostgresDatabase(where, retry_s)
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError):
        raise UsageError("store.url is not the address of a database", _URLS) from None
    except ImportError as exc:
        raise UsageError(f"store.url needs a package: {exc}", "pip install 'marg-ray[postgres]'") from None
    raise UsageError(f"a store on {backend} is not supported", _URLS)


_URLS = "postgresql+asyncpg://user:password@host/name, or sqlite:////path/of/a/file"


class SqliteDatabase:
    """A file with a write-ahead log. Several processes may have it open."""

    def __init__(self, url: sa.URL, retry_s: float) -> None:
        if not url.database or url.database == ":memory:":
            raise UsageError("store.url names no file", _URLS)
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        self._retry_s = retry_s
        self._engine = sa.create_engine(
            url.set(drivername="sqlite+pysqlite"),
            connect_args={"timeout": BUSY_S, "check_same_thread": False},
            pool_size=3,
        )
        sa.event.listen(self._engine, "connect", _prepare)
        sa.event.listen(self._engine, "begin", _begin)
        writing = self._engine.execution_options(sqlite_begin="BEGIN IMMEDIATE")
        # One thread writes: SQLite lets one transaction write, and its wait for a lock is not in turn.
        self._writers = Threads("store-write", 1, MOST_WRITES, writing, _write)
        self._readers = Threads("store-read", 2, MOST_READS, self._engine, _read)

    async def read(self, operation: Operation[T]) -> T:
        return await retried(lambda: self._readers.run(operation), self._retry_s)

    async def write(self, operation: Operation[T]) -> T:
        return await retried(lambda: self._writers.run(operation), self._retry_s)

    async def close(self) -> None:
        for threads in (self._writers, self._readers):
            await asyncio.to_thread(threads.close)
        self._engine.dispose()


def _write(db: sa.Connection, jobs: list[Job]) -> None:
    """Run jobs in one transaction. Where one fails, each gets a transaction of its own, so that it fails alone."""
    try:
        with db.begin():
            answers = [job.operation(db) for job in jobs]
    except Exception as exc:
        if len(jobs) == 1 or _passing(exc):
            raise
        for job in jobs:
            try:
                _write(db, [job])
            except Exception as its_own:
                job.error = its_own
        return
    for job, answer in zip(jobs, answers, strict=True):
        job.answer = answer


def _read(db: sa.Connection, jobs: list[Job]) -> None:
    for job in jobs:
        try:
            job.answer = job.operation(db)
        except Exception as exc:
            job.error = exc
        finally:
            db.rollback()  # no statement begins a transaction here, but Core believes so


def _prepare(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin` says, not where the driver guesses
    connection.execute("PRAGMA journal_mode=WAL")  # readers do not wait for the writer
    connection.execute("PRAGMA synchronous=NORMAL")  # a killed process loses nothing; only a power cut may


def _begin(connection: sa.Connection) -> None:
    """Take the write lock at once: a transaction that reads first could not get it later, and would fail."""
    statement = connection.get_execution_options().get("sqlite_begin")
    if statement:
        driver: Any = connection.connection.dbapi_connection
        driver.execute(statement)


class PostgresDatabase:
    """PostgreSQL over asyncpg."""

    def __init__(self, url: sa.URL, retry_s: float) -> None:
        from sqlalchemy.ext.asyncio import create_async_engine

        self._retry_s = retry_s
        self._engine = create_async_engine(
            url.set(drivername="postgresql+asyncpg"), pool_size=10, max_overflow=10, pool_pre_ping=True
        )
        self._reading = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    async def read(self, operation: Operation[T]) -> T:
        async def run() -> T:
            async with self._reading.connect() as db:
                return await db.run_sync(operation)

        return await retried(run, self._retry_s)

    async def write(self, operation: Operation[T]) -> T:
        async def run() -> T:
            async with self._engine.begin() as db:
                return await db.run_sync(operation)

        return await retried(run, self._retry_s)

    async def close(self) -> None:
        await self._engine.dispose()


async def retried(run: Callable[[], Awaitable[T]], retry_s: float) -> T:
    """Run, and again with growing pauses for `retry_s` seconds in all while the database is away or busy.

    Raises:
        StoreUnavailable: it stayed away, or cannot be read or written.
    """
    try:
        return await run()
    except Exception as exc:
        if not _passing(exc):
            if (reason := _unusable(exc)) is None:
                raise
            raise StoreUnavailable(reason) from exc
    import stamina

    again = stamina.AsyncRetryingCaller(
        attempts=None, timeout=retry_s, wait_initial=0.05, wait_max=2.0, wait_jitter=0.1
    )
    try:
        return await again.on(_passing)(run)
    except Exception as exc:
        if (reason := _unusable(exc)) is None:
            raise
        raise StoreUnavailable(reason) from exc


def _passing(exc: Exception) -> bool:
    """Whether it is the connection or the moment that failed, not the statement."""
    if isinstance(exc, sa.exc.DBAPIError) and exc.connection_invalidated:
        return True
    cause = exc.orig if isinstance(exc, sa.exc.DBAPIError) else exc
    if isinstance(cause, sqlite3.OperationalError):
        return (getattr(cause, "sqlite_errorcode", 0) & 0xFF) in _BUSY
    state = getattr(cause, "sqlstate", None)
    return str(state).startswith(_PASSING) if state else isinstance(cause, OSError)


def _unusable(exc: Exception) -> str | None:
    """Why the database cannot be used; None where it is the statement that is wrong, or an error of ours."""
    cause = exc.orig if isinstance(exc, sa.exc.DBAPIError) else exc
    if (
        isinstance(cause, sqlite3.OperationalError)
        or type(cause) is sqlite3.DatabaseError
        or type(cause).__module__.startswith("asyncpg")
        or _passing(exc)
    ):
        return f"{type(cause).__name__}: {str(cause).partition(chr(10))[0]}"
    return None
