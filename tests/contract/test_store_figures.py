"""What telemetry asks of a store: how many sessions stand how, and when each call began."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from marg_ray.records import Role, Usage
from marg_ray.seams import CallKey
from marg_ray.store.protocol import Store
from tests.answers import started

MARGIN = timedelta(milliseconds=2)


def call(asked: str) -> CallKey:
    return CallKey.of("S", "fetch", Role.RESEARCHER, asked, task_id="S/s1/read/1")


async def test_sessions_are_counted_by_status(store: Store) -> None:
    assert await store.session_counts() == {"running": 1}
    for name, status in (("A", "waiting"), ("B", "passed"), ("C", "passed")):
        await store.create(name, owner="ann" if name == "A" else "bob", question="?")
        epoch = await store.take_over(name)
        message = started().model_copy(update={"session_id": name, "task_id": f"{name}/start"})
        await store.append(name, message, expected_seq=0, epoch=epoch, status=status)
    assert await store.session_counts() == {"running": 1, "waiting": 1, "passed": 2}


async def test_a_call_says_when_it_began(store: Store) -> None:
    before = datetime.now(UTC)
    begun = await store.begin_call(call("noted"), Usage(calls=1))
    after = datetime.now(UTC)
    assert begun.begun_at is not None
    assert before - MARGIN <= begun.begun_at <= after + MARGIN
    await store.settle_call(call("noted"), "{}", Usage(calls=1, seconds=20.0))
    assert [row.begun_at for row in await store.calls("S")] == [begun.begun_at]
    again = await store.begin_call(call("noted"))
    assert again.begun_at == begun.begun_at


async def test_a_call_that_was_only_settled_began_as_long_ago_as_it_took(store: Store) -> None:
    before = datetime.now(UTC)
    await store.settle_call(call("settled"), "{}", Usage(fetches=1, seconds=7.5))
    after = datetime.now(UTC)
    row = await store.call("S", call("settled").key)
    assert row is not None
    assert row.begun_at is not None
    took = timedelta(seconds=7.5)
    assert before - took - MARGIN <= row.begun_at <= after - took + MARGIN


async def test_a_call_begun_again_keeps_its_first_beginning(store: Store) -> None:
    first = await store.begin_call(call("again"), Usage(calls=1))
    second = await store.begin_call(call("again").model_copy(update={"attempt": "b"}), Usage(calls=1))
    assert (second.begun, second.begun_at) == (2, first.begun_at)
