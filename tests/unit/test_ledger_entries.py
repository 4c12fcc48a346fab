"""Several entries in one request: each has its own outcome, and none waits for another."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence

import pytest

from marg_ray.actors.entries import MOST, BatchedLedger, Begin, End, Entry, Failed, Keep, Look, Outcome
from marg_ray.actors.ledger import LedgerBook
from marg_ray.errors import BudgetExceeded, RuntimeUnavailable, StaleEpoch
from marg_ray.memory.spaces import Space
from marg_ray.records import Limits, Role, Usage
from marg_ray.seams import Begun, CallKey, Ledger, paid
from marg_ray.store.memory import MemoryStore
from tests.unit.test_ledger_budget import WAIT_S, key, settle_loop, store_with, usage

GRANTED = Begun(done=False)


class TestTheBook:
    async def test_each_entry_has_its_own_outcome(self) -> None:
        store = await store_with(Limits(tokens=100))
        book = LedgerBook(store)
        await book.end(key("x", "old"), "old", usage(5))
        await store.take_over("S")
        outcomes = await book.enter_all(
            [
                Begin(key("a", "a", epoch=2), usage(50)),
                Begin(key("b", "b", epoch=2), usage(96)),
                Begin(key("c", "c", epoch=1), usage(1)),
                Begin(key("d", "old", epoch=2), usage(1)),
                End(key("e", "e", epoch=2), "late", usage(5)),
                Failed(key("f", "f", epoch=2)),
            ]
        )
        granted, refused, stale, known, ended, given_back = outcomes
        assert granted == GRANTED
        assert isinstance(refused, BudgetExceeded)
        assert isinstance(stale, StaleEpoch)
        assert isinstance(known, Begun)
        assert (known.done, known.result) == (True, "old")
        assert ended is given_back is None
        assert pickle.loads(pickle.dumps(outcomes))[0] == GRANTED
        assert {row.call.task_id: row.status for row in await store.calls("S")} == {
            "x": "settled",
            "a": "begun",
            "e": "settled",
        }

    async def test_who_would_have_to_wait_for_room_leaves_nothing_behind(self) -> None:
        store = await store_with(Limits(tokens=100))
        book = LedgerBook(store)
        async with asyncio.timeout(WAIT_S):
            outcomes = await book.enter_all([Begin(key(n, n), usage(60)) for n in "ab"])
        assert outcomes == [GRANTED, None]
        await book.end(key("a", "a"), "1", usage(40))
        assert await book.enter_all([Begin(key("b", "b"), usage(60))]) == [GRANTED]

    async def test_who_asks_what_is_under_way_is_told_to_wait(self) -> None:
        book = LedgerBook(MemoryStore())
        async with asyncio.timeout(WAIT_S):
            outcomes = await book.enter_all([Begin(key(t, "same"), usage(1)) for t in "abc"])
        assert outcomes == [GRANTED, None, None]
        assert await book.enter_all([End(key("a", "same"), "1", usage(1))]) == [None]
        for outcome in await book.enter_all([Begin(key(t, "same"), usage(1)) for t in "bc"]):
            assert isinstance(outcome, Begun)
            assert outcome.result == "1"

    async def test_one_that_is_told_twice_is_one(self) -> None:
        store = await store_with(Limits(tokens=100))
        book, call = LedgerBook(store), key("a", "a", attempt="1")
        for _ in range(2):
            assert await book.enter_all([Begin(call, usage(60))]) == [GRANTED]
        for _ in range(2):
            assert await book.enter_all([End(call, "1", usage(60))]) == [None]
        assert (await store.account("S")).spent.tokens_in == 60


class Link:
    """Carries requests to a book, when it is let."""

    def __init__(self, book: LedgerBook) -> None:
        self.book, self.let = book, asyncio.Event()
        self.let.set()
        self.requests: list[int] = []
        self.alone: list[CallKey] = []
        self.down: Exception | None = None

    async def enter_all(self, entries: Sequence[Entry]) -> list[Outcome]:
        self.requests.append(len(entries))
        await self.let.wait()
        if self.down is not None:
            raise self.down
        return await self.book.enter_all(entries)

    async def begin(self, call: CallKey, estimate: Usage) -> Begun:
        self.alone.append(call)
        return await self.book.begin(call, estimate)

    async def extend(self, call: CallKey, more: Usage) -> None:
        await self.book.extend(call, more)


def linked(store: MemoryStore) -> tuple[BatchedLedger, Link]:
    link = Link(LedgerBook(store))
    return BatchedLedger(link, link.enter_all, linger_s=0.001), link


async def make() -> tuple[str, Usage]:
    return "1", usage(10)


class TestTogether:
    async def test_what_comes_at_once_goes_in_one_request(self) -> None:
        ledger, link = linked(MemoryStore())
        await asyncio.gather(*(paid(ledger, key(f"t{n}", f"q{n}"), make, usage(10)) for n in range(20)))
        assert link.requests[0] == 20
        assert len(link.requests) < 8
        assert sum(link.requests) == 40

    async def test_a_lone_entry_is_sent_at_once(self) -> None:
        ledger, link = linked(MemoryStore())
        ledger._linger_s = 3600
        async with asyncio.timeout(WAIT_S):
            await paid(ledger, key(), make)
        assert link.requests == [1, 1]

    async def test_what_comes_meanwhile_goes_with_the_next(self) -> None:
        ledger, link = linked(MemoryStore())
        link.let.clear()
        first = asyncio.ensure_future(ledger.begin(key("a", "a"), usage(1)))
        await settle_loop()
        others = [asyncio.ensure_future(ledger.begin(key(n, n), usage(1))) for n in "bcd"]
        await settle_loop()
        assert link.requests == [1]
        link.let.set()
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(first, *others)
        assert link.requests == [1, 3]

    async def test_a_request_has_its_most(self) -> None:
        ledger, link = linked(MemoryStore())
        await asyncio.gather(*(ledger.begin(key(f"t{n}", f"q{n}"), usage(1)) for n in range(2 * MOST + 1)))
        assert max(link.requests) == MOST
        assert sum(link.requests) == 2 * MOST + 1

    async def test_the_same_question_at_once_is_made_once(self) -> None:
        ledger, link = linked(MemoryStore())
        made = []

        async def count() -> tuple[str, Usage]:
            made.append(1)
            return "1", usage(10)

        async with asyncio.timeout(WAIT_S):
            results = await asyncio.gather(*(paid(ledger, key(f"t{n}", "same"), count, usage(10)) for n in range(10)))
        assert len(made) == 1
        assert {r.result for r in results} == {"1"}
        assert len(link.alone) == 9

    async def test_those_who_need_each_others_room_all_get_it(self) -> None:
        ledger, _ = linked(await store_with(Limits(tokens=1000)))
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*(paid(ledger, key(f"t{n}", f"q{n}"), make, usage(300)) for n in range(40)))

    async def test_each_hears_of_its_own_refusal(self) -> None:
        ledger, _ = linked(await store_with(Limits(tokens=100)))
        asks = [paid(ledger, key(f"t{n}", f"q{n}"), make, usage(n)) for n in (10, 500, 20)]
        ends = await asyncio.gather(*asks, return_exceptions=True)
        assert [type(e).__name__ for e in ends] == ["Paid", "BudgetExceeded", "Paid"]

    async def test_a_request_that_is_lost_is_told_to_all(self) -> None:
        ledger, link = linked(MemoryStore())
        link.down = RuntimeUnavailable("", "the ledger is away")
        ends = await asyncio.gather(*(ledger.begin(key(n, n), usage(1)) for n in "abc"), return_exceptions=True)
        assert [type(e) for e in ends] == [RuntimeUnavailable] * 3
        link.down = None
        assert await ledger.begin(key("a", "a"), usage(1)) == GRANTED


class TestCaches:
    async def test_they_travel_with_the_others(self) -> None:
        store = MemoryStore()
        ledger, link = linked(store)
        space = Space(ledger, "page", 60.0)
        assert await space.read("k", str) is None
        await space.write("k", "text")  # nobody waits for it: it goes with what comes next
        await ledger.end(key("a", "a"), "1", usage(1))
        assert link.requests == [1, 2]
        assert await space.read("k", str) == "text"
        assert (space.counts.hits, space.counts.misses) == (1, 1)

    async def test_a_cache_that_fails_is_only_a_miss(self, caplog: pytest.LogCaptureFixture) -> None:
        ledger, link = linked(MemoryStore())
        link.down = RuntimeUnavailable("", "the ledger is away")
        space = Space(ledger, "page", 60.0)
        assert await space.read("k", str) is None
        await space.write("k", "text")
        await settle_loop()
        assert "passed over" in caplog.text
        assert "nothing was put into a cache" in caplog.text


class TestCancelled:
    async def test_a_begin_that_is_on_its_way_is_given_back_after_it(self) -> None:
        store = await store_with(Limits(tokens=100))
        ledger, link = linked(store)
        link.let.clear()
        task = asyncio.ensure_future(paid(ledger, key("a", "a"), make, usage(100)))
        await settle_loop()
        task.cancel()
        await settle_loop()
        assert link.requests == [1]  # what gives it back waits until it is known to be begun
        link.let.set()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(WAIT_S):
                await task
        assert [row.status for row in await store.calls("S")] == ["released"]
        await paid(ledger, key("b", "b"), make, usage(100))

    async def test_what_was_paid_is_entered_all_the_same(self) -> None:
        store = MemoryStore()
        ledger, link = linked(store)
        ready = asyncio.Event()

        async def slow() -> tuple[str, Usage]:
            link.let.clear()
            ready.set()
            return "kept", usage(1)

        task = asyncio.ensure_future(paid(ledger, key("a", "a"), slow))
        async with asyncio.timeout(WAIT_S):
            await ready.wait()
            await settle_loop()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            link.let.set()
            assert (await ledger.begin(key("b", "a"), usage(1))).result == "kept"


@pytest.mark.parametrize(
    "entry",
    [
        Begin(key("a", attempt="1"), usage(1)),
        End(key("a"), "{}", usage(1)),
        Failed(key("a")),
        Look("page", "k"),
        Keep("page", "k", "v", 1.0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_entries_reach_another_process_as_they_are(entry: Entry) -> None:
    assert pickle.loads(pickle.dumps(entry)) == entry


def test_it_is_a_ledger() -> None:
    ledger: Ledger = BatchedLedger(LedgerBook(MemoryStore()), LedgerBook(MemoryStore()).enter_all)
    assert CallKey.of("S", "model", Role.PLANNER, "q").anew().attempt
    assert ledger is not None
