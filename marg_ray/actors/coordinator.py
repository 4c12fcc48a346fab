"""The one writer of a session's log. Record, change, act: nothing leaves before its cause is on disk.

Hard state is the log. Soft state is what is under way now; it is lost with the process and follows again from the
log: recovery is the ordinary start (read, fold, dispatch what is due).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from marg_ray.actors.protocol import Dispatch
from marg_ray.errors import MargError, SessionNotFound, StaleEpoch
from marg_ray.messages import Message, SessionCancelled, SessionResumed, SessionStarted, TaskFailed
from marg_ray.records import Record, Request
from marg_ray.routing import next_tasks, waiting_for
from marg_ray.state import ResearchState, apply, replay
from marg_ray.store.protocol import LogEntry, SessionRow, Store
from marg_ray.tasks import Task

log = logging.getLogger(__name__)

HANDED_OUT = 2  # how often a task that does not answer is handed out before it counts as failed


class Running(Record):
    """A task that an agent has in hand."""

    id: str
    role: str
    kind: str
    section: str
    target: str
    since: float  # seconds


class Progress(Record):
    """What a watcher gets: new log entries, and who works on what."""

    entries: tuple[LogEntry, ...]
    running: tuple[Running, ...]
    status: str
    waiting_for: str = ""
    halt: str = ""


@dataclass
class _Live:
    """A session in this process."""

    state: ResearchState
    seq: int
    epoch: int
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # an async actor interleaves calls at every await
    entries: list[LogEntry] = field(default_factory=list)
    in_flight: dict[str, tuple[Task, asyncio.Task[None], float]] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def announce(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


def status_word(state: ResearchState) -> str:
    """The status on a session's row."""
    if state.report is not None:
        return str(state.report.status)
    if state.cancelled:
        return "cancelled"
    if state.halt is not None:
        return "halted"
    return "waiting" if waiting_for(state) else "running"


class Coordinator:
    """Holds the canonical state of its sessions. Every method may be called again with the same arguments."""

    def __init__(self, store: Store, dispatch: Dispatch, *, holder: str = "", lease_s: float = 600.0) -> None:
        self._store, self._dispatch, self._lease_s = store, dispatch, lease_s
        self._holder = holder
        self._live: dict[str, _Live] = {}
        self._opening: dict[str, asyncio.Lock] = {}

    async def recover(self) -> list[str]:
        """Take up every session that this runtime had under way. Called when the process was restarted."""
        rows = await self._store.sessions(status="running", holder=self._holder, limit=100_000)
        for row in rows:
            await self.resume(row.id)
        return [row.id for row in rows]

    async def submit(self, session_id: str, request: Request) -> None:
        """Start a session; one that exists goes on."""
        await self._store.create(session_id, owner=request.owner, question=request.question)
        live = await self._open(session_id)
        if live.state.request is None:
            now = datetime.now(UTC).isoformat()
            start = SessionStarted(
                task_id=f"{session_id}/start", session_id=session_id, request=request, started_at=now
            )
            await self.deliver(session_id, start)
        else:
            await self._go_on(live)

    async def resume(self, session_id: str) -> str:
        """Go on with a session from its log; returns its status."""
        live = await self._open(session_id)
        if live.state.halt is not None:
            again = SessionResumed(task_id=f"{session_id}/resume/{live.state.halts}")
            await self.deliver(session_id, again)
        await self._go_on(live)
        return status_word(live.state)

    async def cancel(self, session_id: str, by: str = "owner") -> str:
        """Stop a session; what it has found stays. Returns its status."""
        live = await self._open(session_id)
        await self.deliver(session_id, SessionCancelled(task_id=f"{session_id}/cancel", by=by))
        return status_word(live.state)

    async def deliver(self, session_id: str, message: Message) -> None:
        """Record a fact, change the state by it, and hand out what is due then."""
        live = await self._open(session_id)
        async with live.turn:
            state = apply(live.state, message)
            if state is not live.state:  # not a repeat
                try:
                    entry = await self._store.append(
                        session_id, message, expected_seq=live.seq, epoch=live.epoch, status=status_word(state)
                    )
                except StaleEpoch:  # another coordinator has the session: stop here, write nothing
                    self._drop(session_id)
                    raise
                live.state, live.seq = state, entry.seq
                live.entries.append(entry)
                live.announce()
            self._hand_out(live)

    async def progress(self, session_id: str, after: int = 0, wait_s: float = 10.0) -> Progress:
        """Entries above `after`; waits up to `wait_s` for one while the session is under way."""
        live = await self._open(session_id)
        changed = live.changed
        if live.seq <= after and not live.state.over and not waiting_for(live.state):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), wait_s)
        now = time.monotonic()
        return Progress(
            entries=tuple(live.entries[after:]),
            running=tuple(
                Running(id=t.id, role=t.role, kind=t.kind, section=t.section, target=t.target, since=now - began)
                for t, _, began in live.in_flight.values()
            ),
            status=status_word(live.state),
            waiting_for=waiting_for(live.state),
            halt=f"{live.state.halt.error}: {live.state.halt.detail}" if live.state.halt else "",
        )

    async def state(self, session_id: str) -> ResearchState:
        """The canonical state, for tests and tools."""
        return (await self._open(session_id)).state

    async def sessions(self, limit: int = 100) -> list[SessionRow]:
        return await self._store.sessions(limit=limit)

    async def close(self) -> None:
        """Stop work here; the sessions stay as their logs say."""
        for session_id in list(self._live):
            self._drop(session_id)
        await self._store.close()

    # ---- inside

    async def _open(self, session_id: str) -> _Live:
        """A session in this process: taken over from its log at the first call."""
        if session_id in self._live:
            return self._live[session_id]
        async with self._opening.setdefault(session_id, asyncio.Lock()):  # two first calls open it once
            if session_id not in self._live:
                epoch = await self._store.take_over(session_id, holder=self._holder)
                entries = await self._store.read(session_id)
                state = replay(e.message for e in entries)
                self._live[session_id] = _Live(state=state, seq=len(entries), epoch=epoch, entries=entries)
            return self._live[session_id]

    async def _go_on(self, live: _Live) -> None:
        async with live.turn:
            self._hand_out(live)

    def _drop(self, session_id: str) -> None:
        live = self._live.pop(session_id, None)
        if live is not None:
            for _, work, _ in live.in_flight.values():
                work.cancel()
            live.announce()

    def _hand_out(self, live: _Live) -> None:
        """Give what is due and not in hand to the agents; take back what is no longer due."""
        due = {task.id: task for task in next_tasks(live.state)}
        for task_id in [t for t in live.in_flight if t not in due]:
            _, work, _ = live.in_flight.pop(task_id)
            if work is not asyncio.current_task():
                work.cancel()
        for task_id, task in due.items():
            if task_id not in live.in_flight:
                work = asyncio.create_task(self._carry_out(live, task))
                live.in_flight[task_id] = (task, work, time.monotonic())

    async def _carry_out(self, live: _Live, task: Task) -> None:
        began = time.monotonic()
        message = await self._answer_of(task)
        took = round(time.monotonic() - began, 4)
        with contextlib.suppress(StaleEpoch, SessionNotFound):
            await self.deliver(task.session_id, message.model_copy(update={"seconds": took}))

    async def _answer_of(self, task: Task) -> Message:
        for tries_left in reversed(range(HANDED_OUT)):
            try:
                return await asyncio.wait_for(self._dispatch(task), self._lease_s)
            except TimeoutError:
                if tries_left:
                    log.warning("no answer to %s within %g s: handed out again", task.id, self._lease_s)
                    continue
                return _failure(task, TimeoutError(f"no answer within {self._lease_s:g} s, {HANDED_OUT} times"))
            except Exception as exc:  # whatever an agent raises becomes a fact; what follows is decided by `apply`
                return _failure(task, exc)
        raise AssertionError("unreachable")


def _failure(task: Task, exc: Exception) -> TaskFailed:
    known = isinstance(exc, MargError)
    if not known:
        log.error("%s crashed", task.id, exc_info=exc)
    return TaskFailed(
        task_id=task.id,
        role=task.role,
        stage=task.kind,
        section=task.section,
        target=task.target,
        error=type(exc).__name__,
        detail=str(exc) if known else f"{type(exc).__name__}: {str(exc)[:300]}",
        exit_code=exc.exit_code if isinstance(exc, MargError) else 1,
    )


def new_session_id() -> str:
    """Sortable by time of creation, and unlikely to meet another."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:6]}"
