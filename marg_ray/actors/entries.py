"""What is entered in the ledger, several at a time: one request instead of many small ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from marg_ray.records import Usage
from marg_ray.seams import Begun, CallKey
from marg_ray.store.protocol import CacheRow

log = logging.getLogger(__name__)

LINGER_S = 0.005  # how long an entry waits for others to go with it, while the one before is on its way
MOST = 64  # entries in one request


@dataclass(frozen=True, slots=True)
class Begin:
    """See `Ledger.begin`."""

    call: CallKey
    estimate: Usage


@dataclass(frozen=True, slots=True)
class End:
    """See `Ledger.end`."""

    call: CallKey
    result: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Failed:
    """See `Ledger.failed`."""

    call: CallKey


@dataclass(frozen=True, slots=True)
class Look:
    """See `Store.cache_get`."""

    space: str
    key: str


@dataclass(frozen=True, slots=True)
class Keep:
    """See `Store.cache_put`."""

    space: str
    key: str
    value: str
    ttl_s: float


Entry: TypeAlias = Begin | End | Failed | Look | Keep
Outcome: TypeAlias = Begun | CacheRow | Exception | None
"""Of an entry: its answer, or the error that was raised. Of a begin, None says that it would have to wait."""
EnterAll: TypeAlias = Callable[[Sequence[Entry]], Awaitable[Sequence[Outcome]]]


class Alone(Protocol):
    """The part of a `Ledger` that is asked by itself."""

    async def begin(self, call: CallKey, estimate: Usage) -> Begun: ...

    async def extend(self, call: CallKey, more: Usage) -> None: ...


class BatchedLedger:
    """A `Ledger` and a `CacheStore` whose entries travel together: what comes while a request is under way goes with
    the next one.

    `enter_all` makes one request of several entries and gives an outcome for each, in order; where it raises, every
    one of them does. `ledger` is asked by itself for what has to wait for others, so that no entry waits for another
    in its request. A lone entry is sent at once.
    """

    def __init__(self, alone: Alone, enter_all: EnterAll, *, linger_s: float = LINGER_S) -> None:
        self._alone, self._enter_all, self._linger_s = alone, enter_all, linger_s
        self._waiting: list[tuple[Entry, asyncio.Future[Outcome]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._under_way = set[asyncio.Task[None]]()
        self._beginning: dict[CallKey, asyncio.Future[Outcome]] = {}

    async def begin(self, call: CallKey, estimate: Usage) -> Begun:
        """See `Ledger.begin`."""
        future = self._beginning[call] = self._add(Begin(call, estimate))
        future.add_done_callback(lambda _: self._beginning.pop(call, None))
        outcome = await asyncio.shield(future)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if isinstance(outcome, Begun) else await self._alone.begin(call, estimate)

    async def extend(self, call: CallKey, more: Usage) -> None:
        """See `Ledger.extend`."""
        await self._alone.extend(call, more)

    async def end(self, call: CallKey, result: str, usage: Usage) -> None:
        """See `Ledger.end`."""
        await self._enter(End(call, result, usage))

    async def failed(self, call: CallKey) -> None:
        """See `Ledger.failed`. A begin that was cancelled may still be on its way: it comes first."""
        if (beginning := self._beginning.get(call)) is not None:
            await asyncio.wait([beginning])
        await self._enter(Failed(call))

    async def cache_get(self, space: str, key: str) -> CacheRow | None:
        """See `Store.cache_get`."""
        row = await self._enter(Look(space, key))
        return row if isinstance(row, CacheRow) else None

    async def cache_put(self, space: str, key: str, value: str, ttl_s: float) -> None:
        """See `Store.cache_put`; nobody waits for it. What is not kept is looked for in vain, and made again."""
        self._add(Keep(space, key, value, ttl_s)).add_done_callback(_warn)

    async def _enter(self, entry: Entry) -> Outcome:
        outcome = await asyncio.shield(self._add(entry))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _add(self, entry: Entry) -> asyncio.Future[Outcome]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.append((entry, future))
        if len(self._waiting) >= MOST:
            self._send()
        elif self._timer is None:
            self._timer = loop.call_later(self._linger_s if self._under_way else 0.0, self._send)
        return future

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        together, self._waiting = self._waiting, []
        if together:
            request = asyncio.ensure_future(self._request(together))
            self._under_way.add(request)
            request.add_done_callback(self._under_way.discard)

    async def _request(self, together: list[tuple[Entry, asyncio.Future[Outcome]]]) -> None:
        futures = [future for _, future in together]
        try:
            outcomes = await self._enter_all([entry for entry, _ in together])
        except Exception as exc:
            outcomes = [exc] * len(together)
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        for future, outcome in zip(futures, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)


def _warn(kept: asyncio.Future[Outcome]) -> None:
    if not kept.cancelled() and isinstance(outcome := kept.result(), Exception):
        log.warning("nothing was put into a cache: %s", outcome)
