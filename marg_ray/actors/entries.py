"""What is entered in the ledger, several at a time: one request instead of many small ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from marg_ray.records import Usage
from marg_ray.seams import Begun, CallKey, Ledger

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


Entry: TypeAlias = Begin | End | Failed
Outcome: TypeAlias = Begun | Exception | None
"""Of an entry: a begin's answer, or the error that was raised. None: entered; or a begin that would have to wait."""
EnterAll: TypeAlias = Callable[[Sequence[Entry]], Awaitable[Sequence[Outcome]]]


class BatchedLedger:
    """A `Ledger` whose entries travel together: what comes while a request is under way goes with the next one.

    `enter_all` makes one request of several entries and gives an outcome for each, in order; where it raises, every
    one of them does. `ledger` is asked by itself for what has to wait for others, so that no entry waits for another
    in its request. A lone entry is sent at once.
    """

    def __init__(self, ledger: Ledger, enter_all: EnterAll, *, linger_s: float = LINGER_S) -> None:
        self._ledger, self._enter_all, self._linger_s = ledger, enter_all, linger_s
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
        return outcome or await self._ledger.begin(call, estimate)

    async def extend(self, call: CallKey, more: Usage) -> None:
        """See `Ledger.extend`."""
        await self._ledger.extend(call, more)

    async def end(self, call: CallKey, result: str, usage: Usage) -> None:
        """See `Ledger.end`."""
        await self._enter(End(call, result, usage))

    async def failed(self, call: CallKey) -> None:
        """See `Ledger.failed`. A begin that was cancelled may still be on its way: it comes first."""
        if (beginning := self._beginning.get(call)) is not None:
            await asyncio.wait([beginning])
        await self._enter(Failed(call))

    async def _enter(self, entry: Entry) -> None:
        outcome = await asyncio.shield(self._add(entry))
        if isinstance(outcome, Exception):
            raise outcome

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
