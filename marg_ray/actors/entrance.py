"""A coordinator's way to the admission desk: its sessions queue for places, keep them, and leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from marg_ray.actors.live import Live
from marg_ray.actors.protocol import Admission
from marg_ray.errors import RuntimeUnavailable, SessionCancelled, TooBusy
from marg_ray.records import Request
from marg_ray.store.protocol import SessionRow

AGAIN_S = 2.0  # before a desk that was away is asked again


class Entrance:
    """Without an `admission` every session may run. `admitted` is told when one that waited may."""

    def __init__(self, admission: Admission | None, admitted: Callable[[str], None]) -> None:
        self._admission, self._admitted = admission, admitted

    async def queue(self, session_id: str, request: Request) -> asyncio.Task[None] | None:
        """Take a place in the queue for a session that is not begun yet; the task ends when it may run.

        Raises:
            TooBusy: there is none.
        """
        if self._admission is None:
            return None
        place = asyncio.create_task(self._wait(session_id, request, begun=False))
        if await self._admission.position(session_id) is None:
            await asyncio.wait({place}, timeout=1.0)
            if place.done() and isinstance(error := place.exception(), TooBusy):
                raise error
        return place

    def may_run(self, live: Live) -> bool:
        """Whether the session has a place among those that run; it queues for one otherwise."""
        if self._admission is None or live.state.request is None:
            return True
        if live.place is None:
            live.place = asyncio.create_task(self._wait(live.state.session_id, live.state.request, begun=True))
        return live.place.done()

    async def leave(self, live: Live) -> None:
        """The session needs its place no longer."""
        if self._admission is not None and live.place is not None:
            live.place.cancel()
            live.place = None
            await self._admission.leave(live.state.session_id)

    async def keep(self, sessions: Mapping[str, Live]) -> None:
        """Sessions that run keep their places."""
        if self._admission is not None:
            await self._admission.renew({name: live.owner for name, live in sessions.items() if _runs(live)})

    async def had(self, row: SessionRow) -> None:
        """A session that is taken up again had a place, if it was at work, and keeps it."""
        if self._admission is not None and row.status == "running" and row.seq > 1:
            await self._admission.renew({row.id: row.owner})

    async def position(self, live: Live) -> int:
        """The session's place in the queue; 0 where it is in none."""
        if self._admission is None or live.place is None or live.place.done():
            return 0
        return await self._admission.position(live.state.session_id) or 0

    async def _wait(self, session_id: str, request: Request, *, begun: bool) -> None:
        assert self._admission is not None
        while True:
            try:
                await self._admission.enter(session_id, request.owner, request.priority)
                break
            except TooBusy as exc:
                if not begun:  # whoever asks is told
                    raise
                await asyncio.sleep(exc.retry_after_s)
            except (SessionCancelled, RuntimeUnavailable):  # it left meanwhile, or the desk is away
                await asyncio.sleep(AGAIN_S)
        self._admitted(session_id)


def _runs(live: Live) -> bool:
    return live.place is not None and live.place.done() and not live.state.over
