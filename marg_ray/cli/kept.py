"""A report that is there already, found without starting anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from marg_ray.records import Request
    from marg_ray.settings import Settings
    from marg_ray.store.protocol import LogEntry


async def kept(settings: Settings, request: Request) -> list[LogEntry]:
    """The log of the session whose report answers the request; empty where there is none, or it is not whole.

    Raises:
        UsageError: the configured model is not known.
    """
    from marg_ray.actors.assembly import Places, asked_of
    from marg_ray.cli.local import open_store
    from marg_ray.errors import MargError
    from marg_ray.memory.cache import QueryCache, may_answer
    from marg_ray.models.select import choose

    places = Places.of(settings)
    there = places.database_url or places.database.exists()
    if settings.tape.used or not there or request.fresh or not settings.cache.report_s or not may_answer(request):
        return []
    choice = await choose(settings, offline=request.sources.offline)
    store = await open_store(settings)
    try:
        cache = QueryCache(store, settings, model=asked_of(choice))
        found = (await cache.ask(request)).kept
        if found is None:
            return []
        places.artefacts.get(found.artefact)
        return await store.read(found.session_id)
    except MargError:  # it is gone, or damaged: research again
        return []
    finally:
        await store.close()
