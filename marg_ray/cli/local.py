"""What commands read without starting Ray: the store and the files under `MARG_HOME`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from marg_ray.errors import SessionNotFound
from marg_ray.settings import Settings

if TYPE_CHECKING:
    from marg_ray.store.protocol import Store

T = TypeVar("T")


def with_store(settings: Settings, read: Callable[[Store], Awaitable[T]]) -> T:
    """Run `read` on the store, and close it."""
    from marg_ray.actors.assembly import Places
    from marg_ray.store.sql import SqlStore

    async def run() -> T:
        store = await SqlStore.open(Places(settings.home).store_url)
        try:
            return await read(store)
        finally:
            await store.close()

    return asyncio.run(run())


async def find_session(store: Store, name: str) -> str:
    """A session's id from the id, its beginning, or `last`.

    Raises:
        SessionNotFound: none fits, or several do.
    """
    rows = await store.sessions(limit=100_000)
    if name == "last" and rows:
        return rows[0].id
    fitting = [r.id for r in rows if r.id == name] or [r.id for r in rows if r.id.startswith(name)]
    if len(fitting) != 1:
        raise SessionNotFound(name)
    return fitting[0]
