"""The hub alone: many readers of one session, each event once and in order, nothing kept for anybody in particular."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from marg_ray.actors.live import Progress, Running
from marg_ray.api.kept import PIECE, Tail
from marg_ray.api.sse import BEAT
from marg_ray.api.streams import Hub, Pace, Reader
from marg_ray.api.views import session_view
from marg_ray.errors import RuntimeUnavailable, SessionMoved, StoreUnavailable
from marg_ray.messages import SessionCancelled, SessionPaused, SessionResumed, TaskFailed
from marg_ray.records import Role
from marg_ray.state import ResearchState
from marg_ray.store.protocol import SessionRow
from tests.followed import Followed, eventually
from tests.sse import Event, Parser

CANCELLED = SessionCancelled(task_id="S/cancel")
HALTED = TaskFailed(task_id="S/plan", role=Role.PLANNER, stage="plan", error="ModelUnavailable", detail="away")
FAST = Pace(board_s=0.0, linger_s=0.0, pause_s=(0.0, 0.0), wait_s=5.0)


def hub_over(followed: Followed, pace: Pace = FAST, view: Any = session_view) -> Hub:
    return Hub(followed.sessions, followed.store, view, pace)


async def rest(reader: Reader) -> list[Event]:
    """What comes until the stream is over."""
    parser = Parser()
    found: list[Event] = []
    async with asyncio.timeout(30):
        while piece := await reader.next():
            found += parser.feed(piece)
    return found


async def read_all(hub: Hub, followed: Followed, after: int = 0, *, boards: bool = False) -> list[Event]:
    with hub.reading(await followed.store.session("S"), after, boards=boards) as reader:
        return await rest(reader)


async def until(seq: int, reader: Reader) -> list[Event]:
    parser = Parser()
    found: list[Event] = []
    async with asyncio.timeout(30):
        while not any(event.id == seq for event in found):
            piece = await reader.next()
            assert piece, "the stream is over"
            found += parser.feed(piece)
    return found


def ids(events: list[Event]) -> list[int]:
    return [event.id for event in events if event.id is not None]


@asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """No task that began inside outlives it by more than a few turns of the loop."""
    before = asyncio.all_tasks()
    yield
    await eventually(lambda: not asyncio.all_tasks() - before)


async def test_readers_that_come_at_any_time_get_every_event_once_and_in_order() -> None:
    followed = Followed()
    row = await followed.begin()
    hub = hub_over(followed)
    async with nothing_left():
        readers = []
        for _ in range(5):
            await followed.searches(7)
            row = await followed.store.session("S")
            readers.append(asyncio.create_task(read_all(hub, followed)))
            await asyncio.sleep(0)
        await followed.say(CANCELLED)
        found = await asyncio.gather(*readers)
        assert row.seq == 36
    assert [ids(events) for events in found] == [list(range(1, 38))] * 5
    assert all(events[-1] == Event("end", {"status": "cancelled"}, None) for events in found)


async def test_however_many_read_one_asks_the_coordinator() -> None:
    followed = Followed()
    row = await followed.begin()
    hub = hub_over(followed)
    async with nothing_left():
        reading = [asyncio.create_task(read_all(hub, followed)) for _ in range(50)]
        await eventually(lambda: bool(followed.waiting))
        assert followed.waiting == 1
        await followed.say(CANCELLED)
        await asyncio.gather(*reading)
    assert row.seq == 1
    assert followed.asked == 1
    assert not followed.waiting


async def test_a_reader_starts_above_the_number_it_names() -> None:
    followed = Followed()
    await followed.begin()
    await followed.searches(9)
    await followed.say(CANCELLED)
    hub = hub_over(followed)
    assert ids(await read_all(hub, followed, after=7)) == [8, 9, 10, 11]
    assert ids(await read_all(hub, followed, after=11)) == []
    assert (await read_all(hub, followed, after=11))[-1].name == "end"


async def test_who_has_read_more_than_there_is_starts_again() -> None:
    followed = Followed()
    await followed.begin()
    await followed.searches(2)
    await followed.say(CANCELLED)
    events = await read_all(hub_over(followed), followed, after=999)
    assert events[0] == Event("resync", {"after": 999}, 0)
    assert ids(events) == [0, 1, 2, 3, 4]


async def test_a_session_that_is_over_is_read_without_its_coordinator() -> None:
    followed = Followed()
    await followed.begin()
    await followed.searches(3)
    await followed.say(CANCELLED)
    async with nothing_left():
        events = await read_all(hub_over(followed), followed, boards=True)
    assert followed.asked == 0
    assert [event.name for event in events] == [
        "session_started",
        *["search_done"] * 3,
        "session_cancelled",
        "board",
        "end",
    ]
    assert events[-2].data["status"] == "cancelled"
    assert events[-2].data["seq"] == 5


async def test_a_slow_reader_gets_everything_although_little_is_kept() -> None:
    followed = Followed()
    row = await followed.begin()
    hub = hub_over(followed, replace(FAST, kept_bytes=20_000))
    async with nothing_left():
        with hub.reading(row, boards=False) as slow, hub.reading(row, boards=False) as quick:
            first = await until(1, slow)
            for _ in range(10):
                await followed.searches(50)
                last = (await followed.store.session("S")).seq
                await until(last, quick)
                tail = hub._channels["S"].tail
                assert sum(map(len, tail._frames)) <= 20_000
            assert tail.first > 2  # so the slow one's place is not kept any more
            await followed.say(CANCELLED)
            parser, pieces = Parser(), []
            while piece := await slow.next():
                pieces.append(piece)
            events = [event for piece in pieces for event in parser.feed(piece)]
    assert ids(first) + ids(events) == list(range(1, 503))
    assert events[-1].name == "end"
    assert max(map(len, pieces)) < 2 * PIECE


async def test_who_waits_long_takes_what_is_there_in_one_piece() -> None:
    followed = Followed()
    row = await followed.begin()
    hub = hub_over(followed)
    with hub.reading(row, boards=False) as slow, hub.reading(row, boards=False) as quick:
        await until(1, slow)
        await followed.searches(40)
        await until(41, quick)
        assert ids(Parser().feed(await slow.next())) == list(range(2, 42))


async def test_connecting_and_dropping_leaves_nothing() -> None:
    followed = Followed()
    row = await followed.begin()
    hub = hub_over(followed)
    async with nothing_left():
        for _ in range(200):
            with hub.reading(row) as reader:
                await reader.next()
        await eventually(lambda: not hub._channels)
        assert not followed.waiting
        await followed.say(CANCELLED)  # nobody listened, and it is not missed:
        assert ids(await read_all(hub, followed)) == [1, 2]


async def test_who_comes_back_in_time_finds_the_subscription() -> None:
    followed = Followed()
    row = await followed.begin()
    hub = hub_over(followed, replace(FAST, linger_s=30.0))
    for _ in range(10):
        with hub.reading(row) as reader:
            await reader.next()
    assert followed.asked <= 1
    async with nothing_left():
        hub.close()
    assert not hub._channels


async def test_closing_the_hub_ends_streams_without_an_end() -> None:
    followed = Followed()
    hub = hub_over(followed)
    with hub.reading(await followed.begin(), boards=False) as reader:
        await until(1, reader)
        hub.close()
        assert await rest(reader) == []


@pytest.mark.parametrize("fault", [RuntimeUnavailable("ray", "gone"), SessionMoved("S", 1), ZeroDivisionError("a bug")])
async def test_a_coordinator_that_is_away_ends_no_stream(fault: Exception) -> None:
    """The store still tells what is in the log; when the coordinator is back, it goes on with it."""
    followed = Followed(fault=fault)
    row = await followed.begin()
    hub = hub_over(followed)
    async with nothing_left():
        with hub.reading(row, boards=False) as reader:
            assert ids(await until(1, reader)) == [1]
            await followed.searches(3)
            assert ids(await until(4, reader)) == [2, 3, 4]
            followed.fault = None
            await followed.searches(3)
            assert ids(await until(7, reader)) == [5, 6, 7]
            followed.fault = fault
            await followed.say(CANCELLED)
            assert [event.name for event in await rest(reader)] == ["session_cancelled", "end"]


async def test_who_waits_in_vain_is_sent_elsewhere() -> None:
    followed = Followed(fault=RuntimeUnavailable("ray", "gone"))
    row = await followed.begin()
    hub = hub_over(followed, replace(FAST, absent_s=0.0))
    async with nothing_left():
        with hub.reading(row, boards=False) as reader:
            events = await rest(reader)
        assert events[-1].name == "error"
        assert events[-1].data["code"] == "RuntimeUnavailable"
        followed.fault = None
        with hub.reading(row, 1, boards=False) as reader:  # and back again, it is asked anew
            await followed.searches(1)
            assert ids(await until(2, reader)) == [2]


async def test_another_runtimes_session_is_followed_for_as_long_as_it_takes() -> None:
    followed = Followed(fault=SessionMoved("S", 0, "elsewhere"))
    row = await followed.begin()
    hub = hub_over(followed, replace(FAST, absent_s=0.0))
    with hub.reading(row, boards=False) as reader:
        for seq in range(2, 6):
            await followed.searches(1)
            assert ids(await until(seq, reader))[-1] == seq


async def test_a_store_that_fails_a_slow_reader_sends_it_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = Followed()
    row = await followed.begin()
    hub = hub_over(followed, replace(FAST, kept_bytes=2_000))
    with hub.reading(row, boards=False) as slow, hub.reading(row, boards=False) as quick:
        await until(1, slow)
        await followed.searches(20)
        await until(21, quick)

        async def away(*_: object, **__: object) -> None:
            raise StoreUnavailable("it is away")

        monkeypatch.setattr(followed.store, "read", away)
        events = await rest(slow)
    assert [event.name for event in events] == ["error"]


async def test_a_hole_in_what_the_coordinator_tells_is_filled_from_the_store() -> None:
    followed = Followed()
    row = await followed.begin()
    hub = hub_over(followed)
    with hub.reading(row, boards=False) as reader:
        await until(1, reader)
        followed.hole = 2
        await followed.searches(4)
        assert ids(await until(5, reader)) == [2, 3, 4, 5]


async def test_a_halted_session_ends_its_stream_and_begins_another_when_it_is_resumed() -> None:
    followed = Followed()
    await followed.begin()
    await followed.say(HALTED)
    hub = hub_over(followed, replace(FAST, linger_s=30.0))
    ended = await read_all(hub, followed)
    assert ended[-1] == Event("end", {"status": "halted"}, None)
    await followed.say(SessionResumed(task_id="S/resume"))
    with hub.reading(await followed.store.session("S"), 2, boards=False) as reader:
        assert ids(await until(3, reader)) == [3]
        await followed.searches(1)
        assert ids(await until(4, reader)) == [4]
    hub.close()


async def test_a_paused_session_keeps_its_readers() -> None:
    followed = Followed()
    row = await followed.begin()
    with hub_over(followed).reading(row) as reader:
        await followed.say(SessionPaused(task_id="S/pause"))
        await until(2, reader)
        await followed.say(SessionResumed(task_id="S/resume"))
        assert ids(await until(3, reader)) == [3]


async def test_signs_of_life_come_while_nothing_happens_and_the_coordinator_is_silent() -> None:
    followed = Followed()
    row = await followed.begin()
    hub = hub_over(followed, replace(FAST, heartbeat_s=0.01))
    with hub.reading(row, boards=False) as reader, hub.reading(row, boards=False) as other:
        await until(1, reader)
        await until(1, other)
        for _ in range(3):
            assert await reader.next() == BEAT
            assert await other.next() == BEAT


async def test_a_connection_has_its_longest_time() -> None:
    followed = Followed()
    hub = hub_over(followed, replace(FAST, longest_s=0.0, heartbeat_s=0.01))
    with hub.reading(await followed.begin(), boards=False) as reader:
        events = await rest(reader)
    assert "end" not in {event.name for event in events}  # so its client comes back


async def test_boards_are_drawn_for_all_together_and_not_for_every_change() -> None:
    followed = Followed()
    drawn = 0

    def view(row: SessionRow, state: ResearchState, progress: Progress) -> Any:
        nonlocal drawn
        drawn += 1
        return session_view(row, state, progress)

    row = await followed.begin()
    hub = hub_over(followed, replace(FAST, board_s=60.0), view)
    reading = [asyncio.create_task(read_all(hub, followed, boards=True)) for _ in range(5)]
    with hub.reading(row, boards=False) as reader:
        for seq in range(2, 30):
            await followed.searches(1)
            await until(seq, reader)
    await followed.say(CANCELLED)
    for events in await asyncio.gather(*reading):
        boards = [event.data for event in events if event.name == "board"]
        assert len(boards) == 2  # what there was at first, and the end
        assert boards[-1]["status"] == "cancelled"
        assert boards[-1]["seq"] == 30
    assert drawn == 2


async def test_a_board_shows_what_changes_without_an_entry() -> None:
    followed = Followed()
    row = await followed.begin()
    with hub_over(followed).reading(row) as reader:
        await until(1, reader)
        followed.running = (Running(id="S/plan", role="planner", kind="plan", section="", target="", since=1.5),)
        followed.tell()
        parser = Parser()
        boards: list[dict[str, Any]] = []
        async with asyncio.timeout(30):
            while not (boards and boards[-1]["running"]):
                boards += [e.data for e in parser.feed(await reader.next()) if e.name == "board"]
    assert boards[-1]["running"][0]["role"] == "planner"


async def test_nobody_looks_at_a_board_so_none_is_drawn() -> None:
    followed = Followed()
    await followed.begin()
    await followed.say(CANCELLED)

    def view(row: SessionRow, state: ResearchState, progress: Progress) -> Any:
        raise AssertionError("drawn for nobody")

    assert ids(await read_all(hub_over(followed, view=view), followed)) == [1, 2]


async def test_events_go_on_when_a_board_cannot_be_drawn(caplog: pytest.LogCaptureFixture) -> None:
    def view(row: SessionRow, state: ResearchState, progress: Progress) -> Any:
        raise ZeroDivisionError

    followed = Followed()
    await followed.begin()
    await followed.say(CANCELLED)
    events = await read_all(hub_over(followed, view=view), followed, boards=True)
    assert [event.name for event in events] == ["session_started", "session_cancelled", "end"]
    assert "cannot be drawn" in caplog.text


async def test_sessions_are_kept_apart() -> None:
    followed = Followed()
    rows = [await followed.begin(name) for name in "STU"]
    hub = hub_over(followed)
    for n, name in enumerate("STU"):
        await followed.searches(n + 1, name, text=f"of {name}")
        await followed.say(SessionCancelled(task_id=f"{name}/cancel"), name)
    for row in rows:
        with hub.reading(await followed.store.session(row.id), 1, boards=False) as reader:
            queries = [e.data["query"] for e in await rest(reader) if e.name == "search_done"]
        assert len(queries) == "STU".index(row.id) + 1
        assert all(query.startswith(f"of {row.id} ") for query in queries)


def test_a_tail_keeps_the_newest_and_says_what_it_does_not_keep() -> None:
    tail = Tail(100)
    assert tail.after(0) == (b"", 0)
    assert tail.after(5) == (b"", 5)
    for n in range(1, 31):
        tail.add(b"%010d" % n)
    assert tail.head == 30
    assert 20 < tail.first < 27
    assert tail.after(tail.first - 2) is None
    found = tail.after(tail.first - 1)
    assert found == (b"".join(b"%010d" % n for n in range(tail.first, 31)), 30)
    assert tail.after(29) == (b"%010d" % 30, 30)
    assert tail.after(30) == (b"", 30)
    tail.add(b"x" * 500)  # larger than all that is kept, and kept
    assert tail.after(30) == (b"x" * 500, 31)


def test_a_tail_gives_pieces_of_bounded_size() -> None:
    tail = Tail(10**9)
    for _ in range(1000):
        tail.add(b"y" * 1000)
    seq, sizes = 0, []
    while seq < 1000:
        found = tail.after(seq)
        assert found is not None
        sizes.append(len(found[0]))
        seq = found[1]
    assert sum(sizes) == 1_000_000
    assert max(sizes) <= PIECE + 1000
