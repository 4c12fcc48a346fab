from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from marg_ray.store.protocol import CacheCount, Store

CALLERS = 50
LONG = 3600.0


async def test_of_many_claims_of_a_key_one_wins(store: Store) -> None:
    async def claim(n: int) -> tuple[str, str]:
        return await store.claim_key("o", "key", f"body {n}", f"session {n}")

    answers = set(await asyncio.gather(*map(claim, range(CALLERS))))
    assert len(answers) == 1
    ((session, body),) = answers
    assert session.removeprefix("session") == body.removeprefix("body")
    assert await store.claim_key("o", "key", "later", "later") == (session, body)


async def test_keys_are_each_owner_s_own(store: Store) -> None:
    assert await store.claim_key("o", "key", "b", "S1") == ("S1", "b")
    assert await store.claim_key("p", "key", "c", "S2") == ("S2", "c")
    assert await store.claim_key("o", "other", "d", "S3") == ("S3", "d")


async def test_a_sign_of_life_is_the_last_one(store: Store) -> None:
    before = datetime.now(UTC)
    for shard in (2, 0, 1, 0):
        await store.beat("me", shard)
    first = {row.shard: row.beat_at for row in await store.shards("me")}
    await store.beat("you", 0)
    await store.beat("me", 1)
    rows = await store.shards("me")
    assert [row.shard for row in rows] == [0, 1, 2]
    assert rows[1].beat_at > first[1] >= before
    assert rows[2].beat_at == first[2]
    assert [(r.holder, r.shard) for r in await store.shards()] == [("me", 0), ("you", 0), ("me", 1), ("me", 2)]
    assert await store.shards("nobody") == []


async def test_the_last_metrics_stand(store: Store) -> None:
    await store.put_metrics("S", '{"a":1}')
    await store.put_metrics("S", '{"a":2}')
    assert await store.metrics("S") == '{"a":2}'


async def test_a_cached_value_comes_back_and_its_hits_are_counted(store: Store) -> None:
    before = datetime.now(UTC)
    assert await store.cache_get("report", "k") is None
    await store.cache_put("report", "k", "潮汐", LONG)
    rows = [await store.cache_get("report", "k") for _ in range(3)]
    assert [row and (row.value, row.hits) for row in rows] == [("潮汐", 1), ("潮汐", 2), ("潮汐", 3)]
    assert rows[0] is not None
    assert before - timedelta(milliseconds=1) <= rows[0].stored_at <= datetime.now(UTC)
    assert await store.cache_get("search", "k") is None
    await store.cache_put("report", "k", "new", LONG)
    new = await store.cache_get("report", "k")
    assert new is not None
    assert (new.value, new.hits) == ("new", 4)


async def test_hits_at_once_are_each_counted(store: Store) -> None:
    await store.cache_put("report", "k", "v", LONG)
    rows = await asyncio.gather(*(store.cache_get("report", "k") for _ in range(CALLERS)))
    assert sorted(row.hits for row in rows if row) == list(range(1, CALLERS + 1))


async def test_a_value_that_is_too_old_is_not_given(store: Store) -> None:
    await store.cache_put("report", "k", "v", LONG)
    await store.cache_put("report", "k", "old at once", 0)
    assert await store.cache_get("report", "k") is None


async def test_the_cache_is_counted_and_dropped_by_space(store: Store) -> None:
    for space, key, ttl in (("report", "a", LONG), ("report", "b", 0), ("page", "a", LONG), ("page", "b", 0)):
        await store.cache_put(space, key, "v", ttl)
    await store.cache_get("page", "a")
    assert await store.cache_counts() == [
        CacheCount(space="page", entries=2, hits=1),
        CacheCount(space="report", entries=2, hits=0),
    ]
    assert await store.cache_drop("report") == 1
    assert await store.cache_drop() == 1
    assert await store.cache_get("report", "a") is not None
    assert await store.cache_drop("report", expired=False) == 1
    assert await store.cache_get("report", "a") is None
    assert await store.cache_drop(expired=False) == 1
    assert await store.cache_counts() == []
