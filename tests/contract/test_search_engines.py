"""What every search engine must do, asked through its real client against a loopback server."""

from __future__ import annotations

import asyncio
import html
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from marg_ray.sources.web import Engine, EngineFailed
from marg_ray.sources.web.ddgs import DdgsEngine
from marg_ray.sources.web.results import normalise
from marg_ray.sources.web.searxng import SearxngEngine
from tests.loopback import Answer, Seen, Server, reply, serve

PAGES = [("Tides", "https://a.test/tides", "Tidal power in short"), ("Waves", "https://b.test/w", "Wave power")]


@dataclass
class Searxng:
    """The JSON interface of SearXNG."""

    name: ClassVar[str] = "searxng"

    def engine(self, server: Server, patch: pytest.MonkeyPatch) -> Engine:
        return SearxngEngine(server.url, timeout_s=5)

    def page(self, rows: list[tuple[str, str, str]]) -> Answer:
        results = [{"title": t, "url": u, "content": c} for t, u, c in rows]
        body = json.dumps({"query": "q", "results": results, "unresponsive_engines": []})
        return reply(200, body, Content_Type="application/json")

    def query(self, seen: Seen) -> str:
        return parse_qs(urlsplit(seen.target).query)["q"][0]


@dataclass
class Ddgs:
    """Two of the public engines behind the library, with their addresses turned to the loopback."""

    name: ClassVar[str] = "ddgs"
    backend: str

    def engine(self, server: Server, patch: pytest.MonkeyPatch) -> Engine:
        from ddgs.engines import ENGINES

        patch.setattr(ENGINES["text"][self.backend], "search_url", f"{server.url}/search")

        async def network() -> bool:
            return True

        return DdgsEngine(timeout_s=5, backend=self.backend, network=network)

    def page(self, rows: list[tuple[str, str, str]]) -> Answer:
        form: Callable[[str, str, str], str] = {
            "mojeek": lambda t, u, c: f"<li><h2><a href='{u}'>{t}</a></h2><p class='s'>{c}</p></li>",
            "duckduckgo": lambda t, u, c: f"<div class='body'><h2>{t}</h2><a href='{u}'>{c}</a></div>",
        }[self.backend]
        items = "".join(form(*map(html.escape, row)) for row in rows)
        return reply(200, f"<html><body><ul class='results'>{items}</ul></body></html>")

    def query(self, seen: Seen) -> str:
        fields = seen.body.decode() if seen.body else urlsplit(seen.target).query
        return parse_qs(fields)["q"][0]


Kind = Searxng | Ddgs


@pytest.fixture(params=[Searxng(), Ddgs("mojeek"), Ddgs("duckduckgo")], ids=["searxng", "ddgs-get", "ddgs-post"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def ask(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> Any:
    @asynccontextmanager
    async def opened(answer: Answer) -> AsyncIterator[tuple[Server, Engine]]:
        async with serve(answer) as server:
            engine = kind.engine(server, monkeypatch)
            try:
                yield server, engine
            finally:
                await engine.close()

    return opened


async def test_results_become_hits(kind: Kind, ask: Any) -> None:
    async with ask(kind.page(PAGES)) as (_, engine):
        found = await engine.search("tidal power", 10)
    hits = normalise(found.entries, engine.name).hits
    assert {(h.title, h.location, h.snippet) for h in hits} == set(PAGES)
    assert {h.engine for h in hits} == {kind.name}


async def test_an_empty_page_is_an_answer(kind: Kind, ask: Any) -> None:
    async with ask(kind.page([])) as (server, engine):
        found = await engine.search("tidal power", 10)
        assert (list(found.entries), found.degraded) == ([], "")
        assert len(server.seen) == 1


@pytest.mark.parametrize("status", [202, 403, 429, 500, 503])
async def test_a_refusal_is_not_emptiness(kind: Kind, ask: Any, status: int) -> None:
    async with ask(reply(status, "<html><body>puzzle</body></html>")) as (_, engine):
        with pytest.raises(EngineFailed, match=str(status)):
            await engine.search("tidal power", 10)


async def test_no_answer_at_all(kind: Kind, ask: Any) -> None:
    async def silence(seen: Seen, writer: asyncio.StreamWriter) -> None:
        raise ConnectionResetError

    async with ask(silence) as (_, engine):
        with pytest.raises(EngineFailed):
            await engine.search("tidal power", 10)


@pytest.mark.parametrize(
    "query", ["潮汐能 发电 成本", "ما تكلفة طاقة المد والجزر؟", "🌊 energy", "100% tidal 50%20off", '<b>a</b> & "b"']
)
async def test_the_query_arrives_as_it_is(kind: Kind, ask: Any, query: str) -> None:
    async with ask(kind.page(PAGES)) as (server, engine):
        await engine.search(query, 10)
        assert kind.query(server.seen[0]) == query


async def test_cancelling_is_prompt_and_leaves_no_task(kind: Kind, ask: Any) -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def slow(seen: Seen, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await go_on.wait()
        await kind.page(PAGES)(seen, writer)

    before = len(asyncio.all_tasks())
    async with ask(slow) as (_, engine):
        task = asyncio.create_task(engine.search("tidal power", 10))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
    assert len(asyncio.all_tasks()) <= before


async def test_many_at_once_do_not_mix(kind: Kind, ask: Any) -> None:
    async def echo(seen: Seen, writer: asyncio.StreamWriter) -> None:
        word = kind.query(seen)
        await kind.page([(word, f"https://a.test/{word}", "found")])(seen, writer)

    async with ask(echo) as (_, engine):
        words = [f"w{n}" for n in range(8)]
        replies = await asyncio.gather(*(engine.search(w, 10) for w in words))
        titles = [normalise(r.entries, "").hits[0].title for r in replies]
    assert titles == words


async def test_searxng_is_asked_past_proxies_on_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with serve(Searxng().page(PAGES)) as server:
        engine = SearxngEngine(server.url)
        for _ in range(3):
            assert (await engine.search("tidal power", 10)).entries
        await engine.close()
    assert (len(server.seen), server.connections) == (3, 1)
    assert "python" not in server.seen[0].headers["user-agent"].lower()  # instances block libraries by name


async def test_searxng_may_redirect() -> None:
    async def moved(seen: Seen, writer: asyncio.StreamWriter) -> None:
        there = seen.target.startswith("/there")
        await (Searxng().page(PAGES) if there else reply(302, "", Location=f"/there{seen.target}"))(seen, writer)

    async with serve(moved) as server:
        engine = SearxngEngine(server.url)
        assert len((await engine.search("tidal power", 10)).entries) == len(PAGES)
        await engine.close()


async def test_searxng_that_never_answers_is_given_up() -> None:
    never = asyncio.Event()

    async def silent(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await never.wait()

    async with serve(silent) as server:
        engine = SearxngEngine(server.url, timeout_s=0.05)
        with pytest.raises(EngineFailed, match="in time") as caught:
            await engine.search("tidal power", 10)
        assert caught.value.again_after == 0.0
        await engine.close()
        never.set()


async def test_a_reply_of_searxng_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marg_ray.sources.web.searxng._LONGEST_REPLY", 1000)
    async with serve(reply(200, "[" * 5000)) as server:
        engine = SearxngEngine(server.url)
        with pytest.raises(EngineFailed, match="no end"):
            await engine.search("tidal power", 10)
        await engine.close()


def test_searxng_can_be_asked_from_one_loop_after_another() -> None:
    engine = SearxngEngine("http://127.0.0.1:1")

    async def ask() -> int:
        async with serve(Searxng().page(PAGES)) as server:
            engine._url = f"{server.url}/search"
            return len((await engine.search("tidal power", 10)).entries)

    async def last() -> int:
        found = await ask()
        await engine.close()
        return found

    assert (asyncio.run(ask()), asyncio.run(last())) == (len(PAGES), len(PAGES))
