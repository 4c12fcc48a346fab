"""Sessions whose log a test writes, followed as those of a coordinator are."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import uvicorn

from marg_ray.actors.assembly import Places
from marg_ray.actors.live import Progress, Running, status_word
from marg_ray.api.service import Service, Sessions
from marg_ray.folding import apply, replay
from marg_ray.messages import Message, SearchDone, SessionStarted
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.records import Request
from marg_ray.settings import Settings
from marg_ray.state import ResearchState
from marg_ray.store.memory import MemoryStore
from marg_ray.store.protocol import SessionRow, Store

QUESTION = "How much power do tidal stations produce?"


@dataclass
class Followed:
    """The coordinator's side of sessions: what `progress` needs, and faults on demand."""

    store: Store = field(default_factory=MemoryStore)
    running: tuple[Running, ...] = ()
    asked: int = 0  # calls of `progress`
    waiting: int = 0  # of these, under way now
    fault: Exception | None = None  # raised by `progress` while it is set
    hole: int = 0  # entries that the next answer leaves out
    _epochs: dict[str, int] = field(default_factory=dict)
    _states: dict[str, ResearchState] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def sessions(self) -> Sessions:
        return cast(Sessions, self)

    async def begin(self, session_id: str = "S", question: str = QUESTION, owner: str = "local") -> SessionRow:
        await self.store.create(session_id, owner=owner, question=question)
        self._epochs[session_id] = await self.store.take_over(session_id)
        request = Request(question=question, owner=owner)
        await self.say(
            SessionStarted(
                task_id=f"{session_id}/start",
                session_id=session_id,
                request=request,
                started_at=datetime.now(UTC).isoformat(),
            ),
            session_id,
        )
        return await self.store.session(session_id)

    async def say(self, message: Message, session_id: str = "S") -> None:
        """Put it into the log and tell those who wait."""
        if session_id not in self._epochs:
            self._epochs[session_id] = await self.store.take_over(session_id)
            self._states[session_id] = replay(e.message for e in await self.store.read(session_id))
        state = self._states[session_id] = apply(self._states.get(session_id, ResearchState()), message)
        row = await self.store.session(session_id)
        await self.store.append(
            session_id, message, expected_seq=row.seq, epoch=self._epochs[session_id], status=status_word(state)
        )
        self.tell()

    def tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def searches(self, count: int, session_id: str = "S", text: str = "tides") -> None:
        first = (await self.store.session(session_id)).seq
        for n in range(first, first + count):
            await self.say(
                SearchDone(task_id=f"{session_id}/search/{n}", section="s1", query=f"{text} {n}"), session_id
            )

    async def progress(self, session_id: str, after: int = 0, wait_s: float = 10.0) -> Progress:
        self.asked += 1
        self.waiting += 1
        try:
            return await self._progress(session_id, after, wait_s)
        finally:
            self.waiting -= 1

    async def _progress(self, session_id: str, after: int, wait_s: float) -> Progress:
        if self.fault is not None:
            raise self.fault
        changed, row = self._changed, await self.store.session(session_id)
        if row.seq <= after and row.status in ("running", "waiting", "paused"):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), wait_s)
        if self.fault is not None:
            raise self.fault
        row = await self.store.session(session_id)  # first: an end is told with all that came before it
        entries = await self.store.read(session_id, after=after + self.hole)
        self.hole = 0
        return Progress(entries=tuple(entries), running=self.running, status=row.status)


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while True:
            if condition():
                return
            await asyncio.sleep(0.001)


def service_over(followed: Followed, folder: Path, **settings: Any) -> Service:
    return Service(
        settings=Settings.model_validate({"home": folder, **settings}),
        sessions=followed.sessions,
        store=followed.store,
        places=Places(folder),
        embedder=HashingEmbedder(),
    )


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[int]:
    """A real server on loopback in this process; gives its port."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await eventually(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await serving
