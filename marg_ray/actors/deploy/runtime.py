"""The handle a front end works with: on the actors of a runtime that is there, or on one that it starts."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
import logging
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ray

from marg_ray.actors.assembly import Places
from marg_ray.actors.deploy.actors import (
    AgentActor,
    AssistantActor,
    CoordinatorActor,
    EmbedderActor,
    LedgerActor,
    WorkerActor,
)
from marg_ray.actors.deploy.connection import address_here, connect
from marg_ray.actors.deploy.figures import Counters
from marg_ray.actors.deploy.handles import (
    AGENTS,
    ASSISTANT,
    Gone,
    Named,
    RayAssistant,
    RayEmbedder,
    RayLedger,
    ray_offload,
)
from marg_ray.actors.deploy.machines import hosts, say_unshared, stays_together, together_warning
from marg_ray.actors.deploy.placement import Lookout, check, nodes_here, options_of
from marg_ray.actors.holder import Holder, cluster, this_process
from marg_ray.actors.keys import digests
from marg_ray.actors.live import Ending, Progress
from marg_ray.actors.owner import Decision
from marg_ray.errors import MargError, RuntimeUnavailable, SessionMoved
from marg_ray.messages import Message, Steered
from marg_ray.records import Request, Role
from marg_ray.seams import Embedder, Offload
from marg_ray.settings import RuntimeSettings, Settings
from marg_ray.store.protocol import CallRow, SessionRow
from marg_ray.telemetry.figures import Taken

if TYPE_CHECKING:
    from marg_ray.memory.cache import KeptReport
    from marg_ray.models.select import Choice

log = logging.getLogger(__name__)

RESTARTS = {"max_restarts": -1, "max_task_retries": -1, "num_cpus": 0}
CONCURRENCY = 10_000  # calls an asynchronous actor has under way
LATER = (Role.SYNTHESIZER, Role.CRITIC, Role.ANALYST, Role.FORMATTER)  # needed after the first search
TAKEN_OVER_WITHIN_S, ASK_AGAIN_S = 60.0, 0.25  # a session whose coordinator is dead: how long, how often to ask
TRACES_WITHIN_S = 2.0  # at the end: for spans on their way to the collector
SILENT_S = 60.0  # a coordinator that does not answer for so long hangs, and is started again


class Control:
    """The coordinators of a runtime. Each session has its own; one that is dead leaves its sessions to the next.

    `namespace`: where they are; without one, in that of this process.
    """

    def __init__(self, coordinators: int, namespace: str = "") -> None:
        self._coordinators = [Named(f"coordinator:{n}", namespace) for n in range(coordinators)]
        self._counters = Counters(namespace)
        self._where: dict[str, int] = {}  # sessions that are not with the coordinator their id names

    @classmethod
    def attach(cls, holder: str) -> Control:
        """Reach the runtime that works on a session, by the name on the session's row.

        Raises:
            RuntimeUnavailable: it does not answer.
        """
        named = Holder.parse(holder)
        if not named.address or not named.namespace:
            raise RuntimeUnavailable(named.address, "the session's row does not name its Ray")
        connect(named.address, named.namespace)
        names = [n for n in ray.util.list_named_actors() if n.startswith("coordinator:")]
        if not names:
            raise RuntimeUnavailable(named.address, "it has no coordinator of this session")
        return cls(len(names))

    async def submit(self, session_id: str, request: Request, key: str = "") -> str:
        """Start a session (or go on with it, if it exists); returns its id.

        `key` is an idempotency key: a request that comes again with it starts nothing and gets the first one's id.

        Raises:
            KeyReused: the key came with another request before.
            TooBusy: too many sessions wait already.
        """
        started: str = await self._ask(session_id, "submit", request, *digests(key, request))
        return started

    async def resume(self, session_id: str, by: str = "owner") -> str:
        """Go on after a halt, a pause or a crash. Returns the status, as the next four do."""
        return str(await self._ask(session_id, "resume", by))

    async def pause(self, session_id: str, by: str = "owner") -> str:
        return str(await self._ask(session_id, "pause", by))

    async def cancel(self, session_id: str, by: str = "owner") -> str:
        return str(await self._ask(session_id, "cancel", by))

    async def decide(self, session_id: str, decision: Decision) -> str:
        return str(await self._ask(session_id, "decide", decision))

    async def steer(self, session_id: str, steered: Steered) -> str:
        return str(await self._ask(session_id, "steer", steered))

    async def deliver(self, session_id: str, message: Message) -> None:
        await self._ask(session_id, "deliver", message)

    async def progress(self, session_id: str, after: int = 0, wait_s: float = 10.0) -> Progress:
        """New log entries above `after`; waits up to `wait_s` seconds for one."""
        while True:
            try:
                asking = self._ask(session_id, "progress", after, wait_s)
                progress: Progress = await asyncio.wait_for(asking, wait_s + SILENT_S)
                return progress
            except TimeoutError:
                await self._start_again(session_id)

    async def known(self, request: Request) -> KeptReport | None:
        """The report that the same request has had already."""
        kept: KeptReport | None = await self._coordinators[0].call("known", request)
        return kept

    async def ended(self, session_id: str) -> str:
        """Wait until there is nothing to wait for: a report, a halt, a decision to be made. Returns the status."""
        while True:
            status = str(await self._ask(session_id, "ended", 10.0))
            if status != "running":
                return status

    async def ending(self, session_id: str) -> Ending:
        """How a session stands, in short."""
        ending: Ending = await self._ask(session_id, "ending")
        return ending

    async def sessions(self, limit: int = 100) -> list[SessionRow]:
        rows: list[SessionRow] = await self._coordinators[0].call("sessions", limit)
        return rows

    async def figures(self) -> Mapping[str, Taken | None]:
        """What every actor has counted, by its name; None of one that does not answer at once."""
        return await self._counters()

    def close(self) -> None:
        """Leave Ray."""
        if ray.is_initialized():
            ray.shutdown()

    # ---- inside

    async def _ask(self, session_id: str, method: str, *args: Any) -> Any:
        count = len(self._coordinators)
        shard = self._where.get(session_id, shard_of(session_id, count))
        until = time.monotonic() + TAKEN_OVER_WITHIN_S
        for tried in itertools.count(1):
            try:
                return await self._coordinators[shard].call(method, session_id, *args)
            except SessionMoved as exc:
                if exc.holder:  # another runtime's
                    raise
                shard = exc.shard
            except Gone as exc:
                if count == 1:
                    raise RuntimeUnavailable(exc.address, exc.reason) from None
                shard = (shard + 1) % count
            self._where[session_id] = shard
            if time.monotonic() > until:
                break
            if tried % count == 0:  # it was with one that is dead, and is not missed yet
                await asyncio.sleep(ASK_AGAIN_S)
        raise RuntimeUnavailable("", f"no coordinator takes session {session_id}")

    async def _start_again(self, session_id: str) -> None:
        shard = self._where.get(session_id, shard_of(session_id, len(self._coordinators)))
        ray.kill(await self._coordinators[shard].find(), no_restart=False)


class Runtime(Control):
    """A running set of actors. `Runtime.start` brings it up here, or attaches to the Ray that is running."""

    def __init__(self, settings: Settings, choice: Choice) -> None:
        super().__init__(settings.runtime.coordinators)
        self.settings, self.choice, self._left = settings, choice, threading.Event()
        self._talks = threading.Event()
        self.holder = holder_here(settings, choice)
        self._beside = _create(settings, choice, self.holder, self._left, self._talks)
        for thread in self._beside:
            thread.start()
        self.embedder: Embedder = RayEmbedder()
        self.ledger = RayLedger()
        self.offload: Offload = ray_offload
        self.places = Places.of(settings)

    @classmethod
    def start(cls, settings: Settings, choice: Choice) -> Runtime:
        """Bring it up.

        Raises:
            RuntimeUnavailable: Ray does not answer or did not start, or no node of it can hold one of the actors.
        """
        ours = not ray.is_initialized()
        connect(settings.runtime.ray_address, namespace_of(settings, choice))
        try:
            return cls(settings, choice)
        except MargError:
            if ours:
                ray.shutdown()
            raise

    async def calls(self, session_id: str) -> list[CallRow]:
        return await self.ledger.calls(session_id)

    @property
    def assistant(self) -> RayAssistant:
        """The one who answers questions about reports. Its actor is created when it is first wanted."""
        self._talks.set()
        return RayAssistant()

    def wait_until_whole(self) -> None:
        """Return when every actor has been created, the assistant's too. Blocks."""
        self._talks.set()
        for thread in self._beside[:2]:
            thread.join()

    def close(self) -> None:
        """Leave Ray; a Ray that was started here ends. Actors that were not created yet, the next who comes creates."""
        self._left.set()
        self._talks.set()  # who waits for it sees that we leave
        for thread in self._beside:
            thread.join()
        if self.settings.telemetry.otlp_endpoint and not self.settings.runtime.ray_address:
            self._send_traces()
        super().close()

    def _send_traces(self) -> None:
        """Give the coordinators, which end with this Ray, a moment to send what has just ended."""
        with contextlib.suppress(Exception):
            actors = [ray.get_actor(named.name) for named in self._coordinators]
            ray.get([actor.send_traces.remote(TRACES_WITHIN_S) for actor in actors], timeout=TRACES_WITHIN_S + 1)


def shard_of(session_id: str, count: int) -> int:
    """The coordinator that a session's id names."""
    return zlib.crc32(session_id.encode()) % count


def namespace_of(settings: Settings, choice: Choice) -> str:
    """Actors are shared by all who use the same state and the same models, and by nobody else.

    So a session that must stay offline never meets actors that were made for a remote model, and a replay meets none
    that ask anybody.
    """
    tape = [settings.tape.record, settings.tape.replay] if settings.tape.used else []
    models = settings.models.model_dump(mode="json", include={"base_url", "roles", "fallback"})
    models |= {"fast": choice.spec_fast, "strong": choice.spec_strong}
    shared = json.dumps([str(settings.home), settings.store.url, models, *tape], sort_keys=True)
    return "marg-" + hashlib.sha256(shared.encode()).hexdigest()[:12]


def holder_here(settings: Settings, choice: Choice) -> str:
    """The name that a runtime of this process's Ray writes beside its sessions."""
    shared, namespace = settings.runtime.ray_address, namespace_of(settings, choice)
    return cluster(shared, namespace) if shared else this_process(address_here(), namespace)


def _create(
    settings: Settings, choice: Choice, holder: str, left: threading.Event, talks: threading.Event
) -> list[threading.Thread]:
    """Create the actors, or find those that are there; nothing is waited for.

    A dozen processes that import their libraries at once would keep each other from the cores. So they start in the
    order in which a session needs them: coordinator and one worker at once; when the coordinator is up, what a search
    needs; when the embedding model has loaded, the rest; the assistant, when somebody `talks`. The threads that are
    returned see to it, until `left` is set.
    """
    settings.home.mkdir(parents=True, exist_ok=True)
    namespace = namespace_of(settings, choice)

    concurrency = CONCURRENCY + settings.admission.waiting  # who waits at the desk is a call under way
    place, beside = _places(settings, namespace, left)

    def actor(name: str, cls: type, *args: Any) -> Any:
        options = {"name": name, "lifetime": "detached", "get_if_exists": True, "max_concurrency": concurrency}
        return ray.remote(cls).options(**{**RESTARTS, **options, **place(name)}).remote(*args)

    def agents(*roles: Role) -> None:
        for role in roles:
            actor(f"agent:{role}", AgentActor, role, settings, choice)

    def done(ref: Any) -> bool:
        while not left.is_set():
            if ray.wait([ref], timeout=0.1)[0]:
                return True
        return False

    coordinators = [
        actor(f"coordinator:{n}", CoordinatorActor, settings, choice, holder, n)
        for n in range(settings.runtime.coordinators)
    ]
    actor("worker:0", WorkerActor, settings, choice)

    def later() -> None:
        if not done(coordinators[0].ping.remote()):
            return
        embedder = actor("embedder", EmbedderActor, settings)
        actor("ledger", LedgerActor, settings)
        agents(Role.PLANNER)
        if done(embedder.embed.remote(["ready"])):
            for n in range(1, settings.runtime.workers):
                actor(f"worker:{n}", WorkerActor, settings, choice)
            agents(*LATER)

    rest = threading.Thread(target=later, daemon=True, name="marg-later")

    def talking() -> None:
        talks.wait()
        rest.join()
        if not left.is_set():
            actor(ASSISTANT, AssistantActor, settings, choice)

    return [rest, threading.Thread(target=talking, daemon=True, name="marg-talking"), *beside]


def _places(
    settings: Settings, namespace: str, left: threading.Event
) -> tuple[Callable[[str], dict[str, Any]], list[threading.Thread]]:
    """The options that say where an actor runs, by its name, and what goes on beside to watch over the places.

    On a Ray that was started here there is one node, and nothing to choose.

    Raises:
        RuntimeUnavailable: no node can hold one of the actors.
    """
    runtime = settings.runtime
    if not runtime.ray_address:
        return lambda _: {}, []
    names = actor_names(runtime)
    nodes, here = nodes_here(), ray.get_runtime_context().get_node_id()
    check(runtime, names, nodes)
    together = stays_together(settings, nodes)
    beside: list[Callable[[], None]] = []
    if together:
        log.warning("%s", together_warning(settings))  # nor can they go elsewhere from a node that is cordoned
    else:
        beside.append(lambda: Lookout(runtime).watch(namespace, left))
        if len(hosts(nodes)) > 1:
            beside.append(lambda: say_unshared(settings, nodes, here))
    threads = [threading.Thread(target=work, daemon=True, name="marg-places") for work in beside]
    return lambda name: options_of(runtime, name, nodes, here if together else ""), threads


def actor_names(runtime: RuntimeSettings) -> list[str]:
    """Every actor of a runtime, in no order."""
    coordinators = (f"coordinator:{n}" for n in range(runtime.coordinators))
    workers = (f"worker:{n}" for n in range(runtime.workers))
    return [*coordinators, *workers, "embedder", "ledger", *(f"agent:{role}" for role in AGENTS), ASSISTANT]
