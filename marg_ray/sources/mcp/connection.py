"""A connection to one MCP server, held open while it is used."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from marg_ray.settings import McpServer

if TYPE_CHECKING:
    from mcp import Client

    from marg_ray.sources.mcp.choosing import Way
    from marg_ray.sources.mcp.wire import Trouble

IDLE_S = 60.0  # after the last call it is closed, and a program ends
OPEN_S = 60.0  # for a program to start and answer; who waits for it may give up earlier
_PAGES = 20  # of a list of tools


class Opened:
    """A client that is ready, and how its server is asked."""

    def __init__(self, client: Client, way: Way, trouble: Trouble) -> None:
        self.client, self.way, self.trouble = client, way, trouble
        self.used = False


class Connection:
    """Opens when it is needed, once for all who need it, and closes when nobody has for a while.

    The task that opens a client must be the one that closes it; so each connection has a task of its own.
    """

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._opening: asyncio.Future[Opened] | None = None
        self._leave = asyncio.Event()
        self._holder: asyncio.Task[None] | None = None
        self._users = 0
        self._timer: asyncio.TimerHandle | None = None

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Opened]:
        """The client, for one call.

        Raises:
            Exception: whatever came in the way of opening it.
        """
        self._users += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            if self._opening is None:
                self._begin()
            assert self._opening is not None
            yield await asyncio.shield(self._opening)
        finally:
            self._users -= 1
            if not self._users:
                self._timer = asyncio.get_running_loop().call_later(IDLE_S, self.drop)

    @property
    def is_open(self) -> bool:
        return self._opening is not None and self._opening.done() and not self._opening.exception()

    @property
    def is_alone(self) -> bool:
        """Whether nobody but one caller uses it."""
        return self._users <= 1

    def drop(self) -> None:
        """Close it; who comes next opens another."""
        self._leave.set()
        self._opening = None

    async def close(self) -> None:
        holder, self._holder = self._holder, None
        if holder is not None and not self.is_open:  # it is still being opened
            holder.cancel()
        self.drop()
        if self._timer is not None:
            self._timer.cancel()
        if holder is not None:
            await asyncio.wait([holder])

    def _begin(self) -> None:
        self._leave = asyncio.Event()
        self._opening = asyncio.get_running_loop().create_future()
        self._opening.add_done_callback(lambda f: f.cancelled() or f.exception())  # nobody may be there to hear it
        self._holder = asyncio.ensure_future(self._hold(self._opening, self._leave))

    async def _hold(self, opening: asyncio.Future[Opened], leave: asyncio.Event) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(OPEN_S):
                    opened = await self._open(stack)
                opening.set_result(opened)
                await leave.wait()
        except Exception as exc:
            if not opening.done():
                opening.set_exception(exc)
        finally:
            if not opening.done():
                opening.cancel()
            if self._opening is opening:
                self._opening = None

    async def _open(self, stack: contextlib.AsyncExitStack) -> Opened:
        from mcp import Client
        from mcp.types import Implementation

        from marg_ray.sources.mcp import wire
        from marg_ray.sources.mcp.choosing import way_of

        server, trouble = self._server, wire.Trouble()
        transport = wire.http(server, trouble) if server.url else wire.program(server, trouble)
        client = Client(
            transport,  # type: ignore[arg-type]  # the SDK's streams are told by their shape
            client_info=Implementation(name="marg-ray", version="1"),
            read_timeout_seconds=max(server.timeout_s, OPEN_S),
        )
        try:
            await stack.enter_async_context(client)
            tools = []
            cursor: str | None = None
            for _ in range(_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if not cursor or (server.tool and any(t.name == server.tool for t in page.tools)):
                    break
        except Exception as exc:
            if trouble.text:
                raise ConnectionError(trouble.text) from exc
            raise
        return Opened(client, way_of(tools, server.tool), trouble)
