from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from marg_ray.errors import SessionNotFound, StaleEpoch, StoreConflict
from marg_ray.messages import PlanReady, ReportReady
from marg_ray.records import ReportStatus, Role, Usage
from marg_ray.seams import CallKey
from marg_ray.store.memory import MemoryStore
from marg_ray.store.protocol import Store
from marg_ray.store.sql import SqlStore, sqlite_url
from tests.answers import answer, begin, started

FIRST = started()
CALL = CallKey.of("S", "model", Role.PLANNER, "what is asked", task_id="S/plan/0")


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else await SqlStore.open(sqlite_url(tmp_path / "marg.db"))
    await made.create("S", owner="o", question="q?")
    yield made
    await made.close()


def _plan() -> PlanReady:
    from random import Random

    from marg_ray.messages import SearchDone
    from marg_ray.routing import next_tasks
    from marg_ray.state import apply

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
    with pytest.raises(StoreConflict):
        await store.append("S", _plan(), expected_seq=0, epoch=epoch, status="running")
    assert [e.message for e in await store.read("S")] == [FIRST]


async def test_a_stale_coordinator_is_refused(store: Store) -> None:
    old = await store.take_over("S")
    new = await store.take_over("S")
    with pytest.raises(StaleEpoch):
        await store.append("S", FIRST, expected_seq=0, epoch=old, status="running")
    await store.append("S", FIRST, expected_seq=0, epoch=new, status="running")


async def test_an_unknown_session_is_named(store: Store) -> None:
    for call in (store.session("nope"), store.take_over("nope")):
        with pytest.raises(SessionNotFound, match="nope"):
            await call
    assert await store.read("nope") == []


async def test_the_report_and_status_are_on_the_row(store: Store) -> None:
    epoch = await store.take_over("S")
    report = ReportReady(task_id="S/format/0", artefact="a" * 64, status=ReportStatus.PASSED)
    await store.append("S", report, expected_seq=0, epoch=epoch, status="passed")
    row = await store.session("S")
    assert (row.artefact, row.status, row.seq) == ("a" * 64, "passed", 1)
    assert [r.id for r in await store.sessions(status="passed")] == ["S"]
    assert await store.sessions(status="running") == []


async def test_sessions_come_newest_first(store: Store) -> None:
    await store.create("T", owner="o", question="later")
    assert [r.id for r in await store.sessions()] == ["T", "S"]
    await store.create("S", owner="other", question="again")
    assert (await store.session("S")).question == "q?"


async def test_a_restarted_coordinator_finds_its_own_sessions(store: Store) -> None:
    await store.create("T", owner="o", question="another's")
    await store.take_over("S", holder="me")
    await store.take_over("T", holder="you")
    assert [r.id for r in await store.sessions(holder="me", status="running")] == ["S"]


async def test_a_settled_call_gives_its_result_and_is_never_changed(store: Store) -> None:
    assert (await store.begin_call(CALL)).status == "begun"
    await store.settle_call(CALL, '{"a":1}', Usage(calls=1, tokens_in=5))
    await store.settle_call(CALL, '{"a":2}', Usage(calls=9))
    row = await store.begin_call(CALL)
    assert (row.status, row.result, row.usage, row.begun) == ("settled", '{"a":1}', Usage(calls=1, tokens_in=5), 1)
    assert [r.call for r in await store.calls("S")] == [CALL]


async def test_a_call_begun_again_is_counted(store: Store) -> None:
    await store.begin_call(CALL)
    assert (await store.begin_call(CALL)).begun == 2


async def test_a_file_is_read_by_a_second_process_s_store(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "marg.db")
    one, two = await SqlStore.open(url), await SqlStore.open(url)
    await one.create("S", owner="o", question="潮汐 🌊")
    await one.append("S", FIRST, expected_seq=0, epoch=await one.take_over("S"), status="running")
    assert [e.message for e in await two.read("S")] == [FIRST]
    assert (await two.session("S")).question == "潮汐 🌊"
    await one.close()
    await two.close()
