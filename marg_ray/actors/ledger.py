"""Every paid call of every session: none is paid twice, all are counted, and no session spends more than it may."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from marg_ray.actors.accounts import Account, Held
from marg_ray.actors.entries import Begin, End, Entry, Failed, Keep, Look, Outcome
from marg_ray.budget import NOTHING, RESEARCH, UNLIMITED, Budget, Granted, Refused, Spending, bounded, minus
from marg_ray.errors import BudgetExceeded, SessionNotFound, StaleEpoch
from marg_ray.records import Limits, Usage
from marg_ray.seams import Begun, CallKey
from marg_ray.store.protocol import CallRow, Store
from marg_ray.telemetry.figures import FIGURES

IDLE_S = 600.0  # an account that nobody asked for is dropped; the store has it
REREAD_S = 60.0  # a session without limits may have got some


class _MustWait(Exception):
    """Others stand in the way, and nobody wants to wait for them."""


class LedgerBook:
    """The `Ledger` on a store. While a call is under way, others who ask the same wait for its result.

    The task that holds a call may begin it again (its worker died and it was handed out anew). Another task takes it
    over after `patience_s`. Either way the earlier attempt may have been paid, so what it had reserved is spent. A
    call waits as long for room that others have reserved.

    Limits are those in the store. They are read when a session is first met, and again before a call is refused.
    A call that costs nothing should it die (a page, an answer of a model on this machine in a session without limits)
    leaves no trace in the store before it is settled: that spares it half of its transactions.
    """

    def __init__(
        self,
        store: Store,
        *,
        patience_s: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._patience_s, self._clock = store, patience_s, clock
        self._accounts: dict[str, Account] = {}
        self._reading = asyncio.Lock()

    async def begin(self, call: CallKey, estimate: Usage) -> Begun:
        """See `Ledger.begin`. Asked again with the same attempt (its answer was lost) it grants the same call."""
        return await self._counted(call, estimate)

    async def enter_all(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Several entries at once, none of which waits for another: outcomes, in order.

        A begin that would have to wait, for the same call or for room, has None for an outcome and leaves nothing
        behind: it is to be asked by itself.
        """
        return list(await asyncio.gather(*(self._entered(entry) for entry in entries)))

    async def _entered(self, entry: Entry) -> Outcome:
        try:
            match entry:
                case Begin(call, estimate):
                    return await self._counted(call, estimate, patient=False)
                case End(call, result, usage):
                    await self.end(call, result, usage)
                case Failed(call):
                    await self.failed(call)
                case Look(space, key):
                    return await self._store.cache_get(space, key)
                case Keep(space, key, value, ttl_s):
                    await self._store.cache_put(space, key, value, ttl_s)
        except _MustWait:
            return None
        except Exception as exc:
            return exc
        return None

    async def _counted(self, call: CallKey, estimate: Usage, *, patient: bool = True) -> Begun:
        try:
            begun = await self._begin(call, estimate, patient=patient)
        except BudgetExceeded as exc:
            FIGURES.count("marg_ledger_calls_total", call.kind, "refused")
            FIGURES.count("marg_ledger_refusals_total", exc.limit)
            raise
        FIGURES.count("marg_ledger_calls_total", call.kind, "reused" if begun.done else "granted")
        return begun

    async def _begin(self, call: CallKey, estimate: Usage, *, patient: bool = True) -> Begun:
        account = await self._account(call)
        known = account.under_way.get(call.key)
        if known is not None and known.granted and call.attempt and known.by(call):
            return Begun(done=False)
        await self._turn(account, call, patient)
        held = self._take(account, call, estimate)  # before any await: two who ask at once are two
        try:
            new = call.key not in account.settled
            if new and account.budget is not None:
                await self._reserve(account, held, estimate, patient)
            if (newer := account.under_way.get(call.key)) is not held and newer is not None:
                account.leave(held, NOTHING)  # another attempt of the task came while this one waited for room
                if not patient:
                    raise _MustWait
                await asyncio.wait_for(newer.over.wait(), self._patience_s)
                return await self._begin(call, estimate)
            if new and account.nothing_to_lose(estimate):
                account.fence(call)
                row = await self._settled_elsewhere(call)
                if row is None:
                    held.granted = True
                    return Begun(done=False)
            else:
                held.noted = True
                row = await self._store.begin_call(call, estimate)
        except BaseException:
            account.leave(held, NOTHING)
            raise
        if row.status == "settled":
            account.leave(held, NOTHING)
            return Begun(done=True, result=row.result, usage=row.usage)
        if row.reserved != estimate:  # it is told again, and was allowed more meanwhile
            account.reserve(held, minus(row.reserved, estimate))
            held.estimate = row.reserved
        held.granted = True
        return Begun(done=False)

    async def _settled_elsewhere(self, call: CallKey) -> CallRow | None:
        """What a ledger of the past has settled since this one read the account.

        When a node is lost its processes live on for a moment, with the ledger that was there.
        """
        row = await self._store.call(call.session_id, call.key)
        return row if row is not None and row.status == "settled" else None

    async def extend(self, call: CallKey, more: Usage) -> None:
        """See `Ledger.extend`. Does not wait for others: two that hold a call might wait for each other.

        The store hears of it, so that a ledger that is started anew knows how much the call may spend.
        """
        account = await self._account(call)
        if account.budget is None and not more.cost:
            return
        held = account.under_way.get(call.key) or account.orphans.get(call.key)
        if held is None:
            held = await self._orphan(account, call)
        await self._admit(account, held, more)
        try:
            if call.attempt and held.by(call):
                await self._store.begin_call(held.call, held.estimate)
                held.noted = True
        except BaseException:
            account.give_back(held, more)
            raise

    async def _orphan(self, account: Account, call: CallKey) -> Held:
        """A call that was begun before this process started, as the store has it."""
        held = Held(call, granted=True)
        if call.attempt:
            row = await self._store.begin_call(call, NOTHING)
            held.estimate, held.noted = row.reserved, True
        known = account.under_way.get(call.key) or account.orphans.setdefault(call.key, held)
        if known is held:
            account.reserve(held, held.estimate)
        return known

    async def _admit(self, account: Account, held: Held, more: Usage) -> None:
        if account.budget is not None and not isinstance(account.budget.admit(more, held.call.role), Granted):
            await self._reread(account, held.call.session_id)
            answer = account.budget.admit(more, held.call.role)
            if not isinstance(answer, Granted):
                raise BudgetExceeded(answer.limit.name, answer.limit.value, answer.limit.used)
        account.reserve(held, more)
        held.estimate += more

    async def end(self, call: CallKey, result: str, usage: Usage) -> None:
        """See `Ledger.end`. A call that two attempts have paid is spent twice, and its first result stays."""
        account = await self._account(call)
        held = account.under_way.get(call.key)
        mine = held if held is not None and held.by(call) else account.orphans.get(call.key)
        try:
            await self._store.settle_call(call, result, usage)
        except StaleEpoch:  # it was made all the same
            if mine is not None:
                account.leave(mine, mine.reserved)
            raise
        before = account.settled.get(call.key, ())
        repeated = call.attempt in before or "" in before  # the same end, told again
        if not repeated:
            account.settled[call.key] = (*before, call.attempt)
        if mine is not None:
            account.leave(mine, usage)
        elif not repeated:
            account.spend(call, usage)
        if before and not repeated and account.budget is not None:
            twice = CallKey.of(call.session_id, call.kind, call.role, call.key, call.attempt, task_id=call.task_id)
            await self._store.settle_call(twice, "", usage)

    async def failed(self, call: CallKey) -> None:
        """See `Ledger.failed`. An attempt that another one has replaced has nothing to give back."""
        account = await self._account(call)
        held = account.under_way.get(call.key)
        if held is not None and not held.by(call):
            return
        held = held or account.orphans.get(call.key)
        try:
            if held is None or held.noted:
                await self._store.release_call(call)
        finally:
            if held is not None:
                account.leave(held, NOTHING)

    async def calls(self, session_id: str) -> list[CallRow]:
        """Every call of a session."""
        return await self._store.calls(session_id)

    async def refresh(self, session_id: str) -> None:
        """The session's limits were changed: calls that wait for room are looked at again."""
        async with self._reading:
            if (account := self._accounts.get(session_id)) is not None:
                await self._read(account, session_id)

    # ---- calls

    async def _turn(self, account: Account, call: CallKey, patient: bool) -> None:
        """Wait while another task makes the same call."""
        while (held := account.under_way.get(call.key)) is not None and held.call.task_id != call.task_id:
            if not patient:
                raise _MustWait
            try:
                await asyncio.wait_for(held.over.wait(), self._patience_s)
            except TimeoutError:
                return

    def _take(self, account: Account, call: CallKey, estimate: Usage) -> Held:
        for calls in (account.under_way, account.orphans):
            if (earlier := calls.get(call.key)) is not None:
                same = bool(call.attempt) and earlier.by(call)  # its answer was lost; nothing has been paid yet
                account.leave(earlier, NOTHING if same else earlier.reserved)
        held = account.under_way[call.key] = Held(call, estimate)
        return held

    async def _reserve(self, account: Account, held: Held, estimate: Usage, patient: bool) -> None:
        call, until = held.call, self._clock() + self._patience_s
        reread = False
        while account.budget is not None:
            answer = account.budget.admit(estimate, call.role)
            if isinstance(answer, Granted):
                account.reserve(held, estimate)
                return
            left = until - self._clock()
            if isinstance(answer, Refused) or left <= 0:
                if reread:
                    raise BudgetExceeded(answer.limit.name, answer.limit.value, answer.limit.used)
                if left <= 0:
                    account.write_off()
                await self._reread(account, call.session_id)
                reread = True
                continue
            if not patient:
                raise _MustWait
            with suppress(TimeoutError):
                await asyncio.wait_for(account.room.wait(), left)

    # ---- accounts

    async def _account(self, call: CallKey) -> Account:
        account = self._accounts.get(call.session_id)
        if account is not None and not self._outdated(account, call):
            return account
        async with self._reading:
            account = self._accounts.get(call.session_id)
            if account is not None and not self._outdated(account, call):
                return account
            if account is None:
                account = Account(epoch=call.epoch, read_at=self._clock())
                await self._read(account, call.session_id, rows=True)
            elif call.epoch > account.epoch:  # the session may have been with another ledger meanwhile
                account.epoch = call.epoch
                if not account.under_way:
                    account.budget = None
                    account.orphans.clear()
                await self._read(account, call.session_id, rows=True)
            else:
                await self._read(account, call.session_id)
            self._accounts[call.session_id] = account
            self._drop_idle()
            return account

    def _outdated(self, account: Account, call: CallKey) -> bool:
        if account.budget is None:
            return self._clock() - account.read_at > REREAD_S or call.epoch > account.epoch
        account.read_at = self._clock()
        return call.epoch > account.epoch

    async def _read(self, account: Account, session_id: str, *, rows: bool = False) -> None:
        """Take the limits from the store; with `rows`, or with the first limit, what was called and spent as well."""
        try:
            session = await self._store.session(session_id)
        except SessionNotFound:
            limits, epoch = UNLIMITED, 0
        else:
            limits, epoch = session.limits, session.epoch
        account.read_at, account.epoch = self._clock(), max(account.epoch, epoch)
        first = account.budget is None and bounded(limits)
        if account.budget is not None:
            account.budget = replace(account.budget, limits=limits)
            account.wake()
        if rows or first:
            found = await self._store.calls(session_id)
            for row in found:
                if row.status == "settled":
                    account.settled.setdefault(row.call.key, ("",))
            if first:
                self._fill(account, limits, found)

    def _fill(self, account: Account, limits: Limits, rows: Iterable[CallRow]) -> None:
        sides = {True: NOTHING, False: NOTHING}  # research, and all the rest
        open_rows = []
        for row in rows:
            used = row.usage + row.lost
            if row.status == "begun" and 0 < row.call.epoch < account.epoch:
                used += row.reserved  # whoever makes it is refused: it will not be settled
            elif row.status == "begun" and row.call.key not in account.under_way:
                open_rows.append(row)
            sides[row.call.role in RESEARCH] += used
        account.budget = Budget(limits, Spending(sides[True]), Spending(sides[False]))
        for held in account.under_way.values():
            account.reserve(held, held.estimate)
        for row in open_rows:
            held = account.orphans[row.call.key] = Held(row.call, row.reserved, noted=True, granted=True)
            account.reserve(held, row.reserved)

    async def _reread(self, account: Account, session_id: str) -> None:
        async with self._reading:
            await self._read(account, session_id)

    def _drop_idle(self) -> None:
        before = self._clock() - IDLE_S
        for session_id, account in list(self._accounts.items()):
            if account.read_at < before and not account.under_way:
                del self._accounts[session_id]
