"""The caches in a whole run: what is asked a second time is neither researched nor paid for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.fanout import Units
from marg_ray.actors.researcher import Researcher
from marg_ray.actors.synthesizer import Synthesizer
from marg_ray.memory.cache import KeptReport, QueryCache
from marg_ray.memory.pages import CachedPages
from marg_ray.memory.searches import KeptSearches
from marg_ray.memory.spaces import Space
from marg_ray.records import ReportStatus, Request, Role, Usage
from marg_ray.seams import in_thread
from marg_ray.settings import Settings
from marg_ray.state import ResearchState
from tests.flow import World

QUESTION = "How much power do tidal stations produce?"


class Remembering(World):
    """A world whose runs share caches."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.searches = KeptSearches(Space(self.store, "search", 3600.0))
        self.page_space = Space(self.store, "page", 3600.0)
        for role in (Role.RESEARCHER, Role.SYNTHESIZER):
            agent = self.agents[role]
            assert isinstance(agent, Researcher | Synthesizer)
            assert isinstance(agent.workers, Units)
            pages = CachedPages(self.page_space, self.snapshots, in_thread)
            self.agents[role] = replace(agent, workers=replace(agent.workers, searches=self.searches, pages=pages))
        self.cache = QueryCache(self.store, Settings(home=self.folder / "home"), model="canned")
        self.coordinator = Coordinator(self.store, self._dispatch, cache=self.cache)

    async def run(self, session_id: str, **fields: object) -> ResearchState:
        request = Request.model_validate({"question": QUESTION, "depth": "overview", **fields})
        await self.coordinator.submit(session_id, request)
        after, status = 0, "running"
        while status == "running":
            progress = await self.coordinator.progress(session_id, after)
            after, status = after + len(progress.entries), progress.status
        return await self.coordinator.state(session_id)

    async def known(self, **fields: object) -> KeptReport | None:
        return await self.coordinator.known(
            Request.model_validate({"question": QUESTION, "depth": "overview", **fields})
        )


def spent(state: ResearchState) -> Usage:
    return sum(state.usage.values(), Usage())


@pytest.fixture
def world(tmp_path: Path) -> Remembering:
    return Remembering(tmp_path)


async def test_a_finished_report_is_known_at_once_to_its_owner(world: Remembering) -> None:
    assert await world.known() is None
    state = await world.run("S1")
    assert state.report is not None
    assert state.report.status in (ReportStatus.PASSED, ReportStatus.QUALITY_WARNING)
    assert await world.known(question="how much power do tidal stations produce") == KeptReport(
        session_id="S1", artefact=state.report.artefact
    )
    assert await world.known(owner="somebody else") is None
    assert await world.known(fresh=True) is None


async def test_a_report_with_a_failed_stage_is_not(tmp_path: Path) -> None:
    world = Remembering(tmp_path, broken=frozenset({"analyse"}))
    await world.run("S1")
    assert await world.known() is None


async def test_a_second_run_searches_and_fetches_nothing_again(world: Remembering) -> None:
    first = await world.run("S1")
    searched, fetched = world.searches.space.counts.misses, len(world.fetcher.fetched)
    second = await world.run("S2", limits={"tokens": 10**9})
    assert (world.searches.space.counts.misses, len(world.fetcher.fetched)) == (searched, fetched)
    assert spent(first).searches > 0 == spent(second).searches
    assert spent(first).fetches > 0 == spent(second).fetches
    assert spent(second).reused >= spent(first).searches + spent(first).fetches
    assert {s.id for s in second.sources.values()} == {s.id for s in first.sources.values()}


async def test_another_owner_searches_and_fetches_for_himself(world: Remembering) -> None:
    await world.run("S1")
    fetched = len(world.fetcher.fetched)
    other = await world.run("S2", owner="somebody else")
    assert len(world.fetcher.fetched) == 2 * fetched
    assert spent(other).searches > 0


async def test_a_fresh_run_searches_and_fetches_anew_and_is_known_afterwards(world: Remembering) -> None:
    await world.run("S1")
    fetched = len(world.fetcher.fetched)
    state = await world.run("S2", fresh=True)
    assert len(world.fetcher.fetched) == 2 * fetched
    assert spent(state).searches > 0
    kept = await world.known()
    assert kept is not None
    assert kept.session_id == "S2"


async def test_who_sees_the_end_and_asks_again_is_answered_however_long_the_keeping_takes(
    world: Remembering, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = world.store.cache_put

    async def slowly(space: str, key: str, value: str, ttl_s: float) -> None:
        if space == world.cache.space.name:
            await asyncio.sleep(0.2)
        await put(space, key, value, ttl_s)

    monkeypatch.setattr(world.store, "cache_put", slowly)
    await world.run("S1")
    kept = await world.known()
    assert kept is not None
    assert kept.session_id == "S1"
