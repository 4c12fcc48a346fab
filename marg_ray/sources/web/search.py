"""Web search: several engines in order of preference, each with its limit and its breaker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from marg_ray.errors import SearchUnavailable, UsageError
from marg_ray.records import Note
from marg_ray.settings import SearchSettings
from marg_ray.sources.protocol import Found
from marg_ray.sources.queries import search_query
from marg_ray.sources.resilience import LONGEST_PAUSE_S, Breaker, Sleep, backoff
from marg_ray.sources.web.engine import Engine, EngineFailed, EngineReply
from marg_ray.sources.web.results import dedupe, normalise
from marg_ray.telemetry.events import searched

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

_UNUSED = "no engine is set up"


@dataclass
class _Tally:
    """What one search has met so far."""

    requests: int = 0
    failed: dict[str, EngineFailed] = field(default_factory=dict)
    degraded: dict[str, str] = field(default_factory=dict)
    reply: EngineReply | None = None
    engine: str = ""  # whose reply it is


@dataclass
class _Line:
    """The way to one engine."""

    engine: Engine
    settings: SearchSettings
    breaker: Breaker
    sleep: Sleep
    failure: EngineFailed = field(default_factory=lambda: EngineFailed("not asked yet"))  # the latest
    _slots: asyncio.Semaphore | None = None
    _limiter: AsyncLimiter | None = None

    @property
    def is_free(self) -> bool:
        """Whether a request could be made now."""
        return not self.breaker.is_open and self.limiter.has_capacity()

    @property
    def per_minute(self) -> int:
        return self.settings.per_minute or self.engine.pace.per_minute

    @property
    def slots(self) -> asyncio.Semaphore:
        if self._slots is None:
            self._slots = asyncio.Semaphore(self.settings.at_once or self.engine.pace.at_once)
        return self._slots

    @property
    def limiter(self) -> AsyncLimiter:
        if self._limiter is None:
            from aiolimiter import AsyncLimiter

            self._limiter = AsyncLimiter(self.per_minute, 60)
        return self._limiter

    async def ask(self, query: str, limit: int, tally: _Tally) -> EngineReply:
        """Ask at most `settings.tries` times, with pauses.

        Raises:
            EngineFailed: no try was answered, or the engine is left alone for now after its latest failure.
        """
        if not self.breaker.enter():
            raise EngineFailed(*self.failure.args)
        settled, began, name = False, time.perf_counter(), self.engine.name
        try:
            reply = await self._tries(query, limit, tally)
            searched(name, "answered" if reply.entries else "nothing", time.perf_counter() - began)
            self.breaker.succeeded()
            settled = True
            return reply
        except EngineFailed as exc:
            searched(name, "failed", time.perf_counter() - began)
            self.failure = exc
            self.breaker.failed(for_good=exc.for_good)
            settled = True
            raise
        finally:
            if not settled:
                self.breaker.left()

    async def _tries(self, query: str, limit: int, tally: _Tally) -> EngineReply:
        attempt = 0
        while True:
            try:
                return await self._once(query, limit, tally)
            except EngineFailed as exc:
                attempt += 1
                if exc.again_after is None or attempt >= self.settings.tries:
                    raise
                await self.sleep(min(exc.again_after or backoff(attempt - 1), LONGEST_PAUSE_S))

    async def _once(self, query: str, limit: int, tally: _Tally) -> EngineReply:
        try:
            async with asyncio.timeout(LONGEST_PAUSE_S):
                await self.limiter.acquire()
        except TimeoutError:
            raise EngineFailed(
                f"its limit of {self.per_minute} requests a minute is used up", "raise MARG_SEARCH__PER_MINUTE"
            ) from None
        async with self.slots:
            tally.requests += 1
            try:
                async with asyncio.timeout(self.settings.timeout_s):
                    return await self.engine.search(query, limit)
            except TimeoutError:
                raise EngineFailed(f"no answer within {self.settings.timeout_s:g} s") from None
            except EngineFailed:
                raise
            except Exception as exc:  # an engine is foreign code: whatever it raises is its failure, not the run's
                raise EngineFailed(f"it failed with {type(exc).__name__}: {str(exc)[:120]}") from exc


class WebSearch:
    """A `Searcher` over engines: the first one that answers is used, the others are there for when it does not.

    One per process, for all its sessions, so that limits and breakers count everything; used from one event loop.
    """

    def __init__(
        self,
        engines: Sequence[Engine],
        settings: SearchSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._lines = [_Line(e, settings, Breaker(clock=clock), sleep) for e in engines]

    @property
    def engines(self) -> tuple[str, ...]:
        return tuple(line.engine.name for line in self._lines)

    async def search(self, query: str, limit: int) -> Found:
        """Up to `limit` hits, each page once. An engine that answers "nothing" is believed unless part of it failed.

        Raises:
            SearchUnavailable: no engine answered; says why for each of them.
        """
        asked = search_query(query)
        tally = _Tally()
        for line in sorted(self._lines, key=lambda line: not line.is_free):
            try:
                reply = await line.ask(asked, limit, tally)
            except EngineFailed as exc:
                tally.failed[line.engine.name] = exc
                continue
            tally.reply, tally.engine = reply, line.engine.name
            if reply.degraded:
                tally.degraded[line.engine.name] = reply.degraded
            if reply.entries or not reply.degraded:
                break
        if tally.reply is None:
            raise SearchUnavailable("; ".join(f"{name}: {why}" for name, why in tally.failed.items()) or _UNUSED)
        return _found(tally, tally.reply, limit)

    async def close(self) -> None:
        for line in self._lines:
            await line.engine.close()


def build_web_search(settings: SearchSettings) -> WebSearch:
    """The engines that the settings name; SearXNG only where its address is set.

    Raises:
        UsageError: an engine that does not exist, or an address that is none.
    """
    from marg_ray.sources.web.ddgs import DdgsEngine
    from marg_ray.sources.web.searxng import SearxngEngine

    engines: list[Engine] = []
    for name in settings.engines:
        if name == "ddgs":
            engines.append(DdgsEngine(settings.timeout_s))
        elif name == "searxng":
            if settings.searxng_url:
                engines.append(SearxngEngine(settings.searxng_url, settings.timeout_s))
        else:
            raise UsageError(
                f"there is no search engine {name!r}",
                "MARG_SEARCH__ENGINES takes searxng and ddgs, in order of preference",
            )
    return WebSearch(engines, settings)


def _found(tally: _Tally, reply: EngineReply, limit: int) -> Found:
    used = tally.engine
    notes = [
        Note(kind="search_failed", text=f"{name} failed: {why}; {used} answered instead")
        for name, why in tally.failed.items()
    ]
    notes += [
        Note(kind="search_degraded", text=f"{name} answered only in part ({what})")
        for name, what in tally.degraded.items()
    ]
    normalised = normalise(reply.entries, used)
    if normalised.dropped:
        text = f"{normalised.dropped} results of {used} were dropped: they have no web address"
        notes.append(Note(kind="results_dropped", text=text))
    return Found(hits=dedupe(normalised.hits)[:limit], notes=tuple(notes), searches=tally.requests)
