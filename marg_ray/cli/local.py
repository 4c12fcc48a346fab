"""How commands get at sessions: the store, the files, and whoever works on a session."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from marg_ray.errors import RuntimeUnavailable, SessionNotFound, UsageError
from marg_ray.settings import Settings

if TYPE_CHECKING:
    from marg_ray.actors.deploy import Control
    from marg_ray.actors.owner import Decision
    from marg_ray.grounding.snapshots import Document
    from marg_ray.messages import Message, Steered
    from marg_ray.store.protocol import SessionRow, ShardRow, Store
    from marg_ray.tasks import Task

T = TypeVar("T")


async def open_store(settings: Settings) -> Store:
    from marg_ray.actors.assembly import Places
    from marg_ray.store.sql import SqlStore

    return await SqlStore.open(Places.of(settings).store_url)


def with_store(settings: Settings, read: Callable[[Store], Awaitable[T]]) -> T:
    """Run `read` on the store, and close it."""

    async def run() -> T:
        store = await open_store(settings)
        try:
            return await read(store)
        finally:
            await store.close()

    return asyncio.run(run())


async def find_session(store: Store, name: str) -> str:
    """A session's id from the id, its beginning, or `last`.

    Raises:
        SessionNotFound: none fits, or several do.
    """
    rows = await store.sessions(limit=100_000)
    if name == "last" and rows:
        return rows[0].id
    fitting = [r.id for r in rows if r.id == name] or [r.id for r in rows if r.id.startswith(name)]
    if len(fitting) != 1:
        raise SessionNotFound(name)
    return fitting[0]


def in_hands(row: SessionRow, shards: Sequence[ShardRow], dead_after_s: float) -> bool:
    """Whether a runtime that lives has the session: its process runs, and its coordinators give signs of life."""
    from marg_ray.actors.holder import is_alive

    if not is_alive(row.holder):
        return False
    beats = [s.beat_at for s in shards if s.holder == row.holder]
    return not beats or (datetime.now(UTC) - max(beats)).total_seconds() < dead_after_s


async def holder_of(store: Store, session_id: str, settings: Settings) -> str:
    """The runtime that works on a session and lives; empty where none does."""
    from marg_ray.actors.neighbours import SETTLED

    row = await store.session(session_id)
    if row.status in SETTLED:
        return ""
    return row.holder if in_hands(row, await store.shards(row.holder), settings.runtime.dead_after_s) else ""


class Reach(Protocol):
    """What can be said to a session, wherever it is."""

    async def decide(self, session_id: str, decision: Decision) -> str: ...

    async def steer(self, session_id: str, steered: Steered) -> str: ...

    async def pause(self, session_id: str, by: str = "owner") -> str: ...

    async def cancel(self, session_id: str, by: str = "owner") -> str: ...


@dataclass(frozen=True)
class Reached:
    """A session, and the way to it. `runs`: somebody works on it; otherwise what is said is kept in its log."""

    session_id: str
    to: Reach
    store: Store
    runs: bool

    def told(self, status: str) -> str:
        """A line on where the session stands now."""
        from marg_ray.actors.neighbours import SETTLED

        if self.runs or status in SETTLED:
            return f"{self.session_id}: {status}"
        if status == "running":
            return f"{self.session_id}: nobody works on it now; `marg resume {self.session_id}` goes on"
        return f"{self.session_id}: {status}; `marg resume {self.session_id}` goes on"


@contextlib.asynccontextmanager
async def reach(settings: Settings, session: str) -> AsyncIterator[Reached]:
    """The session, in the runtime that works on it, or in its log where none does.

    Raises:
        SessionNotFound: there is no such session.
        RuntimeUnavailable: the runtime that works on it does not answer.
    """
    from marg_ray.actors.coordinator import Coordinator

    store = await open_store(settings)
    try:
        session_id = await find_session(store, session)
        holder = await holder_of(store, session_id, settings)
        control = await attach(holder, store, settings.runtime.dead_after_s) if holder else None
        if control is None:
            yield Reached(session_id, Coordinator(store, _nobody), store, runs=False)
            return
        try:
            yield Reached(session_id, control, store, runs=True)
        finally:
            await asyncio.to_thread(control.close)
    finally:
        await store.close()


async def attach(holder: str, store: Store, dead_after_s: float) -> Control | None:
    """The runtime that has a session; None where it does not answer and gives no sign of life either.

    Raises:
        RuntimeUnavailable: it does not answer, but lives.
    """
    from marg_ray.actors.deploy import Control

    try:
        return await asyncio.to_thread(Control.attach, holder)
    except RuntimeUnavailable:
        beats = [s.beat_at for s in await store.shards(holder)]
        if beats and (datetime.now(UTC) - max(beats)).total_seconds() < dead_after_s:
            raise
        return None


async def _nobody(task: Task) -> Message:
    await asyncio.Event().wait()
    raise AssertionError(task)


def freeze(path: Path, settings: Settings) -> tuple[str, Document]:
    """Keep a file's text as a snapshot; its id and the document.

    Raises:
        UsageError: it cannot be read.
        Unreadable: it is no document.
    """
    from marg_ray.actors.assembly import Places
    from marg_ray.grounding.injection import cut_injections
    from marg_ray.sources.parse import parse

    try:
        body = path.read_bytes()
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror or exc}", "check the path") from None
    document = cut_injections(parse(body, name=path.name))
    return Places.of(settings).snapshots.put(document), document
