"""One MCP server as a source. What goes wrong with it costs its own results and nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from marg_ray.errors import McpUnavailable, Unreadable, UsageError
from marg_ray.grounding.injection import cut_injections
from marg_ray.grounding.snapshots import Document, Snapshots
from marg_ray.records import Hit, Note, SourceKind
from marg_ray.seams import Offload, in_thread
from marg_ray.settings import McpServer, McpSettings
from marg_ray.sources.mcp.choosing import NoTool
from marg_ray.sources.mcp.connection import Connection
from marg_ray.sources.mcp.replies import LONGEST_TITLE, Piece, Pieces, error_of, pieces_of
from marg_ray.sources.parse import parse
from marg_ray.sources.protocol import Found
from marg_ray.sources.resilience import Breaker
from marg_ray.sources.urls import web_url
from marg_ray.text import one_line

if TYPE_CHECKING:
    from mcp.types import CallToolResult

AT_ONCE = 4  # calls under way, per worker
SNIPPET = 2000  # characters of a hit's beginning that it is ranked by
_SECRET = 6  # characters; a shorter value is hidden nowhere, it would hide half of the text
_LONGEST_WHY = 300
_READ_AS = {"text/markdown": "answer.md", "text/html": "answer.html", "text/plain": "answer.txt"}


@dataclass(frozen=True)
class _Frozen:
    """A piece whose text is kept."""

    document: Document
    hit: Hit


class McpSource:
    """A `Searcher`: each search is one call of the server's tool, its answer frozen as texts that can be quoted.

    One per process, for all its sessions, used from one event loop.
    """

    def __init__(
        self,
        name: str,
        server: McpServer,
        snapshots: Snapshots,
        *,
        offload: Offload = in_thread,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name, self.server = name, server
        self._snapshots, self._offload = snapshots, offload
        self._connection, self._breaker = Connection(server), Breaker(clock=clock)
        self._slots: asyncio.Semaphore | None = None
        self._why = "not asked yet"  # the latest failure

    async def search(self, query: str, limit: int) -> Found:
        """Up to `limit` hits, with their texts frozen.

        Raises:
            McpUnavailable: the server is away, slow, or answers with an error or too much.
        """
        pieces, tool = await self._asked(query, limit)
        frozen = await self._offload(_frozen, pieces.found[:limit], self.name, tool)
        for item in frozen:
            await in_thread(self._snapshots.put, item.document)
        notes = []
        if pieces.dropped:
            text = (
                f"{pieces.dropped} parts of an answer of the MCP server {self.name!r} were dropped: they hold no text"
            )
            notes.append(Note(kind="results_dropped", text=text))
        return Found(hits=tuple(item.hit for item in frozen), notes=tuple(notes), searches=1)

    async def close(self) -> None:
        await self._connection.close()

    # ---- asking

    async def _asked(self, query: str, limit: int) -> tuple[Pieces, str]:
        if not self._breaker.enter():
            raise McpUnavailable(self.name, self._why)
        settled = False
        try:
            result, tool = await self._call(query, limit)
            said = error_of(result)
            if said:
                raise RuntimeError(f"its tool {tool} said: {said}")
            pieces = pieces_of(result)
            self._breaker.succeeded()
            settled = True
            return pieces, tool
        except Exception as exc:  # a server is foreign code: whatever it does is its failure, not the run's
            self._why = self._in_words(exc)
            self._breaker.failed(for_good=isinstance(exc, NoTool | FileNotFoundError))
            settled = True
            raise McpUnavailable(self.name, self._why) from exc
        finally:
            if not settled:
                self._breaker.left()

    async def _call(self, query: str, limit: int) -> tuple[CallToolResult, str]:
        """The answer, and the tool that gave it. A connection that turns out to be broken is opened anew, once."""
        self._slots = self._slots or asyncio.Semaphore(AT_ONCE)
        async with self._slots, asyncio.timeout(self.server.timeout_s):
            try:
                return await self._once(query, limit, again=True)
            except _Broken:
                return await self._once(query, limit, again=False)

    async def _once(self, query: str, limit: int, *, again: bool) -> tuple[CallToolResult, str]:
        async with self._connection.open() as opened:
            was_used, opened.used = opened.used, True
            try:
                result = await opened.client.call_tool(opened.way.tool, opened.way.arguments(query, limit))
                return result, opened.way.tool
            except asyncio.CancelledError:
                if self._connection.is_alone:  # it may be stuck, and nobody else waits for it
                    self._connection.drop()
                raise
            except Exception as exc:
                if not _is_answer(exc):
                    self._connection.drop()
                    if was_used and again and not opened.trouble.refused:
                        raise _Broken from exc
                if opened.trouble.text:
                    raise ConnectionError(opened.trouble.text) from exc
                raise

    def _in_words(self, exc: BaseException) -> str:
        if isinstance(exc, TimeoutError):
            return f"no answer within {self.server.timeout_s:g} s"
        while isinstance(exc, BaseExceptionGroup) and exc.exceptions:
            exc = exc.exceptions[0]
        if isinstance(exc, FileNotFoundError):
            return f"there is no program {self.server.command[0]!r}"
        words = one_line(str(exc)) or type(exc).__name__
        if not isinstance(exc, RuntimeError | ConnectionError | NoTool):
            words = f"{type(exc).__name__}: {words}"
        for secret in (*self.server.env.values(), *(h.get_secret_value() for h in self.server.headers.values())):
            if len(secret) >= _SECRET:
                words = words.replace(secret, "...")
        return words[:_LONGEST_WHY]


class _Broken(Exception):
    """A connection that was good before is not any more."""


def _is_answer(exc: Exception) -> bool:
    """Whether the server refused the call, and can go on to be asked over the same connection."""
    from mcp.types import CONNECTION_CLOSED

    error = getattr(exc, "error", None)
    return getattr(error, "code", CONNECTION_CLOSED) != CONNECTION_CLOSED


# ---- texts (pure, run off the loop)


def _frozen(pieces: Sequence[Piece], server: str, tool: str) -> list[_Frozen]:
    frozen = []
    for rank, piece in enumerate(pieces):
        kind = piece.media_type if piece.media_type in _READ_AS else "text/plain"
        try:
            document = cut_injections(
                parse(piece.text.encode("utf-8", "replace"), name=_READ_AS[kind], media_type=kind)
            )
        except Unreadable:
            continue
        if document.text.strip():
            frozen.append(_Frozen(document, _hit(piece, document, server, tool, rank)))
    return frozen


def _title(piece: Piece, document: Document) -> str:
    """Its own, without what speaks to a model; else how the text begins."""
    own = one_line(cut_injections(Document(title="", text=piece.title, parts=())).text)
    heading = next((document.text[p.start : p.end] for p in document.parts if p.kind == "heading"), "")
    return (own or one_line(heading) or _beginning(document.text))[:LONGEST_TITLE]


def _beginning(text: str) -> str:
    line = one_line(text[:400])
    return line if len(line) <= 80 else line[:80].rsplit(" ", 1)[0] + "…"


def _hit(piece: Piece, document: Document, server: str, tool: str, rank: int) -> Hit:
    place = web_url(piece.place) or f"mcp:{server}/{tool}/{_named(piece, document)}"
    return Hit(
        location=place,
        title=_title(piece, document),
        kind=SourceKind.MCP,
        snippet=one_line(document.text[:SNIPPET]),
        engine=server,
        relevance=round(1 / (1 + 0.1 * rank), 3),
        source_id=document.source_id,
        published=piece.published,
    )


def _named(piece: Piece, document: Document) -> str:
    """How a thing without an address is told from the others: by its name and its text."""
    digest = hashlib.sha256(f"{piece.place}\0{document.source_id}".encode()).hexdigest()[:10]
    return f"{piece.place[:80]}#{digest}" if piece.place else digest


def build_mcp_sources(settings: McpSettings, snapshots: Snapshots, offload: Offload) -> dict[str, McpSource]:
    """The servers that the settings name. None of them is started or asked yet.

    Raises:
        UsageError: one has neither a command nor a URL, or both.
    """
    for name, server in settings.servers.items():
        if bool(server.command) == bool(server.url):
            raise UsageError(
                f"the MCP server {name!r} needs either a command or a URL",
                f"set mcp.servers.{name}.command (a list) or mcp.servers.{name}.url",
            )
    return {n: McpSource(n, s, snapshots, offload=offload) for n, s in settings.servers.items()}
