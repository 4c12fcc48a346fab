from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from marg_ray.errors import FetchFailed
from marg_ray.settings import FetchSettings
from marg_ray.sources.fetch import GuardedFetcher
from marg_ray.sources.fetch.bodies import LimitedBody, UnreadableBody, is_wanted
from marg_ray.sources.protocol import Fetched
from tests.loopback import Answer, Seen, Server, message, reply, serve
from tests.shared import case_file, needs_shared

MIB = 1024 * 1024
SMALL = FetchSettings(max_bytes=5 * MIB, timeout_s=1.5, tries=1)


@asynccontextmanager
async def fetching(answer: Answer, settings: FetchSettings = SMALL) -> AsyncIterator[tuple[Server, GuardedFetcher]]:
    async with serve(answer) as server:
        hole = ("127.0.0.1", server.port)
        fetcher = GuardedFetcher(settings, allow={hole})
        try:
            yield server, fetcher
        finally:
            await fetcher.close()


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * 4096 / MIB


def case_answer(row: dict[str, Any]) -> Answer:
    """One of the case's seven servers."""

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        if lines := row.get("header_lines"):
            writer.write(b"HTTP/1.1 200 OK\r\n")
            for n in range(lines):
                writer.write(f"X-Line-{n}: filler filler filler\r\n".encode())
                await writer.drain()
            return
        headers = "".join(f"{k}: {v}\r\n" for k, v in row["headers"].items())
        if row.get("chunked"):
            headers += "Transfer-Encoding: chunked\r\n"
        elif "Content-Length" not in row["headers"]:
            headers += "Connection: close\r\n"
        writer.write(f"HTTP/1.1 200 OK\r\n{headers}\r\n".encode())
        if row.get("one_byte_every_seconds"):
            while True:
                writer.write(b"1\r\nx\r\n")
                await writer.drain()
                await asyncio.sleep(0.1)
        body = b"<p>x</p>" * (row.get("generate_bytes", 0) // 8)
        if "file" in row:
            body = case_file("FET-03", row["file"]).read_bytes()
        body = row["body"].encode() if "body" in row else body
        for start in range(0, len(body), 65536):
            piece = body[start : start + 65536]
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if row.get("chunked") else piece)
            await writer.drain()
        if row.get("chunked"):
            writer.write(b"0\r\n\r\n")
        raise ConnectionResetError  # closes the connection

    return answer


@needs_shared
@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("gzip-bomb", "cut"),
        ("plain-30MB-chunked", "cut"),
        ("declared-huge", "too large"),
        ("drip", "timed out"),
        ("endless-headers", "no valid HTTP answer"),
        ("not-gzip-but-says-so", "<p>plain text</p>"),
        ("video", "unsupported type video/mp4"),
    ],
)
async def test_case_bodies(name: str, right: str) -> None:
    rows = json.loads(case_file("FET-03", "servers.json").read_text("utf-8"))
    row = next(r for r in rows if r["name"] == name)
    async with fetching(case_answer(row)) as (server, fetcher):
        before = resident_mib()
        async with asyncio.timeout(12):
            [page] = await asyncio.gather(fetcher.fetch(f"{server.url}/page"), return_exceptions=True)
        if right == "cut":
            assert isinstance(page, Fetched)
            assert (len(page.body), page.truncated) == (5 * MIB, True)
        elif right.startswith("<p>"):
            assert isinstance(page, Fetched)
            assert (page.body.decode(), page.truncated) == (right, False)
        else:
            assert isinstance(page, FetchFailed)
            assert right in str(page)
        assert resident_mib() - before < 80


@needs_shared
async def test_case_a_good_page_comes_between_bad_ones() -> None:
    rows = {f"/{r['name']}": case_answer(r) for r in json.loads(case_file("FET-03", "servers.json").read_text("utf-8"))}

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await rows.get(seen.target, reply(200, "<p>good</p>"))(seen, writer)

    async with fetching(answer) as (server, fetcher):
        tasks = [fetcher.fetch(server.url + path) for path in [*rows, "/good"]]
        *_, good = await asyncio.gather(*tasks, return_exceptions=True)
        assert not isinstance(good, BaseException)
        assert good.body == b"<p>good</p>"


async def test_a_refused_body_is_not_read() -> None:
    """The server can only get rid of what fits into the buffers between it and a reader that does not read."""
    sent = 0

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 90000000\r\n\r\n")
        while sent < 90_000_000:
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent += 100_000

    async with fetching(answer) as (server, fetcher):
        with pytest.raises(FetchFailed, match="unsupported type"):
            await fetcher.fetch(f"{server.url}/film")
    assert sent < 20_000_000


@pytest.mark.parametrize("ending", [b"", b"\r\n\r\n", b"\0" * 512])
async def test_gzip_with_and_without_padding(ending: bytes) -> None:
    body = gzip.compress(b"first ") + gzip.compress(b"second") + ending
    async with fetching(reply(200, body, Content_Encoding="gzip")) as (server, fetcher):
        page = await fetcher.fetch(server.url)
    assert (page.body, page.truncated) == (b"first second", False)


async def test_a_page_comes_as_it_was_sent() -> None:
    answer = reply(200, "ü".encode("latin-1"), Content_Type="Text/HTML; charset=ISO-8859-1")
    async with fetching(answer) as (server, fetcher):
        page = await fetcher.fetch(f"{server.url}/a?b#c")
        assert server.seen[0].headers["user-agent"].startswith("marg-ray/")
        assert "br" not in server.seen[0].headers["accept-encoding"]
    assert (page.body, page.media_type, page.charset, page.status) == (b"\xfc", "text/html", "iso-8859-1", 200)
    assert (page.url, page.final_url) == (f"{server.url}/a?b#c", f"{server.url}/a?b")


async def test_half_a_document_is_worth_nothing_but_half_a_text_is() -> None:
    tiny = FetchSettings(max_bytes=1024, tries=1)

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        kind = "application/pdf" if seen.target == "/pdf" else "text/plain"
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        writer.write(b"800\r\n" + b"x" * 2048 + b"\r\n0\r\n\r\n")

    async with fetching(answer, tiny) as (server, fetcher):
        assert (await fetcher.fetch(f"{server.url}/txt")).truncated
        with pytest.raises(FetchFailed, match="too large"):
            await fetcher.fetch(f"{server.url}/pdf")


async def test_a_text_that_ends_early_is_kept_and_marked() -> None:
    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        kind = "application/pdf" if seen.target == "/pdf" else "text/html"
        writer.write(message(200, b"<p>nearly all of it", Content_Length="500", Content_Type=kind))
        await writer.drain()
        raise ConnectionResetError

    async with fetching(answer) as (server, fetcher):
        page = await fetcher.fetch(f"{server.url}/html")
        assert (page.body, page.truncated) == (b"<p>nearly all of it", True)
        with pytest.raises(FetchFailed, match="broke off"):
            await fetcher.fetch(f"{server.url}/pdf")


async def test_closing_leaves_no_connection() -> None:
    async with fetching(reply(200, b"page")) as (server, fetcher):
        await asyncio.gather(*(fetcher.fetch(f"{server.url}/{n}") for n in range(5)))
        assert server.open > 0
        await fetcher.close()
        async with asyncio.timeout(5):
            await server.idle.wait()


async def test_exactly_the_limit_is_whole() -> None:
    tiny = FetchSettings(max_bytes=1024, tries=1)
    async with fetching(reply(200, b"x" * 1024), tiny) as (server, fetcher):
        assert not (await fetcher.fetch(server.url)).truncated
    async with fetching(reply(200, gzip.compress(b"x" * 1024), Content_Encoding="gzip"), tiny) as (server, fetcher):
        assert not (await fetcher.fetch(server.url)).truncated


async def test_an_encoding_without_a_bound_is_refused() -> None:
    async with fetching(reply(200, b"\x8b", Content_Encoding="br")) as (server, fetcher):
        with pytest.raises(FetchFailed, match="content encoding"):
            await fetcher.fetch(server.url)


@pytest.mark.parametrize("size", [1, 7, 1000, 65536])
@pytest.mark.parametrize("kind", ["gzip", "deflate", "raw deflate", "mislabelled"])
def test_decoding_in_pieces(kind: str, size: int) -> None:
    text = b"tidal power " * 100_000
    packed = {
        "gzip": gzip.compress(text),
        "deflate": zlib.compress(text),
        "raw deflate": zlib.compress(text)[2:-4],
        "mislabelled": text[:20_000],
    }[kind]
    body = LimitedBody("gzip" if kind == "gzip" else "deflate", 10 * MIB)
    for start in range(0, len(packed), size):
        assert body.feed(packed[start : start + size])
    body.close()
    assert body.body == (text[:20_000] if kind == "mislabelled" else text)
    assert not body.cut


def test_a_broken_stream_keeps_what_came() -> None:
    body = LimitedBody("gzip", MIB)
    packed = gzip.compress(b"".join(b"%d " % n for n in range(20_000)))
    body.feed(packed[: len(packed) // 2])
    body.close()
    assert body.cut
    assert body.body.startswith(b"0 1 2 3 ")


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
def test_other_encodings(encoding: str) -> None:
    with pytest.raises(UnreadableBody):
        LimitedBody(encoding, 10)


@pytest.mark.parametrize(
    ("media_type", "path", "wanted"),
    [
        ("text/html", "/", True), ("application/xhtml+xml", "/", True), ("application/ld+json", "/", True),
        ("application/pdf", "/", True), ("", "/", True), ("application/octet-stream", "/a.PDF", True),
        ("application/octet-stream", "/a.exe", False), ("image/png", "/", False), ("application/zip", "/", False),
        ("audio/mpeg", "/a.pdf", False), ("text/css", "/", False), ("text/event-stream", "/", False),
    ],
)  # fmt: skip
def test_wanted_types(media_type: str, path: str, wanted: bool) -> None:
    assert is_wanted(media_type, path) is wanted


async def test_cancelling_leaves_no_connection() -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(message(200, b"x", Content_Length="5000"))
        await writer.drain()
        arrived.set()
        try:
            while not writer.is_closing():
                writer.write(b"y")
                await writer.drain()
                await asyncio.sleep(0.01)
        finally:
            gone.set()

    async with fetching(answer, FetchSettings(tries=1)) as (server, fetcher):
        task = asyncio.create_task(fetcher.fetch(server.url))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5):
            await gone.wait()
    assert [t for t in asyncio.all_tasks() if "aiohttp" in repr(t)] == []
