"""The two transports to an MCP server, each bounded in what the other side may send.

Imported only when a server is asked: the SDK takes its time to load.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass

import anyio
import httpx2
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from marg_ray.settings import McpServer
from marg_ray.text import one_line

MOST_BYTES = 4 * 1024 * 1024  # of one message
GRACE_S = 1.0  # for a program to end by itself, and again after it was told to
_LAST_WORDS = 2000  # bytes of what a program said on its standard error


@dataclass
class Trouble:
    """Why a connection broke, where the transport knows more than the session does."""

    text: str = ""
    refused: bool = False  # by us: another try would end the same way

    def refuse(self, text: str) -> str:
        self.text, self.refused = text, True
        return text


class TooMuch(httpx2.TransportError):
    """An answer beyond the limit."""


# ---- HTTP


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, trouble: Trouble) -> None:
        self._stream, self._trouble = stream, trouble

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_BYTES
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise TooMuch(self._trouble.refuse(_too_much()))
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Bounded(httpx2.AsyncBaseTransport):
    """Refuses answers that are too large, and packed ones: their size shows only when it is too late."""

    def __init__(self, trouble: Trouble) -> None:
        self._inner, self._trouble = httpx2.AsyncHTTPTransport(), trouble

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        length = response.headers.get("content-length", "")
        if packed not in ("", "identity") or (length.isdigit() and int(length) > MOST_BYTES):
            await response.aclose()
            why = f"it sent its answer packed ({packed})" if packed != "identity" else _too_much()
            raise TooMuch(self._trouble.refuse(why))
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Counted(response.stream, self._trouble)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


@contextlib.asynccontextmanager
async def http(server: McpServer, trouble: Trouble) -> AsyncIterator[tuple[object, object]]:
    """A streamable HTTP server, with the headers that the settings give it."""
    headers = {name: value.get_secret_value() for name, value in server.headers.items()}
    timeout = httpx2.Timeout(server.timeout_s, read=300.0)
    async with (
        httpx2.AsyncClient(
            headers={**headers, "Accept-Encoding": "identity"}, timeout=timeout, transport=_Bounded(trouble)
        ) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MOST_BYTES) as streams,
    ):
        yield streams


# ---- a program


@contextlib.asynccontextmanager
async def program(server: McpServer, trouble: Trouble) -> AsyncIterator[tuple[object, object]]:
    """A program that speaks on its standard input and output.

    It gets the harmless variables of this environment and those that the settings give it, no key of ours.

    Raises:
        OSError: it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *server.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**get_default_environment(), **server.env},
        limit=MOST_BYTES,
        start_new_session=True,
    )
    incoming, to_us = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_them, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_listen, process, incoming, trouble)
            group.start_soon(_speak, process, outgoing, incoming)
            try:
                yield to_us, to_them
            finally:
                for stream in (to_us, to_them, incoming, outgoing):
                    stream.close()
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


async def _listen(
    process: asyncio.subprocess.Process,
    incoming: anyio.streams.memory.MemoryObjectSendStream[SessionMessage | Exception],
    trouble: Trouble,
) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    last_words = asyncio.ensure_future(_last_words(process.stderr))
    try:
        async with incoming:
            while line := await process.stdout.readline():
                await incoming.send(_message(line))
            trouble.text = trouble.text or await _farewell(process, last_words)
    except ValueError:  # a line beyond the limit
        trouble.refuse(_too_much())
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):  # nobody listens any more
        pass
    finally:
        last_words.cancel()


async def _speak(
    process: asyncio.subprocess.Process,
    outgoing: anyio.streams.memory.MemoryObjectReceiveStream[SessionMessage],
    incoming: anyio.streams.memory.MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    assert process.stdin is not None
    try:
        async with outgoing:
            async for sent in outgoing:
                line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(line.encode() + b"\n")
                await process.stdin.drain()
    except OSError:  # it is gone: what waits for its answers must hear of it
        incoming.close()


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as exc:
        return exc


async def _last_words(stderr: asyncio.StreamReader) -> str:
    """The last line that a program writes before it ends; what it says before is let go."""
    tail = b""
    while chunk := await stderr.read(65536):
        tail = (tail + chunk)[-_LAST_WORDS:]
    lines = [one_line(line) for line in tail.decode("utf-8", "replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


async def _farewell(process: asyncio.subprocess.Process, last_words: asyncio.Future[str]) -> str:
    """Why a program ended, as far as it says so."""
    words = ""
    with contextlib.suppress(TimeoutError):
        words = (await asyncio.wait_for(asyncio.shield(last_words), GRACE_S))[:200]
        await asyncio.wait_for(process.wait(), GRACE_S)
    code = f"with code {process.returncode}" if process.returncode is not None else "its output"
    return f"the program ended {code}" + (f": {words}" if words else "")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input; a program that does not end then is told to, and at last killed with all that it started."""
    assert process.stdin is not None
    process.stdin.close()
    for told in (None, signal.SIGTERM, signal.SIGKILL):
        if told is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, told)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_S)
        if process.returncode is not None:
            break
    transport = getattr(process, "_transport", None)
    if transport is not None:  # a descendant that holds a pipe must not hold the loop
        transport.close()


def _too_much() -> str:
    return f"it sent more than {MOST_BYTES // 2**20} MB at once"
