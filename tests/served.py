"""The API over a whole run in one process, without Ray: `World`'s agents and coordinator, FastAPI around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from fastapi import FastAPI

from marg_ray.actors.assembly import Places
from marg_ray.actors.conversing import Conversing, assistant_over
from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.fanout import Units
from marg_ray.actors.keys import digests
from marg_ray.actors.live import Progress
from marg_ray.actors.owner import Decision
from marg_ray.actors.researcher import Researcher
from marg_ray.actors.shelves import LocalShelves
from marg_ray.api.app import create_app
from marg_ray.api.service import Service, Sessions
from marg_ray.memory.cache import KeptReport
from marg_ray.messages import Steered
from marg_ray.models.wrappers import MeteredModel
from marg_ray.records import Request, Role
from marg_ray.seams import in_thread
from marg_ray.settings import Settings
from marg_ray.store.protocol import Store
from marg_ray.telemetry.figures import Taken
from tests.flow import World


class LocalSessions:
    """A coordinator of this process, reached as `actors.deploy.Control` reaches those of a runtime."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    async def submit(self, session_id: str, request: Request, key: str = "") -> str:
        return await self._coordinator.submit(session_id, request, *digests(key, request))

    async def known(self, request: Request) -> KeptReport | None:
        return await self._coordinator.known(request)

    async def resume(self, session_id: str, by: str = "owner") -> str:
        return await self._coordinator.resume(session_id, by)

    async def pause(self, session_id: str, by: str = "owner") -> str:
        return await self._coordinator.pause(session_id, by)

    async def cancel(self, session_id: str, by: str = "owner") -> str:
        return await self._coordinator.cancel(session_id, by)

    async def decide(self, session_id: str, decision: Decision) -> str:
        return await self._coordinator.decide(session_id, decision)

    async def steer(self, session_id: str, steered: Steered) -> str:
        return await self._coordinator.steer(session_id, steered)

    async def progress(self, session_id: str, after: int = 0, wait_s: float = 10.0) -> Progress:
        return await self._coordinator.progress(session_id, after, wait_s)

    async def figures(self) -> Mapping[str, Taken | None]:
        return {"coordinator:0": await self._coordinator.figures()}


def sessions_of(world: World) -> Sessions:
    return LocalSessions(world.coordinator)


def assistant_of(world: World, settings: Settings) -> Conversing:
    """The assistant over a world, with libraries of its own."""
    researcher = world.agents[Role.RESEARCHER]
    assert isinstance(researcher, Researcher)
    assert isinstance(researcher.workers, Units)
    shelves = LocalShelves(settings.home, settings.library, world.embedder, world.snapshots, in_thread)

    async def open_store() -> Store:
        return world.store

    return assistant_over(
        settings,
        model=MeteredModel(world.model, world.ledger),
        embedder=world.embedder,
        light=in_thread,
        artefacts=world.artefacts,
        snapshots=world.snapshots,
        workers=replace(researcher.workers, shelves=shelves),
        open_store=open_store,
    )


def service_of(world: World, **settings: object) -> Service:
    """`settings`: areas by name, such as `service={"per_minute": 5}`."""
    own = Settings.model_validate({"home": world.folder, **settings})
    return Service(
        settings=own,
        sessions=sessions_of(world),
        store=world.store,
        places=Places(world.folder),
        embedder=world.embedder,
        assistant=assistant_of(world, own),
        model_name=world.model.name,
    )


def app_of(folder: Path, **settings: object) -> FastAPI:
    return create_app(service_of(World(folder), **settings))
