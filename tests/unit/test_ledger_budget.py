"""The ledger as a budget: nothing is granted that the session's limits do not cover."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from marg_ray.actors.ledger import IDLE_S, REREAD_S, LedgerBook
from marg_ray.budget import UNLIMITED
from marg_ray.errors import BudgetExceeded, StaleEpoch
from marg_ray.messages import SessionStarted, Steered
from marg_ray.records import Limits, Request, Role, Usage
from marg_ray.seams import CallKey, paid
from marg_ray.store.memory import MemoryStore

WAIT_S = 10


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def store_with(limits: Limits = UNLIMITED, session: str = "S") -> MemoryStore:
    store = MemoryStore()
    await add(store, limits, session)
    return store


async def add(store: MemoryStore, limits: Limits, session: str) -> None:
    await store.create(session, owner="local", question="q")
    epoch = await store.take_over(session)
    request = Request(question="q", limits=limits)
    started_at = datetime.now(UTC).isoformat()
    message = SessionStarted(task_id=f"{session}/start", session_id=session, request=request, started_at=started_at)
    await store.append(session, message, expected_seq=0, epoch=epoch, status="running")


async def raise_limits(store: MemoryStore, limits: Limits) -> None:
    row = await store.session("S")
    message = Steered(task_id=f"S/steer/{row.seq}", action="raise", limits=limits)
    await store.append("S", message, expected_seq=row.seq, epoch=row.epoch, status="running")


def key(
    task: str = "t1", asked: str = "q", role: Role = Role.SYNTHESIZER, epoch: int = 0, attempt: str = ""
) -> CallKey:
    call = CallKey.of("S", "model", role, asked, task_id=task, epoch=epoch)
    return call.model_copy(update={"attempt": attempt})


def usage(tokens: int, cost: float = 0.0) -> Usage:
    return Usage(calls=1, tokens_in=tokens, cost=cost)


async def spend(ledger: LedgerBook, name: str, used: Usage, role: Role = Role.SYNTHESIZER) -> None:
    await ledger.begin(key(name, name, role), used)
    await ledger.end(key(name, name, role), "1", used)


async def settle_loop() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class TestAdmission:
    async def test_what_is_not_left_is_refused_and_named(self) -> None:
        ledger = LedgerBook(await store_with(Limits(tokens=100)))
        await spend(ledger, "a", usage(80))
        with pytest.raises(BudgetExceeded) as refused:
            await ledger.begin(key("b", "b"), usage(30))
        assert (refused.value.limit, refused.value.value, refused.value.used) == ("tokens", 100, 80)
        await spend(ledger, "c", usage(20))

    async def test_research_stops_first_and_writing_goes_on(self) -> None:
        ledger = LedgerBook(await store_with(Limits(usd=1.0, writer_share=0.4)))
        await spend(ledger, "a", usage(1, 0.55), Role.RESEARCHER)
        with pytest.raises(BudgetExceeded, match=r"research usd limit of 0\.6 is spent"):
            await ledger.begin(key("b", "b", Role.ANALYST), usage(1, 0.1))
        await spend(ledger, "c", usage(1, 0.44))

    async def test_it_waits_for_what_others_have_reserved(self) -> None:
        ledger = LedgerBook(await store_with(Limits(tokens=100)))
        await ledger.begin(key("a", "a"), usage(90))
        waiting = asyncio.ensure_future(ledger.begin(key("b", "b"), usage(60)))
        await settle_loop()
        assert not waiting.done()
        await ledger.end(key("a", "a"), "1", usage(40))
        async with asyncio.timeout(WAIT_S):
            assert not (await waiting).done

    async def test_who_waits_is_refused_when_it_was_used_after_all(self) -> None:
        ledger = LedgerBook(await store_with(Limits(tokens=100)))
        await ledger.begin(key("a", "a"), usage(90))
        waiting = asyncio.ensure_future(ledger.begin(key("b", "b"), usage(60)))
        await settle_loop()
        await ledger.end(key("a", "a"), "1", usage(90))
        with pytest.raises(BudgetExceeded):
            async with asyncio.timeout(WAIT_S):
                await waiting

    async def test_waiting_has_an_end(self) -> None:
        ledger = LedgerBook(await store_with(Limits(tokens=100)), patience_s=0.01)
        await ledger.begin(key("a", "a"), usage(90))
        with pytest.raises(BudgetExceeded):
            async with asyncio.timeout(WAIT_S):
                await ledger.begin(key("b", "b"), usage(60))

    async def test_a_call_that_is_settled_needs_no_room(self) -> None:
        store = await store_with(Limits(tokens=100))
        await spend(LedgerBook(store), "a", usage(100))
        begun = await LedgerBook(store).begin(key("late", "a"), usage(100))
        assert (begun.done, begun.result) == (True, "1")

    async def test_limits_that_were_raised_are_seen_before_a_refusal(self) -> None:
        store = await store_with(Limits(tokens=100))
        ledger = LedgerBook(store)
        await spend(ledger, "a", usage(100))
        await raise_limits(store, Limits(tokens=200))
        await spend(ledger, "b", usage(100))
        with pytest.raises(BudgetExceeded):
            await ledger.begin(key("c", "c"), usage(1))

    async def test_who_waits_hears_of_a_raise(self) -> None:
        store = await store_with(Limits(tokens=100))
        ledger = LedgerBook(store)
        await ledger.begin(key("a", "a"), usage(90))
        waiting = asyncio.ensure_future(ledger.begin(key("b", "b"), usage(60)))
        await settle_loop()
        await raise_limits(store, Limits(tokens=200))
        await ledger.refresh("S")
        async with asyncio.timeout(WAIT_S):
            assert not (await waiting).done

    async def test_a_session_that_gets_limits_while_it_runs(self) -> None:
        store, clock = await store_with(), Clock()
        ledger = LedgerBook(store, clock=clock)
        await spend(ledger, "a", usage(70))
        await ledger.begin(key("b", "b"), usage(20))  # under way when the limit comes
        await raise_limits(store, Limits(tokens=100))
        clock.now += REREAD_S + 1
        with pytest.raises(BudgetExceeded):
            await ledger.begin(key("c", "c"), usage(40))
        await ledger.end(key("b", "b"), "1", usage(5))
        await spend(ledger, "d", usage(25))

    async def test_many_at_once_stay_within_the_limit(self) -> None:
        store = await store_with(Limits(tokens=1000, usd=1.0))
        ledger, under_way, most = LedgerBook(store), [0.0], [0.0]

        async def call(n: int) -> None:
            async def make() -> tuple[str, Usage]:
                under_way[0] += 0.05
                most[0] = max(most[0], under_way[0])
                await asyncio.sleep(0)
                under_way[0] -= 0.05
                if n % 7 == 0:
                    raise ZeroDivisionError
                return "1", usage(20, 0.02)

            await paid(ledger, key(f"t{n}", f"q{n}"), make, usage(30, 0.05))

        async with asyncio.timeout(WAIT_S):
            ends = await asyncio.gather(*(call(n) for n in range(100)), return_exceptions=True)
        account = await store.account("S")
        assert account.spent.tokens_in <= 1000
        assert 0.9 <= account.spent.cost <= 1.0 + 1e-9
        assert most[0] <= 1.0
        assert {type(e) for e in ends} == {type(None), BudgetExceeded, ZeroDivisionError}


class TestReservations:
    async def test_a_further_try_is_reserved_and_comes_back(self) -> None:
        ledger = LedgerBook(await store_with(Limits(tokens=100)))
        await ledger.begin(key("a", "a"), usage(50))
        await ledger.extend(key("a", "a"), usage(40))
        with pytest.raises(BudgetExceeded):
            await ledger.extend(key("a", "a"), usage(20))
        await ledger.end(key("a", "a"), "1", usage(60))
        await spend(ledger, "b", usage(40))

    async def test_two_that_hold_and_want_more_do_not_wait_for_each_other(self) -> None:
        ledger = LedgerBook(await store_with(Limits(tokens=100)))
        for name in "ab":
            await ledger.begin(key(name, name), usage(50))
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(BudgetExceeded):
                await ledger.extend(key("a", "a"), usage(10))

    async def test_a_failed_call_gives_its_room_back_and_counts_what_it_spent(self) -> None:
        store = await store_with(Limits(tokens=100))
        ledger = LedgerBook(store)

        async def fails() -> tuple[str, Usage]:
            error = ZeroDivisionError()
            error.spent = usage(30)  # type: ignore[attr-defined]
            raise error

        with pytest.raises(ZeroDivisionError):
            await paid(ledger, key("a", "a"), fails, usage(100))
        assert (await store.account("S")).spent.tokens_in == 30
        with pytest.raises(BudgetExceeded):
            await ledger.begin(key("a", "a"), usage(71))
        await spend(ledger, "a", usage(70))

    async def test_a_call_that_died_is_charged_what_it_had_reserved(self) -> None:
        store = await store_with(Limits(tokens=100))
        ledger = LedgerBook(store)
        await ledger.begin(key("a", "a", attempt="1"), usage(30))  # its worker dies
        await ledger.begin(key("a", "a", attempt="2"), usage(30))
        await ledger.end(key("a", "a", attempt="2"), "1", usage(10))
        account = await store.account("S")
        assert (account.spent.tokens_in, account.lost.tokens_in) == (10, 30)
        for book in (ledger, LedgerBook(store)):
            with pytest.raises(BudgetExceeded) as refused:
                await book.begin(key("b", "b"), usage(61))
            assert refused.value.used == 40

    async def test_a_begin_whose_answer_was_lost_is_the_same_call(self) -> None:
        store = await store_with(Limits(tokens=100))
        ledger = LedgerBook(store)
        for _ in range(3):
            assert not (await ledger.begin(key("a", "a", attempt="1"), usage(60))).done
        await ledger.end(key("a", "a", attempt="1"), "1", usage(60))
        await ledger.end(key("a", "a", attempt="1"), "1", usage(60))
        account = await store.account("S")
        assert (account.spent.tokens_in, account.lost.tokens_in) == (60, 0)
        await spend(ledger, "b", usage(40))

    async def test_what_an_earlier_attempt_gives_back_is_not_the_later_ones(self) -> None:
        ledger = LedgerBook(await store_with(Limits(tokens=100)))
        await ledger.begin(key("a", "a", attempt="1"), usage(40))
        await ledger.begin(key("a", "a", attempt="2"), usage(40))
        await ledger.failed(key("a", "a", attempt="1"))
        with pytest.raises(BudgetExceeded):
            await ledger.extend(key("b", "b"), usage(30))

    async def test_two_attempts_that_both_come_back_are_both_counted(self) -> None:
        store = await store_with(Limits(tokens=200))
        ledger = LedgerBook(store)
        await ledger.begin(key("a", "a", attempt="1"), usage(40))
        await ledger.begin(key("a", "a", attempt="2"), usage(40))
        await ledger.end(key("a", "a", attempt="1"), "first", usage(35))
        await ledger.end(key("a", "a", attempt="2"), "second", usage(25))
        await ledger.end(key("a", "a", attempt="2"), "second", usage(25))  # told again
        account = await store.account("S")
        assert account.spent.tokens_in == 60
        assert (await ledger.begin(key("c", "a"), usage(1))).result == "first"
        with pytest.raises(BudgetExceeded) as refused:
            await ledger.begin(key("d", "d"), usage(200))
        assert refused.value.used == 100  # 35 and 25, and 40 of the attempt that was taken for dead

    async def test_a_stale_end_frees_the_room_and_is_told(self) -> None:
        store = await store_with(Limits(tokens=100))
        ledger = LedgerBook(store)
        await ledger.begin(key("a", "a", epoch=1), usage(60))
        await store.take_over("S")
        with pytest.raises(StaleEpoch):
            await ledger.end(key("a", "a", epoch=1), "1", usage(60))
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(BudgetExceeded) as refused:  # not waited for: it is spent, nothing is reserved
                await ledger.begin(key("b", "b", epoch=2), usage(60))
        assert refused.value.used == 60

    async def test_a_stale_begin_reserves_nothing(self) -> None:
        store = await store_with(Limits(tokens=100))
        await store.take_over("S")
        ledger = LedgerBook(store)
        with pytest.raises(StaleEpoch):
            await ledger.begin(key("a", "a", epoch=1), usage(60))
        await spend(ledger, "b", usage(100))

    async def test_a_cancelled_wait_holds_nothing(self) -> None:
        ledger = LedgerBook(await store_with(Limits(tokens=100)))
        await ledger.begin(key("a", "a"), usage(90))

        async def make() -> tuple[str, Usage]:
            raise AssertionError("it was never granted")

        waiting = asyncio.ensure_future(paid(ledger, key("b", "b"), make, usage(60)))
        await settle_loop()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await ledger.failed(key("a", "a"))
        await spend(ledger, "c", usage(100))


class TestRestart:
    async def test_a_new_process_knows_what_is_under_way(self) -> None:
        store = await store_with(Limits(tokens=100))
        await LedgerBook(store).begin(key("a", "a", attempt="1"), usage(60))
        ledger = LedgerBook(store)
        waiting = asyncio.ensure_future(ledger.begin(key("b", "b"), usage(60)))
        await settle_loop()
        assert not waiting.done()
        await ledger.end(key("a", "a", attempt="1"), "1", usage(40))
        async with asyncio.timeout(WAIT_S):
            assert not (await waiting).done

    async def test_a_begin_that_is_told_again_to_a_new_process_is_the_same_call(self) -> None:
        store = await store_with(Limits(tokens=100))
        call = key("a", "a", attempt="1")
        await LedgerBook(store).begin(call, usage(60))
        ledger = LedgerBook(store)
        assert not (await ledger.begin(call, usage(60))).done
        await ledger.end(call, "1", usage(60))
        account = await store.account("S")
        assert (account.spent.tokens_in, account.lost.tokens_in) == (60, 0)
        await spend(ledger, "b", usage(40))

    async def test_what_nobody_comes_back_for_is_spent_in_the_end(self) -> None:
        store = await store_with(Limits(tokens=100))
        await LedgerBook(store).begin(key("a", "a"), usage(60))
        ledger = LedgerBook(store, patience_s=0.01)
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(BudgetExceeded):
                await ledger.begin(key("b", "b"), usage(60))
            await spend(ledger, "c", usage(40))

    async def test_research_and_writing_are_told_apart_again(self) -> None:
        store = await store_with(Limits(tokens=100))
        first = LedgerBook(store)
        await spend(first, "a", usage(50), Role.RESEARCHER)
        await spend(first, "b", usage(30))
        ledger = LedgerBook(store)
        with pytest.raises(BudgetExceeded, match="research tokens limit of 60 is spent"):
            await ledger.begin(key("c", "c", Role.RESEARCHER), usage(11))
        await spend(ledger, "d", usage(10), Role.RESEARCHER)

    async def test_accounts_nobody_asks_for_are_dropped(self) -> None:
        store, clock = await store_with(Limits(tokens=100)), Clock()
        ledger = LedgerBook(store, clock=clock)
        await spend(ledger, "a", usage(60))
        for n in range(20):
            clock.now += IDLE_S
            await add(store, Limits(), f"S{n}")
            await ledger.begin(CallKey.of(f"S{n}", "fetch", Role.RESEARCHER, "u"), Usage())
            await ledger.end(CallKey.of(f"S{n}", "fetch", Role.RESEARCHER, "u"), "1", Usage(fetches=1))
        assert len(ledger._accounts) <= 2
        with pytest.raises(BudgetExceeded):
            await ledger.begin(key("b", "b"), usage(41))

    async def test_what_a_call_was_allowed_beyond_its_estimate_is_known_too(self) -> None:
        store = await store_with(Limits(usd=1.0))
        call = key("a", "a", attempt="1")
        first = LedgerBook(store)
        await first.begin(call, usage(1, 0.3))
        await first.extend(call, usage(1, 0.3))
        ledger = LedgerBook(store)
        await ledger.extend(call, usage(1, 0.3))
        with pytest.raises(BudgetExceeded) as refused:
            await ledger.extend(call, usage(1, 0.2))
        assert refused.value.used == pytest.approx(0.9)
        (row,) = await store.calls("S")
        assert row.reserved.cost == pytest.approx(0.9)
        await ledger.end(call, "1", usage(3, 0.7))
        await spend(LedgerBook(store), "b", usage(1, 0.3))

    async def test_a_further_try_after_a_restart_is_known_where_a_limit_comes_later(self) -> None:
        store = await store_with()
        call = key("a", "a", attempt="1")
        await LedgerBook(store).begin(call, usage(1, 0.3))
        again = LedgerBook(store)
        await again.extend(call, usage(1, 0.3))  # begun before this process started, and no limit is set
        await again.extend(call, usage(1, 0.2))
        await raise_limits(store, Limits(usd=1.0))
        with pytest.raises(BudgetExceeded) as refused:
            await LedgerBook(store, patience_s=0.01).begin(key("b", "b"), usage(1, 0.3))
        assert refused.value.used == pytest.approx(0.8)

    async def test_a_refused_or_stale_further_try_reserves_nothing(self) -> None:
        store = await store_with(Limits(usd=1.0))
        ledger, call = LedgerBook(store), key("a", "a", epoch=1, attempt="1")
        await ledger.begin(call, usage(1, 0.3))
        with pytest.raises(BudgetExceeded):
            await ledger.extend(call, usage(1, 0.8))
        assert [row.reserved.cost for row in await store.calls("S")] == [0.3]
        await store.take_over("S")
        with pytest.raises(StaleEpoch):
            await ledger.extend(call, usage(1, 0.7))
        await spend(ledger, "b", usage(1, 0.7))

    async def test_the_same_attempt_that_begins_again_keeps_what_it_was_allowed(self) -> None:
        store = await store_with(Limits(usd=1.0))
        call = key("a", "a", attempt="1")
        ledger = LedgerBook(store)
        await ledger.begin(call, usage(1, 0.3))
        await ledger.extend(call, usage(1, 0.3))
        again = LedgerBook(store)
        await again.begin(call, usage(1, 0.3))
        with pytest.raises(BudgetExceeded):
            await LedgerBook(store, patience_s=0.01).begin(key("b", "b"), usage(1, 0.5))
        with pytest.raises(BudgetExceeded):
            await again.extend(call, usage(1, 0.5))
