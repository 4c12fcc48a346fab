"""The headers that every answer bears."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

DATA = ("/v1", "/mcp", "/metrics")  # where answers are data, never a part of the page

_NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_DRAWING = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
_PAPER = "frame-ancestors 'none'"  # browsers' PDF viewers are pages of their own, which a policy or a sandbox stops
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=(), browsing-topics=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
}
_A_YEAR = "max-age=31536000"


class SecurityHeaders:
    """Adds what a route has not set itself."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                add(scope, message)
            await send(message)

        await self.app(scope, receive, sending)


def add(scope: Scope, message: Message) -> None:
    """Add the headers to the first message of an answer."""
    message.setdefault("headers", [])
    headers, path = MutableHeaders(scope=message), scope["path"]
    for name, value in _ALWAYS.items():
        headers.setdefault(name, value)
    own = headers.get("content-security-policy", "")
    if not own:
        headers["Content-Security-Policy"] = policy(headers.get("content-type", ""))
    elif "frame-ancestors" not in own:
        headers["Content-Security-Policy"] = f"{own}; frame-ancestors 'none'"
    if is_data(path):
        headers.setdefault("Cache-Control", "no-store")
    if scope.get("scheme") == "https":
        headers.setdefault("Strict-Transport-Security", _A_YEAR)


def is_data(path: str) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in DATA)


def policy(media_type: str) -> str:
    """The content security policy of an answer whose route names none: it is data, and loads nothing."""
    kind = media_type.partition(";")[0].strip().lower()
    return {"application/pdf": _PAPER, "image/svg+xml": _DRAWING}.get(kind, _NOTHING)
