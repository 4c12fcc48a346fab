"""The process dies before and after every write of a whole run, and starts again: nothing shows that it died.

The run has what a log can have: an owner who steers, raises the budget, approves the plan, extends at the gate and
approves; a critic who sends a section back; and so a second and a third round.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from marg_ray.actors.faults import Faults
from marg_ray.messages import PlanDecided, ReviewDecided, ReviewDone, Steered
from marg_ray.store.memory import MemoryStore
from marg_ray.store.protocol import LogEntry
from tests.lives import Life, Server, content, settled, state_of, whole_log

APPENDS, SETTLES, BEGINS = 43, 27, 19  # of the run that `tests.lives.owner` drives
POINTS = ("crash_before", "crash_after")


@dataclass(frozen=True)
class Whole:
    """The undisturbed run."""

    entries: list[LogEntry]
    keys: set[str]  # of its paid calls
    visits: Counter[str]
    content: Any  # of its report


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    async def run() -> Whole:
        life = Life(tmp_path_factory.mktemp("whole"), model=Server())
        assert not await life.live()
        rows = await life.disk.calls("S")
        return Whole(
            entries=await whole_log(life.disk),
            keys={row.call.key for row in rows},
            visits=life.faults.visits,
            content=content(life.report(await state_of(life.disk))),
        )

    return asyncio.run(run())


def test_the_run_has_everything_in_its_log_that_a_run_can_have(whole: Whole) -> None:
    said = [e.message for e in whole.entries]
    assert [m.action for m in said if isinstance(m, Steered)] == ["add", "raise"]
    assert sum(isinstance(m, PlanDecided) for m in said) == 1
    assert [m.decision for m in said if isinstance(m, ReviewDecided)] == ["extend", "approve"]
    assert len({m.review.verdict for m in said if isinstance(m, ReviewDone)}) == 2, "nothing was sent back"
    visits = whole.visits
    assert (len(said), visits["store/append"], visits["store/settle_call"]) == (APPENDS, APPENDS, SETTLES)
    assert visits["store/begin_call"] >= BEGINS  # several readers of one page ask, one is granted


async def test_two_undisturbed_runs_say_the_same(tmp_path: Path, whole: Whole) -> None:
    life = Life(tmp_path, model=Server())
    assert not await life.live()
    assert content(life.report(await state_of(life.disk))) == whole.content


async def crash_at(tmp_path: Path, whole: Whole, operation: str, point: str, visit: int) -> None:
    faults = Faults(script=[(f"store/{operation}.{point}", visit)])
    first = Life(tmp_path, model=Server(), faults=faults)
    assert await first.live(), "the process did not die"

    answered = {e.message.task_id for e in await whole_log(first.disk)}
    had, paid = await settled(first.disk), len(first.server.paid)
    second = Life(first.folder, model=first.server, disk=first.disk)
    assert not await second.live()

    entries = await whole_log(second.disk)
    assert {e.message.task_id for e in entries} == {e.message.task_id for e in whole.entries}
    assert not answered & set(second.dispatch.asked), "an answered task was handed out again"
    again = had & set(second.server.paid[paid:])
    assert not again, "a settled call was paid again"
    rows = await second.disk.calls("S")
    assert {row.status for row in rows} == {"settled"}
    assert {row.call.key for row in rows} == whole.keys, "a task was not the same the second time"
    assert content(second.report(await state_of(second.disk))) == whole.content


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("visit", range(1, APPENDS + 1))
async def test_a_crash_at_any_append_changes_nothing(tmp_path: Path, whole: Whole, visit: int, point: str) -> None:
    await crash_at(tmp_path, whole, "append", point, visit)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("visit", range(1, SETTLES + 1))
async def test_a_crash_at_any_settlement_changes_nothing(tmp_path: Path, whole: Whole, visit: int, point: str) -> None:
    await crash_at(tmp_path, whole, "settle_call", point, visit)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("visit", range(1, BEGINS + 1))
async def test_a_crash_when_any_call_begins_changes_nothing(
    tmp_path: Path, whole: Whole, visit: int, point: str
) -> None:
    await crash_at(tmp_path, whole, "begin_call", point, visit)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("operation", ["create", "session", "take_over"])
async def test_a_crash_on_the_way_in_changes_nothing(tmp_path: Path, whole: Whole, operation: str, point: str) -> None:
    await crash_at(tmp_path, whole, operation, point, 1)


@pytest.mark.parametrize("gap", range(1, 10, 2))
async def test_a_process_that_dies_again_and_again_ends_all_the_same(tmp_path: Path, whole: Whole, gap: int) -> None:
    """Each life gets `gap` appends further."""
    server, disk = Server(), MemoryStore()
    lives, died = 0, True
    while died:
        lives += 1
        assert lives <= APPENDS + 1, "it does not get further"
        faults = Faults(script=[("store/append.crash_before", gap + 1)])
        life = Life(tmp_path, model=server, disk=disk, faults=faults)
        died = await life.live()
    assert lives == -(-APPENDS // gap)
    assert len(await whole_log(disk)) == APPENDS
    assert content(life.report(await state_of(disk))) == whole.content
