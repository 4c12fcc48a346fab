from __future__ import annotations

import asyncio

import pytest

from marg_ray.actors.ledger import LedgerBook
from marg_ray.errors import StaleEpoch
from marg_ray.records import Role, Usage
from marg_ray.seams import CallKey, paid
from marg_ray.store.memory import MemoryStore


def key(task: str = "t1", asked: str = "q") -> CallKey:
    return CallKey.of("S", "model", Role.PLANNER, asked, task_id=task)


async def test_the_same_question_is_paid_once() -> None:
    ledger, made = LedgerBook(MemoryStore()), []

    async def make() -> tuple[str, Usage]:
        made.append(1)
        return '"answer"', Usage(calls=1, tokens_in=7)

    first = await paid(ledger, key("t1"), make)
    second = await paid(ledger, key("t2"), make)
    assert (first.result, first.usage) == ('"answer"', Usage(calls=1, tokens_in=7))
    assert (second.result, second.usage) == ('"answer"', Usage(reused=1))
    assert len(made) == 1


async def test_who_asks_while_it_is_under_way_waits_for_the_result() -> None:
    ledger, gate, made = LedgerBook(MemoryStore()), asyncio.Event(), []
    under_way = asyncio.Event()

    async def slow() -> tuple[str, Usage]:
        made.append(1)
        under_way.set()
        await gate.wait()
        return "1", Usage(calls=1)

    asks = [asyncio.ensure_future(paid(ledger, key(f"t{n}"), slow)) for n in range(20)]
    await under_way.wait()
    gate.set()
    results = await asyncio.gather(*asks)
    assert len(made) == 1
    assert sum(r.usage.calls for r in results) == 1


async def test_a_call_that_fails_is_given_back() -> None:
    ledger = LedgerBook(MemoryStore())

    async def fails() -> tuple[str, Usage]:
        raise ZeroDivisionError

    async def works() -> tuple[str, Usage]:
        return "2", Usage()

    with pytest.raises(ZeroDivisionError):
        await paid(ledger, key("t1"), fails)
    assert (await paid(ledger, key("t2"), works)).result == "2"


async def test_a_task_whose_worker_died_may_ask_again_at_once() -> None:
    ledger = LedgerBook(MemoryStore())
    assert not (await ledger.begin(key("t1"), Usage(cost=0.1))).done  # the worker dies here
    async with asyncio.timeout(5):
        assert not (await ledger.begin(key("t1"), Usage(cost=0.1))).done
    assert (await ledger.calls("S"))[0].begun == 2


async def test_a_new_process_knows_what_was_settled() -> None:
    store = MemoryStore()
    first = LedgerBook(store)
    await first.begin(key(), Usage())
    await first.end(key(), "3", Usage(calls=1))
    begun = await LedgerBook(store).begin(key("t9"), Usage())
    assert (begun.done, begun.result) == (True, "3")


def test_another_question_another_session_or_kind_is_another_call() -> None:
    base = key()
    assert base.key == key("t2").key
    assert base.key != key(asked="r").key
    assert base.key != CallKey.of("S", "search", Role.PLANNER, "q").key


class SlowStore(MemoryStore):
    """Settles when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.settling, self.let = asyncio.Event(), asyncio.Event()

    async def settle_call(self, call: CallKey, result: str, usage: Usage) -> None:
        self.settling.set()
        await self.let.wait()
        await super().settle_call(call, result, usage)


async def test_what_is_paid_stays_when_its_task_is_cancelled() -> None:
    store = SlowStore()
    ledger = LedgerBook(store)

    async def make() -> tuple[str, Usage]:
        return '"kept"', Usage(calls=1, cost=0.1)

    task = asyncio.create_task(paid(ledger, key("t1"), make))
    async with asyncio.timeout(10):
        await store.settling.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        store.let.set()
        assert (await ledger.begin(key("t2"), Usage())).result == '"kept"'


async def test_what_costs_nothing_leaves_no_trace_before_its_end() -> None:
    store = MemoryStore()
    ledger = LedgerBook(store)
    await ledger.begin(key("t1", "a"), Usage())
    await ledger.begin(key("t1", "b"), Usage(tokens_in=100))  # tokens count only where a limit is set
    await ledger.begin(key("t1", "c"), Usage(tokens_in=100, cost=0.01))
    assert [row.reserved.cost for row in await store.calls("S")] == [0.01]
    await ledger.end(key("t1", "a"), "1", Usage(fetches=1))
    assert (await ledger.begin(key("t2", "a"), Usage())).result == "1"
    assert (await LedgerBook(store).begin(key("t3", "a"), Usage())).result == "1"


async def test_a_settled_call_is_found_by_a_ledger_that_had_the_session_before() -> None:
    store = MemoryStore()
    await store.create("S", owner="local", question="q")
    here, there = LedgerBook(store), LedgerBook(store)
    epochs = [await store.take_over("S")]
    await here.begin(key("t0").model_copy(update={"epoch": epochs[0]}), Usage())
    await here.failed(key("t0").model_copy(update={"epoch": epochs[0]}))
    epochs.append(await store.take_over("S", holder="there"))
    elsewhere = key("t1", "new").model_copy(update={"epoch": epochs[1]})
    await there.begin(elsewhere, Usage())
    await there.end(elsewhere, "there", Usage(calls=1))
    back = key("t2", "new").model_copy(update={"epoch": await store.take_over("S", holder="here")})
    assert (await here.begin(back, Usage())).result == "there"
    with pytest.raises(StaleEpoch):
        await here.begin(key("t3", "late").model_copy(update={"epoch": epochs[1]}), Usage())
