"""A foreign MCP server as a source, over both transports: its texts can be quoted, its faults are its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from marg_ray.errors import McpUnavailable, UsageError
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.records import SourceKind
from marg_ray.seams import in_thread
from marg_ray.settings import McpServer, McpSettings
from marg_ray.sources.mcp import McpSource, build_mcp_sources
from tests import mcp_double
from tests.mcp_double import ORDER, RECORDS, served

PROGRAM = str(Path(mcp_double.__file__))


def started(mode: str, **fields: Any) -> McpServer:
    return McpServer(command=(sys.executable, PROGRAM, mode), **{"timeout_s": 30, **fields})


def runs(pid: str) -> bool:
    return Path(f"/proc/{pid}").exists()


def environment(pid: str) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.fixture
async def source(tmp_path: Path) -> AsyncIterator[Any]:
    made: list[McpSource] = []

    def make(server: McpServer, clock: Any = None) -> McpSource:
        extra = {"clock": clock} if clock else {}
        made.append(McpSource("stations", server, Snapshots(tmp_path), **extra))
        return made[-1]

    yield make
    for one in made:
        await one.close()


# ---- what it finds


async def test_records_of_a_program_become_hits_whose_texts_are_frozen(source: Any, tmp_path: Path) -> None:
    found = await source(started("good")).search("tidal power", 5)
    first, second = found.hits
    assert (first.title, first.location, first.kind) == (
        "Annapolis Royal",
        "https://tides.test/annapolis",
        SourceKind.MCP,
    )
    assert first.published == "2021-05-04"
    assert Snapshots(tmp_path).text(first.source_id) == RECORDS[0]["text"]
    assert second.location.startswith("mcp:stations/search_stations/")
    assert found.searches == 1


async def test_a_server_of_before_that_prints_what_it_should_not_is_understood(source: Any) -> None:
    (hit,) = (await source(started("old")).search("tidal power", 5)).hits
    assert hit.title.startswith("The Annapolis Royal tidal power station in Nova Scotia")
    assert hit.location.startswith("mcp:stations/lookup/")


async def test_the_same_over_http(source: Any) -> None:
    async with served("good") as url:
        found = await source(McpServer(url=url)).search("tidal power", 1)
    assert [h.title for h in found.hits] == ["Annapolis Royal"]


async def test_prose_is_one_document_with_its_heading_as_title(source: Any) -> None:
    async with served("prose") as url:
        found = await source(McpServer(url=url)).search("tidal power", 5)
    assert [h.title for h in found.hits] == ["Stations"]


async def test_what_speaks_to_a_model_is_cut_before_anything_is_kept(source: Any, tmp_path: Path) -> None:
    async with served("injecting") as url:
        hit = (await source(McpServer(url=url)).search("tidal power", 5)).hits[0]
    document = Snapshots(tmp_path).document(hit.source_id)
    assert ORDER not in document.text
    assert ORDER not in hit.snippet
    assert [i.text for i in document.injections] == [ORDER]


async def test_nothing_found_is_no_failure(source: Any) -> None:
    async with served("empty") as url:
        assert (await source(McpServer(url=url)).search("tidal power", 5)).hits == ()


async def test_a_program_is_started_once_without_our_keys_and_ends_with_its_input(
    source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ours")
    mark = tmp_path / "starts"
    asked = source(started("old", env={mcp_double.MARK: str(mark)}))
    await asyncio.gather(*(asked.search(f"query {n}", 2) for n in range(6)))
    pids = mark.read_text().split()
    assert len(pids) == 1
    assert b"PATH=" in environment(pids[0])
    assert b"sk-ours" not in environment(pids[0])
    await asked.close()
    assert not runs(pids[0])


# ---- what goes wrong


async def test_a_tool_that_fails_says_why(source: Any) -> None:
    async with served("broken") as url:
        with pytest.raises(
            McpUnavailable, match=r"'stations' is unavailable: its tool search_stations said: .*rebuilt"
        ):
            await source(McpServer(url=url)).search("tides", 5)


async def test_a_slow_server_is_given_up(source: Any) -> None:
    async with served("slow") as url:
        with pytest.raises(McpUnavailable, match=r"no answer within 0\.3 s"):
            await source(McpServer(url=url, timeout_s=0.3)).search("tides", 5)


async def test_a_program_that_never_answers_is_given_up_and_ended(source: Any, tmp_path: Path) -> None:
    mark = tmp_path / "starts"
    asked = source(started("mute", timeout_s=2, env={mcp_double.MARK: str(mark)}))
    with pytest.raises(McpUnavailable, match="no answer within 2 s"):
        await asked.search("tides", 5)
    await asked.close()
    assert not any(map(runs, mark.read_text().split()))


@pytest.mark.parametrize("mode", ["huge", "babbling"])
async def test_a_program_that_sends_too_much_is_stopped(source: Any, mode: str) -> None:
    with pytest.raises(McpUnavailable, match="it sent more than 4 MB at once"):
        await source(started(mode)).search("tides", 5)


async def test_too_much_over_http_is_not_read(source: Any) -> None:
    async with served("huge") as url:
        with pytest.raises(McpUnavailable, match="it sent more than 4 MB at once"):
            await source(McpServer(url=url)).search("tides", 5)


async def test_a_program_that_ends_says_why_without_our_secrets(source: Any) -> None:
    asked = source(started("crashing", env={"INDEX_KEY": "s3cr3t-of-ours"}))
    with pytest.raises(
        McpUnavailable, match=r"the program ended with code 2: cannot open the index: the key \.\.\. is wrong"
    ):
        await asked.search("tides", 5)


async def test_a_program_that_dies_in_a_call_costs_that_call(source: Any) -> None:
    with pytest.raises(McpUnavailable, match="the program ended with code 3: the disk is gone"):
        await source(started("dying")).search("tides", 5)


async def test_a_program_that_is_not_there_is_named(source: Any) -> None:
    with pytest.raises(McpUnavailable, match="there is no program 'no-such-program'"):
        await source(McpServer(command=("no-such-program",))).search("tides", 5)


async def test_a_server_that_is_away_is_named(source: Any) -> None:
    with pytest.raises(McpUnavailable, match="'stations' is unavailable"):
        await source(McpServer(url="http://127.0.0.1:9/mcp")).search("tides", 5)


async def test_a_server_without_a_search_says_what_it_has(source: Any) -> None:
    async with served("toolless") as url:
        with pytest.raises(McpUnavailable, match="none of its tools searches by one text: forget"):
            await source(McpServer(url=url)).search("tides", 5)


async def test_after_some_failures_it_is_left_alone_and_then_asked_again(source: Any) -> None:
    now = [0.0]
    async with served("broken") as url:
        asked = source(McpServer(url=url), clock=lambda: now[0])
        for _ in range(3):
            with pytest.raises(McpUnavailable):
                await asked.search("tides", 5)
    for _ in range(2):  # nobody listens there any more, and nobody is asked
        with pytest.raises(McpUnavailable, match="rebuilt"):
            await asked.search("tides", 5)
    now[0] = 31.0
    with pytest.raises(McpUnavailable) as probed:
        await asked.search("tides", 5)
    assert "rebuilt" not in str(probed.value)


async def test_a_server_that_was_started_anew_is_found_again(source: Any, tmp_path: Path) -> None:
    mark = tmp_path / "starts"
    asked = source(started("old", env={mcp_double.MARK: str(mark)}))
    await asked.search("tides", 2)
    os.kill(int(mark.read_text().split()[0]), signal.SIGKILL)
    found = await asked.search("tides again", 2)
    assert len(found.hits) == 1
    assert len(mark.read_text().split()) == 2


async def test_who_gives_up_leaves_the_others_alone(source: Any) -> None:
    asked = source(started("old"))
    first = asyncio.ensure_future(asked.search("tides", 2))
    second = asyncio.ensure_future(asked.search("power", 2))
    await asyncio.sleep(0)
    first.cancel()
    assert len((await second).hits) == 1


# ---- settings


@pytest.mark.parametrize("server", [McpServer(), McpServer(url="http://127.0.0.1/mcp", command=("true",))])
def test_a_server_is_a_command_or_a_url(server: McpServer, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'stations' needs either a command or a URL"):
        build_mcp_sources(McpSettings(servers={"stations": server}), Snapshots(tmp_path), in_thread)
