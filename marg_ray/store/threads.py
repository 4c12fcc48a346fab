"""Threads that run operations of a database: those that wait together go together, one hop there and back for all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import sqlalchemy as sa


class Job:
    """An operation, and the task that waits for it: it is told of `answer`, or of `error`."""

    __slots__ = ("answer", "error", "future", "loop", "operation")

    def __init__(self, operation: Callable[[sa.Connection], Any]) -> None:
        self.operation = operation
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.answer: Any = None
        self.error: BaseException | None = None

    def tell(self) -> None:
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.answer)


Serve = Callable[[sa.Connection, list[Job]], None]
"""Runs jobs on a connection. What it raises is the error of all of them."""


class Threads:
    """Up to `most` operations that wait at the same time are served together; a lone one goes at once.

    Each thread keeps a connection for as long as nothing fails on it.
    """

    def __init__(self, name: str, count: int, most: int, engine: sa.Engine, serve: Serve) -> None:
        self._name, self._count, self._most = name, count, most
        self._engine, self._serve = engine, serve
        self._jobs = SimpleQueue[Job | None]()
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._closed = False

    async def run(self, operation: Callable[[sa.Connection], Any]) -> Any:
        if self._closed:
            raise RuntimeError("the database is closed")
        if not self._threads:
            self._start()
        job = Job(operation)
        self._jobs.put(job)
        return await job.future

    def close(self) -> None:
        """Wait for what is under way. Blocks."""
        self._closed = True
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        with self._starting:
            if not self._threads:
                names = [f"{self._name}-{n}" for n in range(self._count)]
                self._threads = [threading.Thread(target=self._work, name=name, daemon=True) for name in names]
                for thread in self._threads:
                    thread.start()

    def _work(self) -> None:
        db: sa.Connection | None = None
        while (first := self._jobs.get()) is not None:
            jobs, last = self._with_those_that_wait(first)
            jobs = [job for job in jobs if not job.future.cancelled()]
            try:
                if jobs:
                    db = db or self._engine.connect()
                    self._serve(db, jobs)
            except BaseException as exc:
                for job in jobs:
                    job.error = exc
                if db is not None:
                    db.close()
                    db = None
            _tell(jobs)
            del first, jobs  # nobody's answers are kept while nothing is asked
            if last:
                break
        if db is not None:
            db.close()

    def _with_those_that_wait(self, first: Job) -> tuple[list[Job], bool]:
        jobs = [first]
        with suppress(Empty):
            while len(jobs) < self._most:
                if (job := self._jobs.get_nowait()) is None:
                    return jobs, True
                jobs.append(job)
        return jobs, False


def _tell(jobs: list[Job]) -> None:
    """Wake each loop that waits, once."""
    for loop in {job.loop for job in jobs}:
        theirs = [job for job in jobs if job.loop is loop]
        with suppress(RuntimeError):  # a loop that is closed waits for nothing
            loop.call_soon_threadsafe(_tell_all, theirs)


def _tell_all(jobs: list[Job]) -> None:
    for job in jobs:
        job.tell()
