"""Lets work in as fast as the process can do it, the oldest session's first."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from contextlib import suppress

LAG_S = 0.015  # the event loop keeps up while it is no later than this
LOOK_S = 0.002


class Turnstile:
    """Where more work arrives than the process can do, some of it waits here instead of all of it being half done.

    Hundreds of units that are begun together share the processor and end together, late. Let in one after the other,
    as long as the event loop keeps up, the first ones wait for the model while the next ones are worked on; so nearly
    every session is done sooner, and none later. What only waits (for a model, a page) takes no place.
    """

    def __init__(self, lag_s: float = LAG_S, look_s: float = LOOK_S) -> None:
        self._lag_s, self._look_s = lag_s, look_s
        self._waiting: list[tuple[str, int, asyncio.Future[None]]] = []
        self._arrived = itertools.count()
        self._pump: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    async def enter(self, order: str) -> None:
        """Return when this unit may begin; smaller `order` goes first (a session id: the older one)."""
        if self._pump is None:
            self._pump = asyncio.create_task(self._let_in())
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (order, next(self._arrived), turn))
        await turn

    async def _let_in(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                await asyncio.sleep(self._look_s)
                if loop.time() - began - self._look_s > self._lag_s:
                    continue
                while self._waiting:
                    turn = heapq.heappop(self._waiting)[2]
                    if not turn.done():
                        turn.set_result(None)
                        break
                else:
                    return
        finally:
            self._pump = None
            with suppress(IndexError):  # the loop ends: nobody waits for nothing
                while True:
                    heapq.heappop(self._waiting)[2].cancel()
