"""The coordinators that share a store: who of them lives, and whose sessions are whose."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from marg_ray.actors.holder import is_alive
from marg_ray.errors import SessionMoved
from marg_ray.store.protocol import SessionRow, Store

SETTLED = frozenset({"passed", "quality_warning", "insufficient_evidence", "budget_stopped", "cancelled"})


@dataclass(frozen=True)
class Neighbours:
    """One coordinator's view of the others. `holder` names the runtime, `shard` the coordinator in it."""

    store: Store
    holder: str
    shard: int
    dead_after_s: float

    async def beat(self) -> None:
        """Give a sign of life."""
        await self.store.beat(self.holder, self.shard)

    async def orphans(self) -> list[int]:
        """The silent coordinators of this runtime that this one is the next living after."""
        rows = await self.store.shards(self.holder)
        living = {r.shard for r in rows if self._fresh(r.beat_at)} | {self.shard}
        after = sorted(living)
        silent = [r.shard for r in rows if r.shard not in living]
        return [s for s in silent if next((n for n in after if n > s), after[0]) == self.shard]

    async def left_by(self, shard: int) -> list[SessionRow]:
        """The sessions that a coordinator of this runtime had under way."""
        rows = [
            await self.store.sessions(status=status, holder=self.holder, shard=shard, limit=100_000)
            for status in ("running", "waiting")
        ]
        return [row for some in rows for row in some]

    async def see_that_it_is_free(self, row: SessionRow) -> None:
        """Nobody else works on the session.

        Raises:
            SessionMoved: somebody does, and gives signs of life.
        """
        if not row.holder or (row.holder, row.shard) == (self.holder, self.shard) or row.status in SETTLED:
            return
        if not is_alive(row.holder):
            return
        for other in await self.store.shards(row.holder):
            if other.shard == row.shard and self._fresh(other.beat_at):
                raise SessionMoved(row.id, row.shard, row.holder if row.holder != self.holder else "")

    def _fresh(self, beat_at: datetime) -> bool:
        return (datetime.now(UTC) - beat_at).total_seconds() < self.dead_after_s
