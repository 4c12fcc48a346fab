"""Pages that were read already: their address, and the frozen text they gave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from marg_ray.errors import MargError
from marg_ray.grounding.snapshots import Document, Snapshots
from marg_ray.memory.spaces import Space, key_of, version
from marg_ray.records import Record
from marg_ray.seams import Offload

SPACE = "page"


class _Frozen(Record):
    source_id: str
    fetched_at: datetime


@dataclass(frozen=True)
class Page:
    """A page's frozen text, and when it was fetched."""

    document: Document
    fetched_at: datetime


Get = Callable[[], Awaitable[Page]]


@dataclass(frozen=True)
class CachedPages:
    """Gets each page once in a while for each owner: what was fetched, parsed, cleaned and frozen is not again."""

    space: Space
    snapshots: Snapshots
    offload: Offload

    async def get(self, url: str, owner: str, make: Get, *, fresh: bool = False) -> tuple[Page, bool]:
        """The page at `url`, and whether it was kept; `make` fetches and freezes it, and its errors are its own.

        With `fresh` it is made anew, and kept.
        """
        key = key_of(owner, version(), url)
        kept = None if fresh else await self._kept(key)
        if kept is not None:
            return kept, True
        page = await make()
        if page.document.text:
            frozen = _Frozen(source_id=page.document.source_id, fetched_at=page.fetched_at)
            await self.space.write(key, frozen.model_dump_json())
        return page, False

    async def _kept(self, key: str) -> Page | None:
        frozen = await self.space.read(key, _Frozen.model_validate_json)
        if frozen is None:
            return None
        try:
            document = await self.offload(self.snapshots.document, frozen.source_id)
        except (MargError, OSError, ValueError):  # its text is gone, or is no document any more
            return None
        return Page(document, frozen.fetched_at)
