from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random

import pytest

from marg_ray.errors import SessionNotFound, StaleEpoch, StoreConflict
from marg_ray.folding import apply
from marg_ray.messages import PlanReady, ReportReady, SearchDone, SessionStarted, SourceRead, Steered
from marg_ray.records import Limits, ReportStatus, Source, SourceKind
from marg_ray.routing import next_tasks
from marg_ray.store.protocol import SnapshotRow, Store
from tests.answers import NOW, answer, begin, started

FIRST = started()
CALLERS = 50


def _plan() -> PlanReady:
    state = begin()
    state = apply(state, SearchDone(task_id=next_tasks(state)[0].id, section="scout", query="q"))
    plan = answer(next_tasks(state)[0], Random(1))
    assert isinstance(plan, PlanReady)
    return plan


async def test_what_is_appended_is_read_back_in_order(store: Store) -> None:
    epoch = await store.take_over("S")
    plan = _plan()
    await store.append("S", FIRST, expected_seq=0, epoch=epoch, status="running")
    await store.append("S", plan, expected_seq=1, epoch=epoch, status="running")
    assert [(e.seq, e.message) for e in await store.read("S")] == [(1, FIRST), (2, plan)]
    assert [e.seq for e in await store.read("S", after=1)] == [2]


async def test_a_second_writer_is_told(store: Store) -> None:
    epoch = await store.take_over("S")
    await store.append("S", FIRST, expected_seq=0, epoch=epoch, status="running")
    with pytest.raises(StoreConflict) as told:
        await store.append("S", _plan(), expected_seq=0, epoch=epoch, status="running")
    assert (told.value.expected, told.value.found) == (0, 1)
    with pytest.raises(StoreConflict):
        await store.append("S", _plan(), expected_seq=7, epoch=epoch, status="running")
    assert [e.message for e in await store.read("S")] == [FIRST]


async def test_of_many_writers_at_once_one_wins(store: Store) -> None:
    epoch = await store.take_over("S")

    async def write(n: int) -> int:
        found = SearchDone(task_id=f"S/{n}", section="scout", query=f"{n}")
        try:
            return (await store.append("S", found, expected_seq=0, epoch=epoch, status="running")).seq
        except StoreConflict:
            return 0

    assert sorted(await asyncio.gather(*map(write, range(CALLERS)))) == [0] * (CALLERS - 1) + [1]
    assert len(await store.read("S")) == 1


async def test_an_append_whose_answer_was_lost_may_be_repeated(store: Store) -> None:
    epoch = await store.take_over("S")
    entry = await store.append("S", FIRST, expected_seq=0, epoch=epoch, status="running")
    assert await store.append("S", FIRST, expected_seq=0, epoch=epoch, status="running") == entry
    assert await store.read("S") == [entry]
    plan = _plan()
    await store.append("S", plan, expected_seq=1, epoch=epoch, status="running")
    with pytest.raises(StoreConflict):  # the log has gone on: that was no lost answer
        await store.append("S", FIRST, expected_seq=0, epoch=epoch, status="running")


async def test_what_an_earlier_epoch_wrote_is_no_answer_to_a_later_one(store: Store) -> None:
    old = await store.take_over("S")
    await store.append("S", FIRST, expected_seq=0, epoch=old, status="running")
    new = await store.take_over("S")
    with pytest.raises(StoreConflict) as told:
        await store.append("S", FIRST, expected_seq=0, epoch=new, status="running")
    assert not isinstance(told.value, StaleEpoch)


async def test_a_stale_coordinator_is_refused(store: Store) -> None:
    old = await store.take_over("S")
    await store.append("S", FIRST, expected_seq=0, epoch=old, status="running")
    new = await store.take_over("S")
    assert new == old + 1
    for seq in (0, 1):  # even where it repeats what it wrote
        with pytest.raises(StaleEpoch) as told:
            await store.append("S", FIRST, expected_seq=seq, epoch=old, status="halted")
        assert (told.value.expected, told.value.found) == (old, new)
    row = await store.session("S")
    assert (row.seq, row.status, row.epoch) == (1, "running", new)
    await store.append("S", _plan(), expected_seq=1, epoch=new, status="running")


async def test_of_those_who_expect_the_same_epoch_one_takes_over(store: Store) -> None:
    seen = await store.take_over("S", holder="dead", shard=1)

    takes = (store.take_over("S", holder="alive", shard=n, expected_epoch=seen) for n in range(CALLERS))
    epochs = await asyncio.gather(*takes, return_exceptions=True)
    assert epochs.count(seen + 1) == 1
    told = [(e.expected, e.found) for e in epochs if isinstance(e, StaleEpoch)]
    assert told == [(seen, seen + 1)] * (CALLERS - 1)
    row = await store.session("S")
    assert (row.holder, row.shard, row.epoch) == ("alive", epochs.index(seen + 1), seen + 1)


async def test_takeovers_without_an_expectation_all_succeed(store: Store) -> None:
    epochs = await asyncio.gather(*(store.take_over("S") for _ in range(CALLERS)))
    assert sorted(epochs) == list(range(1, CALLERS + 1))


async def test_the_fence_lets_the_newest_and_the_unfenced_pass(store: Store) -> None:
    old = await store.take_over("S")
    new = await store.take_over("S")
    await store.fence("S", new)
    await store.fence("S", 0)
    with pytest.raises(StaleEpoch):
        await store.fence("S", old)
    with pytest.raises(SessionNotFound):
        await store.fence("nope", 1)


async def test_an_unknown_session_is_named(store: Store) -> None:
    calls = (
        store.session("nope"),
        store.take_over("nope"),
        store.take_over("nope", expected_epoch=0),
        store.append("nope", FIRST, expected_seq=0, epoch=0, status="running"),
        store.account("nope"),
    )
    for call in calls:
        with pytest.raises(SessionNotFound, match="nope"):
            await call
    assert await store.read("nope") == []
    assert await store.snapshots("nope") == []
    assert await store.calls("nope") == []
    assert await store.metrics("nope") == ""


async def test_the_report_and_status_are_on_the_row(store: Store) -> None:
    epoch = await store.take_over("S")
    report = ReportReady(task_id="S/format/0", artefact="a" * 64, status=ReportStatus.PASSED)
    await store.append("S", report, expected_seq=0, epoch=epoch, status="passed")
    row = await store.session("S")
    assert (row.artefact, row.status, row.seq) == ("a" * 64, "passed", 1)
    assert [r.id for r in await store.sessions(status="passed")] == ["S"]
    assert await store.sessions(status="running") == []


async def test_limits_are_set_at_the_start_and_raised_later(store: Store) -> None:
    epoch = await store.take_over("S")
    assert (await store.session("S")).limits == Limits()
    due = datetime(2030, 1, 1, 12, tzinfo=UTC)
    first = started(limits=Limits(tokens=1000, usd=0.5, deadline=due))
    await store.append("S", first, expected_seq=0, epoch=epoch, status="running")
    assert (await store.session("S")).limits == Limits(tokens=1000, usd=0.5, deadline=due)
    more = Steered(task_id="S/steer/1", action="raise", limits=Limits(usd=2.0, searches=9))
    await store.append("S", more, expected_seq=1, epoch=epoch, status="running")
    await store.append("S", more, expected_seq=1, epoch=epoch, status="running")
    now = Limits(tokens=1000, usd=2.0, deadline=due, searches=9)
    assert (await store.session("S")).limits == now
    assert (await store.account("S")).limits == now
    assert (await store.sessions())[0].limits == now


async def test_the_sources_a_session_read_are_listed_once(store: Store) -> None:
    epoch = await store.take_over("S")
    for seq, name in enumerate("bab"):
        await store.append("S", _read(name, f"S/read/{seq}"), expected_seq=seq, epoch=epoch, status="running")
    gone = SourceRead(task_id="S/read/9", section="s1", location="https://gone.test", status="unavailable")
    await store.append("S", gone, expected_seq=3, epoch=epoch, status="running")
    assert await store.snapshots("S") == [
        SnapshotRow(source_id=name * 64, location=f"https://{name}.test", kind=SourceKind.WEB, title=f"潮汐 {name}")
        for name in "ba"
    ]


def _read(name: str, task_id: str) -> SourceRead:
    location = f"https://{name}.test"
    source = Source(id=name * 64, title=f"潮汐 {name}", location=location, kind=SourceKind.WEB, fetched_at=NOW)
    return SourceRead(task_id=task_id, section="s1", location=location, status="read", source=source)


async def test_sessions_come_newest_first(store: Store) -> None:
    await store.create("T", owner="o", question="later")
    assert [r.id for r in await store.sessions()] == ["T", "S"]
    assert [r.id for r in await store.sessions(limit=1)] == ["T"]
    await store.create("S", owner="other", question="again")
    assert (await store.session("S")).question == "q?"


async def test_sessions_are_narrowed_by_who_has_and_who_works_on_them(store: Store) -> None:
    await store.create("T", owner="p", question="another's")
    await store.create("U", owner="p", question="of the other shard")
    await store.take_over("S", holder="me")
    await store.take_over("T", holder="you", shard=0)
    await store.take_over("U", holder="me", shard=1)
    assert [r.id for r in await store.sessions(holder="me", status="running")] == ["U", "S"]
    assert [r.id for r in await store.sessions(holder="me", shard=0)] == ["S"]
    assert [r.id for r in await store.sessions(holder="me", shard=1)] == ["U"]
    assert [r.id for r in await store.sessions(owner="p")] == ["U", "T"]
    assert [r.id for r in await store.sessions(owner="p", holder="you")] == ["T"]


async def test_any_text_is_kept(store: Store) -> None:
    await store.create("W", owner="x" * 300, question="潮汐 🌊 \x00 \ud800 ' \" % :b")
    epoch = await store.take_over("W", holder="h" * 200)
    odd = SearchDone(task_id="t" * 500, section="s\x00", query="a\x00b ' 潮 %s :x")
    await store.append("W", odd, expected_seq=0, epoch=epoch, status="running")
    assert [e.message for e in await store.read("W")] == [odd]
    assert "潮汐 🌊" in (await store.session("W")).question
    assert (await store.session("W")).owner == "x" * 300


async def test_a_long_log_is_read_whole(store: Store) -> None:
    epoch = await store.take_over("S")
    messages: list[SessionStarted | SearchDone] = [FIRST]
    messages += [SearchDone(task_id=f"S/{n}", section="s1", query=f"q{n}") for n in range(300)]
    for seq, message in enumerate(messages):
        await store.append("S", message, expected_seq=seq, epoch=epoch, status="running")
    assert [e.message for e in await store.read("S")] == messages
    assert [e.seq for e in await store.read("S", after=299)] == [300, 301]
    assert [e.seq for e in await store.read("S", after=100, most=2)] == [101, 102]
    assert [e.seq for e in await store.read("S", after=299, most=100)] == [300, 301]
