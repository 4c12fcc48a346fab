from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.errors import AddressBlocked, FetchFailed
from marg_ray.settings import FetchSettings
from marg_ray.sources.fetch import AddressGuard, GuardedFetcher
from marg_ray.sources.fetch.addresses import is_public
from tests.loopback import Server, reply, serve
from tests.shared import case_file, needs_shared

ONCE = FetchSettings(tries=1, timeout_s=5)


@dataclass
class FakeNames:
    """Answers look-ups from a table; a list of lists gives one list per look-up, in order."""

    table: dict[str, Any]
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        answers = self.table.get(host)
        if answers is None:
            raise OSError(f"no such name: {host}")
        if answers and isinstance(answers[0], list):
            return list(answers.pop(0))
        return list(answers)


@dataclass
class FakeConnector:
    """Records the address of every socket asked for, and lets each of them reach one loopback server only."""

    port: int
    dialled: list[tuple[str, int]] = field(default_factory=list)

    def __call__(self, info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        self.dialled.append(address[:2])
        made = _Diverted(family, kind, protocol)
        made.target = ("::ffff:127.0.0.1" if family == socket.AF_INET6 else "127.0.0.1", self.port)
        return made


class _Diverted(socket.socket):
    target: tuple[str, int]

    def connect(self, address: Any, /) -> None:
        super().connect(self.target)


@asynccontextmanager
async def fetching(
    server: Server, names: FakeNames, settings: FetchSettings = ONCE, **more: Any
) -> AsyncIterator[tuple[GuardedFetcher, FakeConnector]]:
    connector = FakeConnector(server.port)
    fetcher = GuardedFetcher(settings, resolver=names, connector=connector, **more)
    try:
        yield fetcher, connector
    finally:
        await fetcher.close()


def case_names() -> FakeNames:
    return FakeNames(json.loads(case_file("FET-01", "resolver.json").read_text("utf-8")))


def case_urls(name: str, port: int) -> list[str]:
    lines = case_file("FET-01", name).read_text("utf-8").splitlines()
    return [line.replace("{PORT}", str(port)) for line in lines if line]


@needs_shared
async def test_case_must_block() -> None:
    """Also with the listener's port and with port 80 among the allowed ones, so that only the address can refuse."""
    async with serve(reply(200, "secret")) as server:
        for port in (server.port, 80):
            names = case_names()
            urls = [u for u in case_urls("must-block.txt", port) if "rebind.test" not in u]
            async with fetching(server, names, ports={80, 443, server.port}) as (fetcher, connector):
                for url in urls:
                    with pytest.raises(AddressBlocked):
                        await fetcher.fetch(url)
                assert len(urls) >= 49
                assert connector.dialled == []
        assert server.seen == []


@needs_shared
async def test_case_the_usual_ports_refuse_the_rest() -> None:
    async with serve(reply(200, "secret")) as server, fetching(server, case_names()) as (fetcher, connector):
        for url in case_urls("must-block.txt", server.port):
            with pytest.raises(AddressBlocked):
                await fetcher.fetch(url)
        assert (connector.dialled, server.connections) == ([], 0)


@needs_shared
async def test_case_a_rebound_name_is_dialled_where_it_was_checked() -> None:
    names = case_names()
    async with serve(reply(200, "page")) as server, fetching(server, names) as (fetcher, connector):
        await fetcher.fetch("http://rebind.test/")
        assert connector.dialled == [("93.184.215.14", 80)]
        await fetcher.close()  # a new connection looks the name up again, and now finds the loopback
        with pytest.raises(AddressBlocked):
            await fetcher.fetch("http://rebind.test/")
        assert connector.dialled == [("93.184.215.14", 80)]


@needs_shared
async def test_case_must_allow() -> None:
    async with serve(reply(200, "page")) as server:
        brief = FetchSettings(tries=1, timeout_s=0.5)
        for url in case_urls("must-allow.txt", server.port):
            async with fetching(server, case_names(), brief) as (fetcher, connector):
                if url.startswith("https:"):  # the listener speaks no TLS; that it was dialled is what counts
                    with pytest.raises(FetchFailed):
                        await fetcher.fetch(url)
                    assert connector.dialled == [("93.184.215.14", 443)]
                    continue
                page = await fetcher.fetch(url)
                assert page.body == b"page"
                assert [is_public(ip) for ip, _ in connector.dialled] == [True]
                assert server.seen[-1].headers["host"] == url.split("/")[2]


async def test_an_open_and_a_closed_port_read_the_same() -> None:
    async with serve(reply(200, "secret")) as server:
        open_port = server.port
        texts = []
        for port in (open_port, 1):
            fetcher = GuardedFetcher(ONCE, ports={open_port, 1})
            for host in ("127.0.0.1", "localhost"):
                with pytest.raises(AddressBlocked) as caught:
                    await fetcher.fetch(f"http://{host}:{port}/")
                texts.append(str(caught.value).replace(f":{port}", ""))
        assert texts[:2] == texts[2:]
        assert server.connections == 0


@pytest.mark.parametrize(
    "inner",
    ["http://127.0.0.1/", "http://169.254.169.254/latest", "//10.0.0.1/", "file:///etc/passwd", "http://private.test/"],
)
async def test_a_redirect_is_guarded_like_the_first_address(inner: str) -> None:
    names = FakeNames({"public.test": ["93.184.215.14"], "private.test": ["10.1.1.1"]})
    async with serve(reply(302, "", Location=inner)) as server, fetching(server, names) as (fetcher, connector):
        with pytest.raises(AddressBlocked):
            await fetcher.fetch("http://public.test/start")
        assert connector.dialled == [("93.184.215.14", 80)]


async def test_tls_asks_for_the_name_and_not_for_the_address() -> None:
    hello = asyncio.get_running_loop().create_future()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello.set_result(await reader.read(4096))
        writer.close()

    listening = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    connector = FakeConnector(port)
    fetcher = GuardedFetcher(ONCE, resolver=FakeNames({"public.test": ["93.184.215.14"]}), connector=connector)
    with pytest.raises(FetchFailed):
        await fetcher.fetch("https://public.test/page")
    assert connector.dialled == [("93.184.215.14", 443)]
    assert b"public.test" in await hello
    await fetcher.close()
    listening.close()


async def test_what_a_message_shows_cannot_move_a_cursor() -> None:
    with pytest.raises(AddressBlocked) as caught:
        await GuardedFetcher(ONCE).fetch("http://a.test/\x1b[2J" + "x" * 9000)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 400


async def test_five_redirects_and_no_more() -> None:
    async def answer(seen: Any, writer: Any) -> None:
        n = int(seen.target[1:])
        await reply(302, "", Location=f"/{n - 1}")(seen, writer) if n else await reply(200, "there")(seen, writer)

    names = FakeNames({"public.test": ["93.184.215.14"]})
    async with serve(answer) as server, fetching(server, names) as (fetcher, _):
        page = await fetcher.fetch("http://public.test/5")
        assert (page.body, page.url, page.final_url) == (b"there", "http://public.test/5", "http://public.test/0")
        with pytest.raises(FetchFailed, match="redirects"):
            await fetcher.fetch("http://public.test/6")


async def test_a_socket_is_checked_even_if_the_look_up_was_fooled() -> None:
    """The last line of defence stands by itself: a guard that trusts no earlier step."""
    from marg_ray.sources.fetch.dialling import guarded_connector

    guard = AddressGuard()
    connector = guarded_connector(guard, FakeNames({}), lambda info: pytest.fail("a socket was made"))
    factory = connector._socket_factory
    assert factory is not None
    with pytest.raises(AddressBlocked):
        factory((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 80)))
    await connector.close()


async def test_the_environment_has_no_say_over_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    names = FakeNames({"public.test": ["93.184.215.14"]})
    async with serve(reply(200, "page")) as server, fetching(server, names) as (fetcher, connector):
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
        await fetcher.fetch("http://public.test/")
        assert connector.dialled == [("93.184.215.14", 80)]
        assert server.seen[0].target == "/"


async def test_a_hole_is_one_address_and_one_port() -> None:
    async with serve(reply(200, "mine")) as server:
        fetcher = GuardedFetcher(ONCE, allow={("127.0.0.1", server.port)}, ports={80, server.port})
        assert (await fetcher.fetch(f"{server.url}/")).body == b"mine"
        with pytest.raises(AddressBlocked):
            await fetcher.fetch("http://127.0.0.1:80/")
        with pytest.raises(AddressBlocked):
            await fetcher.fetch(f"http://127.0.0.2:{server.port}/")
        await fetcher.close()


@pytest.mark.parametrize("ip", ["::ffff:8.8.8.8", "64:ff9b::808:808", "2606:4700::1111", "8.8.8.8", "2002:808:808::1"])
def test_public(ip: str) -> None:
    assert is_public(ip)


@pytest.mark.parametrize(
    "ip",
    ["::", "::1", "::7f00:1", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2001::1",
     "fec0::1", "fe80::1%eth0", "ff02::1", "100::1", "3fff::1", "5f00::1", "192.0.0.192", "168.63.129.16",
     "100.100.100.200", "nonsense"],
)  # fmt: skip
def test_not_public(ip: str) -> None:
    assert not is_public(ip)


@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["decimal", "hex", "octal parts", "hex parts", "three", "two", "wide"])
)
def test_every_spelling_of_an_ipv4_address_is_judged_alike(number: int, spelling: str) -> None:
    a, b, c, d = number.to_bytes(4, "big")
    dotted = f"{a}.{b}.{c}.{d}"
    host = {
        "decimal": str(number),
        "hex": hex(number),
        "octal parts": ".".join(f"0{part:o}" for part in (a, b, c, d)),
        "hex parts": ".".join(map(hex, (a, b, c, d))),
        "three": f"{a}.{b}.{c << 8 | d}",
        "two": f"{a}.{b << 16 | c << 8 | d}",
        "wide": "".join(chr(ord(x) + 0xFEE0) if x != "." else "。" for x in dotted),
    }[spelling]
    try:
        passed = AddressGuard().address(f"http://{host}/").host
    except AddressBlocked:
        passed = ""
    assert passed == (dotted if is_public(dotted) else "")


@given(st.ip_addresses(v=4))
def test_a_wrapped_address_is_as_public_as_what_it_wraps(inner: ipaddress.IPv4Address) -> None:
    number = int(inner)
    for wrapped in (0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80):
        assert is_public(str(ipaddress.IPv6Address(wrapped))) == is_public(str(inner))
