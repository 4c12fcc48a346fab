"""Doubles around the seams that make them fail on a schedule: the store, the dispatch, the model, the sources.

Each has the face of what it wraps. All of a run share one `Faults`, which says at every visit of a point whether
something goes wrong there and what: by chance from a seed, or where a script says so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from random import Random
from typing import Any, cast

from marg_ray.actors.protocol import Dispatch
from marg_ray.errors import (
    FetchFailed,
    ModelUnavailable,
    OutputCut,
    ParseError,
    RuntimeUnavailable,
    SearchUnavailable,
    StoreUnavailable,
)
from marg_ray.messages import Message
from marg_ray.models.client import Call, ModelClient, ModelTask, OutT, Reply
from marg_ray.sources.protocol import Fetched, Fetcher, Found, Searcher
from marg_ray.store.protocol import Store
from marg_ray.tasks import Task

Pause = Callable[[], Awaitable[None]]
AWAY_FOR = 5  # operations that fail while a connection is lost


class Crash(BaseException):
    """The process died. Not an `Exception`: nothing in it gets to clean up."""


class Faults:
    """The schedule of a run's faults.

    A fault is named "point.kind" ("store/append.crash_after"). `rates` gives the chance of each at every visit of its
    point; `script` lists (fault, n): it happens at the n-th visit, from 1. What happens at one point does not depend
    on what is visited elsewhere meanwhile. After `most` faults by chance there are no more, so that a run can end.
    """

    def __init__(
        self,
        seed: int = 0,
        rates: Mapping[str, float] | None = None,
        *,
        script: Collection[tuple[str, int]] = (),
        most: int = 1000,
    ) -> None:
        self._seed, self._rates, self._script, self._left = seed, dict(rates or {}), set(script), most
        self._chances: dict[str, Random] = {}
        self.visits = Counter[str]()
        self.happened: list[str] = []

    def at(self, point: str, kinds: Iterable[str]) -> str:
        """Visit `point`: which of `kinds` happens there now, or nothing."""
        self.visits[point] += 1
        chance = self._chances.setdefault(point, Random(f"{self._seed}/{point}"))
        drawn = chance.random()
        for kind in kinds:
            name = f"{point}.{kind}"
            rate = self._rates.get(name, 0.0)
            scripted = (name, self.visits[point]) in self._script
            if scripted or (drawn < rate and self._left > 0):
                self._left -= not scripted
                self.happened.append(name)
                return kind
            drawn -= rate
        return ""


async def give_way() -> None:
    """A pause without a clock: everything else that can run does so for a while."""
    for _ in range(20):
        await asyncio.sleep(0)


# ---- the store


class _FaultyStore:
    KINDS = ("crash_before", "crash_after", "lost_before", "lost_after", "away", "slow")

    def __init__(self, store: Store, faults: Faults, pause: Pause) -> None:
        self._store, self._faults, self._pause = store, faults, pause
        self._away = 0
        self.crashed = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._store, name)

        async def carried_out(*args: Any, **kwargs: Any) -> Any:
            task = next((a.task_id for a in args if hasattr(a, "task_id")), "")
            return await self._carry_out(name, task, lambda: operation(*args, **kwargs))

        return carried_out

    async def close(self) -> None:
        await self._store.close()

    async def _carry_out(self, name: str, task: str, operation: Callable[[], Awaitable[Any]]) -> Any:
        if self.crashed.is_set():
            raise Crash
        if self._away > 0:
            self._away -= 1
            raise StoreUnavailable("the connection is lost")
        about = self._faults.at(f"store/{name}@{task}", self.KINDS) if task else ""
        match about or self._faults.at(f"store/{name}", self.KINDS):
            case "crash_before":
                self._die()
            case "crash_after":
                await operation()
                self._die()
            case "lost_before":
                raise StoreUnavailable(f"{name} was not carried out")
            case "lost_after":
                await operation()
                raise StoreUnavailable(f"the answer to {name} was lost")
            case "away":
                self._away = AWAY_FOR - 1
                raise StoreUnavailable("the connection is lost")
            case "slow":
                await self._pause()
        return await operation()

    def _die(self) -> None:
        self.crashed.set()
        raise Crash


def faulty_store(store: Store, faults: Faults, *, pause: Pause = give_way) -> Store:
    """A store whose operations are points: "store/append", "store/read", ...; also "store/append@TASK" for one task's.

    Kinds: `lost_before` and `lost_after` (it is not done, or done, and raises `StoreUnavailable`), `away` (that one and
    the next few operations fail), `slow`, and `crash_before` and `crash_after`: the process dies, and every later
    operation of it raises `Crash` too.
    """
    return cast(Store, _FaultyStore(store, faults, pause))


# ---- dispatch


class FaultyDispatch:
    """Loses workers. The point is the task's kind ("task/read", "task/draft", ...), or "task" for all.

    Kinds: `dead` (nobody has it), `died` (the work was done, the answer is lost), `hangs` (until it is given up),
    `late` (answers only after it was given up), `twice` (two workers carry it out), `odd` (an exception of no class of
    ours).
    """

    KINDS = ("dead", "died", "hangs", "late", "twice", "odd")

    def __init__(self, dispatch: Dispatch, faults: Faults, *, pause: Pause = give_way) -> None:
        self._dispatch, self._faults, self._pause = dispatch, faults, pause
        self._abandoned: set[asyncio.Future[Message]] = set()
        self.asked: list[str] = []  # task ids, in order

    async def __call__(self, task: Task) -> Message:
        self.asked.append(task.id)
        kind = self._faults.at(f"task/{task.kind}", self.KINDS) or self._faults.at("task", self.KINDS)
        match kind:
            case "dead":
                raise RuntimeUnavailable("", "the worker is dead")
            case "died":
                await self._dispatch(task)
                raise RuntimeUnavailable("", "the worker died before it could answer")
            case "hangs":
                await asyncio.Event().wait()
            case "late":
                self._carry_on_aside(task)
                await asyncio.Event().wait()
            case "twice":
                first, second = self._carry_on_aside(task), self._carry_on_aside(task)
                await asyncio.wait((first, second), return_when=asyncio.FIRST_COMPLETED)
                return (first if first.done() else second).result()
            case "odd":
                raise LookupError(f"nobody expected this of {task.kind}")
        return await self._dispatch(task)

    async def settle(self) -> None:
        """Wait until nothing is carried out any more that was given up."""
        while self._abandoned:
            await asyncio.gather(*self._abandoned, return_exceptions=True)

    def _carry_on_aside(self, task: Task) -> asyncio.Future[Message]:
        work = asyncio.ensure_future(self._dispatch(task))
        self._abandoned.add(work)
        work.add_done_callback(self._forget)
        return work

    def _forget(self, work: asyncio.Future[Message]) -> None:
        self._abandoned.discard(work)
        if not work.cancelled():
            work.exception()  # nobody asks for it


# ---- the model and the sources


class FaultyModel:
    """A model that fails. The point is the template ("model/draft_section", ...), or "model" for all.

    Kinds: `away`, `unreadable`, `cut`, `odd`, `slow`, and `lost` (it answered, and the answer did not arrive).
    """

    KINDS = ("away", "unreadable", "cut", "odd", "slow", "lost")

    def __init__(self, model: ModelClient, faults: Faults, *, pause: Pause = give_way) -> None:
        self._model, self._faults, self._pause = model, faults, pause

    @property
    def name(self) -> str:
        return self._model.name

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        kind = self._faults.at(f"model/{task.template}", self.KINDS) or self._faults.at("model", self.KINDS)
        match kind:
            case "away":
                raise ModelUnavailable("http://model.test", "connection refused")
            case "unreadable":
                raise ParseError(task.template, "no JSON in the answer", 4)
            case "cut":
                raise OutputCut(task.template, task.max_tokens)
            case "odd":
                raise ArithmeticError(f"nobody expected this of {task.template}")
            case "lost":
                await self._model.run(task, call)
                raise ModelUnavailable("http://model.test", "the connection was reset")
            case "slow":
                await self._pause()
        return await self._model.run(task, call)


class FaultySearcher:
    """A source that fails. The point is "search"; kinds: `away`, `nothing`, `odd`, `slow`."""

    KINDS = ("away", "nothing", "odd", "slow")

    def __init__(self, searcher: Searcher, faults: Faults, *, pause: Pause = give_way) -> None:
        self._searcher, self._faults, self._pause = searcher, faults, pause

    async def search(self, query: str, limit: int) -> Found:
        match self._faults.at("search", self.KINDS):
            case "away":
                raise SearchUnavailable("no engine answered")
            case "nothing":
                return Found()
            case "odd":
                raise ArithmeticError("nobody expected this of a search")
            case "slow":
                await self._pause()
        return await self._searcher.search(query, limit)


class FaultyFetcher:
    """A fetcher that fails. The point is "fetch"; kinds: `failed`, `garbage` (no page in the bytes), `odd`, `slow`."""

    KINDS = ("failed", "garbage", "odd", "slow")

    def __init__(self, fetcher: Fetcher, faults: Faults, *, pause: Pause = give_way) -> None:
        self._fetcher, self._faults, self._pause = fetcher, faults, pause

    async def fetch(self, url: str) -> Fetched:
        match self._faults.at("fetch", self.KINDS):
            case "failed":
                raise FetchFailed(url, "time-out")
            case "odd":
                raise ArithmeticError("nobody expected this of a fetch")
            case "slow":
                await self._pause()
            case "garbage":
                page = await self._fetcher.fetch(url)
                return Fetched(**{**vars(page), "body": bytes(range(256)) * 20})
        return await self._fetcher.fetch(url)
