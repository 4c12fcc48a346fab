"""An answer's parts as server-sent events, as they come: what a client may watch for minutes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from fastapi.responses import StreamingResponse

from marg_ray.api.sse import BEAT, HEADERS, MEDIA_TYPE, frame
from marg_ray.errors import MargError
from marg_ray.memory.chat import Answer, Cited, Looked

Parts = AsyncGenerator[Looked | Cited | Answer, None] | AsyncGenerator[Cited | Answer, None]


def streamed(parts: Parts, heartbeat_s: float, begin: dict[str, str] | None = None) -> StreamingResponse:
    """`looked`, `sentence` and `end`, after `begin` with what it is given; what goes wrong is an event `error`.

    A client that leaves stops the answer.
    """
    return StreamingResponse(_pieces(parts, heartbeat_s, begin), media_type=MEDIA_TYPE, headers=HEADERS)


async def _pieces(parts: Parts, heartbeat_s: float, begin: dict[str, str] | None) -> AsyncGenerator[bytes, None]:
    """The parts as events, with a sign of life while the next one takes its time."""
    if begin is not None:
        yield frame("begin", begin)
    async with aclosing(_with_beats(parts, heartbeat_s)) as steps:
        try:
            async for part in steps:
                match part:
                    case None:
                        yield BEAT
                    case Looked():
                        yield frame("looked", part.model_dump(mode="json"))
                    case Cited():
                        yield frame("sentence", part.model_dump(mode="json"))
                    case Answer():
                        yield frame("end", part.model_dump(mode="json"))
        except MargError as exc:
            yield frame("error", {"code": exc.code, "detail": str(exc), "hint": exc.hint, "status": exc.http_status})


async def _with_beats(parts: Parts, heartbeat_s: float) -> AsyncGenerator[Looked | Cited | Answer | None, None]:
    following: asyncio.Future[Looked | Cited | Answer] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(anext(parts))
            done, _ = await asyncio.wait({following}, timeout=heartbeat_s)
            if not done:
                yield None
                continue
            try:
                part = following.result()
            except StopAsyncIteration:
                return
            following = None
            yield part
    finally:
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        await parts.aclose()  # nobody listens any more: it stops
