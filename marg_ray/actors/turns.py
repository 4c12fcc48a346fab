"""Whose turn it is: fair shares between owners, interactive sessions before batch ones. Pure: no clock, no waiting."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from marg_ray.records import Priority

BATCH_EVERY = 8  # while both kinds wait, at least every 8th session that is admitted is a batch session
MIN_WEIGHT = 1e-3
URGENT_FIRST = (Priority.INTERACTIVE, Priority.BATCH)


@dataclass(frozen=True)
class Waiting:
    session_id: str
    owner: str
    priority: Priority
    arrival: int  # rising


@dataclass
class _Shares:
    """What each owner has had. `tags` are start tags in virtual time, which grows by one turn for all who wait."""

    running: dict[str, int] = field(default_factory=dict)
    tags: dict[str, float] = field(default_factory=dict)
    batch_passed_over: int = 0  # admissions since a batch session that waits was last admitted

    def copy(self) -> _Shares:
        return _Shares(dict(self.running), dict(self.tags), self.batch_passed_over)

    def count(self, owner: str, change: int) -> None:
        self.running[owner] = self.running.get(owner, 0) + change
        if self.running[owner] <= 0:
            del self.running[owner]

    def charge(self, taken: Waiting, weight: float, *, batch_waits: bool) -> None:
        self.count(taken.owner, 1)
        self.tags[taken.owner] = self.tags.get(taken.owner, 0.0) + 1 / weight
        self.batch_passed_over = self.batch_passed_over + 1 if batch_waits else 0


class Turns:
    """The sessions that wait, and what their owners run.

    Next is a session of the owner that runs least for its weight. Of equals it is the one that was served least while
    it waited (start tags as in start-time fair queueing: Goyal, Vin and Cheng 1996); of equals, the one that came
    first. So a share of the places follows the weights, and an owner who comes with one session does not wait for
    another's five hundred, even where only one session runs at a time. An owner's own sessions keep their order.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self._weights = weights or {}
        self._shares = _Shares()
        self._now = 0.0  # virtual time: turns had by an owner of weight 1 who always waits
        self._lines: dict[Priority, dict[str, dict[str, Waiting]]] = {p: {} for p in URGENT_FIRST}
        self._places: dict[str, Waiting] = {}

    def __len__(self) -> int:
        return len(self._places)

    def weight(self, owner: str) -> float:
        return max(MIN_WEIGHT, self._weights.get(owner, 1.0))

    def add(self, waiting: Waiting) -> None:
        """Take a session in. An owner who did not wait before has no credit from that time, and no debt."""
        if not self._waits(waiting.owner):
            self._shares.tags[waiting.owner] = max(self._now, self._shares.tags.get(waiting.owner, 0.0))
        self._places[waiting.session_id] = waiting
        self._lines[waiting.priority].setdefault(waiting.owner, {})[waiting.session_id] = waiting

    def remove(self, session_id: str) -> None:
        """A session does not wait any more."""
        waiting = self._places.pop(session_id, None)
        if waiting is not None:
            line = self._lines[waiting.priority]
            del line[waiting.owner][session_id]
            if not line[waiting.owner]:
                del line[waiting.owner]

    def started(self, owner: str) -> None:
        """A session runs that was not admitted from here."""
        self._shares.count(owner, 1)

    def ended(self, owner: str) -> None:
        """A session of `owner` does not run any more."""
        self._shares.count(owner, -1)
        self._forget_idle(owner)

    def take(self) -> Waiting | None:
        """Admit the next session: it waits no more and counts as running."""
        batch_waits = bool(self._lines[Priority.BATCH])
        taken = next(self._walk(self._shares.copy()), None)
        if taken is None:
            return None
        owners = {owner for line in self._lines.values() for owner in line}
        self._now += 1 / sum(map(self.weight, owners))
        self.remove(taken.session_id)
        batch_waits = batch_waits and taken.priority is not Priority.BATCH
        self._shares.charge(taken, self.weight(taken.owner), batch_waits=batch_waits)
        if not self._places:  # nobody was kept waiting: nothing to make up for
            self._shares.tags, self._now = {}, 0.0
        return taken

    def order(self) -> list[str]:
        """The sessions in the order in which they would be admitted if none ended and none came."""
        return [waiting.session_id for waiting in self._walk(self._shares.copy())]

    def _walk(self, shares: _Shares) -> Iterator[Waiting]:
        """The sessions in their order; `shares` is charged with each."""
        lines = {p: {owner: list(line.values())[::-1] for owner, line in self._lines[p].items()} for p in URGENT_FIRST}

        def key(priority: Priority, owner: str) -> tuple[float, float, int]:
            runs = shares.running.get(owner, 0) / self.weight(owner)
            return runs, shares.tags[owner], lines[priority][owner][-1].arrival

        heaps = {p: [(key(p, owner), owner) for owner in lines[p]] for p in URGENT_FIRST}
        for heap in heaps.values():
            heapq.heapify(heap)
        while any(heaps.values()):
            priority = Priority.INTERACTIVE if heaps[Priority.INTERACTIVE] else Priority.BATCH
            if heaps[Priority.BATCH] and shares.batch_passed_over >= BATCH_EVERY - 1:
                priority = Priority.BATCH
            heap = heaps[priority]
            while heap[0][0] != (now := key(priority, heap[0][1])):  # keys only rise: charged in the other line since
                heapq.heapreplace(heap, (now, heap[0][1]))
            owner = heap[0][1]
            taken = lines[priority][owner].pop()
            batch_waits = bool(heaps[Priority.BATCH]) and priority is not Priority.BATCH
            shares.charge(taken, self.weight(owner), batch_waits=batch_waits)
            if lines[priority][owner]:
                heapq.heapreplace(heap, (key(priority, owner), owner))
            else:
                heapq.heappop(heap)
            yield taken

    def _waits(self, owner: str) -> bool:
        return any(owner in line for line in self._lines.values())

    def _forget_idle(self, owner: str) -> None:
        idle = owner not in self._shares.running and not self._waits(owner)
        if idle and self._shares.tags.get(owner, 0.0) <= self._now:
            self._shares.tags.pop(owner, None)
