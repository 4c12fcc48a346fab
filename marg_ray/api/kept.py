"""What is kept of a session for those who follow it: its newest events and its board, each made once for all."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import BaseModel

from marg_ray.actors.live import Progress
from marg_ray.api.narrate import public
from marg_ray.api.sse import frame
from marg_ray.folding import apply
from marg_ray.state import ResearchState
from marg_ray.store.protocol import LogEntry, SessionRow

PIECE = 64 * 1024  # bytes that are handed to a connection at once

View = Callable[[SessionRow, ResearchState, Progress], BaseModel]


def event_frame(entry: LogEntry) -> bytes:
    return frame(entry.message.kind, public(entry), entry.seq)


class Tail:
    """The newest frames of a log. `head` is the number of the last."""

    def __init__(self, most: int) -> None:
        self.head, self.first, self._most = 0, 1, most  # numbers of the newest and of the oldest that is kept
        self._frames: list[bytes] = []
        self._size = 0

    def add(self, new: bytes) -> None:
        self._frames.append(new)
        self.head += 1
        self._size += len(new)
        if self._size > self._most:  # half of it goes at once, so that this is seldom
            gone = 0
            while gone < len(self._frames) - 1 and self._size > self._most // 2:
                self._size -= len(self._frames[gone])
                gone += 1
            del self._frames[:gone]
            self.first += gone

    def after(self, seq: int) -> tuple[bytes, int] | None:
        """Frames above `seq` in one piece, and the number of the last of them; None: they are not kept any more."""
        start = at = seq + 1 - self.first
        if start < 0:
            return None
        if seq >= self.head:
            return b"", seq
        size = 0
        while at < len(self._frames) and size < PIECE:
            size += len(self._frames[at])
            at += 1
        return b"".join(self._frames[start:at]), self.first + at - 1


class Board:
    """The session as a whole. A newer board replaces the one before it; `number` tells them apart."""

    def __init__(self, row: SessionRow, view: View) -> None:
        self.number, self.frame = 0, b""
        self._row, self._view = row, view
        self.state = ResearchState()
        self._last: LogEntry | None = None

    def fold(self, entry: LogEntry) -> None:
        self.state = apply(self.state, entry.message)
        self._last = entry

    def draw(self, progress: Progress) -> None:
        last = self._last
        row = self._row.model_copy(update={"seq": last.seq, "updated_at": last.at} if last else {})
        self.frame = frame("board", self._view(row, self.state, progress).model_dump(mode="json"))
        self.number += 1
