"""Every paid call of every session: none is paid twice, all are counted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from marg_ray.records import Usage
from marg_ray.seams import Begun, CallKey
from marg_ray.store.protocol import CallRow, Store


@dataclass
class _UnderWay:
    holder: str  # the task that makes the call
    over: asyncio.Event = field(default_factory=asyncio.Event)


class LedgerBook:
    """The `Ledger` on a store. While a call is under way, others who ask the same wait for its result.

    The task that holds a call may begin it again (its worker died and it was handed out anew). Another task takes it
    over after `patience_s`.
    """

    def __init__(self, store: Store, *, patience_s: float = 300.0) -> None:
        self._store, self._patience_s = store, patience_s
        self._under_way: dict[tuple[str, str], _UnderWay] = {}

    async def begin(self, call: CallKey, estimate: Usage) -> Begun:
        place = (call.session_id, call.key)
        while (held := self._under_way.get(place)) is not None and held.holder != call.task_id:
            try:
                await asyncio.wait_for(held.over.wait(), self._patience_s)
            except TimeoutError:
                break
        self._under_way[place] = _UnderWay(holder=call.task_id)  # before the await: two who ask at once are two
        row = await self._store.begin_call(call)
        if row.status == "settled":
            self._release(call)
            return Begun(done=True, result=row.result, usage=row.usage)
        return Begun(done=False)

    async def end(self, call: CallKey, result: str, usage: Usage) -> None:
        await self._store.settle_call(call, result, usage)
        self._release(call)

    async def failed(self, call: CallKey) -> None:
        self._release(call)

    async def calls(self, session_id: str) -> list[CallRow]:
        """Every call of a session."""
        return await self._store.calls(session_id)

    def _release(self, call: CallKey) -> None:
        held = self._under_way.pop((call.session_id, call.key), None)
        if held is not None:
            held.over.set()
