"""Takes the traces of sessions that ended to a collector, beside everything else: no run waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from marg_ray.actors.neighbours import SETTLED
from marg_ray.actors.trace import trace_of
from marg_ray.store.protocol import CallRow, LogEntry, Store
from marg_ray.telemetry.figures import FIGURES
from marg_ray.telemetry.spans import Trace

log = logging.getLogger(__name__)

SPACE = "trace"  # in the store's caches: which sessions the collector has, and up to which entry
KEPT_S = 7 * 86_400.0
MISSED = timedelta(days=1)  # how far back to look for sessions that the collector has not got
AGAIN_S = 300.0  # between two looks, while the collector does not answer
WAITING = 200  # sessions; of more the trace comes at the next look
Ended = tuple[str, Sequence[LogEntry], Sequence[CallRow]]


class Traces:
    """Sends each trace once it is asked to; what did not arrive is looked for in the store, at the start and later.

    Making a trace and sending it happen on a thread of its own, one after the other. `send` is blocking, says whether
    the trace arrived, and does not raise. With `looks` it looks for sessions of a process that died.
    """

    def __init__(self, store: Store, send: Callable[[Trace], bool], *, looks: bool = True) -> None:
        self._store, self._send, self._looks = store, send, looks
        self._ended: asyncio.Queue[Ended] = asyncio.Queue(WAITING)
        self._thread = ThreadPoolExecutor(1, "marg-traces")
        self._work: asyncio.Task[None] | None = None
        self._look_at = 0.0 if looks else float("inf")  # on the monotonic clock

    def start(self) -> None:
        """Begin to send: first what an earlier process has not."""
        if self._work is None:
            self._work = asyncio.create_task(self._run())

    def ended(self, session_id: str, entries: Sequence[LogEntry], calls: Sequence[CallRow]) -> None:
        """A session came to an end, or a halt."""
        self.start()
        try:
            self._ended.put_nowait((session_id, entries, calls))
        except asyncio.QueueFull:
            FIGURES.count("marg_traces_total", "dropped")
            self._missed()

    async def flush(self, within_s: float) -> bool:
        """Wait until everything is sent, for `within_s` seconds at most; says whether it is."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._ended.join()
                return True
        return False

    async def close(self) -> None:
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    # ---- inside

    async def _run(self) -> None:
        while True:
            if time.monotonic() >= self._look_at:
                self._look_at = float("inf")
                with contextlib.suppress(Exception):  # the store is away: what it knows is not lost
                    await self._catch_up()
            with contextlib.suppress(TimeoutError):
                left = self._look_at - time.monotonic()
                async with asyncio.timeout(None if left == float("inf") else max(0.0, left)):
                    ended = await self._ended.get()
                try:
                    await self._take(*ended)
                finally:
                    self._ended.task_done()

    async def _take(self, session_id: str, entries: Sequence[LogEntry], calls: Sequence[CallRow]) -> None:
        try:
            loop = asyncio.get_running_loop()
            arrived = await loop.run_in_executor(self._thread, self._made_and_sent, session_id, entries, calls)
            if arrived:
                await self._store.cache_put(SPACE, session_id, str(len(entries)), KEPT_S)
        except Exception as exc:
            log.warning("the trace of session %s could not be made", session_id, exc_info=exc)
            return
        FIGURES.count("marg_traces_total", "sent" if arrived else "failed")
        if not arrived:
            log.warning("the collector did not take the trace of session %s", session_id)
            self._missed()

    def _made_and_sent(self, session_id: str, entries: Sequence[LogEntry], calls: Sequence[CallRow]) -> bool:
        return self._send(trace_of(session_id, entries, calls))

    def _missed(self) -> None:
        if self._looks:
            self._look_at = min(self._look_at, time.monotonic() + AGAIN_S)

    async def _catch_up(self) -> None:
        """Send what the collector has not got of the last day's sessions."""
        since = datetime.now(UTC) - MISSED
        for row in await self._store.sessions(limit=1000):
            if row.status not in SETTLED | {"halted"} or row.updated_at < since:
                continue
            sent = await self._store.cache_get(SPACE, row.id)
            if sent is None or sent.value != str(row.seq):
                await self._take(row.id, await self._store.read(row.id), await self._store.calls(row.id))
            if self._look_at < float("inf"):  # the collector is away: all of it later
                return
