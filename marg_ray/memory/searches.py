"""A search whose results are kept for a while."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from marg_ray.memory.spaces import Space, key_of
from marg_ray.records import Usage
from marg_ray.sources.protocol import Found, Searcher

SPACE = "search"
OF_ITS_TIME = frozenset({"search_failed", "search_degraded"})  # notes that say how an engine fared then
FOUND: TypeAdapter[Found] = TypeAdapter(Found)


@dataclass(frozen=True)
class CachedSearch:
    """A `Searcher` that puts the same query to `searcher` once in a while, for one owner: a query is private.

    `engines` names what is behind it, so that other engines do not answer with these results. Nothing is kept of a
    search that failed, found nothing or was answered in part.
    """

    searcher: Searcher
    space: Space
    owner: str
    engines: str = ""
    fresh: bool = False  # look for nothing, but keep what comes

    async def search(self, query: str, limit: int) -> Found:
        key = key_of(self.owner, self.engines, " ".join(unicodedata.normalize("NFKC", query).split()), limit)
        kept = None if self.fresh else await self.space.read(key, FOUND.validate_json)
        if kept is not None and kept.hits:
            return replace(kept, searches=0, cached=True)
        found = await self.searcher.search(query, limit)
        if found.hits and not any(n.kind == "search_degraded" for n in found.notes):
            notes = tuple(n for n in found.notes if n.kind not in OF_ITS_TIME)
            await self.space.write(key, FOUND.dump_json(replace(found, notes=notes)).decode())
        return found


@dataclass(frozen=True)
class KeptSearches:
    """The results of the engines that `engines` names."""

    space: Space
    engines: str = ""

    def before(self, searcher: Searcher, owner: str, *, fresh: bool = False) -> CachedSearch:
        """`searcher`, asked only for what `owner` has not found already."""
        return CachedSearch(searcher, self.space, owner, self.engines, fresh)


def usage_of(found: Found) -> Usage:
    """What a search cost: nothing where its results were kept."""
    return Usage(reused=1) if found.cached else Usage(searches=max(1, found.searches))
