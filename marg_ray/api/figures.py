"""What the service counts of itself: requests by route and status, and streams that are being read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from marg_ray.telemetry.figures import FIGURES

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ELSEWHERE = "none"  # the route of a request that none fits: addresses that strangers make up are no labels
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
STREAM = b"text/event-stream"


class CountRequests:
    """ASGI middleware around everything. It holds nothing back: a stream goes through as it comes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = _Seen(scope, send)
        try:
            await self._app(scope, receive, seen.send)
        finally:
            seen.over()


class _Seen:
    """One request."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send, self._began = scope, send, time.perf_counter()
        self._status, self._streams = 0, False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = dict(message.get("headers", ()))
            if headers.get(b"content-type", b"").startswith(STREAM):
                self._streams = True
                self._streaming(1)
        await self._send(message)

    def over(self) -> None:
        method = self._scope["method"] if self._scope["method"] in METHODS else "other"
        FIGURES.count("marg_http_requests_total", method, self._route, str(self._status or 499))  # 0: it hung up
        if self._streams:
            self._streaming(-1)
        else:
            FIGURES.observe("marg_http_request_seconds", time.perf_counter() - self._began, self._route)

    @property
    def _route(self) -> str:
        path = getattr(self._scope.get("route"), "path", None)
        return str(path) if path else ELSEWHERE

    def _streaming(self, change: int) -> None:
        FIGURES.set("marg_http_streams", FIGURES.get("marg_http_streams", self._route) + change, self._route)
