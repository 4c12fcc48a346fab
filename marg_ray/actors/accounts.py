"""What the ledger knows of a session: its budget, and which calls are under way or settled."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from marg_ray.budget import NOTHING, Budget, minus
from marg_ray.errors import StaleEpoch
from marg_ray.records import Usage
from marg_ray.seams import CallKey


@dataclass(eq=False)
class Held:
    """A call under way, and what is reserved for it."""

    call: CallKey
    estimate: Usage = NOTHING
    reserved: Usage = NOTHING  # of the session's limits; less than the estimate where it has none
    noted: bool = False  # the store knows of it
    granted: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def by(self, call: CallKey) -> bool:
        return (self.call.task_id, self.call.attempt) == (call.task_id, call.attempt)


@dataclass(eq=False)
class Account:
    """What is known of a session. Without a limit only which calls are under way or settled is kept."""

    epoch: int
    read_at: float
    budget: Budget | None = None
    under_way: dict[str, Held] = field(default_factory=dict)
    orphans: dict[str, Held] = field(default_factory=dict)  # begun before this process started, and still open
    settled: dict[str, tuple[str, ...]] = field(default_factory=dict)  # key -> attempts that ended, "" where not known
    room: asyncio.Event = field(default_factory=asyncio.Event)

    def reserve(self, held: Held, usage: Usage) -> None:
        if self.budget is not None:
            self.budget = self.budget.reserve(usage, held.call.role)
            held.reserved += usage

    def give_back(self, held: Held, usage: Usage) -> None:
        """Of what is reserved for a call under way, `usage` is not needed after all."""
        held.estimate = minus(held.estimate, usage)
        if self.budget is not None and held.reserved != NOTHING:
            self.budget = self.budget.settle(usage, NOTHING, held.call.role)
            held.reserved = minus(held.reserved, usage)
            self.wake()

    def leave(self, held: Held, used: Usage) -> None:
        """The call is not under way any more: what it had reserved comes back, `used` is spent."""
        if self.budget is not None:
            self.budget = self.budget.settle(held.reserved, used, held.call.role)
        held.reserved = NOTHING
        for calls in (self.under_way, self.orphans):
            if calls.get(held.call.key) is held:
                del calls[held.call.key]
        if self.budget is not None and not self.under_way and not self.orphans:
            self.budget = self.budget.idle()
        held.over.set()
        if self.budget is not None:
            self.wake()

    def nothing_to_lose(self, estimate: Usage) -> bool:
        """Whether a call needs no trace in the store before it is made: should it die, no money or limit is missing."""
        return estimate == NOTHING or (self.budget is None and not estimate.cost)

    def fence(self, call: CallKey) -> None:
        """Raises StaleEpoch for a call of a coordinator that is known to be replaced."""
        if 0 < call.epoch < self.epoch:
            raise StaleEpoch(call.session_id, call.epoch, self.epoch)

    def write_off(self) -> None:
        """Nobody came for what was under way before: it is spent."""
        for orphan in list(self.orphans.values()):
            self.leave(orphan, orphan.reserved)

    def spend(self, call: CallKey, used: Usage) -> None:
        if self.budget is not None:
            self.budget = self.budget.settle(NOTHING, used, call.role)

    def wake(self) -> None:
        self.room.set()
        self.room = asyncio.Event()
