from __future__ import annotations

import asyncio

import pytest

from marg_ray.actors.turnstile import Turnstile


class Unit:
    """Holds its place until it is told to go."""

    def __init__(self, gate: Turnstile, order: str, begun: list[str]) -> None:
        self.go = asyncio.Event()
        self.task = asyncio.create_task(self._run(gate, order, begun))

    async def _run(self, gate: Turnstile, order: str, begun: list[str]) -> None:
        async with gate.place(order):
            begun.append(order)
            await self.go.wait()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_so_many_begin_at_once_and_then_the_oldest_session_s_first() -> None:
    gate, begun = Turnstile(at_once=2), list[str]()
    units = [Unit(gate, order, begun) for order in ("x", "y", "c", "a", "b", "a")]
    await settled()
    assert begun == ["x", "y"]
    assert len(gate) == 4
    for unit in (*units[:2], units[3], units[5], units[4], units[2]):
        unit.go.set()
        await settled()
    assert begun == ["x", "y", "a", "a", "b", "c"]
    await asyncio.gather(*(unit.task for unit in units))


async def test_one_that_gives_up_or_fails_leaves_its_place() -> None:
    gate, begun = Turnstile(at_once=1), list[str]()
    holds, gone, waits = (Unit(gate, order, begun) for order in ("a", "b", "c"))
    await settled()
    gone.task.cancel()
    holds.task.cancel()
    await settled()
    assert begun == ["a", "c"]
    waits.go.set()
    await waits.task
    with pytest.raises(ZeroDivisionError):
        async with gate.place("d"):
            raise ZeroDivisionError
    async with asyncio.timeout(10), gate.place("e"):
        assert len(gate) == 0


async def test_a_place_that_is_given_to_one_who_gives_up_in_that_moment_goes_to_the_next() -> None:
    gate, begun = Turnstile(at_once=1), list[str]()
    holds, gone, waits = (Unit(gate, order, begun) for order in ("a", "b", "c"))
    await settled()
    holds.go.set()
    await asyncio.sleep(0)  # it leaves; the place is the second's, who has not been told yet
    gone.task.cancel()
    await settled()
    assert begun[-1] == "c"
    waits.go.set()
    await waits.task
