"""The chaos benchmark's checks: each finds what it is there to find."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks.chaos import different
from benchmarks.chaos_checks import content, holes_and_doubles, paid, told, watch_settlements
from marg_ray.records import Role, Usage
from marg_ray.report.assemble import build_report
from marg_ray.seams import CallKey
from marg_ray.store.memory import MemoryStore
from marg_ray.store.sql import SqlStore, sqlite_url
from tests.lives import Life, Server
from tests.report_sample import inputs


async def test_a_log_with_a_hole_or_a_repeat_is_found(tmp_path: Path) -> None:
    disk = MemoryStore()
    await Life(tmp_path, model=Server(), disk=disk).live()
    entries = await disk.read("S")
    assert holes_and_doubles(entries) == 0
    assert holes_and_doubles([*entries[:5], *entries[6:]]) > 0
    assert holes_and_doubles([*entries, entries[7].model_copy(update={"seq": len(entries) + 1})]) == 1
    assert {"plan/0", "format/0"} <= told(entries)


def test_reports_that_say_something_else_differ_and_others_do_not() -> None:
    one = build_report(inputs())
    later = one.model_copy(update={"session_id": "another", "sources": one.sources[::-1], "notes": one.notes[::-1]})
    assert content(one) == content(later)
    section = one.sections[0]
    sentence = section.sentences[0].model_copy(update={"text": "Something else."})
    changed = section.model_copy(update={"sentences": (sentence, *section.sentences[1:])})
    other = one.model_copy(update={"sections": (changed, *one.sections[1:])})
    assert content(one) != content(other)
    assert different(content(one), content(other)).startswith(".sections[0].sentences[0].text: ")


@pytest.mark.parametrize("noted_before", [True, False])
async def test_a_request_after_the_settlement_is_a_call_paid_twice(tmp_path: Path, noted_before: bool) -> None:
    database = tmp_path / "marg.db"
    store = await SqlStore.open(sqlite_url(database))
    watch_settlements(database)
    watch_settlements(database)  # a second time changes nothing
    await store.create("S", owner="o", question="q")
    call = CallKey.of("S", "model", Role.PLANNER, "what", task_id="S/plan/0")
    before = time.time() - 1
    if noted_before:
        await store.begin_call(call)
    await store.settle_call(call, "{}", Usage(calls=1))
    await store.settle_call(call, "{}", Usage(calls=1))  # told again: the first moment counts
    await store.close()
    asked = [{"caller": "S/plan/0", "start": before}, {"caller": "S/plan/0", "start": before + 0.5}]
    calls = paid(database, asked)
    assert (calls.requests, calls.twice, calls.again) == (2, [], 1)
    late = {"caller": "S/plan/0", "start": time.time() + 1}
    assert paid(database, [*asked, late]).twice == ["S/plan/0"]
