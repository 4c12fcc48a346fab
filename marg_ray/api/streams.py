"""Sessions' events for many readers at once: one subscription per session in this process, whoever reads it.

A log entry is made into bytes once. A reader is a cursor into these, never a queue: one that is slow takes more at a
time, one that has fallen far behind reads from the store what is not kept any more. A reader that goes stops nothing
but itself; when the last has gone, the subscription ends a little later.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from marg_ray.actors.live import Progress
from marg_ray.actors.neighbours import SETTLED
from marg_ray.api.kept import Board, Tail, View, event_frame
from marg_ray.api.service import Sessions
from marg_ray.api.sse import BEAT, frame, retry
from marg_ray.api.views import at_rest
from marg_ray.errors import MargError, SessionMoved
from marg_ray.store.protocol import LogEntry, SessionRow, Store

log = logging.getLogger(__name__)

OVER = SETTLED | {"halted"}  # nothing follows unless its owner resumes it
PAGE = 100  # entries that are read from the store at once
RECONNECT_S = (0.5, 1.5)  # so that those who lost a server do not come back all at once
DONE_S = 30.0  # the same for a client that does not understand `end` and comes back after it
BOARD_SHARE = 0.05  # of the time, at most, goes into drawing a session's boards


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Times in seconds, sizes in bytes."""

    heartbeat_s: float = 10.0
    board_s: float = 0.5  # between two boards of a session
    wait_s: float = 10.0  # that a coordinator is asked to wait for something new
    linger_s: float = 3.0  # that a subscription outlives its last reader
    pause_s: tuple[float, float] = (0.25, 5.0)  # before a coordinator that is away is asked again, at first and at last
    absent_s: float = 180.0  # that a coordinator may be away before readers are sent elsewhere
    longest_s: float = 3600.0  # of a connection; its client comes back by itself
    kept_bytes: int = 512 * 1024  # of a session's newest events


class Channel:
    """One session as it is followed here: its newest events, its board, and those who read them."""

    def __init__(
        self, row: SessionRow, sessions: Sessions, store: Store, view: View, pace: Pace, closed: Callable[[], None]
    ) -> None:
        self.id, self.tail, self.board = row.id, Tail(pace.kept_bytes), Board(row, view)
        self.last = b""  # the frame that ends the stream; empty: it goes on
        self.failed = False
        self.loop = asyncio.get_running_loop()
        self.pace, self._sessions, self._store, self._closed = pace, sessions, store, closed
        self._readers: set[Reader] = set()
        self._caught_up = False  # with the store
        self._heard = self.loop.time()  # of the session
        self._progress: Progress | None = None
        self._drawn_at, self._drawing = 0.0, 0.0  # when the board was drawn, and how long it took
        self._stale = True
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._following = self.loop.create_task(self._follow())
        self._later("beat", pace.heartbeat_s, self._beat)

    # ---- readers

    def join(self, after: int, *, known: int, boards: bool) -> Reader:
        """`known`: entries that the log has for certain; who has read more than there are is told to start again."""
        self._stop("close")
        reader = Reader(self, after, boards=boards, beyond=after > max(known, self.tail.head))
        self._readers.add(reader)
        if boards and self._stale and self._caught_up:
            self._draw_soon()
        return reader

    def leave(self, reader: Reader) -> None:
        self._readers.discard(reader)
        if not self._readers:
            self._later("close", self.pace.linger_s, self.close)

    def close(self) -> None:
        """Let go of everything at once."""
        self._following.cancel()
        for name in list(self._timers):
            self._stop(name)
        for reader in list(self._readers):
            reader.stop()
        self._closed()

    async def after(self, seq: int) -> tuple[bytes, int]:
        """Frames above `seq` in one piece, and the number of the last of them."""
        found = self.tail.after(seq)
        if found is None:
            entries = await self._store.read(self.id, after=seq, most=PAGE)
            if not entries:  # the store has lost them
                return b"", self.tail.first - 1
            found = b"".join(map(event_frame, entries)), entries[-1].seq
        return found

    def _tell(self) -> None:
        for reader in self._readers:
            reader.wake.set()

    def _beat(self) -> None:
        for reader in self._readers:
            reader.beat = True
        self._tell()
        self._later("beat", self.pace.heartbeat_s, self._beat)

    # ---- the session

    async def _follow(self) -> None:
        """Until it is over. A coordinator that is away is asked again and again; the store tells what it can."""
        shortest, longest = self.pace.pause_s
        pause = shortest
        while not self.last:
            try:
                if not self._caught_up:
                    await self._read_log()
                if not self.last:
                    self._take(await self._sessions.progress(self.id, self.tail.head, self.pace.wait_s))
                self._heard, pause = self.loop.time(), shortest
                if not self._caught_up:  # the coordinator is ahead of the store's log as it was read
                    await asyncio.sleep(shortest)
            except Exception as exc:
                await self._without(exc)
                if not self.last:
                    await asyncio.sleep(pause * random.uniform(0.5, 1.5))
                pause = min(2 * pause, longest)

    async def _without(self, exc: Exception) -> None:
        """The coordinator does not answer, or somebody else's has the session."""
        if not isinstance(exc, MargError):
            log.error("session %s cannot be followed", self.id, exc_info=exc)
        before = self.tail.head
        try:
            await self._read_log()
        except Exception as also:
            log.info("session %s: no coordinator (%s) and no store (%s)", self.id, exc, also)
        else:
            if self.tail.head > before or isinstance(exc, SessionMoved):
                self._heard = self.loop.time()
                return
        if not self.last and self.loop.time() - self._heard > self.pace.absent_s:
            self.failed = True
            self._end(_error(exc))

    async def _read_log(self) -> None:
        """Bring what is here up to the store."""
        before, row = self.tail.head, await self._store.session(self.id)
        while entries := await self._store.read(self.id, after=self.tail.head, most=PAGE):
            self._add(entries)
            self._tell()
        if self.tail.head > before or not self._caught_up:
            self._caught_up, self._progress = True, at_rest(self.board.state)
            self._changed()
        if row.status in OVER:
            self._finish(row.status)

    def _take(self, progress: Progress) -> None:
        new = [entry for entry in progress.entries if entry.seq > self.tail.head]
        if new and new[0].seq != self.tail.head + 1:
            self._caught_up = False
            return
        self._add(new)
        before, self._progress = self._progress, progress
        if new or before is None or _standing(before) != _standing(progress):
            self._changed()
        if progress.status in OVER:
            self._finish(progress.status)
        elif new:
            self._tell()

    def _add(self, entries: Sequence[LogEntry]) -> None:
        for entry in entries:
            self.tail.add(event_frame(entry))
            self.board.fold(entry)

    def _finish(self, status: str) -> None:
        self._draw()
        self._end(frame("end", {"status": status}) + retry(DONE_S))

    def _end(self, last: bytes) -> None:
        self.last = last
        self._tell()

    # ---- the board

    def _changed(self) -> None:
        self._stale = True
        self._draw_soon()

    def _draw_soon(self) -> None:
        every = max(self.pace.board_s, self._drawing / BOARD_SHARE)
        wait = self._drawn_at + every - self.loop.time()
        if wait <= 0 or self.last:
            self._draw()
        elif "draw" not in self._timers:
            self._later("draw", wait, self._draw)

    def _draw(self) -> None:
        """Draw the board, if somebody looks at it."""
        self._stop("draw")
        if not self._stale or self._progress is None or not any(reader.boards for reader in self._readers):
            return
        self._drawn_at = self.loop.time()
        try:
            self.board.draw(self._progress)
        except Exception:  # the events go on without it
            log.exception("session %s: its board cannot be drawn", self.id)
        self._stale = False
        self._drawing = self.loop.time() - self._drawn_at
        self._tell()

    # ---- timers

    def _later(self, name: str, seconds: float, act: Callable[[], None]) -> None:
        self._stop(name)
        self._timers[name] = self.loop.call_later(seconds, act)

    def _stop(self, name: str) -> None:
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()


class Reader:
    """One client's place in a session's events."""

    def __init__(self, channel: Channel, after: int, *, boards: bool, beyond: bool) -> None:
        self.boards, self.wake, self.beat = boards, asyncio.Event(), False
        self._channel, self._cursor, self._board, self._over = channel, 0 if beyond else after, 0, False
        self._until = channel.loop.time() + channel.pace.longest_s
        self._hello = retry(random.uniform(*RECONNECT_S))
        if beyond:  # its number is of another log, or of one that has lost its end
            self._hello += frame("resync", {"after": after}, 0)

    def stop(self) -> None:
        self._over = True
        self.wake.set()

    async def next(self) -> bytes:
        """What there is to send, in one piece; waits until there is something. Empty: the stream is over."""
        while not self._over:
            self.wake.clear()
            parts = await self._parts()
            if parts or self._over:
                return b"".join(parts)
            await self.wake.wait()
        return b""

    async def _parts(self) -> list[bytes]:
        channel, parts = self._channel, [self._hello] if self._hello else []
        self._hello = b""
        try:
            events, self._cursor = await channel.after(self._cursor)
        except Exception as exc:
            events, self._over = _error(exc), True
        if events:
            parts.append(events)
        if self._over or self._cursor < channel.tail.head:
            self.wake.set()  # there is more
            return parts
        if self.boards and channel.board.number > self._board:
            parts.append(channel.board.frame)
            self._board = channel.board.number
        if channel.last:
            parts.append(channel.last)
            self._over = True
        if self.beat and not parts:
            parts.append(BEAT)
        self.beat = False
        self._over = self._over or channel.loop.time() > self._until
        return parts


class Hub:
    """The sessions that are followed in this process."""

    def __init__(self, sessions: Sessions, store: Store, view: View, pace: Pace | None = None) -> None:
        self._sessions, self._store, self._view, self._pace = sessions, store, view, pace or Pace()
        self._channels: dict[str, Channel] = {}

    @contextmanager
    def reading(self, row: SessionRow, after: int = 0, *, boards: bool = True) -> Iterator[Reader]:
        """A reader of the session's events above `after`. `row` is the session as it is now."""
        channel = self._channel(row)
        reader = channel.join(after, known=row.seq, boards=boards)
        try:
            yield reader
        finally:
            channel.leave(reader)

    def close(self) -> None:
        """End every stream without an `end`: clients come back, to another server."""
        for channel in list(self._channels.values()):
            channel.close()

    def _channel(self, row: SessionRow) -> Channel:
        channel = self._channels.get(row.id)
        if channel is not None and channel.loop is asyncio.get_running_loop() and not channel.failed:
            resumed = channel.last and (row.status not in OVER or row.seq > channel.tail.head)
            if not resumed:
                return channel

        def closed() -> None:
            if self._channels.get(row.id) is new:
                del self._channels[row.id]

        new = Channel(row, self._sessions, self._store, self._view, self._pace, closed)
        self._channels[row.id] = new
        return new


def _error(exc: Exception) -> bytes:
    """The stream cannot go on here; its client may come again."""
    if isinstance(exc, MargError):
        return frame("error", {"code": exc.code, "detail": str(exc)})
    return frame("error", {"code": "InternalError", "detail": "something went wrong here"})


def _standing(progress: Progress) -> tuple[object, ...]:
    """What of it a board shows that does not change by itself."""
    running = tuple(task.id for task in progress.running)
    return progress.status, progress.waiting_for, progress.halt, progress.position, running
