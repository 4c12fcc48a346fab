from __future__ import annotations

import asyncio

import pytest

from marg_ray.actors.turnstile import Turnstile


async def test_who_comes_alone_goes_through_at_once() -> None:
    gate = Turnstile(look_s=60.0)
    await gate.enter("b")
    assert len(gate) == 0


async def test_the_oldest_session_goes_first() -> None:
    gate, order = Turnstile(look_s=0.0), []

    async def unit(name: str) -> None:
        await gate.enter(name)
        order.append(name)

    await asyncio.gather(*(unit(name) for name in ("x", "c", "a", "b", "a")))
    assert order == ["x", "a", "a", "b", "c"], "the first found the gate free; the others by age"


async def test_while_the_loop_lags_nobody_is_let_in() -> None:
    gate = Turnstile(lag_s=-1.0, look_s=0.0)  # every look finds the loop late
    await gate.enter("a")
    second = asyncio.create_task(gate.enter("b"))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not second.done()
    gate._lag_s = 60.0  # it has caught up
    await asyncio.wait_for(second, 10)


async def test_one_that_gives_up_does_not_stand_in_the_way() -> None:
    gate = Turnstile(look_s=0.0)
    await gate.enter("a")
    gone, waiting = asyncio.create_task(gate.enter("b")), asyncio.create_task(gate.enter("c"))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait_for(waiting, 10)
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert len(gate) == 0
    await asyncio.wait_for(gate.enter("d"), 10)
