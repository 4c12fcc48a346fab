"""Works through the rows of a batch: some at once, each to its line of figures, whatever happens to the others."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from marg_ray.batch.asking import Asking
from marg_ray.batch.folder import BatchFolder
from marg_ray.batch.plan import Todo
from marg_ray.batch.results import RowResult, Spent, error_of, of_error, of_report
from marg_ray.errors import KeyReused, MargError, TooBusy
from marg_ray.records import Usage

if TYPE_CHECKING:
    from marg_ray.client import Step
    from marg_ray.report.model import Report
    from marg_ray.sources.library.refresh import Progress as IndexProgress
    from marg_ray.state import ResearchState
    from marg_ray.store.protocol import LogEntry

log = logging.getLogger(__name__)

AWAY_IN_A_ROW = 5  # rows that stopped because something was away; no further ones are begun then


class Watcher(Protocol):
    """Who is told how a batch goes on."""

    def began(self, todo: Todo, session: str) -> None: ...

    def step(self, todo: Todo, step: Step) -> None: ...

    def ended(self, todo: Todo, result: RowResult) -> None: ...

    def indexed(self, progress: IndexProgress) -> None: ...


@dataclass(frozen=True)
class How:
    """`at_once` rows are worked on; `formats` are the endings of the report files; no further row is begun when
    `max_usd` are spent in this batch."""

    at_once: int = 16
    formats: tuple[str, ...] = ("md",)
    max_usd: float | None = None


@dataclass
class Ended:
    """`results` in the order of their ends; rows that were `not_begun`, and why."""

    results: list[RowResult] = field(default_factory=list)
    not_begun: tuple[Todo, ...] = ()
    money_spent: bool = False


class BatchRun:
    def __init__(self, asking: Asking, folder: BatchFolder, how: How, watcher: Watcher, *, spent_usd: float = 0.0):
        self._asking, self._folder, self._how, self._watcher = asking, folder, how, watcher
        self._spent_usd, self._away = spent_usd, 0
        self._indexes: dict[tuple[str, ...], asyncio.Task[None]] = {}
        self._ended = Ended()

    async def run(self, todo: Sequence[Todo]) -> Ended:
        """Work through the rows. Cancelled, it leaves the sessions as they are: the next run goes on with them.

        Raises:
            UsageError: the results cannot be written.
        """
        waiting = deque(todo)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._how.at_once, len(waiting))):
                    group.create_task(self._one_after_the_other(waiting))
        except BaseExceptionGroup as exc:
            raise exc.exceptions[0] from None
        finally:
            for indexing in self._indexes.values():
                indexing.cancel()
            await asyncio.gather(*self._indexes.values(), return_exceptions=True)
        self._ended.not_begun = tuple(waiting)
        return self._ended

    async def _one_after_the_other(self, waiting: deque[Todo]) -> None:
        while waiting and self._away < AWAY_IN_A_ROW and not self._ended.money_spent:
            todo = waiting.popleft()
            result = await self._row(todo)
            await asyncio.to_thread(self._folder.add, result)
            self._away = self._away + 1 if result.away else 0
            self._spent_usd += result.usd
            if self._how.max_usd is not None and self._spent_usd >= self._how.max_usd:
                self._ended.money_spent = True
            self._ended.results.append(result)
            self._watcher.ended(todo, result)

    async def _row(self, todo: Todo) -> RowResult:
        followed = _Followed()
        try:
            return await (self._written_again(todo.before, todo) if todo.before else self._ask(todo, followed))
        except MargError as exc:
            if todo.before is not None:  # its figures stand, whatever keeps the file from being written
                return todo.before.model_copy(update={"error": error_of(exc)})
            return of_error(todo.row, todo.asked, followed.session, exc, followed.spent, followed.stands)
        except Exception as exc:  # a fault of ours costs its row
            log.warning("row %s failed", todo.row.key, exc_info=exc)
            return of_error(todo.row, todo.asked, followed.session, exc, followed.spent)

    async def _ask(self, todo: Todo, followed: _Followed) -> RowResult:
        from marg_ray.client import error_of as error_at_end

        key, asked = todo.row.key, todo.asked
        session = "" if todo.anew else await asyncio.to_thread(self._folder.session, key, asked)
        if not session:
            kept = await self._asking.known(todo.request)
            if kept is not None:
                self._watcher.began(todo, kept.session_id)
                result = of_report(todo.row, asked, kept, Spent(read=len(kept.sources)), kept=True)
                return await self._with_files(result, kept)
        followed.session = session
        followed.session = await self._submitted(todo, session)
        self._watcher.began(todo, followed.session)
        await self._followed(todo, followed)
        state = followed.state
        error = error_at_end(state, followed.session) if state is not None else None
        if state is None or state.report is None:
            raise error or Unfinished(followed.session, followed.stands)
        report = await self._asking.report(state.report.artefact)
        result = of_report(todo.row, asked, report, followed.spent)
        if error is not None:
            return result.model_copy(update={"error": error_of(error)})
        return await self._with_files(result, report)

    async def _written_again(self, before: RowResult, todo: Todo) -> RowResult:
        self._watcher.began(todo, before.session)
        state = None
        async for step in self._asking.follow(before.session):
            state = step.state
        if state is None or state.report is None:
            raise Unfinished(before.session, "gone")
        return await self._with_files(before, await self._asking.report(state.report.artefact))

    async def _submitted(self, todo: Todo, before: str) -> str:
        """Start the row's session, or go on with the one it had `before`; its id."""
        from marg_ray.actors.coordinator import new_session_id

        key, asked = todo.row.key, todo.asked
        session = before or new_session_id()
        if not before:
            await asyncio.to_thread(self._folder.begin, key, asked, session)
        request_key = self._folder.request_key(key, asked)
        while True:
            try:
                started = await self._asking.submit(session, todo.request, request_key)
                break
            except KeyReused as exc:  # asked before under other limits: it goes on under those
                started = exc.session_id
                break
            except TooBusy as exc:
                await asyncio.sleep(exc.retry_after_s)
        if before:
            await self._asking.resume(started)  # where it is halted or paused
        return started

    async def _followed(self, todo: Todo, followed: _Followed) -> None:
        indexing = self._indexing(todo.request.sources.folders)
        async for step in self._steps(todo, followed, indexing):
            followed.take(step)
            self._watcher.step(todo, step)

    async def _steps(self, todo: Todo, followed: _Followed, indexing: asyncio.Task[None] | None) -> AsyncIterator[Step]:
        """The session's steps. One that ended because its folders cannot be read is not gone on with later."""
        try:
            async for step in self._asking.follow(followed.session, indexing):
                yield step
        except MargError:
            failed = indexing is not None and indexing.done() and not indexing.cancelled() and indexing.exception()
            if failed:
                await asyncio.to_thread(self._folder.begin, todo.row.key, todo.asked, "")
                followed.state = None
            raise

    def _indexing(self, folders: tuple[str, ...]) -> asyncio.Task[None] | None:
        """The index over these folders, brought up to date once in a batch."""
        if not folders:
            return None
        if folders not in self._indexes:
            work = self._asking.index(folders, self._watcher.indexed)
            self._indexes[folders] = asyncio.ensure_future(work)
        return self._indexes[folders]

    async def _with_files(self, result: RowResult, report: Report) -> RowResult:
        """Write the report where there is one."""
        from marg_ray.report.writers import write_report

        if not result.delivered:
            return result
        paths = self._folder.paths(result.key, self._how.formats)
        for path in paths:
            await asyncio.to_thread(write_report, report, path)
        names = tuple(p.name for p in paths)
        return result.model_copy(update={"files": names, "report": names[0] if names else "", "error": None})


class Unfinished(MargError):
    """A session is left where it waits: for its owner, or because it was paused."""

    def __init__(self, session_id: str, status: str) -> None:
        super().__init__(session_id, status)
        self.session_id, self.status = session_id, status

    def __str__(self) -> str:
        return f"session {self.session_id} is {self.status or 'not begun'}"

    @property
    def hint(self) -> str:
        return "the same command goes on with it"


class _Followed:
    """What was seen of a session."""

    def __init__(self) -> None:
        self.session, self.status = "", ""
        self.state: ResearchState | None = None
        self.entries: list[LogEntry] = []

    def take(self, step: Step) -> None:
        self.state, self.status = step.state, step.progress.status
        self.entries += step.progress.entries

    @property
    def stands(self) -> str:
        """The status of the session's row, where it is one that a batch's row may have."""
        return self.status if self.status in ("halted", "paused", "waiting", "cancelled") else ""

    @property
    def spent(self) -> Spent:
        if self.state is None or not self.entries:
            return Spent()
        took = (self.entries[-1].at - self.entries[0].at).total_seconds()
        return Spent(sum(self.state.usage.values(), Usage()), took, len(self.state.sources))
