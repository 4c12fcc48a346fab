"""The process boundary: every plain class of this package as a Ray actor, and the handle a front end works with.

The only module of the package that imports Ray. Collaborators are built inside the actors' constructors, where Ray
runs them again after a crash; `max_task_retries=-1` hands a call to the restarted process, hence every method is
idempotent.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import socket
import threading
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves the machine unasked
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray.exceptions import RayTaskError

from marg_ray.actors.assembly import Assembly, Places
from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.holder import this_process
from marg_ray.actors.ledger import LedgerBook
from marg_ray.actors.live import Progress
from marg_ray.actors.protocol import Agent
from marg_ray.errors import RuntimeUnavailable
from marg_ray.messages import DraftReady, Message, SearchDone, SourceRead
from marg_ray.records import Request, Role, Usage
from marg_ray.seams import Begun, CallKey, Embedder, Offload, Vectors
from marg_ray.settings import Settings
from marg_ray.store.protocol import CallRow, LogEntry, SessionRow, Store
from marg_ray.tasks import DraftTask, ReadTask, SearchTask, Task

if TYPE_CHECKING:
    from marg_ray.models.select import Choice

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

RESTARTS = {"max_restarts": -1, "max_task_retries": -1, "num_cpus": 0}
CONCURRENCY = 1000  # calls an asynchronous actor has under way
APPEARS_WITHIN_S, LOOK_EVERY_S = 120.0, 0.05  # how long an actor is waited for that was to be created
LATER = (Role.SYNTHESIZER, Role.CRITIC, Role.ANALYST, Role.FORMATTER)  # needed after the first search
AGENTS = (Role.RESEARCHER, Role.PLANNER, *LATER)


async def ask(ref: Any) -> Any:
    """Await a Ray call: errors arrive as the class that was raised, cancelling reaches the other side."""
    try:
        return await ref
    except RayTaskError as exc:
        raise exc.cause from None
    except asyncio.CancelledError:
        ray.cancel(ref)
        raise


# ---- seams over handles


class _Named:
    """An actor found by its name at the first call, so that actors may start in any order, and late."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._actor: Any = None

    async def find(self) -> Any:
        """The actor's handle; waits for one that is still to be created."""
        for _ in range(int(APPEARS_WITHIN_S / LOOK_EVERY_S)):
            if self._actor is None:
                with contextlib.suppress(ValueError):  # not there yet
                    self._actor = await asyncio.to_thread(ray.get_actor, self._name)
            if self._actor is not None:
                return self._actor
            await asyncio.sleep(LOOK_EVERY_S)
        raise RuntimeError(f"the actor {self._name!r} did not appear within {APPEARS_WITHIN_S:g} s")

    async def call(self, method: str, *args: Any) -> Any:
        actor = self._actor or await self.find()
        return await ask(getattr(actor, method).remote(*args))


class RayEmbedder:
    def __init__(self) -> None:
        self._actor = _Named("embedder")

    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors: Vectors = await self._actor.call("embed", list(texts))
        return vectors


class RayLedger:
    def __init__(self) -> None:
        self._actor = _Named("ledger")

    async def begin(self, call: CallKey, estimate: Usage) -> Begun:
        begun: Begun = await self._actor.call("begin", call, estimate)
        return begun

    async def end(self, call: CallKey, result: str, usage: Usage) -> None:
        await self._actor.call("end", call, result, usage)

    async def failed(self, call: CallKey) -> None:
        await self._actor.call("failed", call)

    async def calls(self, session_id: str) -> list[CallRow]:
        rows: list[CallRow] = await self._actor.call("calls", session_id)
        return rows


class RayWorkers:
    """Spreads units over the pool: each goes to the worker that has the fewest under way from here."""

    def __init__(self, count: int) -> None:
        self._actors = [_Named(f"worker:{n}") for n in range(count)]
        self._load: dict[int, int] = {0: 0}  # of the workers that are known to be there
        self._looking: asyncio.Task[None] | None = None

    async def search(self, task: SearchTask) -> SearchDone:
        done: SearchDone = await self._send("search", task)
        return done

    async def read(self, task: ReadTask) -> SourceRead:
        done: SourceRead = await self._send("read", task)
        return done

    async def draft(self, task: DraftTask) -> DraftReady:
        done: DraftReady = await self._send("draft", task)
        return done

    async def _send(self, unit: str, task: Task) -> Any:
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_for_others())
        n = min(self._load, key=self._load.__getitem__)
        self._load[n] += 1
        try:
            return await self._actors[n].call(unit, task)
        finally:
            self._load[n] -= 1

    async def _look_for_others(self) -> None:
        for n, worker in enumerate(self._actors):
            await worker.find()
            self._load.setdefault(n, 0)


class RayDispatch:
    """Takes a task to the actor of its role."""

    def __init__(self) -> None:
        self._agents = {role: _Named(f"agent:{role}") for role in AGENTS}

    async def __call__(self, task: Task) -> Message:
        message: Message = await self._agents[task.role].call("handle", task)
        return message


def _run(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return fn(*args, **kwargs)


_REMOTE_RUN: Any = None


async def ray_offload(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """CPU work as a plain Ray task: it takes a core for itself, on whatever node has one free."""
    global _REMOTE_RUN
    if _REMOTE_RUN is None:
        _REMOTE_RUN = ray.remote(num_cpus=1, max_retries=3)(_run)
    result: T = await ask(_REMOTE_RUN.remote(fn, *args, **kwargs))
    return result


# ---- actors


class EmbedderActor:
    """One model for all sessions; it loads while the first session is planned."""

    async def __init__(self) -> None:  # type: ignore[misc]
        from marg_ray.models.embeddings import MiniLM

        self._model = MiniLM()
        self._warming = asyncio.ensure_future(self._model.warm())

    async def embed(self, texts: list[str]) -> Vectors:
        return await self._model.embed(texts)


class LedgerActor(LedgerBook):
    async def __init__(self, url: str) -> None:  # type: ignore[misc]
        super().__init__(await _store(url))


class WorkerActor:
    """Searches, reads and drafts, hundreds at a time: it waits for others most of the time."""

    async def __init__(self, settings: Settings, choice: Choice) -> None:  # type: ignore[misc]
        self._units = _assembly(settings, choice).units()

    async def search(self, task: SearchTask) -> SearchDone:
        return await self._units.search(task)

    async def read(self, task: ReadTask) -> SourceRead:
        return await self._units.read(task)

    async def draft(self, task: DraftTask) -> DraftReady:
        return await self._units.draft(task)


class AgentActor:
    """An agent of one role, shared by all sessions."""

    async def __init__(self, role: Role, settings: Settings, choice: Choice) -> None:  # type: ignore[misc]
        self._store: Store | None = None
        self._url = Places(settings.home).store_url
        assembly = _assembly(settings, choice)
        self._agent: Agent = assembly.agent(role, RayWorkers(settings.runtime.workers), self._read_log)

    async def handle(self, task: Task) -> Message:
        return await self._agent.handle(task)

    async def _read_log(self, session_id: str) -> list[LogEntry]:
        if self._store is None:
            self._store = await _store(self._url)
        return await self._store.read(session_id)


class CoordinatorActor(Coordinator):
    async def __init__(self, url: str, holder: str, lease_s: float) -> None:  # type: ignore[misc]
        super().__init__(await _store(url), RayDispatch(), holder=holder, lease_s=lease_s)
        if ray.get_runtime_context().was_current_actor_reconstructed:
            await self.recover()


async def _store(url: str) -> Store:
    from marg_ray.store.sql import SqlStore

    return await SqlStore.open(url)


def _assembly(settings: Settings, choice: Choice) -> Assembly:
    return Assembly(settings=settings, choice=choice, embedder=RayEmbedder(), ledger=RayLedger(), offload=ray_offload)


# ---- the front end's handle


class Runtime:
    """A running set of actors. `Runtime.start` brings it up here, or attaches to the Ray that is running."""

    def __init__(self, settings: Settings, choice: Choice) -> None:
        self.settings, self.choice, self._left = settings, choice, threading.Event()
        self._later = _create(settings, choice, self._left)
        self._later.start()
        self.embedder: Embedder = RayEmbedder()
        self.ledger = RayLedger()
        self.offload: Offload = ray_offload
        self.places = Places(settings.home)
        self._coordinators = [_Named(f"coordinator:{n}") for n in range(settings.runtime.coordinators)]

    @classmethod
    def start(cls, settings: Settings, choice: Choice) -> Runtime:
        connect(settings, namespace_of(settings, choice))
        return cls(settings, choice)

    async def submit(self, session_id: str, request: Request) -> None:
        """Start a session (or go on with it, if it exists)."""
        await self._shard(session_id).call("submit", session_id, request)

    async def resume(self, session_id: str) -> str:
        status: str = await self._shard(session_id).call("resume", session_id)
        return status

    async def cancel(self, session_id: str) -> str:
        status: str = await self._shard(session_id).call("cancel", session_id)
        return status

    async def deliver(self, session_id: str, message: Message) -> None:
        await self._shard(session_id).call("deliver", session_id, message)

    async def progress(self, session_id: str, after: int = 0, wait_s: float = 10.0) -> Progress:
        """New log entries above `after`; waits up to `wait_s` seconds for one."""
        progress: Progress = await self._shard(session_id).call("progress", session_id, after, wait_s)
        return progress

    async def sessions(self, limit: int = 100) -> list[SessionRow]:
        rows: list[SessionRow] = await self._coordinators[0].call("sessions", limit)
        return rows

    async def calls(self, session_id: str) -> list[CallRow]:
        return await self.ledger.calls(session_id)

    def _shard(self, session_id: str) -> _Named:
        return self._coordinators[zlib.crc32(session_id.encode()) % len(self._coordinators)]

    def close(self) -> None:
        """Leave Ray; a Ray that was started here ends. Actors that were not created yet, the next who comes creates."""
        self._left.set()
        self._later.join()
        if ray.is_initialized():
            ray.shutdown()


def connect(settings: Settings, namespace: str) -> None:
    """Attach to the Ray that is named in the settings, or start one on this machine.

    Raises:
        RuntimeUnavailable: it does not answer, or did not start.
    """
    if ray.is_initialized():
        return
    address = settings.runtime.ray_address
    logging.getLogger("ray").setLevel(logging.ERROR)
    _silence_raylet()
    options: dict[str, Any] = {"namespace": namespace, "log_to_driver": False, "logging_level": logging.ERROR}
    if address:
        _look_for(address)
        _use_token_at_hand()
        options["address"] = address
    else:
        # A process that parses and checks has loaded its libraries: Ray would end it after a second without work.
        os.environ.setdefault("RAY_idle_worker_killing_time_threshold_ms", "600000")
        options |= {"include_dashboard": False, "object_store_memory": 256 * 2**20}
    for tries_left in (0,) if address else (1, 0):  # on a busy machine a start may run out of its own time
        try:
            ray.init(**options)
            return
        except Exception as exc:  # Ray raises plain exceptions here
            ray.shutdown()
            if not tries_left:
                raise RuntimeUnavailable(address, " ".join(str(exc).split())[:300]) from None


def _look_for(address: str) -> None:
    """See at once whether anything listens there: Ray itself tries for more than a minute."""
    host, _, port = address.rpartition("://")[2].partition(":")
    if port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError as exc:
            raise RuntimeUnavailable(address, exc.strerror or str(exc)) from None


def _use_token_at_hand() -> None:
    """Authenticate with the machine's token where there is one: Ray looks for it by itself only at "auto"."""
    with contextlib.suppress(ImportError, AttributeError):
        from ray._private.authentication import authentication_token_setup as setup

        setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


def _silence_raylet() -> None:
    """Keep the remarks of Ray's node (many processes were started, a task failed) off standard output, which is ours.

    They go to this module's log; what concerns a session is told by our own errors. Ray has no public switch.
    """

    def to_log(data: dict[str, Any], ignore_prefix: bool = False) -> None:
        log.info("%s", " ".join(map(str, data.get("lines", ()))))

    worker: Any = ray._private.worker
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = to_log


def namespace_of(settings: Settings, choice: Choice) -> str:
    """Actors are shared by all who use the same state and the same models, and by nobody else.

    So a session that must stay offline never meets actors that were made for a remote model.
    """
    shared = json.dumps([str(settings.home), choice.spec_fast, choice.spec_strong])
    return "marg-" + hashlib.sha256(shared.encode()).hexdigest()[:12]


def _create(settings: Settings, choice: Choice, left: threading.Event) -> threading.Thread:
    """Create the actors, or find those that are there; nothing is waited for.

    A dozen processes that import their libraries at once would keep each other from the cores. So they start in the
    order in which a session needs them: coordinator and researcher at once; when the coordinator is up, what a search
    needs; when the embedding model has loaded, the rest. The thread that is returned sees to it, until `left` is set.
    """
    url = Places(settings.home).store_url
    settings.home.mkdir(parents=True, exist_ok=True)

    def actor(name: str, cls: type, *args: Any) -> Any:
        options = {"name": name, "lifetime": "detached", "get_if_exists": True, "max_concurrency": CONCURRENCY}
        return ray.remote(cls).options(**options, **RESTARTS).remote(*args)

    def agents(*roles: Role) -> None:
        for role in roles:
            actor(f"agent:{role}", AgentActor, role, settings, choice)

    def done(ref: Any) -> bool:
        while not left.is_set():
            if ray.wait([ref], timeout=0.1)[0]:
                return True
        return False

    holder = settings.runtime.ray_address or this_process()
    lease_s = settings.runtime.lease_s
    coordinators = [
        actor(f"coordinator:{n}", CoordinatorActor, url, holder, lease_s) for n in range(settings.runtime.coordinators)
    ]
    agents(Role.RESEARCHER)

    def later() -> None:
        if not done(coordinators[0].sessions.remote(1)):
            return
        embedder = actor("embedder", EmbedderActor)
        actor("worker:0", WorkerActor, settings, choice)
        actor("ledger", LedgerActor, url)
        agents(Role.PLANNER)
        if done(embedder.embed.remote(["ready"])):
            for n in range(1, settings.runtime.workers):
                actor(f"worker:{n}", WorkerActor, settings, choice)
            agents(*LATER)

    return threading.Thread(target=later, daemon=True, name="marg-later")
