"""What a request may carry: so many bytes, JSON so deep, and no key of ours."""

from __future__ import annotations

import asyncio
import re

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope

from marg_ray.api.refusals import KeyMisplaced, TooLarge, TooSlow
from marg_ray.errors import UsageError
from marg_ray.masking import TELLING
from marg_ray.settings import Settings

MB = 2**20
UPLOADS = "/v1/knowledge"
FORM_BYTES = 2**16  # around the file of an upload
MAX_DEPTH = 32
BODY_S = 60.0  # for a whole body that is not an upload
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

_STRING = re.compile(rb'"(?:[^"\\]+|\\.)*+(?:"|\Z)', re.DOTALL)  # matches to the end where it is not closed: linear
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SQUARE = bytes.maketrans(b"{}", b"[]")
_KEY = re.compile(TELLING.pattern.encode(), re.IGNORECASE)


class UploadTooLarge(TooLarge, HTTPException):
    """A TooLarge that FastAPI lets through while it reads a form: it makes a 400 of anything but its own."""

    def __init__(self, what: str, limit: str) -> None:
        TooLarge.__init__(self, what, limit)
        self.status_code, self.detail, self.headers = 413, str(self), None

    @property
    def code(self) -> str:
        return TooLarge.__name__

    def __str__(self) -> str:
        return TooLarge.__str__(self)


async def admitted(scope: Scope, receive: Receive, settings: Settings) -> Receive:
    """`receive` for the application: a body that was read and looked at, or an upload that is counted as it comes.

    Raises:
        TooLarge: it is too large; where its length is given, nothing of it is read.
        TooSlow: it does not come.
        KeyMisplaced: it holds a key.
        UsageError: it is JSON in another encoding than UTF-8, or too deep.
    """
    headers = Headers(scope=scope)
    declared = headers.get("content-length", "")
    length = int(declared) if declared.isdecimal() else None
    if scope["method"] in SAFE and not length and "transfer-encoding" not in headers:
        return receive
    kind = headers.get("content-type", "")
    if kind.startswith("multipart/form-data") and scope["path"].rstrip("/") == UPLOADS:
        limit = int(settings.library.max_file_mb * MB) + FORM_BYTES
        _refuse_longer(length, limit, settings.library.max_file_mb)
        return _counted(receive, limit, settings.library.max_file_mb)
    limit = int(settings.service.max_body_mb * MB)
    _refuse_longer(length, limit, settings.service.max_body_mb)
    body, over = await _read(receive, limit, settings.service.max_body_mb)
    if _KEY.search(body):
        raise KeyMisplaced("body")
    if "json" in kind or not kind:
        _check_json(body)
    return _replayed(body, over, receive)


def _refuse_longer(length: int | None, limit: int, limit_mb: float) -> None:
    if length is not None and length > limit:
        raise TooLarge("the body", f"{limit_mb:g} MB")


async def _read(receive: Receive, limit: int, limit_mb: float) -> tuple[bytes, Message | None]:
    """The body, and the message that came instead of its end, if its sender left."""
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return b"".join(chunks), message
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                if size > limit:
                    raise TooLarge("the body", f"{limit_mb:g} MB")
                if not message.get("more_body", False):
                    return b"".join(chunks), None
    except TimeoutError:
        raise TooSlow(BODY_S) from None


def _replayed(body: bytes, over: Message | None, receive: Receive) -> Receive:
    waiting: list[Message] = [over] if over else [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop(0) if waiting else await receive()

    return again


def _counted(receive: Receive, limit: int, limit_mb: float) -> Receive:
    size = 0

    async def counting() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise UploadTooLarge("the file", f"{limit_mb:g} MB")
        return message

    return counting


def _check_json(body: bytes) -> None:
    if b"\0" in body:  # never in UTF-8, always in UTF-16 and UTF-32
        raise UsageError("the body is not JSON in UTF-8")
    left = _STRING.sub(b"", body).translate(_SQUARE, _NOT_BRACKETS) if body.count(b"[") + body.count(b"{") else b""
    for _ in range(MAX_DEPTH):  # each pass takes the innermost brackets away
        if b"[]" not in left:
            return  # or it is no JSON at all: whoever parses it will say so
        left = left.replace(b"[]", b"")
    if b"[]" in left:
        raise UsageError(f"the JSON is more than {MAX_DEPTH} levels deep")
