"""How often a caller may ask.

Requests are counted in slots of five seconds. A slot counts until it lies a whole minute back, so that no minute,
wherever it begins, sees more than the limit. Several replicas count in the store: a share for each would turn callers
away whose requests happen to go to the same one, and the limit itself bounds how often the store is asked.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from marg_ray.api.refusals import RateLimited

log = logging.getLogger(__name__)

SLOT_S = 5
SLOTS = 60 // SLOT_S
STORE_S = 2.0  # for the store's answer; then this replica counts alone

Tally = Callable[[str, int, int], Awaitable[dict[int, int]]]
"""Counts one more for a caller in a slot; the caller's numbers by slot, from another slot on (`Store.tally`)."""


@dataclass(frozen=True)
class Standing:
    """Where a caller stands; `reset_s`: seconds until it may ask more often again."""

    limit: int
    left: int
    reset_s: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.left),
            "RateLimit-Reset": str(self.reset_s),
            "RateLimit-Policy": f"{self.limit};w=60",
        }


class Rates:
    """Counts requests by caller; without a `tally`, those of this process."""

    def __init__(self, per_minute: int, tally: Tally | None = None, clock: Callable[[], float] = time.time):
        self._limit, self._tally, self._clock = per_minute, tally, clock
        self._seen: dict[str, Mapping[int, int]] = {}
        self._swept = 0

    async def take(self, caller: str) -> Standing:
        """Count a request.

        Raises:
            RateLimited: it is one too many.
        """
        now = self._clock()
        slot = int(now // SLOT_S)
        since = slot - SLOTS
        self._forget(since)
        seen = {when: n for when, n in self._seen.get(caller, {}).items() if when >= since}
        if sum(seen.values()) >= self._limit:  # known without asking, so that whoever goes on costs nothing
            raise RateLimited(self._limit, _wait(seen, now))
        counted = self._seen[caller] = await self._count(caller, seen, slot, since)
        left = self._limit - sum(counted.values())
        if left < 0:
            raise RateLimited(self._limit, _wait(counted, now))
        return Standing(self._limit, left, _wait(counted, now))

    async def _count(self, caller: str, seen: Mapping[int, int], slot: int, since: int) -> Mapping[int, int]:
        if self._tally is not None:
            try:
                async with asyncio.timeout(STORE_S):
                    return await self._tally(caller, slot, since)
            except Exception as exc:
                log.warning("requests are counted by each replica for itself: %s", exc)
        return {**seen, slot: seen.get(slot, 0) + 1}

    def _forget(self, since: int) -> None:
        if since > self._swept + SLOTS:
            self._swept = since
            self._seen = {caller: seen for caller, seen in self._seen.items() if max(seen) >= since}


def _wait(seen: Mapping[int, int], now: float) -> int:
    """Whole seconds until the oldest requests do not count any more."""
    return math.ceil((min(seen) + SLOTS + 1) * SLOT_S - now)
