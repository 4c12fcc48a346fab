from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marg_ray.actors.admission import GRACE_S, LEASE_S, Desk, Standing, Valve
from marg_ray.errors import SessionCancelled, TooBusy
from marg_ray.records import Priority
from marg_ray.settings import AdmissionSettings

INTERACTIVE, BATCH = Priority.INTERACTIVE, Priority.BATCH


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def desk(sessions: int = 2, waiting: int = 100, *, clock: Clock | None = None, restarted: bool = False) -> Desk:
    return Desk(AdmissionSettings(sessions=sessions, waiting=waiting), restarted=restarted, clock=clock or Clock())


async def arrives(d: Desk, session_id: str, owner: str = "a", priority: Priority = INTERACTIVE) -> asyncio.Task[None]:
    """A caller of `enter`, once the desk has seen it."""
    task = asyncio.create_task(d.enter(session_id, owner, priority))
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def gone(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


# ---- places


async def test_so_many_run_and_the_others_wait_in_order() -> None:
    d = desk(2)
    tasks = [await arrives(d, s) for s in ("s1", "s2", "s3", "s4")]
    assert [t.done() for t in tasks] == [True, True, False, False]
    assert d.positions() == {"s1": 0, "s2": 0, "s3": 1, "s4": 2}
    assert d.position("never seen") is None
    await d.leave("s1")
    await tasks[2]
    assert d.positions() == {"s2": 0, "s3": 0, "s4": 1}
    assert d.standing() == Standing(running=2, waiting=1, limit=2)
    await gone(tasks[3])


async def test_entering_twice_is_one_place() -> None:
    d = desk(1)
    await d.enter("s1", "a", INTERACTIVE)
    await d.enter("s1", "a", INTERACTIVE)
    first, again = await arrives(d, "s2"), await arrives(d, "s2")
    other = await arrives(d, "s3")
    assert d.standing() == Standing(running=1, waiting=2, limit=1)
    await d.leave("s1")
    await asyncio.gather(first, again)
    assert d.positions() == {"s2": 0, "s3": 1}
    await gone(other)


async def test_a_cancelled_caller_leaves_the_queue_unless_another_waits_for_the_same_session() -> None:
    d = desk(1)
    await d.enter("s1", "a", INTERACTIVE)
    first, second = await arrives(d, "s2"), await arrives(d, "s2")
    await gone(first)
    assert d.position("s2") == 1
    await gone(second)
    assert d.position("s2") is None
    await d.leave("s1")
    assert d.standing() == Standing(running=0, waiting=0, limit=1)


async def test_a_caller_that_is_cancelled_after_its_admission_keeps_the_place() -> None:
    d = desk(1)
    await d.enter("s1", "a", INTERACTIVE)
    task = await arrives(d, "s2")
    await d.leave("s1")  # s2 is admitted; its caller has not run yet
    await gone(task)
    assert d.position("s2") == 0


async def test_a_session_that_leaves_while_it_waits_ends_its_callers() -> None:
    d = desk(1)
    await d.enter("s1", "a", INTERACTIVE)
    task = await arrives(d, "s2")
    await d.leave("s2")
    with pytest.raises(SessionCancelled):
        await task
    assert d.positions() == {"s1": 0}


async def test_leaving_twice_frees_one_place() -> None:
    d = desk(2)
    for s in ("s1", "s2"):
        await d.enter(s, "a", INTERACTIVE)
    tasks = [await arrives(d, s) for s in ("s3", "s4")]
    await d.leave("s1")
    await d.leave("s1")
    assert d.positions() == {"s2": 0, "s3": 0, "s4": 1}
    for t in tasks:
        await gone(t)


# ---- a full queue


async def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    clock = Clock()
    d = desk(1, 1, clock=clock)
    await d.enter("s0", "a", INTERACTIVE)
    for n in range(1, 5):  # a session ends every 20 s
        task = await arrives(d, f"s{n}")
        clock.now += 20
        await d.renew([f"s{n - 1}"])
        await d.leave(f"s{n - 1}")
        await task
    waiting = await arrives(d, "last")
    with pytest.raises(TooBusy) as refused:
        await d.enter("one more", "b", INTERACTIVE)
    assert refused.value.waiting == 1
    assert 15 <= refused.value.retry_after_s <= 25
    await d.enter("s4", "a", INTERACTIVE)  # who has a place is never refused
    await gone(waiting)


async def test_without_a_queue_free_places_are_still_given() -> None:
    d = desk(1, 0)
    await d.enter("s1", "a", INTERACTIVE)
    with pytest.raises(TooBusy) as refused:
        await d.enter("s2", "a", INTERACTIVE)
    assert refused.value.retry_after_s > 0
    await d.leave("s1")
    await d.enter("s2", "a", INTERACTIVE)


# ---- leases and restarts


async def test_a_place_that_nobody_renews_is_free_after_its_lease() -> None:
    clock = Clock()
    d = desk(2, clock=clock)
    await d.enter("kept", "a", INTERACTIVE)
    await d.enter("lost", "a", INTERACTIVE)
    next_one = await arrives(d, "next")
    clock.now += LEASE_S - 1
    await d.renew(["kept"])
    assert d.position("next") == 1
    clock.now += 1
    d.settle()
    await next_one
    assert d.positions() == {"kept": 0, "next": 0}


async def test_waiting_sessions_are_admitted_without_anybody_calling() -> None:
    clock = Clock()
    d = desk(1, clock=clock)
    await d.enter("lost", "a", INTERACTIVE)
    next_one = await arrives(d, "next")
    clock.now += LEASE_S
    await asyncio.wait_for(next_one, 30)


async def test_a_desk_that_was_restarted_learns_who_runs_before_it_admits() -> None:
    clock = Clock()
    d = desk(2, clock=clock, restarted=True)
    early = await arrives(d, "new")
    await d.renew(["s1", "s2"], {"s1": "a", "s2": "b"})
    assert d.positions() == {"s1": 0, "s2": 0, "new": 1}
    clock.now += GRACE_S
    d.settle()
    assert not early.done()
    await d.leave("s2")
    await early


async def test_a_desk_that_stands_in_learns_who_runs_when_its_time_comes() -> None:
    clock = Clock()
    d = desk(1, clock=clock, restarted=True)
    for _ in range(2):  # the other desk is away, comes back, and is away again, hours later each time
        clock.now += 3600
        early = await arrives(d, "new")
        await d.renew(["s1"])
        clock.now += GRACE_S
        await d.renew(["s1"])
        assert d.positions() == {"s1": 0, "new": 1}
        await gone(early)


async def test_a_renewal_counts_for_its_owner() -> None:
    clock = Clock()
    d = desk(3, clock=clock, restarted=True)
    await d.renew(["s1", "s2"])  # by somebody who does not say whose they are
    await d.renew(["s1", "s2"], {"s1": "a", "s2": "a"})
    tasks = [await arrives(d, "a1", "a"), await arrives(d, "b1", "b")]
    assert d.positions() == {"s1": 0, "s2": 0, "b1": 1, "a1": 2}
    for t in tasks:
        await gone(t)


async def test_a_session_that_runs_elsewhere_already_needs_no_turn() -> None:
    d = desk(1)
    await d.enter("s1", "a", INTERACTIVE)
    task = await arrives(d, "s2")
    await d.renew(["s1", "s2"])
    await task
    assert d.standing() == Standing(running=2, waiting=0, limit=1)


async def test_a_late_renewal_does_not_bring_a_session_back_that_left() -> None:
    clock = Clock()
    d = desk(1, clock=clock)
    await d.enter("s1", "a", INTERACTIVE)
    await d.leave("s1")
    await d.renew(["s1"])
    assert d.positions() == {}
    await d.enter("s1", "a", INTERACTIVE)  # resumed
    await d.renew(["s1"])
    assert d.positions() == {"s1": 0}


# ---- pressure


async def test_pressure_lets_what_runs_go_on_and_admits_fewer() -> None:
    clock = Clock()
    d = desk(4, clock=clock)
    for n in range(4):
        await d.enter(f"s{n}", "a", INTERACTIVE)
    task = await arrives(d, "next")
    await d.pressure(throttled=3)
    assert d.standing() == Standing(running=4, waiting=1, limit=2)
    for n in range(2):
        await d.leave(f"s{n}")
    assert not task.done()
    await d.leave("s2")
    await task
    assert d.standing() == Standing(running=2, waiting=0, limit=2)


def test_the_limit_falls_once_a_window_and_comes_back_in_steps() -> None:
    valve = Valve(64, 0.0)
    for now in (1.0, 2.0, 9.0):
        valve.press(64, now, throttled=5, queue_depth=0)
    assert valve.limit == 32
    valve.press(32, 11.0, throttled=1, queue_depth=0)
    assert valve.limit == 16
    valve.grow(20.9)
    assert valve.limit == 16
    valve.grow(31.0)
    assert valve.limit == 24
    valve.grow(1e6)
    assert valve.limit == 64


def test_a_model_that_is_pressed_by_few_gets_fewer_at_once() -> None:
    valve = Valve(64, 0.0)
    valve.press(10, 0.0, throttled=1, queue_depth=0)
    assert valve.limit == 5


def test_a_deep_queue_is_pressure_and_a_short_one_is_not() -> None:
    valve = Valve(4, 0.0)
    valve.press(4, 0.0, throttled=0, queue_depth=16)
    assert valve.limit == 4
    valve.press(4, 0.0, throttled=0, queue_depth=17)
    assert valve.limit == 2


@given(
    st.integers(1, 100),
    st.lists(st.tuples(st.floats(0, 100), st.integers(0, 3), st.integers(0, 500), st.integers(0, 200)), max_size=50),
)
def test_the_limit_stays_between_one_and_the_setting(most: int, events: list[tuple[float, int, int, int]]) -> None:
    valve, now = Valve(most, 0.0), 0.0
    for passed, throttled, depth, running in events:
        now += passed
        valve.press(running, now, throttled=throttled, queue_depth=depth)
        assert 1 <= valve.limit <= most


# ---- what can be watched


async def test_a_change_wakes_who_watches() -> None:
    d = desk(1)
    seen = await d.changed()
    assert await d.changed(seen, wait_s=0) == seen
    watching = asyncio.create_task(d.changed(seen, wait_s=30))
    await asyncio.sleep(0)
    await d.enter("s1", "a", INTERACTIVE)
    assert await watching > seen


# ---- any course of events

STEPS = ("enter", "enter", "enter", "again", "leave", "cancel", "press", "pass", "restart")


async def play(seed: int, sessions: int, steps: list[str]) -> None:
    """Sessions come, end, are cancelled, the model presses, the desk restarts: nobody is lost, and the limit holds."""
    dice, clock, owners = random.Random(seed), Clock(), {}
    d = desk(sessions, clock=clock)
    tasks: dict[str, asyncio.Task[None]] = {}
    running: set[str] = set()

    async def look() -> None:
        for _ in range(4):
            await asyncio.sleep(0)
        before = len(running)
        for s in [s for s, t in tasks.items() if t.done()]:
            tasks.pop(s).result()
            running.add(s)
        if len(running) > before:
            assert len(running) <= d.standing().limit
        places = d.positions()
        assert {s for s, p in places.items() if p == 0} == running
        assert sorted(p for p in places.values() if p) == list(range(1, len(tasks) + 1))

    async def renewals() -> None:
        await d.renew(sorted(running), owners)

    for number, step in enumerate(steps):
        if step == "enter":
            s = f"s{number}"
            owners[s] = dice.choice("abc")
            tasks[s] = asyncio.create_task(d.enter(s, owners[s], dice.choice([INTERACTIVE, BATCH])))
        elif step == "again" and running:
            s = dice.choice(sorted(running))
            await d.enter(s, owners[s], INTERACTIVE)
        elif step == "leave" and running:
            s = dice.choice(sorted(running))
            running.remove(s)
            await d.leave(s)
        elif step == "cancel" and tasks:
            await gone(tasks.pop(dice.choice(sorted(tasks))))
        elif step == "press":
            await d.pressure(1)
        elif step == "pass":
            await renewals()
            clock.now += dice.choice([1.0, 15.0, LEASE_S - 1])
            d.settle()
        elif step == "restart":
            waiting = sorted(tasks)
            for s in waiting:
                await gone(tasks.pop(s))
            d = desk(sessions, clock=clock, restarted=True)
            for s in waiting:  # their coordinators ask again
                tasks[s] = asyncio.create_task(d.enter(s, owners[s], INTERACTIVE))
            await renewals()
            await look()
            clock.now += GRACE_S
            d.settle()
        await look()
    while tasks or running:  # everyone has a turn
        for s in sorted(running):
            running.remove(s)
            await d.leave(s)
        clock.now += GRACE_S
        await renewals()
        await look()
    assert d.standing().waiting == 0


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**16), st.integers(1, 5), st.lists(st.sampled_from(STEPS), max_size=40))
def test_in_any_course_of_events_nobody_is_lost_and_the_limit_holds(seed: int, sessions: int, steps: list[str]) -> None:
    asyncio.run(play(seed, sessions, steps))
