"""A session's events as they come (SSE)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from marg_ray.api.app import service_of
from marg_ray.api.callers import Caller, needs
from marg_ray.api.callers import Scope as Permission
from marg_ray.api.narrate import EventOut
from marg_ray.api.problems import responses
from marg_ray.api.service import Service
from marg_ray.api.sessions import session_of
from marg_ray.api.sse import HEADERS, MEDIA_TYPE
from marg_ray.api.streams import Hub, Pace
from marg_ray.api.views import session_view
from marg_ray.store.protocol import SessionRow

log = logging.getLogger(__name__)
router = APIRouter(tags=["research"])

STUCK_S = 60.0  # a client that takes nothing for so long is gone, or may come again
MAX_ID = 10**9  # of an entry; a greater number is of no log


class EventStream(Response):
    """Sends a session's events until it is over or the client is gone; then nothing of it is left."""

    media_type = MEDIA_TYPE

    def __init__(self, hub: Hub, row: SessionRow, after: int, *, boards: bool) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._hub, self._row, self._after, self._boards = hub, row, after, boards

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._hub.reading(self._row, self._after, boards=self._boards) as reader:
            gone = asyncio.ensure_future(_gone(receive))
            gone.add_done_callback(lambda _: reader.stop())
            try:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                while piece := await reader.next():
                    async with asyncio.timeout(STUCK_S):
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
                if not gone.done():
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
            except TimeoutError:
                log.info(
                    "a reader of session %s took nothing for %g s: its connection is closed", self._row.id, STUCK_S
                )
            except OSError:  # nobody is there any more
                pass
            finally:
                gone.cancel()


async def _gone(receive: Receive) -> None:
    with contextlib.suppress(Exception):  # a request that cannot be read on is as good as gone
        while (await receive())["type"] != "http.disconnect":
            pass


def hub_of(app: FastAPI) -> Hub:
    """The application's streams; made when the first is asked for."""
    hub: Hub | None = getattr(app.state, "streams", None)
    if hub is None:
        service: Service = app.state.service
        pace = Pace(heartbeat_s=service.settings.service.heartbeat_s)
        hub = app.state.streams = Hub(service.sessions, service.store, session_view, pace)
    return hub


def resume_after(last_event_id: str, after: int) -> int:
    """Where a reader goes on: the larger of what it names. An id that is no number (a proxy's, say) names nothing."""
    digits = last_event_id.strip()
    if not (digits.isascii() and digits.isdigit()):
        return after
    return max(after, int(digits) if len(digits) < len(str(MAX_ID)) else MAX_ID)


_EXAMPLE = """retry: 900

id: 1
event: session_started
data: {"seq":1,"at":"2026-11-30T12:00:00+00:00","kind":"session_started","role":"owner", ...}

event: board
data: {"id":"20261130-120000-ab12cd","status":"running", ...}

event: end
data: {"status":"passed"}
"""
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The session's events: each entry of its log once, with its number as id (`EventOut`); `board`, "
        "the session as a whole, at most twice a second; `end` with the status when it is over. `resync` says that "
        "the id the client named is of no entry, and that the log follows from the start; `error`, that it is to "
        "connect again.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": _EXAMPLE}},
        "model": EventOut,
    }
}


@router.get(
    "/v1/research/{session_id}/events",
    status_code=200,
    response_class=EventStream,
    responses=_STREAM | responses(404),
    summary="Follow a session",
)
@router.get(
    "/v1/status/{session_id}",
    status_code=200,
    response_class=EventStream,
    responses=_STREAM | responses(404),
    summary="Follow a session, by its other name",
)
async def events(
    session_id: str,
    request: Request,
    who: Annotated[Caller, Depends(needs(Permission.READ))],
    after: Annotated[int, Query(ge=0, le=MAX_ID, description="only entries above this number")] = 0,
    last_event_id: Annotated[
        str,
        Header(alias="Last-Event-ID", description="the same, as browsers send it when they reconnect; the larger wins"),
    ] = "",
    board: Annotated[bool, Query(description="with the session as a whole, whenever it has changed")] = True,
) -> EventStream:
    """Every entry of the session's log, from the start or above `after`, then those that come, then the end.

    A connection that breaks costs nothing: connect again with the last id that came. Nobody has to listen for a
    session to go on.
    """
    row = await session_of(service_of(request), who, session_id)
    return EventStream(hub_of(request.app), row, resume_after(last_event_id, after), boards=board)
