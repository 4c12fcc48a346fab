"""No minute, wherever it begins, sees more requests of a caller than the limit, over all replicas."""

from __future__ import annotations

import asyncio
import random

import pytest

from marg_ray.api.rates import Rates
from marg_ray.api.refusals import RateLimited
from marg_ray.store.memory import MemoryStore


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_003.0

    def __call__(self) -> float:
        return self.now


async def passes(rates: Rates, caller: str = "ann") -> bool:
    try:
        await rates.take(caller)
    except RateLimited:
        return False
    return True


async def test_so_many_a_minute_and_not_one_more() -> None:
    clock = Clock()
    rates = Rates(60, clock=clock)
    lefts = [(await rates.take("ann")).left for _ in range(60)]
    assert lefts == list(range(59, -1, -1))
    with pytest.raises(RateLimited) as told:
        await rates.take("ann")
    assert 0 < told.value.retry_after_s <= 65
    assert await passes(rates, "bob")
    clock.now += told.value.retry_after_s - 0.001
    assert not await passes(rates)
    clock.now += 0.002
    assert await passes(rates)


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("seed", range(5))
async def test_in_no_minute_are_there_more(replicas: int, seed: int) -> None:
    rng, clock, store = random.Random(seed), Clock(), MemoryStore()
    tally = store.tally if replicas > 1 else None
    all_of_them = [Rates(20, tally, clock) for _ in range(replicas)]
    passed: list[float] = []
    for _ in range(3000):
        clock.now += rng.choice((0.0, 0.01, 0.5, 2.0)) if rng.random() < 0.995 else rng.uniform(0, 90)
        if await passes(rng.choice(all_of_them)):
            passed.append(clock.now)
    for at in passed:
        assert sum(at <= other < at + 60 for other in passed) <= 20
    span = passed[-1] - passed[0]
    assert len(passed) > 0.5 * 20 * span / 60  # and it is not far less either


async def test_replicas_count_together_also_at_once() -> None:
    clock, store = Clock(), MemoryStore()
    replicas = [Rates(50, store.tally, clock) for _ in range(4)]
    passed = await asyncio.gather(*(passes(replicas[n % 4]) for n in range(200)))
    assert sum(passed) == 50


async def test_who_goes_on_at_the_limit_does_not_ask_the_store_again() -> None:
    asked = 0

    async def tally(name: str, period: int, since: int) -> dict[int, int]:
        nonlocal asked
        asked += 1
        return {period: asked}

    rates = Rates(10, tally, Clock())
    assert [await passes(rates) for _ in range(100)].count(True) == 10
    assert asked == 10


async def test_a_store_that_is_away_turns_nobody_away_and_lets_nobody_go_on_for_ever() -> None:
    async def tally(name: str, period: int, since: int) -> dict[int, int]:
        raise OSError("away")

    rates = Rates(10, tally, Clock())
    assert [await passes(rates) for _ in range(100)].count(True) == 10


async def test_callers_who_left_are_forgotten() -> None:
    clock = Clock()
    rates = Rates(10, clock=clock)
    for n in range(1000):
        await rates.take(f"caller {n}")
    clock.now += 200
    await rates.take("ann")
    assert set(rates._seen) == {"ann"}


async def test_the_standing_is_said_in_headers() -> None:
    standing = await Rates(60, clock=Clock()).take("ann")
    assert standing.headers() == {
        "RateLimit-Limit": "60",
        "RateLimit-Remaining": "59",
        "RateLimit-Reset": "62",
        "RateLimit-Policy": "60;w=60",
    }
