from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from marg_ray.errors import SearchUnavailable, UsageError
from marg_ray.settings import SearchSettings
from marg_ray.sources.web import EngineFailed, EngineReply, WebSearch, build_web_search, network_reachable
from marg_ray.sources.web.ddgs import DdgsEngine, region_of
from marg_ray.sources.web.network import NetworkCheck
from marg_ray.sources.web.searxng import SearxngEngine
from marg_ray.sources.web.testing import ScriptedEngine
from tests.loopback import Answer, Seen, Server, reply, serve
from tests.shared import case_lines, needs_shared

GOOD = EngineReply(entries=[{"title": "Tides", "href": "https://one.test/a", "body": "about tides"}])
SETTINGS = SearchSettings(timeout_s=5)


class Pauses:
    def __init__(self) -> None:
        self.slept = list[float]()

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


def case_reply(row: dict[str, Any]) -> Answer:
    import json

    body = row["raw_body"] if "raw_body" in row else row["body"]
    headers = {
        "Content_Type": row["content_type"],
        **{k.replace("-", "_"): v for k, v in row.get("headers", {}).items()},
    }
    return reply(row["status"], body if isinstance(body, str) else json.dumps(body), **headers)


@asynccontextmanager
async def case_search(
    name: str, patch: pytest.MonkeyPatch, *others: ScriptedEngine
) -> AsyncIterator[tuple[Server, WebSearch, Pauses]]:
    row = next(r for r in case_lines("SEA-02", "backend-replies.jsonl") if r["name"] == name)
    pauses = Pauses()
    async with serve(case_reply(row)) as server:
        engine: Any = SearxngEngine(server.url)
        if row["backend"] == "duckduckgo":
            from ddgs.engines import ENGINES

            async def network() -> bool:
                return True

            patch.setattr(ENGINES["text"]["duckduckgo"], "search_url", server.url)
            engine = DdgsEngine(backend="duckduckgo", network=network)
        search = WebSearch([engine, *others], SETTINGS, sleep=pauses)
        try:
            yield server, search, pauses
        finally:
            await search.close()


FAILURES = ["ddg-202", "searxng-403-json-off", "searxng-html-instead-of-json", "rate-limited", "json-cut-off"]


@needs_shared
@pytest.mark.parametrize("name", FAILURES)
async def test_case_failures_with_a_second_engine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    second = ScriptedEngine([GOOD], name="second")
    async with case_search(name, monkeypatch, second) as (server, search, _):
        found = await search.search("tides", 10)
        assert [h.location for h in found.hits] == ["https://one.test/a"]
        [note] = [n for n in found.notes if n.kind == "search_failed"]
        assert "second" in note.text
        assert search.engines[0] in note.text
        assert 1 <= len(server.seen) <= 3
        assert found.searches == len(server.seen) + 1


@needs_shared
@pytest.mark.parametrize("name", FAILURES)
async def test_case_failures_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with case_search(name, monkeypatch) as (server, search, pauses):
        with pytest.raises(SearchUnavailable) as caught:
            await search.search("tides", 10)
        assert search.engines[0] in str(caught.value)
        assert len(server.seen) <= 3
        assert len(pauses.slept) == len(server.seen) - 1
        if name == "ddg-202":
            assert "duckduckgo: HTTP 202" in str(caught.value)
            assert "MARG_SEARCH__SEARXNG_URL" in str(caught.value)
        if name == "rate-limited":
            assert pauses.slept == [2, 2]
        if name in ("searxng-403-json-off", "searxng-html-instead-of-json"):
            assert "search.formats" in str(caught.value)
            assert "json" in str(caught.value)
            assert len(server.seen) == 1


@needs_shared
async def test_case_engines_down_is_degraded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with case_search("searxng-engines-down", monkeypatch) as (_, search, _pauses):
        found = await search.search("tides", 10)
        [note] = found.notes
        assert (note.kind, found.hits) == ("search_degraded", ())
        assert "alpha: timeout" in note.text
        assert "beta: CAPTCHA" in note.text
    second = ScriptedEngine([GOOD], name="second")
    async with case_search("searxng-engines-down", monkeypatch, second) as (_, search, _pauses):
        assert len((await search.search("tides", 10)).hits) == 1


@needs_shared
async def test_case_truly_empty_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    second = ScriptedEngine([GOOD], name="second")
    async with case_search("searxng-truly-empty", monkeypatch, second) as (server, search, _):
        found = await search.search("tides", 10)
        assert (found.hits, found.notes, found.searches) == ((), (), 1)
        assert len(server.seen) == 1
        assert second.asked == []


async def test_what_an_engine_is_asked_is_clean_and_short() -> None:
    engine = ScriptedEngine([GOOD])
    await WebSearch([engine], SETTINGS).search("\x1b[31mtidal\0 \u202epower\n" + "of the harbour " * 200, 10)
    [asked] = engine.asked
    assert len(asked) <= 400
    assert not set(asked) & set("\x1b\0\u202e\n")


async def test_dropped_entries_are_counted() -> None:
    engine = ScriptedEngine([EngineReply(entries=[*GOOD.entries, {"title": "x"}, None])])
    found = await WebSearch([engine], SETTINGS).search("tides", 10)
    [note] = found.notes
    assert (note.kind, len(found.hits)) == ("results_dropped", 1)
    assert note.text.startswith("2 results")


async def test_the_breaker_leaves_a_broken_engine_alone_and_probes_it_later() -> None:
    clock = [0.0]
    broken = ScriptedEngine([EngineFailed("down")] * 3 + [GOOD], name="broken")
    search = WebSearch([broken], SETTINGS, clock=lambda: clock[0])
    for _ in range(5):
        with pytest.raises(SearchUnavailable, match="broken: down"):
            await search.search("tides", 10)
    assert len(broken.asked) == 3
    clock[0] = 31
    assert len((await search.search("tides", 10)).hits) == 1


async def test_a_cancelled_probe_leaves_room_for_another() -> None:
    clock = [0.0]
    entered = asyncio.Event()

    class Hanging(ScriptedEngine):
        async def search(self, query: str, limit: int) -> EngineReply:
            if clock[0] == 31:
                entered.set()
                await asyncio.Event().wait()
            return await super().search(query, limit)

    engine = Hanging([EngineFailed("down", for_good=True), GOOD])
    search = WebSearch([engine], SETTINGS, clock=lambda: clock[0])
    with pytest.raises(SearchUnavailable):
        await search.search("tides", 10)
    clock[0] = 31
    task = asyncio.create_task(search.search("tides", 10))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    clock[0] = 32
    assert (await search.search("tides", 10)).hits


async def test_a_full_engine_is_passed_over() -> None:
    first, second = ScriptedEngine([GOOD], name="first"), ScriptedEngine([GOOD], name="second")
    search = WebSearch([first, second], SearchSettings(per_minute=2))
    for _ in range(3):
        await search.search("tides", 10)
    assert (len(first.asked), len(second.asked)) == (2, 1)


async def test_a_bug_in_an_engine_is_its_failure_only() -> None:
    second = ScriptedEngine([GOOD], name="second")
    found = await WebSearch([ScriptedEngine([KeyError("x")], name="first"), second], SETTINGS).search("tides", 10)
    assert found.hits[0].engine == "second"
    assert "KeyError" in found.notes[0].text


async def test_a_silent_engine_is_given_up() -> None:
    class Silent(ScriptedEngine):
        async def search(self, query: str, limit: int) -> EngineReply:
            await asyncio.Event().wait()
            return GOOD

    with pytest.raises(SearchUnavailable, match=r"no answer within 0\.05 s"):
        await WebSearch([Silent([GOOD])], SearchSettings(timeout_s=0.05)).search("tides", 10)


async def test_no_engine() -> None:
    with pytest.raises(SearchUnavailable, match="no engine"):
        await WebSearch([], SETTINGS).search("tides", 10)


def test_building_from_settings() -> None:
    assert build_web_search(SearchSettings()).engines == ("ddgs",)
    both = SearchSettings(searxng_url="http://127.0.0.1:8888/")
    assert build_web_search(both).engines == ("searxng", "ddgs")
    with pytest.raises(UsageError, match="altavista"):
        build_web_search(SearchSettings(engines=("altavista",)))
    with pytest.raises(UsageError, match="SearXNG"):
        build_web_search(SearchSettings(searxng_url="127.0.0.1:8888"))


async def test_nothing_listens_at_the_searxng_address() -> None:
    async with serve(reply()) as server:
        url = server.url
    search = build_web_search(SearchSettings(engines=("searxng",), searxng_url=url))
    with pytest.raises(SearchUnavailable, match="MARG_SEARCH__SEARXNG_URL"):
        await search.search("tides", 10)
    await search.close()


async def test_without_a_network_ddgs_is_not_even_started(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    async def absent() -> bool:
        nonlocal asked
        asked += 1
        return False

    search = WebSearch([DdgsEngine(network=NetworkCheck(absent))], SETTINGS)
    errors = await asyncio.gather(*(search.search(f"tides {n}", 10) for n in range(10)), return_exceptions=True)
    assert {str(e) for e in errors if isinstance(e, SearchUnavailable)} == {str(errors[0])}
    assert "there is no network" in str(errors[0])
    assert asked == 1


@pytest.mark.parametrize(
    ("query", "region"),
    [("tidal power", "us-en"), ("π meson", "us-en"), ("潮汐能 发电", "cn-zh"), ("潮力発電のコスト", "jp-ja"),
     ("ما تكلفة", "xa-ar"), ("Kosten 2020", "us-en"), ("2020", "us-en"), ("조력 발전", "kr-ko")],
)  # fmt: skip
def test_the_script_tells_where_to_search(query: str, region: str) -> None:
    assert region_of(query) == region


async def test_reachability(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "DDGS_PROXY"):
        monkeypatch.delenv(name, raising=False)

    async def loopback(host: str) -> list[str]:
        return ["127.0.0.1"]

    async def unknown(host: str) -> list[str]:
        raise OSError("no name server")

    async def never(host: str) -> list[str]:
        await asyncio.Event().wait()
        return []

    async def echo(seen: Seen, writer: asyncio.StreamWriter) -> None:
        return None

    async with serve(echo) as server:
        assert await network_reachable(port=server.port, resolver=loopback)
    assert not await network_reachable(port=server.port, resolver=loopback)
    assert not await network_reachable(resolver=unknown)
    async with asyncio.timeout(2.5):
        assert not await network_reachable(resolver=never)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    assert await network_reachable(resolver=unknown)


@pytest.mark.parametrize("at_once", [1, 3])
async def test_an_engine_is_asked_so_many_things_at_once_as_the_settings_say(at_once: int) -> None:
    class Busy(ScriptedEngine):
        now = most = 0

        async def search(self, query: str, limit: int) -> EngineReply:
            self.now += 1
            self.most = max(self.most, self.now)
            for _ in range(5):
                await asyncio.sleep(0)
            self.now -= 1
            return await super().search(query, limit)

    engine = Busy([GOOD])
    search = WebSearch([engine], SearchSettings(at_once=at_once))
    await asyncio.gather(*(search.search(f"tides {n}", 5) for n in range(8)))
    assert (engine.most, len(engine.asked)) == (at_once, 8)
