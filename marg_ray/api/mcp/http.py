"""The tools under `/mcp`: streamable HTTP, each request complete in itself, so that any replica answers it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from marg_ray.api.callers import Caller
from marg_ray.api.refusals import Unauthorized
from marg_ray.api.service import Service
from marg_ray.sources.protocol import Searcher

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"
MB = 1_000_000


class McpEndpoint:
    """The ASGI application of the route. It is made, and its SDK loaded, when the first request comes."""

    def __init__(self, app: FastAPI, service: Service, web: Searcher | None = None) -> None:
        self._app, self._service, self._web = app, service, web
        self._ready: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._holder: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        if self._ready is None or self._ready.get_loop() is not loop:
            self._ready = loop.create_future()
            self._holder = loop.create_task(self._hold(self._ready))
        manager = await asyncio.shield(self._ready)
        await manager.handle_request(scope, receive, send)

    async def _hold(self, ready: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Keep the manager open: the task that opens it has to close it, and no request lives so long."""
        try:
            manager = await asyncio.to_thread(self._manager)
            async with manager.run():
                ready.set_result(manager)
                await asyncio.Event().wait()
        except Exception as exc:
            if not ready.done():
                ready.set_exception(exc)
            if self._ready is ready:
                self._ready = None
        finally:
            if not ready.done():
                ready.cancel()

    def _manager(self) -> StreamableHTTPSessionManager:
        from marg_ray.api.mcp.server import build
        from marg_ray.api.mcp.tools import Tools
        from marg_ray.api.routes.events import hub_of

        made = Tools(self._service, hub_of(self._app), self._web)

        async def tools() -> Tools:
            return made

        server = build(tools, caller_of)
        most = int(self._service.settings.service.max_body_mb * MB)
        unchecked = ""  # the guards have looked at the host and the origin already
        server.streamable_http_app(stateless_http=True, host=unchecked, max_request_body_size=most)
        return server.session_manager


def caller_of(ctx: Any) -> Caller:
    """Who calls, as the guards have found."""
    found = getattr(getattr(ctx.request_context.request, "state", None), "caller", None)
    if not isinstance(found, Caller):
        raise Unauthorized
    return found


def mount(app: FastAPI, service: Service, web: Searcher | None = None) -> None:
    app.router.routes.append(
        Route(PATH, endpoint=McpEndpoint(app, service, web), include_in_schema=False)  # another protocol's document
    )
