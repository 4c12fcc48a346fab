"""How to behave towards servers that are slow, busy or down: pauses, Retry-After, circuit breaker, host slots."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

Sleep = Callable[[float], Awaitable[None]]
Now = Callable[[], datetime]

LONGEST_PAUSE_S = 60.0
_HTTP_DATE = re.compile(r"[A-Za-z]{3,9},? .*\d\d:\d\d:\d\d.*")


def utc_now() -> datetime:
    return datetime.now(UTC)


def retry_after(header: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for, at most 60; None where it says nothing usable."""
    text = (header or "").strip()
    if re.fullmatch(r"[0-9]+", text):
        return min(float(text[:9]), LONGEST_PAUSE_S)
    if not _HTTP_DATE.fullmatch(text):
        return None
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return min(max((until - now).total_seconds(), 0.0), LONGEST_PAUSE_S)


def backoff(attempt: int) -> float:
    """The pause after failed attempt 0, 1, 2, ...: 1, 2, 4, ... 30 s, up to a quarter longer to spread callers."""
    return min(float(2**attempt) * (1 + random.random() / 4), 30.0)


class Breaker:
    """A circuit breaker (M. Nygard, "Release It!", 2007).

    Closed: everything passes. After `failures` in a row it opens: nothing passes for `reset_s` seconds. Then one call
    is let through as a probe; its success closes the breaker, its failure opens it again.
    """

    def __init__(self, failures: int = 3, reset_s: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._reset_s, self._clock = failures, reset_s, clock
        self._failed = 0
        self._opened_at: float | None = None
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether a call would be refused now."""
        if self._opened_at is None:
            return False
        return self._probing or self._clock() - self._opened_at < self._reset_s

    def enter(self) -> bool:
        """Ask to make a call. True must be followed by exactly one of `succeeded`, `failed` or `left`."""
        if self.is_open:
            return False
        self._probing = self._opened_at is not None
        return True

    def succeeded(self) -> None:
        self._failed, self._opened_at, self._probing = 0, None, False

    def failed(self, *, for_good: bool = False) -> None:
        """Count a failure; `for_good` opens at once: the next try would end the same way."""
        self._failed += 1
        if for_good or self._probing or self._failed >= self._limit:
            self._opened_at = self._clock()
        self._probing = False

    def left(self) -> None:
        """The call was given up and says nothing about the server."""
        self._probing = False


class HostSlots:
    """At most `per_host` requests to a host at once, and none while it is in a pause. Hosts do not hold each other."""

    def __init__(self, per_host: int, now: Now = utc_now, sleep: Sleep = asyncio.sleep) -> None:
        self._per_host, self._now, self._sleep = per_host, now, sleep
        self._slots: dict[str, tuple[asyncio.Semaphore, int]] = {}  # with the number of users
        self._paused_until: dict[str, datetime] = {}

    @asynccontextmanager
    async def slot(self, host: str) -> AsyncIterator[None]:
        semaphore, users = self._slots.get(host) or (asyncio.Semaphore(self._per_host), 0)
        self._slots[host] = (semaphore, users + 1)
        try:
            async with semaphore:
                if (wait := self._left(host)) > 0:
                    await self._sleep(wait)
                yield
        finally:
            semaphore, users = self._slots.pop(host)
            if users > 1:
                self._slots[host] = (semaphore, users - 1)

    def pause(self, host: str, seconds: float) -> None:
        until = self._now() + timedelta(seconds=min(seconds, LONGEST_PAUSE_S))
        self._paused_until[host] = max(until, self._paused_until.get(host, until))

    def _left(self, host: str) -> float:
        until = self._paused_until.get(host)
        if until is None:
            return 0.0
        seconds = (until - self._now()).total_seconds()
        if seconds <= 0:
            del self._paused_until[host]
        return min(seconds, LONGEST_PAUSE_S)  # a wall clock that was set back must not make the pause longer
