"""The plain classes as Ray actors."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING

import ray

from marg_ray.actors.admission import Desk
from marg_ray.actors.assembly import Assembly, Places, asked_of
from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.deploy.handles import (
    AGENTS,
    ASSISTANT,
    RayAdmission,
    RayDispatch,
    RayEmbedder,
    RayLedger,
    RayWorkers,
    Watchdog,
    ray_offload,
)
from marg_ray.actors.ledger import LedgerBook
from marg_ray.actors.protocol import Agent
from marg_ray.actors.recorded_order import RecordedOrder
from marg_ray.actors.traces import Traces
from marg_ray.memory.chat import Answer, Cited, Looked, Said, Turn
from marg_ray.messages import DraftReady, Message, SearchDone, SourceRead, Steered
from marg_ray.records import Priority, Role, Usage
from marg_ray.seams import CallKey, Vectors
from marg_ray.settings import Settings
from marg_ray.store.protocol import Store
from marg_ray.tasks import DraftTask, ReadTask, SearchTask, Task
from marg_ray.telemetry.figures import FIGURES, Taken
from marg_ray.telemetry.lines import configure
from marg_ray.telemetry.masking import secrets_in
from marg_ray.telemetry.otlp import exporter

if TYPE_CHECKING:
    from marg_ray.models.select import Choice


YOUNG, MIDDLE, OLD = 50_000, 20, 20  # objects, and collections, after which Python looks for cycles


def _collect_seldom() -> None:
    """Look for cycles seldom, and never among what was loaded at the start.

    An actor holds thousands of records, and reads more of them at every call. By default Python walks them all so often
    that in a profile of fifty sessions it was two fifths of what a coordinator did.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)


def _speak(settings: Settings) -> None:
    """Have this process's lines go where the settings say."""
    name = ray.get_runtime_context().get_actor_name() or ""
    configure(settings.telemetry, actor=name, secrets=secrets_in(settings))


class _Actor:
    async def figures(self) -> Taken:
        """What this process has counted."""
        return FIGURES.taken()

    async def ping(self) -> None:
        """Answers as long as the process and its event loop do."""


class EmbedderActor(_Actor):
    """One model for all sessions; it loads while the first session is planned."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]
        from marg_ray.memory.vectors import VectorFile
        from marg_ray.models.embeddings import MiniLM

        _speak(settings)
        path, ttl_s = settings.home / "vectors.db", settings.cache.embedding_s
        self._model = MiniLM(kept=VectorFile(path, model=MiniLM.name, ttl_s=ttl_s) if ttl_s else None)
        self._warming = asyncio.ensure_future(self._model.warm())
        _collect_seldom()

    async def embed(self, texts: list[str]) -> Vectors:
        return await self._model.embed(texts)


class LedgerActor(_Actor, LedgerBook):
    """The ledger; it sees how hard the model is pressed, and tells the desk."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]
        _speak(settings)
        super().__init__(await _store(settings))
        self._admission = RayAdmission(settings.runtime.coordinators)
        _collect_seldom()

    async def end(self, call: CallKey, result: str, usage: Usage) -> None:
        await super().end(call, result, usage)
        if usage.throttled:
            await self._admission.pressure(usage.throttled)


class WorkerActor(_Actor):
    """One of the pool that searches, reads and drafts, hundreds at a time: it waits for others most of the time."""

    async def __init__(self, settings: Settings, choice: Choice) -> None:  # type: ignore[misc]
        _speak(settings)
        self._units = _assembly(settings, choice).units()
        _collect_seldom()

    async def search(self, task: SearchTask) -> SearchDone:
        return await self._units.search(task)

    async def read(self, task: ReadTask) -> SourceRead:
        return await self._units.read(task)

    async def draft(self, task: DraftTask) -> DraftReady:
        return await self._units.draft(task)


class AgentActor(_Actor):
    """An agent of one role, shared by all sessions."""

    async def __init__(self, role: Role, settings: Settings, choice: Choice) -> None:  # type: ignore[misc]
        _speak(settings)
        self._store: Store | None = None
        self._settings = settings
        assembly = _assembly(settings, choice)
        self._agent: Agent = assembly.agent(role, RayWorkers(settings.runtime.workers), self._open_store)
        _collect_seldom()

    async def handle(self, task: Task) -> Message:
        return await self._agent.handle(task)

    async def _open_store(self) -> Store:
        if self._store is None:
            self._store = await _store(self._settings)
        return self._store


class AssistantActor(_Actor):
    """The assistant of all owners. It holds no conversation: those are in the store."""

    async def __init__(self, settings: Settings, choice: Choice) -> None:  # type: ignore[misc]
        self._settings, self._opening = settings, asyncio.Lock()
        self._store: Store | None = None
        workers = RayWorkers(settings.runtime.workers)
        self._assistant = _assembly(settings, choice).assistant(workers, self._open_store)
        _collect_seldom()

    async def answer(self, owner: str, session_id: str, question: str, history: list[Turn]) -> Answer:
        return await self._assistant.answer(owner, session_id, question, history)

    async def stream(
        self, owner: str, session_id: str, question: str, history: list[Turn]
    ) -> AsyncGenerator[Cited | Answer, None]:
        async for part in self._assistant.stream(owner, session_id, question, history):
            yield part

    async def converse(self, owner: str, said: Said) -> AsyncGenerator[Looked | Cited | Answer, None]:
        async for part in self._assistant.converse(owner, said):
            yield part

    async def _open_store(self) -> Store:
        async with self._opening:
            if self._store is None:
                self._store = await _store(self._settings)
            return self._store


class _OwnDesk:
    """The `Admission` of the coordinator that the desk sits with."""

    def __init__(self, desk: Desk) -> None:
        self.enter, self.leave, self._desk = desk.enter, desk.leave, desk

    async def renew(self, owners: Mapping[str, str]) -> None:
        await self._desk.renew(owners, owners)

    async def position(self, session_id: str) -> int | None:
        return self._desk.position(session_id)


class CoordinatorActor(_Actor, Coordinator):
    """Every coordinator has a desk; the one of the first that lives is used."""

    async def __init__(  # type: ignore[misc]
        self, settings: Settings, choice: Choice, holder: str, shard: int
    ) -> None:
        from marg_ray.memory.cache import QueryCache
        from marg_ray.models.tape import Tape

        _speak(settings)
        runtime, store, tape = settings.runtime, await _store(settings), Tape.of(settings.tape)
        restarted = ray.get_runtime_context().was_current_actor_reconstructed
        self._desk = Desk(settings.admission, restarted=restarted or shard > 0)
        own = _OwnDesk(self._desk)
        super().__init__(
            store,
            RayDispatch(runtime.workers),
            cache=None if tape else QueryCache(store, settings, model=asked_of(choice)),
            order=RecordedOrder(tape) if tape and tape.replays else None,
            holder=holder,
            shard=shard,
            admission=own if shard == 0 else RayAdmission(runtime.coordinators),
            traces=_traces(settings, store, looks=shard == 0),
            lease_s=runtime.lease_s,
            beat_s=runtime.beat_s,
            dead_after_s=runtime.dead_after_s,
        )
        self._watching = [asyncio.ensure_future(self.watch())]
        if shard == 0:
            workers = [f"worker:{n}" for n in range(runtime.workers)]
            watchdog = Watchdog(
                [*(f"agent:{role}" for role in AGENTS), ASSISTANT, "embedder", "ledger", *workers], runtime.probe_s
            )
            self._watching.append(asyncio.ensure_future(watchdog.watch()))
        _collect_seldom()
        await self.recover()

    async def steer(self, session_id: str, steered: Steered) -> str:
        status = await super().steer(session_id, steered)
        if steered.action == "raise":
            await RayLedger().refresh(session_id)
        return status

    async def figures(self) -> Taken:
        standing = self._desk.standing()
        FIGURES.set("marg_places", standing.running, "running")
        FIGURES.set("marg_places", standing.waiting, "waiting")
        FIGURES.set("marg_places_limit", standing.limit)
        return await Coordinator.figures(self)

    async def enter(self, session_id: str, owner: str, priority: Priority) -> None:
        await self._desk.enter(session_id, owner, priority)

    async def leave(self, session_id: str) -> None:
        await self._desk.leave(session_id)

    async def renew(self, owners: dict[str, str]) -> None:
        await self._desk.renew(owners, owners)

    async def position(self, session_id: str) -> int | None:
        return self._desk.position(session_id)

    async def pressure(self, throttled: int) -> None:
        await self._desk.pressure(throttled)


async def _store(settings: Settings) -> Store:
    from marg_ray.store.sql import SqlStore

    return await SqlStore.open(Places.of(settings).store_url)


def _traces(settings: Settings, store: Store, *, looks: bool) -> Traces | None:
    """To the collector that the settings name; what an earlier process has not sent goes first."""
    endpoint = settings.telemetry.otlp_endpoint
    if not endpoint:
        return None
    traces = Traces(store, exporter(endpoint), looks=looks)
    traces.start()
    return traces


def _assembly(settings: Settings, choice: Choice) -> Assembly:
    ledger = RayLedger()
    return Assembly(
        settings=settings, choice=choice, embedder=RayEmbedder(), ledger=ledger, offload=ray_offload, caches=ledger
    )
