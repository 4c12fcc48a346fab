"""The seam between web search and one engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from marg_ray.errors import SourceError


@dataclass(frozen=True, kw_only=True)
class EngineReply:
    """What an engine sent, unchecked: entries may lack anything or be anything."""

    entries: Sequence[object] = ()
    degraded: str = ""  # which part of the engine did not answer, and why; an empty reply then proves nothing


@dataclass(frozen=True)
class Pace:
    """What an engine is asked at most where the settings do not say."""

    per_minute: int
    at_once: int


PUBLIC = Pace(per_minute=30, at_once=6)  # it blocks who asks more
OWN = Pace(per_minute=1200, at_once=64)  # an operator's instance serves many sessions at once


class EngineFailed(SourceError):
    """An engine refused, failed or answered with something else than results.

    `again_after` is the pause in seconds after which the same request may succeed: None = not in this run, 0 = the
    usual back-off. `for_good`: every request to this engine will end the same way until somebody acts on `todo`.
    """

    def __init__(self, reason: str, todo: str = "", again_after: float | None = None, for_good: bool = False) -> None:
        super().__init__(reason, todo, again_after, for_good)
        self.reason, self.todo, self.again_after, self.for_good = reason, todo, again_after, for_good

    def __str__(self) -> str:
        return f"{self.reason} ({self.todo})" if self.todo else self.reason

    @property
    def hint(self) -> str:
        return self.todo


class Engine(Protocol):
    """One search engine. Retries, limits and failover are not its business."""

    @property
    def name(self) -> str: ...

    @property
    def pace(self) -> Pace: ...

    async def search(self, query: str, limit: int) -> EngineReply:
        """Make one request.

        Raises:
            EngineFailed: there is no answer to the query; an empty reply in turn says that nothing was found.
        """

    async def close(self) -> None:
        """Give connections back."""
