"""What every kind of source looks like to a researcher."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from marg_ray.grounding.snapshots import Document
from marg_ray.records import Answerability, Hit, Note


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one query found in one or more sources, best first."""

    hits: tuple[Hit, ...] = ()
    answerability: Answerability = field(default_factory=Answerability)
    notes: tuple[Note, ...] = ()  # engines that failed or were degraded, entries that were dropped
    searches: int = 0  # requests made
    cached: bool = False  # results of an earlier search


class Searcher(Protocol):
    """Anything a query can be put to: web engines behind their failover, a library, provided text."""

    async def search(self, query: str, limit: int) -> Found:
        """Up to `limit` hits.

        Raises:
            SearchUnavailable: nothing answered (which is not the same as nothing found).
        """


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A page's bytes as they came, and where from after redirects."""

    url: str
    final_url: str
    status: int
    media_type: str  # without parameters, lower case
    charset: str  # as the header says, or ""
    body: bytes
    fetched_at: datetime
    truncated: bool = False


class Fetcher(Protocol):
    async def fetch(self, url: str) -> Fetched:
        """Get a page.

        Raises:
            AddressBlocked: the address is not one a page may come from.
            FetchFailed: it did not come (time-out, status, too large, unsupported type).
        """


class Parser(Protocol):
    """Bytes to a `Document`. Pure CPU: run it off the loop."""

    def __call__(self, body: bytes, *, name: str, media_type: str = "", charset: str = "") -> Document:
        """Parse.

        Raises:
            Unreadable: there is no document in the bytes; says why in a few words.
        """
