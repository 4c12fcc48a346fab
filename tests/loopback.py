"""Small HTTP servers on 127.0.0.1 that answer with the exact bytes a test wants."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Seen:
    """One request as the server saw it."""

    target: str
    headers: dict[str, str]
    body: bytes = b""


Answer = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    port: int
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)  # set when the last connection has gone

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serve(answer: Answer) -> AsyncIterator[Server]:
    server = Server(0)
    running: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        server.connections += 1
        server.open += 1
        server.idle.clear()
        try:
            while seen := await _request(reader):
                server.seen.append(seen)
                await answer(seen, writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            running.discard(task)
            server.open -= 1
            if not server.open:
                server.idle.set()
            writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0, limit=1 << 20)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in list(running):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*running, return_exceptions=True)


def reply(status: int = 200, body: bytes | str = b"", **headers: str) -> Answer:
    """An answer with its length; header names are written with underscores."""

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(message(status, body, **headers))

    return answer


def message(status: int = 200, body: bytes | str = b"", **headers: str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    lines = {"Content-Type": "text/html", "Content-Length": str(len(data))}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{k}: {v}\r\n" for k, v in lines.items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + data


async def _request(reader: asyncio.StreamReader) -> Seen | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(first.split(" ")[1], headers, body)
