"""Our MCP server with the official SDK's client: over streamable HTTP on loopback, and in process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from mcp import Client
from mcp.types import CallToolResult

from marg_ray.api.app import create_app
from marg_ray.api.callers import Caller, Scope
from marg_ray.api.following import Happening
from marg_ray.api.library import folder_of
from marg_ray.api.mcp.http import PATH, McpEndpoint
from marg_ray.api.mcp.server import build
from marg_ray.api.mcp.tools import Tools, place_in
from marg_ray.api.service import Service
from marg_ray.api.streams import Hub, Pace
from marg_ray.api.views import session_view
from marg_ray.errors import MargError, SearchUnavailable
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.records import Hit, Note, SourceKind
from marg_ray.settings import McpServer
from marg_ray.sources.mcp import McpSource
from marg_ray.sources.protocol import Found
from marg_ray.store.protocol import SessionRow
from tests.asked import MANY, QUESTION, parts_of, settled
from tests.flow import TIDES, Held, World
from tests.followed import listening
from tests.mcp_double import ORDER

ME = Caller(owner="local")
TOOLS = {"research", "research_status", "rag_search", "web_search", "doc_summary", "health"}


class Engine:
    """A web search that counts what it is asked."""

    def __init__(self, *found: Found | Exception) -> None:
        self.found, self.asked = found, list[tuple[str, int]]()

    async def search(self, query: str, limit: int) -> Found:
        step = self.found[min(len(self.asked), len(self.found) - 1)]
        self.asked.append((query, limit))
        if isinstance(step, Exception):
            raise step
        return step


def page_hit(title: str = "La Rance", snippet: str = "The Rance opened in 1966.") -> Hit:
    return Hit(location="https://tides.test/rance", title=title, kind=SourceKind.WEB, snippet=snippet)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "rance.md").write_text(f"# La Rance\n\n{TIDES['https://tides.test/rance'][1]}\n")
    (folder / "sihwa.md").write_text(f"# Sihwa Lake\n\n{TIDES['https://tides.test/sihwa'][1]}\n")
    return folder


@pytest.fixture
def service(tmp_path: Path, docs: Path) -> Service:
    return replace(parts_of(World(tmp_path / "home"), service=MANY), shared=(docs,))


def tools_of(service: Service, web: Engine | None = None) -> Tools:
    return Tools(service, Hub(service.sessions, service.store, session_view, Pace(heartbeat_s=0.05)), web)


@asynccontextmanager
async def talking(tools: Tools, who: Caller = ME) -> AsyncIterator[Client]:
    async def ready() -> Tools:
        return tools

    async with Client(build(ready, lambda _: who)) as client:
        yield client


def app_with(service: Service, web: Engine) -> FastAPI:
    app = create_app(service)
    route = next(r for r in app.router.routes if getattr(r, "path", "") == PATH)
    route.app = McpEndpoint(app, service, web)  # type: ignore[attr-defined]
    return app


def said(result: CallToolResult) -> str:
    assert result.content
    return str(getattr(result.content[0], "text", ""))


async def nobody(_: Happening) -> None:
    pass


# ---- what is offered


async def test_tools_are_typed_and_say_what_they_do(service: Service) -> None:
    async with talking(tools_of(service)) as client:
        listed = {t.name: t for t in (await client.list_tools()).tools}
    assert set(listed) == TOOLS
    assert all(t.description and t.title and t.output_schema and t.annotations for t in listed.values())
    assert listed["research"].input_schema["required"] == ["question"]
    assert "ctx" not in listed["research"].input_schema["properties"]
    read_only = {name for name, t in listed.items() if t.annotations and t.annotations.read_only_hint}
    assert read_only == TOOLS - {"research"}


async def test_making_the_server_leaves_the_process_its_logging(service: Service) -> None:
    before = (logging.getLogger().level, list(logging.getLogger().handlers))
    async with talking(tools_of(service)):
        assert (logging.getLogger().level, list(logging.getLogger().handlers)) == before


# ---- research


async def test_research_gives_the_report_and_tells_every_step(service: Service) -> None:
    told: list[tuple[float, str]] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message or ""))

    async with talking(tools_of(service)) as client:
        arguments = {"question": QUESTION, "depth": "overview", "web": True}
        result = await client.call_tool("research", arguments, progress_callback=progress)
    assert said(result).startswith("# ")
    assert "240 megawatts" in said(result)
    structured = result.structured_content
    assert structured["finished"]
    assert structured["report"] == said(result)
    assert structured["status"] == (await service.store.session(structured["session_id"])).status
    assert [n for n, _ in told] == sorted({n for n, _ in told})
    assert any("planner: planned" in words for _, words in told)


async def test_research_that_takes_long_goes_on_and_can_be_asked_for(tmp_path: Path) -> None:
    world = Held(tmp_path)
    service = parts_of(world, service=MANY)
    async with talking(tools_of(service)) as client:
        first = await client.call_tool("research", {"question": QUESTION, "depth": "overview", "wait_s": 0.2})
        session_id = first.structured_content["session_id"]
        assert not first.structured_content["finished"]
        assert f"call research_status with session_id '{session_id}'" in said(first)
        world.go.set()
        after = await client.call_tool("research_status", {"session_id": session_id, "wait_s": 60})
    assert after.structured_content["finished"]
    assert said(after).startswith("# ")


async def test_a_call_that_is_given_up_stops_no_session(tmp_path: Path) -> None:
    world = Held(tmp_path)
    tools = tools_of(parts_of(world, service=MANY))
    async with talking(tools) as client:
        call = asyncio.ensure_future(client.call_tool("research", {"question": QUESTION, "depth": "overview"}))
        rows: list[SessionRow] = []
        async with asyncio.timeout(30):
            while not rows:
                await asyncio.sleep(0)
                rows = await world.store.sessions()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    world.go.set()
    assert await settled(world.coordinator, rows[0].id) == "passed"


async def test_another_owners_session_is_not_there(service: Service) -> None:
    tools = tools_of(service)
    async with talking(tools) as client:
        mine = await client.call_tool("research", {"question": QUESTION, "depth": "overview", "web": True})
    async with talking(tools, Caller(owner="another")) as client:
        other = await client.call_tool("research_status", {"session_id": mine.structured_content["session_id"]})
    assert other.is_error
    assert "there is no session or source" in said(other)


# ---- documents


async def test_passages_are_verbatim_and_say_where_they_stand(service: Service) -> None:
    async with talking(tools_of(service)) as client:
        found = await client.call_tool("rag_search", {"query": "turbines of the Rance station", "limit": 3})
        first = found.structured_content["passages"][0]
        assert (first["title"], first["location"], first["heading"]) == ("La Rance", "notes/rance.md", "La Rance")
        entry = next(e for e in await (await tools_of(service)._fresh(service.shared)).list() if "rance" in e.path)
        text = service.places.snapshots.text(entry.source_id)
        assert text[first["start"] : first["end"]] == first["text"]
        assert 0 < first["score"] <= 1
        assert found.structured_content["answers"] in ("answer", "nearest")
        summary = await client.call_tool("doc_summary", {"document": first["document"], "sentences": 2})
    assert summary.structured_content["headings"] == ["La Rance"]
    for sentence in summary.structured_content["sentences"]:
        assert text[sentence["start"] : sentence["end"]] == sentence["text"]


async def test_a_document_is_named_by_its_path_in_its_folder(service: Service) -> None:
    tools = tools_of(service)
    for name in ("notes/rance.md", "rance.md"):
        assert (await tools.doc_summary(ME, name, 1)).title == "La Rance"


@pytest.mark.parametrize("name", ["../secret.md", "/etc/passwd", "docs/../secret.md", "secret.md", "", "notes"])
async def test_no_other_path_is_read(service: Service, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.md").write_text("# Secret\n\nThis text lies beside the folder and is nobody's business at all.")
    async with talking(tools_of(service)) as client:
        result = await client.call_tool("doc_summary", {"document": name})
    assert result.is_error
    assert "there is no document" in said(result)


async def test_documents_of_another_owner_are_not_found(service: Service) -> None:
    theirs = folder_of(service, "another")
    theirs.mkdir(parents=True)
    (theirs / "diary.md").write_text("# Diary\n\nThe zeppelin of the other owner flew over the estuary at night.")
    tools = tools_of(service)
    other = Caller(owner="another")
    assert (await tools.rag_search(other, "zeppelin", 5, "mine")).passages[0].title == "Diary"
    assert (await tools.doc_summary(other, "diary.md", 1)).title == "Diary"
    assert all(p.title != "Diary" for p in (await tools.rag_search(ME, "zeppelin", 5, "all")).passages)
    for call in (tools.doc_summary(ME, "diary.md", 1), tools.rag_search(ME, "zeppelin", 5, "mine")):
        with pytest.raises(MargError):
            await call


async def test_a_search_without_documents_is_said_in_words(tmp_path: Path) -> None:
    async with talking(tools_of(parts_of(World(tmp_path), service=MANY))) as client:
        result = await client.call_tool("rag_search", {"query": "tides"})
        health = await client.call_tool("health", {})
    assert result.is_error
    assert "there are no documents to search; upload some" in said(result)
    assert health.structured_content["documents"] == 0


async def test_a_changed_document_is_found_although_answers_are_kept(service: Service, docs: Path) -> None:
    tools = tools_of(service)
    assert not any("Severn" in p.text for p in (await tools.rag_search(ME, "Severn barrage", 5, "all")).passages)
    (docs / "severn.md").write_text("# Severn\n\nThe Severn barrage was proposed in 1925 and has never been built.")
    assert any("Severn" in p.text for p in (await tools.rag_search(ME, "Severn barrage", 5, "all")).passages)


# ---- the web


async def test_web_results_come_without_what_speaks_to_a_model(service: Service) -> None:
    engine = Engine(Found(hits=(page_hit(snippet=f"The Rance opened in 1966. {ORDER}"),), notes=()))
    async with talking(tools_of(service, engine)) as client:
        result = await client.call_tool("web_search", {"query": " La  Rance "})
    (found,) = result.structured_content["results"]
    assert (found["title"], found["url"], found["snippet"]) == (
        "La Rance",
        "https://tides.test/rance",
        "The Rance opened in 1966.",
    )
    assert engine.asked == [("La Rance", 8)]


async def test_answers_are_kept_for_a_while_for_each_owner(service: Service) -> None:
    engine = Engine(Found(hits=(page_hit(),)))
    tools = tools_of(service, engine)
    for owner in ("local", "local", "another"):
        await tools.web_search(Caller(owner=owner), "tides", 5)
    assert len(engine.asked) == 2


async def test_answers_are_not_kept_where_the_settings_say_so(tmp_path: Path) -> None:
    engine = Engine(Found(hits=(page_hit(),)))
    tools = tools_of(parts_of(World(tmp_path), mcp={"cache_s": 0}), engine)
    for _ in range(2):
        await tools.web_search(ME, "tides", 5)
    assert len(engine.asked) == 2


async def test_nothing_found_is_asked_again(service: Service) -> None:
    engine = Engine(Found(notes=(Note(kind="x", text="nothing"),)), Found(hits=(page_hit(),)))
    tools = tools_of(service, engine)
    assert (await tools.web_search(ME, "tides", 5)).results == ()
    assert len((await tools.web_search(ME, "tides", 5)).results) == 1


async def test_engines_that_are_down_are_a_tools_error(service: Service) -> None:
    async with talking(tools_of(service, Engine(SearchUnavailable("ddgs: no answer within 10 s")))) as client:
        result = await client.call_tool("web_search", {"query": "tides"})
    assert result.is_error
    assert "web search is unavailable: ddgs: no answer within 10 s; check the network" in said(result)


async def test_an_offline_server_searches_no_web(service: Service) -> None:
    engine = Engine(Found(hits=(page_hit(),)))
    async with talking(tools_of(replace(service, offline=True), engine)) as client:
        result = await client.call_tool("web_search", {"query": "tides"})
    assert "this server is offline" in said(result)
    assert engine.asked == []


# ---- what goes wrong


async def test_a_crash_tells_no_secrets(service: Service) -> None:
    async with talking(tools_of(service, Engine(ZeroDivisionError("at /home/me/secret.py")))) as client:
        result = await client.call_tool("web_search", {"query": "tides"})
    assert result.is_error
    assert "secret" not in said(result)
    assert "Traceback" not in said(result)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("research", {"question": ""}),
        ("research", {"question": "tides?", "depth": "abyssal"}),
        ("research", {"question": "tides?", "language": "klingon"}),
        ("research", {"question": "???"}),
        ("research", {"question": "tides?", "web": False, "shared": False}),
        ("rag_search", {"query": "tides", "limit": 0}),
        ("rag_search", {"query": "tides", "where": "elsewhere"}),
        ("research_status", {"session_id": "../../etc"}),
        ("doc_summary", {}),
    ],
)
async def test_wrong_arguments_are_told_in_words(service: Service, tool: str, arguments: dict[str, Any]) -> None:
    async with talking(tools_of(service)) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert said(result)
    assert "Traceback" not in said(result)


@pytest.mark.parametrize(("tool", "scope"), [("research", "research"), ("web_search", "research"), ("health", "read")])
async def test_a_key_reaches_as_far_as_its_scopes(service: Service, tool: str, scope: str) -> None:
    nothing = Caller(owner="local", key_id="k", scopes=frozenset({Scope.LIBRARY}))
    arguments = {"research": {"question": QUESTION}, "web_search": {"query": "tides"}, "health": {}}[tool]
    async with talking(tools_of(service), nothing) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert f"it lacks the scope '{scope}'" in said(result)


# ---- over HTTP


async def test_the_same_tools_over_http_for_old_clients_and_new(service: Service) -> None:
    engine = Engine(Found(hits=(page_hit(),)))
    async with listening(app_with(service, engine)) as port:
        for mode in ("auto", "legacy"):
            told: list[str] = []

            async def progress(
                progress: float, total: float | None, message: str | None, told: list[str] = told
            ) -> None:
                told.append(message or "")

            async with Client(f"http://127.0.0.1:{port}{PATH}", mode=mode) as client:
                assert {t.name for t in (await client.list_tools()).tools} == TOOLS
                assert (
                    len((await client.call_tool("web_search", {"query": "tides"})).structured_content["results"]) == 1
                )
                result = await client.call_tool(
                    "research",
                    {"question": f"{QUESTION} ({mode})", "depth": "overview", "web": True},
                    progress_callback=progress,
                )
                assert said(result).startswith("# ")
                assert any("planned" in line for line in told)


async def test_every_request_stands_alone_so_any_replica_answers(service: Service) -> None:
    first, second = create_app(service), create_app(service)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream"}
    for app in (first, second):
        async with listening(app) as port, httpx.AsyncClient() as http:
            reply = await http.post(f"http://127.0.0.1:{port}{PATH}", json=body, headers=headers)
            assert reply.status_code == 200
            assert "mcp-session-id" not in reply.headers
            assert "rag_search" in reply.text


async def test_a_caller_needs_a_key_where_the_service_wants_one(service: Service) -> None:
    locked = replace(
        service,
        settings=service.settings.model_copy(
            update={"service": service.settings.service.model_copy(update={"auth": "on"})}
        ),
    )
    async with listening(create_app(locked)) as port, httpx.AsyncClient() as http:
        reply = await http.post(f"http://127.0.0.1:{port}{PATH}", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert reply.status_code == 401


async def test_our_search_can_be_another_servers_source(service: Service, tmp_path: Path) -> None:
    """What we offer is what we can read: the client side over the server side."""
    async with listening(create_app(service)) as port:
        server = McpServer(url=f"http://127.0.0.1:{port}{PATH}", tool="rag_search")
        source = McpSource("other", server, Snapshots(tmp_path / "elsewhere"))
        found = await source.search("turbines of the Rance station", 5)
        await source.close()
    assert found.hits[0].title == "La Rance"
    assert "24 turbines" in Snapshots(tmp_path / "elsewhere").text(found.hits[0].source_id)


# ---- places


@pytest.mark.parametrize(
    ("path", "folders", "place"),
    [
        ("/a/docs/x/y.md", ("/a/docs",), "x/y.md"),
        ("/a/docs/x/y.md", ("/a", "/a/docs/x"), "y.md"),
        ("/a/docs/y.md", ("/a/docs/y.md",), "y.md"),
        ("/b/y.md", ("/a",), "y.md"),
    ],
)
def test_a_place_tells_nothing_of_where_the_folder_is(path: str, folders: tuple[str, ...], place: str) -> None:
    assert place_in(path, [Path(f) for f in folders]) == place


# ---- the command


def test_a_folder_that_is_not_there_is_said_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from marg_ray.cli import main

    monkeypatch.setattr("sys.argv", ["marg", "mcp", "--docs", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit) as ended:
        main()
    out = capsys.readouterr()
    assert (ended.value.code, out.out) == (2, "")
    assert "nowhere" in out.err


async def test_a_runtime_that_does_not_start_is_a_tools_error_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from marg_ray.client import Marg
    from marg_ray.errors import RuntimeUnavailable
    from marg_ray.mcp_server import LOCAL, _Local
    from marg_ray.settings import Settings

    starts = 0

    async def start(self: Marg) -> None:
        nonlocal starts
        starts += 1
        raise RuntimeUnavailable("", "the machine is full")

    monkeypatch.setattr(Marg, "start", start)
    local = _Local(Settings(home=tmp_path), (), offline=True)
    async with Client(build(local.tools, lambda _: LOCAL, local.lifespan)) as client:
        for _ in range(2):
            result = await client.call_tool("health", {})
            assert result.is_error
            assert "Ray did not start on this machine: the machine is full" in said(result)
    assert starts >= 2
