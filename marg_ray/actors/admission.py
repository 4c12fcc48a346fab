"""How many sessions run at once, and who is next. Soft state: it is learnt anew from those who hold places."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from marg_ray.actors.turns import Turns, Waiting
from marg_ray.errors import SessionCancelled, TooBusy
from marg_ray.records import Priority
from marg_ray.settings import AdmissionSettings

LEASE_S = 60.0  # a place that nobody renews is free after this
GRACE_S = 10.0  # after a restart: so long those who hold places may say so before anybody is admitted
TICK_S = 1.0  # while sessions wait, leases and the limit are looked at this often
ENDINGS = 32  # of the latest, for the rate at which places become free
RETRY_S = (
    1.0,
    30.0,
    600.0,
)  # the least and the most a refused caller is told to wait; between: where nothing ended yet


class Valve:
    """The number of sessions that may run: less when the model is pressed, slowly more when it is not.

    Additive increase, multiplicative decrease (Chiu and Jain 1989): halved at most once in `window_s` seconds, from
    what runs if that is less; a sixteenth of the whole more after every window without a complaint. From 1 to `most`.
    """

    DECREASE, INCREASE = 0.5, 1 / 16
    QUEUE_PER_SESSION = 4  # requests that wait at the model; more for each session that may run are too many

    def __init__(self, most: int, now: float, *, window_s: float = 10.0) -> None:
        self.most, self.limit, self._window_s = most, most, window_s
        self._quiet_since, self._decreased_at = now, now - window_s

    def press(self, running: int, now: float, *, throttled: int, queue_depth: int) -> None:
        """The model complained of `throttled` requests, or has `queue_depth` waiting."""
        self.grow(now)
        if throttled <= 0 and queue_depth <= self.QUEUE_PER_SESSION * self.limit:
            return
        self._quiet_since = now
        if now - self._decreased_at >= self._window_s:
            self._decreased_at = now
            self.limit = max(1, int(min(self.limit, max(running, 1)) * self.DECREASE))

    def grow(self, now: float) -> None:
        windows = int((now - self._quiet_since) / self._window_s)
        if windows > 0:
            self._quiet_since += windows * self._window_s
            self.limit = min(self.most, self.limit + windows * max(1, int(self.most * self.INCREASE)))


@dataclass
class _Place:
    owner: str
    until: float  # on the desk's clock


@dataclass
class _Waiter:
    admitted: asyncio.Future[None]
    callers: int = 0


@dataclass(frozen=True)
class Standing:
    running: int
    waiting: int
    limit: int  # sessions that may run now


class Desk:
    """Admits sessions. For one event loop; every method may be called again with the same arguments.

    It keeps nothing on disk. Who holds places renews them every few seconds; a place that is not renewed within
    `lease_s` is free again. A desk that was restarted, or stands in for another (`restarted=True`), admits nobody in
    the first `grace_s` in which it is spoken to, and has learnt by then who runs; so again after a silence of
    `lease_s`. The limit bounds admissions: sessions that run go on, whatever it becomes.
    """

    def __init__(
        self,
        settings: AdmissionSettings,
        *,
        lease_s: float = LEASE_S,
        restarted: bool = False,
        grace_s: float = GRACE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._lease_s, self._clock = settings, lease_s, clock
        self._restarted, self._grace_s = restarted, grace_s
        self._opens_at, self._heard_at = (math.inf, -math.inf) if restarted else (clock(), clock())
        self._valve = Valve(settings.sessions, clock())
        self._turns = Turns(settings.weights)
        self._held: dict[str, _Place] = {}
        self._waiters: dict[str, _Waiter] = {}
        self._left: dict[str, float] = {}  # until when a late renewal of a session that left is not believed
        self._endings: deque[float] = deque(maxlen=ENDINGS)
        self._arrivals = 0
        self._timer: asyncio.TimerHandle | None = None
        self._moved = asyncio.Event()
        self._order: tuple[int, dict[str, int]] = (-1, {})
        self.version = 0  # rises whenever a position may have changed

    # ---- places

    async def enter(self, session_id: str, owner: str, priority: Priority) -> None:
        """Returns when the session may run; at once if it runs already. One that waits keeps its place in the queue.

        A caller that is cancelled takes its session out of the queue, unless another caller waits for the same one or
        it has been admitted: then `leave` gives the place back (or nobody renews it).

        Raises:
            TooBusy: the queue is full; says when a place in it should be free.
            SessionCancelled: the session left while it waited.
        """
        self._hear()
        self._left.pop(session_id, None)
        if session_id in self._held:
            self._hold(session_id, owner)
            return
        self.settle()
        waiter = self._waiters.get(session_id) or self._queue(session_id, owner, priority)
        waiter.callers += 1
        try:
            await asyncio.shield(waiter.admitted)
        finally:
            waiter.callers -= 1
            if not waiter.callers and not waiter.admitted.done():
                self._drop(session_id)

    async def leave(self, session_id: str) -> None:
        """The session ended, or pauses: its place, in the queue or among those that run, is free."""
        now = self._hear()
        self._left[session_id] = now + self._lease_s
        if session_id in self._held:
            self._free(session_id)
            self._endings.append(now)
        waiter = self._drop(session_id)
        if waiter is not None:
            waiter.admitted.set_exception(SessionCancelled(session_id))
        self.settle()

    async def renew(self, session_ids: Iterable[str], owners: Mapping[str, str] | None = None) -> None:
        """These sessions run. One the desk does not know is taken in, whatever the limit is; `owners` says whose."""
        self._hear()
        for session_id in session_ids:
            if session_id not in self._left:
                self._hold(session_id, (owners or {}).get(session_id, ""))
        self.settle()

    async def pressure(self, throttled: int, queue_depth: int = 0) -> None:
        """The model refused `throttled` requests as too many, or lets `queue_depth` wait."""
        now = self._clock()
        self._valve.press(len(self._held), now, throttled=throttled, queue_depth=queue_depth)
        self.settle()

    # ---- what can be seen

    def position(self, session_id: str) -> int | None:
        """0: it runs. n: it is the n-th in the queue as things stand. None: it is not known here."""
        return self.positions().get(session_id)

    def positions(self) -> dict[str, int]:
        """The position of every session."""
        if self._order[0] != self.version:
            queue = {session_id: n for n, session_id in enumerate(self._turns.order(), 1)}
            self._order = (self.version, dict.fromkeys(self._held, 0) | queue)
        return self._order[1]

    async def changed(self, seen: int = -1, wait_s: float = 10.0) -> int:
        """The version, as soon as it is not `seen` any more, or after `wait_s` seconds."""
        if self.version == seen:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._moved.wait()
        return self.version

    def standing(self) -> Standing:
        return Standing(len(self._held), len(self._waiters), self._valve.limit)

    # ---- inside

    def settle(self) -> None:
        """Free what was not renewed, let the limit grow, and admit whoever may run now."""
        now = self._clock()
        for session_id in [s for s, place in self._held.items() if place.until <= now]:
            self._free(session_id)
        for session_id in [s for s, until in self._left.items() if until <= now]:
            del self._left[session_id]
        self._valve.grow(now)
        while self._has_room(now) and (taken := self._turns.take()) is not None:
            self._held[taken.session_id] = _Place(taken.owner, now + self._lease_s)
            self._waiters.pop(taken.session_id).admitted.set_result(None)
            self._touch()
        if self._waiters and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _hear(self) -> float:
        """Somebody speaks to this desk: now, on its clock."""
        now = self._clock()
        if self._restarted and now - self._heard_at > self._lease_s:
            self._opens_at = now + self._grace_s
        self._heard_at = now
        return now

    def _tick(self) -> None:
        self._timer = None
        self.settle()

    def _has_room(self, now: float) -> bool:
        return now >= self._opens_at and len(self._held) < self._valve.limit

    def _queue(self, session_id: str, owner: str, priority: Priority) -> _Waiter:
        if len(self._waiters) >= self._settings.waiting and not (self._has_room(self._clock()) and not self._waiters):
            raise TooBusy(len(self._waiters), self._retry_after())
        waiter = self._waiters[session_id] = _Waiter(asyncio.get_running_loop().create_future())
        self._arrivals += 1
        self._turns.add(Waiting(session_id, owner, priority, self._arrivals))
        self._touch()
        self.settle()
        return waiter

    def _hold(self, session_id: str, owner: str) -> None:
        """Note that a session runs, for another lease."""
        until = self._clock() + self._lease_s
        place = self._held.get(session_id)
        if place is not None and (place.owner == owner or not owner):
            place.until = until
            return
        if place is not None:
            self._free(session_id)
        waiter = self._drop(session_id)
        if waiter is not None:
            waiter.admitted.set_result(None)
        self._held[session_id] = _Place(owner, until)
        self._turns.started(owner)
        self._touch()

    def _free(self, session_id: str) -> None:
        self._turns.ended(self._held.pop(session_id).owner)
        self._touch()

    def _drop(self, session_id: str) -> _Waiter | None:
        """Take a session out of the queue."""
        waiter = self._waiters.pop(session_id, None)
        if waiter is not None:
            self._turns.remove(session_id)
            self._touch()
        return waiter

    def _retry_after(self) -> float:
        """The mean time between endings, of late: so long until the queue moves by one."""
        least, unknown, most = RETRY_S
        if not self._endings:
            return unknown
        return min(most, max(least, (self._clock() - self._endings[0]) / len(self._endings)))

    def _touch(self) -> None:
        self.version += 1
        self._moved.set()
        self._moved = asyncio.Event()
