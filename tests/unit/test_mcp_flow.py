"""A run that asks an MCP server beside the web: what it says is cited like a page, and on the tape like one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marg_ray.actors.assembly import Assembly
from marg_ray.errors import McpUnavailable, SearchUnavailable
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.memory.cache import answer_settings
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.models.select import Choice
from marg_ray.models.tape import Tape
from marg_ray.records import Request, RequestClass, Role, SourceKind
from marg_ray.seams import in_thread
from marg_ray.settings import McpServer, Settings
from marg_ray.sources.mcp import McpSource
from marg_ray.sources.protocol import Found
from marg_ray.tasks import SearchTask
from tests.flow import World
from tests.mcp_double import served
from tests.unit.test_tape import EngineAway, Taped

QUESTION = "How many megawatts do the tidal power stations Annapolis Royal and La Rance have?"


class Asked:
    """A source that counts, and answers nothing or fails."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails, self.queries = fails, list[str]()

    async def search(self, query: str, limit: int) -> Found:
        self.queries.append(query)
        if self.fails is not None:
            raise self.fails
        return Found(searches=1)


@pytest.fixture
async def stations(tmp_path: Path) -> AsyncIterator[McpSource]:
    async with served("good") as url:
        source = McpSource("stations", McpServer(url=url), Snapshots(tmp_path / "snapshots"))
        yield source
        await source.close()


async def test_its_texts_are_evidence_with_their_places(tmp_path: Path, stations: McpSource) -> None:
    world = World(tmp_path, others={"stations": stations})
    report = world.report(await world.ask(QUESTION))
    theirs = {s.id: s for s in report.sources if s.kind is SourceKind.MCP}
    assert {s.title for s in theirs.values()} >= {"Annapolis Royal"}
    cited = [e for e in report.evidence if e.source in theirs]
    assert cited
    for evidence in cited:
        assert world.snapshots.text(evidence.source)[evidence.start : evidence.end] == evidence.quote
    assert any("20 megawatts" in e.quote for e in cited)
    assert any(s.kind is SourceKind.WEB for s in report.sources)


async def test_its_calls_are_searches_of_the_ledger_once_each(tmp_path: Path) -> None:
    asked = Asked()
    world = World(tmp_path, others={"stations": asked})
    await world.ask(QUESTION)
    web = world.engines[0].asked
    calls = [c for c in await world.store.calls("S") if c.call.kind == "search"]
    assert len(asked.queries) == len(set(asked.queries)) == len(set(web))
    assert len(calls) == len(asked.queries) + len(set(web))
    assert (await world.store.account("S")).spent.searches == len(calls)


async def test_one_that_is_away_costs_its_own_results_and_is_told(tmp_path: Path) -> None:
    away = Asked(McpUnavailable("stations", "no answer within 20 s"))
    world = World(tmp_path, others={"stations": away})
    state = await world.ask()
    report = world.report(state)
    assert report.status == "passed"
    assert [n.text for n in report.notes if "stations" in n.text] == [
        "the MCP server 'stations' is unavailable: no answer within 20 s"
    ]


def search_task(**sources: Any) -> SearchTask:
    request = Request.model_validate({"question": QUESTION, "sources": sources})
    return SearchTask(
        id="S/search",
        session_id="S",
        section="s1",
        request=request,
        request_class=RequestClass.QUICK_RESEARCH,
        title="Power",
        query="tidal power",
    )


async def units_with(world: World) -> Any:
    await world.store.create("S", owner="local", question=QUESTION)
    return world.agents[Role.RESEARCHER].workers  # type: ignore[attr-defined]


async def test_offline_asks_none_of_them(tmp_path: Path) -> None:
    asked = Asked()
    units = await units_with(World(tmp_path, others={"stations": asked}))
    with pytest.raises(SearchUnavailable, match="no source is chosen"):
        await units.search(search_task(offline=True))
    assert asked.queries == []


async def test_they_can_be_left_out_and_asked_alone(tmp_path: Path) -> None:
    asked = Asked()
    world = World(tmp_path, others={"stations": asked})
    units = await units_with(world)
    await units.search(search_task(mcp=False))
    assert asked.queries == []
    assert world.engines[0].asked
    await units.search(search_task(web=False).model_copy(update={"query": "only there"}))
    assert asked.queries[0] == "only there"


# ---- record and replay


async def test_a_run_is_replayed_without_the_server(tmp_path: Path) -> None:
    async with served("good") as url:
        source = McpSource("stations", McpServer(url=url), Snapshots(tmp_path / "first" / "snapshots"))
        recorded = Taped(tmp_path / "first", others={"stations": source}).on(Tape(tmp_path / "tape", False), 1)
        first = await recorded.report_bytes()
        await source.close()
    assert b"Annapolis Royal" in first
    away: Any = (EngineAway(),)
    replayed = Taped(tmp_path / "second", engines=away, pages={}).on(Tape(tmp_path / "tape", True), 2)
    assert await replayed.report_bytes() == first


# ---- settings


def assembly_of(tmp_path: Path, **servers: McpServer) -> Assembly:
    settings = Settings.model_validate({"home": tmp_path, "mcp": {"servers": servers}})
    world = World(tmp_path)
    return Assembly(settings, Choice("extractive", "extractive", ""), HashingEmbedder(), world.ledger, in_thread)


def test_workers_have_the_servers_of_the_settings(tmp_path: Path) -> None:
    server = McpServer(command=("stations",))
    assert set(assembly_of(tmp_path, stations=server).units().others) == {"stations"}
    assert not assembly_of(tmp_path).units().others


def test_a_report_is_not_kept_for_other_servers(tmp_path: Path) -> None:
    one, other = (
        Settings.model_validate({"home": tmp_path, "mcp": {"servers": {"s": {"url": f"https://{n}.test/mcp"}}}})
        for n in ("a", "b")
    )
    assert answer_settings(one) != answer_settings(other) != answer_settings(Settings(home=tmp_path))


class Held:
    """A source that does not answer until it is given up."""

    def __init__(self) -> None:
        self.asked, self.given_up = asyncio.Event(), asyncio.Event()

    async def search(self, query: str, limit: int) -> Found:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        return Found()


class Shelf:
    def __init__(self, source: Held) -> None:
        self.source = source

    async def searchers(self, task: SearchTask) -> tuple[Held]:
        return (self.source,)


@pytest.mark.parametrize("waits_for", ["near", "far"])
async def test_a_search_that_is_given_up_gives_up_what_it_asked(tmp_path: Path, waits_for: str) -> None:
    near, far = Held(), Held()
    units = await units_with(World(tmp_path, engines=(), others={"stations": far}))
    if waits_for == "near":
        units = replace(units, shelves=Shelf(near))
    search = asyncio.create_task(units.search(search_task()))
    await far.asked.wait()
    if waits_for == "near":
        await near.asked.wait()
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    async with asyncio.timeout(10):
        await far.given_up.wait()
