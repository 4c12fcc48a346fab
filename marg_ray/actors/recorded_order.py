"""Replaying: facts come into the log in the order in which they were recorded.

Which search answers first decides what is read, and in which order notes and passages stand. A recorded run had one
such order; a replay, in which everything is answered at once, would have another each time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict

from marg_ray.actors.live import Live
from marg_ray.errors import UsageError
from marg_ray.memory.recorded import Recorded, in_order, place_of, run_of
from marg_ray.models.tape import Tape
from marg_ray.tasks import Task

log = logging.getLogger(__name__)


class RecordedOrder:
    """Holds back each answer until all that came before it are in the log.

    A run that has left its recording (the code has changed) must end all the same: where every task under way waits,
    the first of them goes on.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._runs: dict[str, Recorded | None] = {}
        self._waiting: defaultdict[str, set[str]] = defaultdict(set)

    async def turn(self, live: Live, task: Task) -> None:
        """Return when the answer to `task` may be recorded."""
        run = await self._run(live)
        if run is None:
            return
        waiting = self._waiting[task.session_id]
        waiting.add(task.id)
        try:
            live.announce()  # those who wait look whether all others do
            while not self._may(live, task, run):
                await live.changed.wait()
        finally:
            waiting.discard(task.id)
            if not waiting:
                self._waiting.pop(task.session_id, None)

    def _may(self, live: Live, task: Task, run: Recorded) -> bool:
        if in_order(run.order, live.state.answered, task.session_id, task.id):
            return True
        waiting = self._waiting[task.session_id]
        if live.turn.locked() or not live.in_flight.keys() <= waiting:
            return False  # something may still come
        first = min(live.in_flight, key=lambda t: (place_of(run.order, task.session_id, t), t))
        return first == task.id

    async def _run(self, live: Live) -> Recorded | None:
        request, sid = live.state.request, live.state.session_id
        if request is None:
            return None
        if sid not in self._runs:
            try:
                self._runs[sid] = await asyncio.to_thread(run_of, self._tape, request)
            except UsageError as exc:  # the formatter will say so, and halt the run
                log.warning("%s is replayed in another order: %s", sid, exc)
                self._runs[sid] = None
        return self._runs[sid]
