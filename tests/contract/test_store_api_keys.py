from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from marg_ray.store.protocol import ApiKey, Store

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
CALLERS = 50


def key(key_id: str, owner: str = "ann", **fields: object) -> ApiKey:
    whole = {"id": key_id, "owner": owner, "scopes": ("read", "research"), "digest": "d" * 64, "created_at": AT}
    return ApiKey.model_validate(whole | fields)


async def test_a_key_comes_back_as_it_was_kept(store: Store) -> None:
    odd = key("a", "Ann 潮", name="laptop 🌊", expires_at=AT + timedelta(days=1, microseconds=3))
    await store.put_api_key(odd)
    assert await store.api_key("a") == odd
    assert await store.api_key("b") is None
    await store.put_api_key(key("a", "bob"))
    assert await store.api_key("a") == odd


async def test_keys_are_listed_by_owner_in_the_order_they_were_made(store: Store) -> None:
    for n, (key_id, owner) in enumerate((("c", "ann"), ("a", "bob"), ("b", "ann"))):
        await store.put_api_key(key(key_id, owner, created_at=AT + timedelta(seconds=n)))
    assert [k.id for k in await store.api_keys()] == ["c", "a", "b"]
    assert [k.id for k in await store.api_keys("ann")] == ["c", "b"]
    assert await store.api_keys("nobody") == []


async def test_a_key_is_revoked_once(store: Store) -> None:
    await store.put_api_key(key("a"))
    await store.put_api_key(key("b"))
    before = datetime.now(UTC)
    assert await store.revoke_api_key("a")
    first = await store.api_key("a")
    assert first is not None
    assert first.revoked_at is not None
    assert before <= first.revoked_at <= datetime.now(UTC)
    assert await store.revoke_api_key("a")
    assert await store.api_key("a") == first
    other = await store.api_key("b")
    assert other is not None
    assert other.revoked_at is None
    assert not await store.revoke_api_key("nothing")


async def test_when_a_key_was_used_is_noted(store: Store) -> None:
    await store.put_api_key(key("a"))
    await store.touch_api_key("a", AT + timedelta(hours=2))
    await store.touch_api_key("nothing", AT)
    assert await store.api_keys() == [key("a", used_at=AT + timedelta(hours=2))]


async def test_requests_are_counted_by_name_and_period(store: Store) -> None:
    for period in (1, 1, 2):
        await store.tally("ann", period, 0)
    await store.tally("bob", 2, 0)
    assert await store.tally("ann", 2, 0) == {1: 2, 2: 2}
    assert await store.tally("bob", 3, 3) == {3: 1}
    assert await store.tally("ann", 3, 0) == {3: 1}  # the older ones were forgotten with bob's


async def test_requests_at_once_are_each_counted(store: Store) -> None:
    counts = await asyncio.gather(*(store.tally("ann", 7, 7) for _ in range(CALLERS)))
    assert sorted(count[7] for count in counts) == list(range(1, CALLERS + 1))
