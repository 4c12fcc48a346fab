"""The one way from a session's id in a request to the session: only its owner finds it."""

from __future__ import annotations

import contextlib
import re

from marg_ray.actors.holder import is_alive
from marg_ray.actors.live import Progress
from marg_ray.actors.neighbours import SETTLED
from marg_ray.api.callers import Caller
from marg_ray.api.schemas import SessionOut
from marg_ray.api.service import Service
from marg_ray.api.views import at_rest, session_view
from marg_ray.errors import RuntimeUnavailable, SessionMoved, SessionNotFound, StoreConflict
from marg_ray.folding import apply, replay
from marg_ray.seams import in_thread
from marg_ray.state import ResearchState
from marg_ray.store.protocol import SessionRow

_ID = re.compile(r"[\w.-]{1,200}", re.ASCII)
AT_REST = SETTLED | {"halted", "paused"}  # nothing happens to it by itself


async def session_of(service: Service, who: Caller, session_id: str) -> SessionRow:
    """A caller's own session.

    Raises:
        SessionNotFound: there is none of this id, or it is somebody else's: that is not told apart.
    """
    if not _ID.fullmatch(session_id):  # and no database is asked about what cannot be an id
        raise SessionNotFound(session_id)
    row = await service.store.session(session_id)
    if row.owner != who.owner:
        raise SessionNotFound(session_id)
    return row


def abandoned(row: SessionRow) -> bool:
    """Whether the process that worked on a session is gone. To look at such a session would be to go on with it."""
    return row.status in ("running", "waiting") and bool(row.holder) and not is_alive(row.holder)


async def view_of(service: Service, row: SessionRow) -> SessionOut:
    """A session as its log and its coordinator have it now."""
    entries = await service.store.read(row.id)
    state = await in_thread(replay, [e.message for e in entries])
    progress = await progress_of(service, row, state)
    at = entries[-1].seq if entries else 0
    for entry in progress.entries:  # what happened since the log was read: the view is of one moment
        if entry.seq == at + 1:
            state, at = apply(state, entry.message), entry.seq
    return session_view(row, state, progress)


async def progress_of(service: Service, row: SessionRow, state: ResearchState) -> Progress:
    """What its coordinator says of it; a session at rest, or whose coordinator is away, speaks for itself."""
    if abandoned(row):
        return at_rest(state, abandoned=True)
    if row.status not in AT_REST:
        with contextlib.suppress(RuntimeUnavailable, SessionMoved, StoreConflict):
            return await service.sessions.progress(row.id, row.seq, 0.0)
    return at_rest(state)
