"""Lets work begin as fast as the process can do it, the oldest session's first."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

AT_ONCE = 3  # units that begin: more would end together, and later; fewer would not fill the batches of the embedder


class Turnstile:
    """Where more work arrives than the process can do, some of it waits here instead of all of it being half done.

    Hundreds of units that are begun together share the processor and end together, late. Let in a few at a time, the
    first ones wait for the model while the next ones are worked on; so nearly every session is done sooner. A unit
    holds its place only while it begins: what waits for a model or a page, and what goes on after that, needs none.
    """

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._free = at_once
        self._waiting: list[tuple[str, int, asyncio.Future[None]]] = []
        self._arrived = itertools.count()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @asynccontextmanager
    async def place(self, order: str) -> AsyncIterator[None]:
        """Wait for a place; smaller `order` goes first (a session id: the older one)."""
        if self._free > 0:
            self._free -= 1
        else:
            await self._turn(order)
        try:
            yield
        finally:
            self._pass_on()

    async def _turn(self, order: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (order, next(self._arrived), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given the place in the same moment
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
