"""One kind of cached value in the store: who may see it, how long it is good for, how often it served."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Protocol, TypeVar

from marg_ray.store.protocol import CacheRow
from marg_ray.telemetry.figures import FIGURES

log = logging.getLogger(__name__)

T = TypeVar("T")


class CacheStore(Protocol):
    """The part of a `Store` that caches stand on."""

    async def cache_get(self, space: str, key: str) -> CacheRow | None: ...

    async def cache_put(self, space: str, key: str, value: str, ttl_s: float) -> None: ...


@dataclass
class Counts:
    """Of this process; the store has the hits of all."""

    hits: int = 0
    misses: int = 0


@dataclass(frozen=True)
class Space:
    """Values by key, each kept for `ttl_s` seconds; 0: nothing is kept.

    What goes wrong here never fails a run: a store that does not answer and a value that cannot be read are misses.
    """

    store: CacheStore
    name: str
    ttl_s: float
    counts: Counts = field(default_factory=Counts)

    async def read(self, key: str, parse: Callable[[str], T]) -> T | None:
        """The value under `key`, or None. `parse` raises ValueError where a text is not what it should be."""
        value = await self._read(key, parse) if self.ttl_s > 0 else None
        if value is None:
            self.counts.misses += 1
            FIGURES.count("marg_cache_lookups_total", self.name, "miss")
        else:
            self.counts.hits += 1
            FIGURES.count("marg_cache_lookups_total", self.name, "hit")
        return value

    async def _read(self, key: str, parse: Callable[[str], T]) -> T | None:
        try:
            row = await self.store.cache_get(self.name, key)
            fresh = row is not None and datetime.now(UTC) - row.stored_at < timedelta(seconds=self.ttl_s)
            return parse(row.value) if row is not None and fresh else None
        except Exception as exc:
            log.warning("the %s cache was passed over: %s", self.name, exc)
            return None

    async def write(self, key: str, value: str) -> None:
        if self.ttl_s > 0:
            try:
                await self.store.cache_put(self.name, key, value, self.ttl_s)
            except Exception as exc:
                log.warning("nothing was put into the %s cache: %s", self.name, exc)


def key_of(owner: str, *asked: object) -> str:
    """A key that nobody but `owner` arrives at: SHA-256 over the owner and what is asked for (JSON)."""
    blob = json.dumps([owner, *asked], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(blob.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def version() -> str:
    """Of this package: another one may read and write in other ways."""
    try:
        return importlib.metadata.version("marg-ray")
    except importlib.metadata.PackageNotFoundError:
        return "0"
