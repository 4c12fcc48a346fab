"""A session's budget: limits that know what is used of them, and whether a call may be made. Pure; reads no clock.

Research may use its part of tokens and money, the rest is held back for writing, so that research stops first and
the run still ends in a report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from marg_ray.records import Limits, Role, Usage

RESEARCH = frozenset({Role.RESEARCHER, Role.ANALYST})  # without the others there is no report
NOTHING = Usage()
UNLIMITED = Limits()
Measure: TypeAlias = Literal["tokens", "usd", "searches"]


def measured(usage: Usage, measure: Measure) -> float:
    """How much of `measure` a usage is."""
    if measure == "tokens":
        return usage.tokens_in + usage.tokens_out
    return usage.cost if measure == "usd" else usage.searches


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit and what is used of it. `reserved` is for calls under way and may come back."""

    name: str  # "tokens", "usd", "searches"; research's part of one: "research tokens", "research usd"
    value: float
    spent: float = 0.0
    reserved: float = 0.0

    @property
    def used(self) -> float:
        return self.spent + self.reserved

    @property
    def left(self) -> float:
        return max(0.0, self.value - self.used)

    @property
    def exceeded(self) -> bool:
        return self.spent > self.value


@dataclass(frozen=True, slots=True)
class Granted:
    """There is room."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Only what others have reserved stands in the way."""

    limit: Limit


@dataclass(frozen=True, slots=True)
class Refused:
    """There will be no room, whatever others give back."""

    limit: Limit


Admission: TypeAlias = Granted | Wait | Refused


@dataclass(frozen=True, slots=True)
class Spending:
    """What one side of a session (its research, or all the rest) has spent, and has reserved for calls under way."""

    spent: Usage = NOTHING
    reserved: Usage = NOTHING

    def reserve(self, usage: Usage) -> Spending:
        return replace(self, reserved=self.reserved + usage)

    def settle(self, reserved: Usage, used: Usage) -> Spending:
        """What was reserved comes back, what was used is spent."""
        return Spending(self.spent + used, minus(self.reserved, reserved))


@dataclass(frozen=True, slots=True)
class Budget:
    """A session's limits and its spending. The limits' `writer_share` of tokens and money is closed to research."""

    limits: Limits = UNLIMITED
    research: Spending = field(default_factory=Spending)
    writing: Spending = field(default_factory=Spending)

    def admit(self, estimate: Usage, role: Role) -> Admission:
        """Whether a call that may use `estimate` fits. What it does not use at all is no limit of it."""
        waits: Limit | None = None
        for measure, limit in self._limits(role):
            wanted = measured(estimate, measure)
            if wanted <= 0 or limit.used + wanted <= limit.value:
                continue
            if limit.spent + wanted > limit.value:
                return Refused(limit)
            waits = waits or limit
        return Wait(waits) if waits else Granted()

    def reserve(self, usage: Usage, role: Role) -> Budget:
        """The budget with `usage` set aside for a call of `role`."""
        if role in RESEARCH:
            return replace(self, research=self.research.reserve(usage))
        return replace(self, writing=self.writing.reserve(usage))

    def settle(self, reserved: Usage, used: Usage, role: Role) -> Budget:
        """The budget after a call: `used` may be more than was reserved, or nothing."""
        if role in RESEARCH:
            return replace(self, research=self.research.settle(reserved, used))
        return replace(self, writing=self.writing.settle(reserved, used))

    def idle(self) -> Budget:
        """The budget when no call is under way: nothing is reserved, and no rounding error stays."""
        research, writing = Spending(self.research.spent), Spending(self.writing.spent)
        return replace(self, research=research, writing=writing)

    def state(self) -> tuple[Limit, ...]:
        """The limits that are set, in all."""
        return tuple(limit for _, limit in self._limits(Role.SYNTHESIZER))

    def _limits(self, role: Role) -> Iterator[tuple[Measure, Limit]]:
        mine, rest = self.research, self.writing
        both = Spending(mine.spent + rest.spent, mine.reserved + rest.reserved)
        part = 1 - self.limits.writer_share if role in RESEARCH else 1.0
        if (value := self.limits.searches) is not None:
            yield "searches", _limit("searches", "searches", value, both)
        for name, amount in (("tokens", self.limits.tokens), ("usd", self.limits.usd)):
            measure: Measure = "tokens" if name == "tokens" else "usd"
            if amount is None:
                continue
            if part < 1:
                yield measure, _limit(f"research {name}", measure, amount * part, mine)
            yield measure, _limit(name, measure, amount, both)


def bounded(limits: Limits) -> bool:
    """Whether any limit is set that is kept call by call. Seconds, deadline and tasks are kept by the coordinator."""
    return limits.tokens is not None or limits.usd is not None or limits.searches is not None


def _limit(name: str, measure: Measure, value: float, spending: Spending) -> Limit:
    return Limit(name, value, measured(spending.spent, measure), measured(spending.reserved, measure))


def minus(a: Usage, b: Usage) -> Usage:
    """What of `a` is left without `b`, at least 0 of each field."""
    return Usage(**{n: max(type(v)(0), v - getattr(b, n)) for n, v in a})


def larger(a: Usage, b: Usage) -> Usage:
    """The larger of each field."""
    return Usage(**{n: max(v, getattr(b, n)) for n, v in a})
