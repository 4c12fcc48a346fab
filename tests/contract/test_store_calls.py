from __future__ import annotations

import asyncio

import pytest

from marg_ray.errors import StaleEpoch
from marg_ray.records import Limits, Role, Usage
from marg_ray.seams import CallKey
from marg_ray.store.protocol import Account, Store
from tests.answers import started


def call(
    asked: str = "what is asked", *, session: str = "S", epoch: int = 0, task: str = "S/plan/0", attempt: str = ""
) -> CallKey:
    key = CallKey.of(session, "model", Role.PLANNER, asked, task_id=task, epoch=epoch)
    return key.model_copy(update={"attempt": attempt})


async def test_a_settled_call_gives_its_result_and_is_never_changed(store: Store) -> None:
    assert (await store.begin_call(call())).status == "begun"
    await store.settle_call(call(), '{"a":1}', Usage(calls=1, tokens_in=5, cost=0.25))
    await store.settle_call(call(), '{"a":2}', Usage(calls=9))
    await store.release_call(call())
    row = await store.begin_call(call(), Usage(calls=1))
    assert (row.status, row.result, row.begun) == ("settled", '{"a":1}', 1)
    assert row.usage == Usage(calls=1, tokens_in=5, cost=0.25)
    assert (row.reserved, row.lost) == (Usage(), Usage())
    assert await store.calls("S") == [row]
    assert row.call == call()


async def test_a_call_begun_again_was_lost_with_its_process(store: Store) -> None:
    first, second = Usage(calls=1, tokens_in=100, cost=0.5), Usage(calls=1, tokens_in=70, cost=0.25)
    assert (await store.begin_call(call(), first)).reserved == first
    again = await store.begin_call(call(task="S/plan/1"), second)
    assert (again.status, again.begun, again.reserved, again.lost) == ("begun", 2, second, first)
    third = await store.begin_call(call(), second)
    assert (third.begun, third.lost) == (3, first + second)
    await store.settle_call(call(), "{}", Usage(calls=1, tokens_in=60))
    (row,) = await store.calls("S")
    assert (row.usage, row.lost, row.reserved) == (Usage(calls=1, tokens_in=60), first + second, Usage())


async def test_the_same_attempt_is_begun_once(store: Store) -> None:
    first = await store.begin_call(call(attempt="a"), Usage(calls=1))
    assert await store.begin_call(call(attempt="a"), Usage(calls=1)) == first
    another = await store.begin_call(call(attempt="b"), Usage(calls=1))
    assert (another.begun, another.lost, another.call.attempt) == (2, Usage(calls=1), "b")
    await store.release_call(call(attempt="b"))
    again = await store.begin_call(call(attempt="b"), Usage(calls=2))
    assert (again.status, again.begun, again.reserved) == ("begun", 2, Usage(calls=2))


async def test_an_attempt_under_way_may_be_allowed_more(store: Store) -> None:
    await store.begin_call(call(attempt="a"), Usage(calls=1, tokens_in=50, cost=0.5))
    more = await store.begin_call(call(attempt="a"), Usage(calls=2, tokens_in=40, cost=0.75))
    assert (more.status, more.begun, more.lost) == ("begun", 1, Usage())
    assert more.reserved == Usage(calls=2, tokens_in=50, cost=0.75)
    assert await store.begin_call(call(attempt="a"), Usage(cost=0.25)) == more
    assert await store.calls("S") == [more]
    another = await store.begin_call(call(attempt="b"), Usage(cost=0.25))
    assert (another.lost, another.reserved) == (more.reserved, Usage(cost=0.25))
    await store.settle_call(call(attempt="b"), "{}", Usage(cost=0.125))
    settled = await store.begin_call(call(attempt="b"), Usage(cost=1.0))
    assert (settled.status, settled.reserved) == ("settled", Usage())


async def test_a_released_call_begins_again_without_loss(store: Store) -> None:
    await store.begin_call(call(), Usage(calls=1, cost=0.5))
    await store.release_call(call())
    (row,) = await store.calls("S")
    assert (row.status, row.reserved) == ("released", Usage())
    await store.release_call(call())
    again = await store.begin_call(call(), Usage(calls=1))
    assert (again.status, again.begun, again.lost, again.reserved) == ("begun", 1, Usage(), Usage(calls=1))
    await store.release_call(call("never begun"))
    assert len(await store.calls("S")) == 1


async def test_what_was_paid_is_kept_though_nobody_holds_the_call(store: Store) -> None:
    await store.begin_call(call())
    await store.release_call(call())
    await store.settle_call(call(), '"late"', Usage(calls=1))
    await store.settle_call(call("never begun"), '"all the same"', Usage(calls=1))
    assert [(r.status, r.result) for r in await store.calls("S")] == [
        ("settled", '"late"'),
        ("settled", '"all the same"'),
    ]
    assert (await store.account("S")).spent == Usage(calls=2)


async def test_calls_come_in_the_order_they_were_begun(store: Store) -> None:
    asked = [call(f"question {n}") for n in range(20)]
    for one in asked:
        await store.begin_call(one)
    await store.settle_call(asked[3], "{}", Usage())
    await store.begin_call(asked[0])
    await store.begin_call(call("of another session", session="T"))
    assert [r.call for r in await store.calls("S")] == asked


async def test_a_call_of_an_earlier_epoch_is_refused(store: Store) -> None:
    old = await store.take_over("S")
    await store.begin_call(call(epoch=old), Usage(calls=1))
    new = await store.take_over("S")
    for refused in (
        store.begin_call(call(epoch=old)),
        store.begin_call(call("another", epoch=old)),
        store.settle_call(call(epoch=old), '"stale"', Usage(calls=1)),
    ):
        with pytest.raises(StaleEpoch) as told:
            await refused
        assert (told.value.expected, told.value.found) == (old, new)
    (row,) = await store.calls("S")
    assert (row.status, row.begun, row.call.epoch) == ("begun", 1, old)
    again = await store.begin_call(call(epoch=new), Usage(calls=1))
    assert (again.begun, again.lost, again.call.epoch) == (2, Usage(calls=1), new)
    await store.settle_call(call(epoch=new), '"fresh"', Usage(calls=1))
    assert [r.result for r in await store.calls("S")] == ['"fresh"']


async def test_an_unfenced_call_and_one_of_no_session_pass(store: Store) -> None:
    await store.take_over("S")
    for free in (call(epoch=0), call(session="no session", epoch=4)):
        await store.begin_call(free)
        await store.settle_call(free, "{}", Usage(calls=1))
        assert (await store.begin_call(free)).status == "settled"


async def test_the_account_adds_up_what_was_settled_and_what_was_lost(store: Store) -> None:
    assert await store.account("S") == Account(limits=Limits(), spent=Usage(), lost=Usage())
    epoch = await store.take_over("S")
    first = started(limits=Limits(usd=3.0))
    await store.append("S", first, expected_seq=0, epoch=epoch, status="running")
    unit = Usage(
        calls=1, searches=2, fetches=3, tokens_in=4, tokens_out=5, cost=0.25, seconds=0.5, reused=6, throttled=7
    )
    for n in range(4):
        await store.begin_call(call(f"q{n}"), unit)
        await store.settle_call(call(f"q{n}"), "{}", unit)
    for _ in range(3):
        await store.begin_call(call("dies"), Usage(calls=1, cost=0.125))
    await store.begin_call(call("of another session", session="T"), unit)
    account = await store.account("S")
    assert account.limits == Limits(usd=3.0)
    assert account.spent == unit + unit + unit + unit
    assert account.lost == Usage(calls=2, cost=0.25)
    assert {type(v) for _, v in account.spent} == {int, float}


async def test_calls_begun_at_once_are_each_counted(store: Store) -> None:
    epoch = await store.take_over("S")
    rows = await asyncio.gather(*(store.begin_call(call(epoch=epoch), Usage(calls=1)) for _ in range(30)))
    assert sorted(r.begun for r in rows) == list(range(1, 31))
    assert (await store.account("S")).lost == Usage(calls=29)
    await asyncio.gather(*(store.settle_call(call(), f'"{n}"', Usage(calls=1)) for n in range(30)))
    assert (await store.account("S")).spent == Usage(calls=1)
