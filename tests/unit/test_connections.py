"""How a request gets to an endpoint: address, headers, proxies, and connections that are kept, closed and counted."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from marg_ray.models.connections import NotSent, environment_proxy
from marg_ray.models.endpoints import Endpoint
from marg_ray.models.wire import Refused, Transient, Wire, _lines

REPLY = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
KEY = "sk-test-1234567890abcdef"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@dataclass
class Heard:
    """A server that says ok to everything, or what `answer` makes of it."""

    base_url: str = ""
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    peers: set[Any] = field(default_factory=set)
    answer: Any = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        self.bodies.append(await request.json())
        given: web.StreamResponse = await self.answer(request) if self.answer else web.json_response(REPLY)
        return given


@pytest.fixture
async def server() -> AsyncIterator[Heard]:
    heard = Heard()
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/{path:.*}", heard.handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    heard.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield heard
    await runner.cleanup()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def wire(base_url: str, *, provider: str = "sim", key: str = KEY, connections: int = 4, timeout_s: float = 20) -> Wire:
    endpoint = Endpoint(provider=provider, model="m", base_url=base_url, key=key)
    return Wire(endpoint, timeout_s=timeout_s, connections=connections)


async def ask(to: Wire, **body: Any) -> str:
    try:
        return (await to.send({"model": "m", **body})).text
    finally:
        await to.aclose()


class TestRequests:
    @pytest.mark.parametrize(
        ("base", "target"),
        [
            ("/v1", "/v1/chat/completions"),
            ("/v1/", "/v1/chat/completions"),
            ("", "/chat/completions"),
            (
                "/openai/deployments/d?api-version=2025-01-01",
                "/openai/deployments/d/chat/completions?api-version=2025-01-01",
            ),
            ("/a%20b/v1", "/a%20b/v1/chat/completions"),
        ],
    )
    async def test_the_address_is_the_endpoints(self, server: Heard, base: str, target: str) -> None:
        assert await ask(wire(server.base_url + base)) == "ok"
        assert server.requests[0].raw_path == target

    async def test_the_key_goes_along_and_text_arrives_as_it_is(self, server: Heard) -> None:
        assert await ask(wire(server.base_url), messages=[{"content": "Gezeiten – 潮汐 \ud800 ´ “"}]) == "ok"
        headers = server.requests[0].headers
        assert headers["Authorization"] == f"Bearer {KEY}"
        assert headers["Content-Type"] == "application/json"
        assert server.bodies[0]["messages"][0]["content"] == "Gezeiten – 潮汐 ? ´ “"
        assert not any(name.startswith("OpenAI") for name in headers)

    async def test_credentials_in_the_address_are_sent_as_such(self, server: Heard) -> None:
        address = server.base_url.replace("//", "//me:p%40ss@")
        assert await ask(wire(f"{address}/v1")) == "ok"
        given = server.requests[0].headers["Authorization"].removeprefix("Basic ")
        assert base64.b64decode(given) == b"me:p@ss"

    async def test_organisation_and_project_are_for_openai_only(
        self, server: Heard, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
        for provider in ("openai", "groq"):
            await ask(wire(server.base_url, provider=provider))
        first, second = (request.headers for request in server.requests)
        assert (first["OpenAI-Organization"], first["OpenAI-Project"]) == ("org-1", "proj-1")
        assert "OpenAI-Organization" not in second

    async def test_a_redirect_is_followed_and_keeps_the_body(self, server: Heard) -> None:
        async def moved(request: web.Request) -> web.Response:
            if request.path.startswith("/old"):
                return web.Response(status=307, headers={"Location": "/new/chat/completions"})
            return web.json_response(REPLY)

        server.answer = moved
        assert await ask(wire(f"{server.base_url}/old")) == "ok"
        assert [r.path for r in server.requests] == ["/old/chat/completions", "/new/chat/completions"]
        assert server.bodies[0] == server.bodies[1]


class TestProxies:
    async def test_it_is_asked_for_other_machines(self, server: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", server.base_url.replace("//", "//me:secret@"))
        assert await ask(wire("http://model.test/v1")) == "ok"
        (request,) = server.requests
        assert request.raw_path == "http://model.test/v1/chat/completions" or request.host == "model.test"
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        given = request.headers["Proxy-Authorization"].removeprefix("Basic ")
        assert base64.b64decode(given) == b"me:secret"

    @pytest.mark.parametrize(
        ("environment", "url", "proxy"),
        [
            ({}, "https://model.test/v1", ""),
            ({"https_proxy": "http://p:1"}, "https://model.test/v1", "http://p:1"),
            ({"https_proxy": "p:1"}, "https://model.test/v1", "http://p:1"),
            ({"https_proxy": "http://p:1"}, "http://model.test/v1", ""),
            ({"all_proxy": "http://p:1"}, "http://model.test/v1", "http://p:1"),
            ({"all_proxy": "http://p:1", "https_proxy": "http://q:2"}, "https://model.test/v1", "http://q:2"),
            ({"https_proxy": "http://p:1", "no_proxy": "model.test"}, "https://model.test/v1", ""),
            ({"https_proxy": "http://p:1", "no_proxy": "model.test:8443"}, "https://model.test:8443/v1", ""),
            ({"https_proxy": "http://p:1", "no_proxy": ".test"}, "https://model.test/v1", ""),
            ({"https_proxy": "http://p:1", "no_proxy": "*"}, "https://model.test/v1", ""),
            ({"https_proxy": "http://p:1", "no_proxy": "other.test"}, "https://model.test/v1", "http://p:1"),
        ],
    )
    def test_the_environment_names_it(
        self, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, proxy: str
    ) -> None:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert environment_proxy(urlsplit(url)) == proxy

    async def test_one_that_cannot_be_used_is_named_without_its_password(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ALL_PROXY", "socks5://me:secret@p:1")
        with pytest.raises(NotSent, match="socks5 proxy"):
            environment_proxy(urlsplit("https://model.test/v1"))
        with pytest.raises(Transient, match=r"no connection to model\.test: .*socks5 proxy") as told:
            await ask(wire("https://model.test/v1"))
        assert "secret" not in str(told.value)


class TestFailures:
    async def test_what_never_left_was_not_paid(self, server: Heard, unused_tcp_port: int) -> None:
        with pytest.raises(Transient, match="no connection to") as told:
            await ask(wire(f"http://127.0.0.1:{unused_tcp_port}/v1"))
        assert not told.value.begun

    async def test_what_broke_off_may_have_been_paid(self, server: Heard) -> None:
        async def hang_up(request: web.Request) -> web.Response:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()

        server.answer = hang_up
        with pytest.raises(Transient, match="broke off") as told:
            await ask(wire(f"{server.base_url}/v1"))
        assert told.value.begun

    @pytest.mark.parametrize(
        "body", ['{"error": "no such model"}', '{"error": {"message": "no such model"}}', "no such model"]
    )
    async def test_the_servers_own_words(self, server: Heard, body: str) -> None:
        async def refuse(_: web.Request) -> web.Response:
            return web.Response(status=404, text=body)

        server.answer = refuse
        with pytest.raises(Refused, match=r"^no such model \(HTTP 404\)$"):
            await ask(wire(server.base_url))


class TestConnections:
    async def test_they_are_kept(self, server: Heard) -> None:
        to = wire(server.base_url)
        for _ in range(5):
            await to.send({"model": "m"})
        await to.aclose()
        assert len(server.peers) == 1

    async def test_there_are_never_more_than_the_limit(self, server: Heard) -> None:
        to, under_way, most = wire(server.base_url, connections=3), [0], [0]

        async def count(_: web.Request) -> web.Response:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
            await asyncio.sleep(0)
            under_way[0] -= 1
            return web.json_response(REPLY)

        server.answer = count
        await asyncio.gather(*(to.send({"model": "m"}) for _ in range(30)))
        await to.aclose()
        assert len(server.peers) <= 3
        assert most[0] <= 3

    async def test_first_calls_at_once_share_one_pool(self, server: Heard) -> None:
        to = wire(server.base_url, connections=1)
        await asyncio.gather(*(to.send({"model": "m"}) for _ in range(5)))
        await to.aclose()
        assert len(server.peers) == 1

    async def test_it_may_be_used_again_after_it_was_closed(self, server: Heard) -> None:
        to = wire(server.base_url)
        for _ in range(2):
            assert (await to.send({"model": "m"})).text == "ok"
            await to.aclose()
        assert len(server.peers) == 2

    def test_a_pool_of_another_loop_is_not_used(self) -> None:
        to = wire("http://127.0.0.1:9/v1", timeout_s=5)

        async def once() -> None:
            with pytest.raises(Transient, match="no connection"):
                await to.send({"model": "m"})

        async def last() -> None:
            await once()
            await to.aclose()

        asyncio.run(once())
        asyncio.run(last())


class TestLines:
    async def test_events_of_any_size_cut_anywhere(self, server: Heard) -> None:
        text = "Gezeiten\u2028潮汐 " * 30_000
        event = json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}, ensure_ascii=False)

        async def stream(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            whole = f"data: {event}\r\n\r\ndata: [DONE]\n\n".encode()
            for at in range(0, len(whole), 70_001):
                await response.write(whole[at : at + 70_001])
            return response

        async def ignore(_: str) -> None: ...

        server.answer, to = stream, wire(server.base_url)
        assert (await to.send({"model": "m"}, ignore)).text == text
        await to.aclose()
        assert server.bodies[0]["stream"] is True

    @pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
    async def test_lines_do_not_depend_on_the_cuts(self, size: int) -> None:
        whole = "data: é\r\n\r\ndata: 2\rdata: 3\n\ndata: \u2028last".encode()

        async def chunks() -> AsyncIterator[bytes]:
            yield b""
            for at in range(0, len(whole), size):
                yield whole[at : at + size]

        lines = [line.strip("\r\n") async for line in _lines(chunks())]
        assert [line for line in lines if line] == ["data: é", "data: 2", "data: 3", "data: \u2028last"]
