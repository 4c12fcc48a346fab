"""The seams of the plain classes, over handles of Ray actors."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ParamSpec, TypeVar

import ray
from ray.exceptions import ActorDiedError, RayError, RayTaskError

from marg_ray.actors.entries import BatchedLedger, Entry, Outcome
from marg_ray.errors import RuntimeUnavailable
from marg_ray.memory.chat import Answer, Cited, Looked, Said, Turn
from marg_ray.messages import DraftReady, Message, SearchDone, SourceRead
from marg_ray.records import Priority, Role, Usage
from marg_ray.seams import Begun, CallKey, Vectors
from marg_ray.store.protocol import CallRow
from marg_ray.tasks import DraftTask, ReadTask, SearchTask, Task

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

APPEARS_WITHIN_S, LOOK_EVERY_S = 120.0, 0.05  # how long an actor is waited for that was to be created
SILENT_PROBES = 4  # an actor that does not answer so often hangs, and is started again
ASSISTANT = f"agent:{Role.ASSISTANT}"
AGENTS = (Role.PLANNER, Role.SYNTHESIZER, Role.CRITIC, Role.ANALYST, Role.FORMATTER)


class Gone(RuntimeUnavailable):
    """The actor is dead and does not come back by itself."""


async def ask(ref: Any) -> Any:
    """Await a Ray call: errors arrive as the class that was raised, cancelling reaches the other side.

    Raises:
        Gone: the actor is dead for good.
        RuntimeUnavailable: the process or its node died; the call may be made again.
    """
    try:
        return await _value(ref)
    except asyncio.CancelledError:
        ray.cancel(ref)
        raise


async def _value(ref: Any) -> Any:
    try:
        return await ref
    except RayTaskError as exc:
        raise _ours(exc.cause) from None
    except RayError as exc:
        raise _ours(exc) from None


def _ours(exc: BaseException) -> BaseException:
    if not isinstance(exc, RayError):
        return exc
    reason = " ".join(str(exc).split())[-300:]  # its end names the cause
    return (Gone if isinstance(exc, ActorDiedError) else RuntimeUnavailable)("", reason)


class Named:
    """An actor found by its name at the first call, so that actors may start in any order, and late.

    `namespace`: where it is; without one, in that of this process.
    """

    def __init__(self, name: str, namespace: str = "") -> None:
        self.name, self.namespace = name, namespace or None
        self._actor: Any = None
        self._died = False

    async def find(self) -> Any:
        """The actor's handle; waits for one that is still to be created, and not for one that was there and died."""
        for _ in range(1 if self._died else int(APPEARS_WITHIN_S / LOOK_EVERY_S)):
            if self._actor is None:
                with contextlib.suppress(ValueError):  # not there yet
                    self._actor = await asyncio.to_thread(ray.get_actor, self.name, self.namespace)
            if self._actor is not None:
                return self._actor
            await asyncio.sleep(LOOK_EVERY_S)
        if self._died:
            raise Gone("", f"the actor {self.name!r} is dead")
        raise RuntimeUnavailable("", f"the actor {self.name!r} did not appear within {APPEARS_WITHIN_S:g} s")

    async def call(self, method: str, *args: Any) -> Any:
        actor = self._actor or await self.find()
        try:
            return await ask(getattr(actor, method).remote(*args))
        except Gone:
            self._actor, self._died = None, True  # its name may be another's now
            raise

    async def stream(self, method: str, *args: Any) -> AsyncGenerator[Any, None]:
        """What a method yields, as it does. Whoever leaves early stops it."""
        actor = self._actor or await self.find()
        parts = getattr(actor, method).options(num_returns="streaming").remote(*args)
        try:
            async for ref in parts:
                yield await _value(ref)
        except Gone:
            self._actor, self._died = None, True
            raise
        finally:
            ray.cancel(parts)  # nothing to do where it has ended


class RayEmbedder:
    def __init__(self, namespace: str = "") -> None:
        self._actor = Named("embedder", namespace)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors: Vectors = await self._actor.call("embed", list(texts))
        return vectors


class RayAssistant:
    """The assistant's actor, with the face that the HTTP service knows."""

    def __init__(self, namespace: str = "") -> None:
        self._actor = Named(ASSISTANT, namespace)

    async def answer(self, owner: str, session_id: str, question: str, history: Sequence[Turn] = ()) -> Answer:
        answer: Answer = await self._actor.call("answer", owner, session_id, question, list(history))
        return answer

    async def stream(
        self, owner: str, session_id: str, question: str, history: Sequence[Turn] = ()
    ) -> AsyncGenerator[Cited | Answer, None]:
        async with aclosing(self._actor.stream("stream", owner, session_id, question, list(history))) as parts:
            async for part in parts:
                yield part

    async def converse(self, owner: str, said: Said) -> AsyncGenerator[Looked | Cited | Answer, None]:
        async with aclosing(self._actor.stream("converse", owner, said)) as parts:
            async for part in parts:
                yield part


class _LedgerAlone:
    """What is asked of the ledger by itself: it may have to wait for other calls."""

    def __init__(self, actor: Named) -> None:
        self._actor = actor

    async def begin(self, call: CallKey, estimate: Usage) -> Begun:
        begun: Begun = await self._actor.call("begin", call, estimate)
        return begun

    async def extend(self, call: CallKey, more: Usage) -> None:
        await self._actor.call("extend", call, more)


class RayLedger(BatchedLedger):
    """The ledger's actor. What is entered within a few milliseconds travels in one call."""

    def __init__(self) -> None:
        self._actor = Named("ledger")
        super().__init__(_LedgerAlone(self._actor), self._send_all)

    async def _send_all(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        outcomes: list[Outcome] = await self._actor.call("enter_all", list(entries))
        return outcomes

    async def refresh(self, session_id: str) -> None:
        """Its limits were raised: look at once, for those who wait."""
        await self._actor.call("refresh", session_id)

    async def calls(self, session_id: str) -> list[CallRow]:
        rows: list[CallRow] = await self._actor.call("calls", session_id)
        return rows


class RayAdmission:
    """The desk that admits sessions. It sits with the first coordinator that lives."""

    def __init__(self, coordinators: int) -> None:
        self._actors = [Named(f"coordinator:{n}") for n in range(coordinators)]

    async def enter(self, session_id: str, owner: str, priority: Priority) -> None:
        await self._ask("enter", session_id, owner, priority)

    async def leave(self, session_id: str) -> None:
        await self._ask("leave", session_id)

    async def renew(self, owners: Mapping[str, str]) -> None:
        await self._ask("renew", dict(owners))

    async def position(self, session_id: str) -> int | None:
        place: int | None = await self._ask("position", session_id)
        return place

    async def pressure(self, throttled: int) -> None:
        await self._ask("pressure", throttled)

    async def _ask(self, method: str, *args: Any) -> Any:
        for actor in self._actors:
            try:
                return await actor.call(method, *args)
            except Gone:
                continue
        raise RuntimeUnavailable("", "no coordinator answers")


class RayWorkers:
    """Spreads units over the pool: each goes to the worker that has the fewest under way from here.

    A task that comes again, because its worker did not answer, goes to another one.
    """

    def __init__(self, count: int) -> None:
        self._actors = [Named(f"worker:{n}") for n in range(count)]
        self._load: dict[int, int] = {0: 0}  # of the workers that are known to be there
        self._had: dict[str, int] = {}  # task to the worker that has it, or did not answer
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
        silent = self._had.get(task.id)
        others = [n for n in self._load if n != silent] or list(self._load)
        n = min(others, key=self._load.__getitem__)
        self._load[n] += 1
        self._had[task.id] = n
        try:
            result = await self._actors[n].call(unit, task)
        except asyncio.CancelledError:
            while len(self._had) > 10_000:
                del self._had[next(iter(self._had))]
            raise
        except BaseException:
            del self._had[task.id]
            raise
        finally:
            self._load[n] -= 1
        self._had.pop(task.id, None)
        return result

    async def _look_for_others(self) -> None:
        for n, worker in enumerate(self._actors):
            await worker.find()
            self._load.setdefault(n, 0)


class RayDispatch:
    """Takes a task to the actor of its role. The researcher is the pool; sections are drafted there too."""

    def __init__(self, workers: int) -> None:
        self._agents = {role: Named(f"agent:{role}") for role in AGENTS}
        self._pool = RayWorkers(workers)

    async def __call__(self, task: Task) -> Message:
        match task:
            case SearchTask():
                return await self._pool.search(task)
            case ReadTask():
                return await self._pool.read(task)
            case DraftTask():
                return await self._pool.draft(task)
        message: Message = await self._agents[task.role].call("handle", task)
        return message


class Watchdog:
    """Starts actors again whose process is there and does not answer (stopped, or stuck in a call that blocks)."""

    def __init__(self, names: Sequence[str], every_s: float) -> None:
        self._silent, self._every_s = dict.fromkeys(names, 0), every_s

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await asyncio.gather(*(self._probe(name) for name in self._silent))

    async def _probe(self, name: str) -> None:
        try:
            actor = await asyncio.to_thread(ray.get_actor, name)
            await asyncio.wait_for(actor.ping.options(max_task_retries=0).remote(), self._every_s)
        except TimeoutError:
            self._silent[name] += 1
            if self._silent[name] >= SILENT_PROBES:
                log.warning("%s does not answer: it is started again", name)
                self._silent[name] = 0
                ray.kill(actor, no_restart=False)
        except (ValueError, RayError):  # not there yet, or starting again
            self._silent[name] = 0
        else:
            self._silent[name] = 0


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
