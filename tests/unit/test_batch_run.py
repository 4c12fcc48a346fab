"""Rows to results, in one process: what is bounded, what is resumed, what a failure costs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from marg_ray.batch.folder import BatchFolder
from marg_ray.batch.plan import plan
from marg_ray.batch.run import AWAY_IN_A_ROW, BatchRun, Ended, How
from marg_ray.errors import ModelUnavailable, RuntimeUnavailable, TooBusy, UsageError
from marg_ray.models.testing import CannedModel
from marg_ray.records import SourceChoice
from tests.flow import World
from tests.unit.batches import Nearby, Seen, a_row, a_todo, lines_of

LIMIT_S = 60


@pytest.fixture
def near(tmp_path: Path) -> Nearby:
    return Nearby(World(tmp_path / "world"))


async def batch(near: Nearby, out: Path, *todo: object, how: How | None = None, seen: Seen | None = None) -> Ended:
    """One command in `out`."""
    folder = BatchFolder(out)
    try:
        folder.name_files([t.row.key for t in todo])  # type: ignore[attr-defined]
        async with asyncio.timeout(LIMIT_S):
            return await BatchRun(near, folder, how or How(), seen or Seen()).run(todo)  # type: ignore[arg-type]
    finally:
        folder.close()


async def test_each_row_gets_a_report_and_a_line_of_figures(near: Nearby, tmp_path: Path) -> None:
    seen = Seen()
    rows = [a_row("one", meta={"topic": "tides"}), a_row("two")]
    ended = await batch(near, tmp_path / "out", *map(a_todo, rows), how=How(formats=("md", "json")), seen=seen)
    assert not ended.not_begun
    one, two = sorted(lines_of(tmp_path / "out"), key=lambda r: r.key)
    assert (one.key, two.key, one.status) == ("one", "two", "passed")
    assert one.files == ("one.md", "one.json")
    assert (tmp_path / "out" / "one.md").read_text("utf-8").startswith("# ")
    assert one.words > 20
    assert one.sentences == sum(one.verdicts.values())
    assert one.supported is not None
    assert one.supported > 0.9
    assert one.quality == min(one.scores.model_dump().values()) if one.scores else None
    assert one.sources == 2
    assert one.tokens == one.tokens_in + one.tokens_out > 0
    assert one.meta == {"topic": "tides"}
    assert one.session != two.session
    assert sorted(seen.begun) == ["one", "two"]  # both are under way at once
    assert seen.steps > 2


@pytest.mark.parametrize("at_once", [1, 3])
async def test_no_more_are_under_way_than_was_said(near: Nearby, tmp_path: Path, at_once: int) -> None:
    todo = [a_todo(a_row(f"r{n}")) for n in range(6)]
    ended = await batch(near, tmp_path / "out", *todo, how=How(at_once=at_once))
    assert len(ended.results) == 6
    assert near.most == at_once


async def test_a_fault_in_one_row_costs_that_row(near: Nearby, tmp_path: Path) -> None:
    near.refusals = [RuntimeUnavailable("", "the process died")]
    ended = await batch(near, tmp_path / "out", a_todo(a_row("a")), a_todo(a_row("b")), how=How(at_once=1))
    a, b = ended.results
    assert (a.status, b.status) == ("error", "passed")
    assert a.error is not None
    assert a.error.retryable
    assert "the process died" in a.error.detail
    assert a.away


async def test_a_full_queue_is_waited_for(near: Nearby, tmp_path: Path) -> None:
    near.refusals = [TooBusy(9, 0.0), TooBusy(9, 0.0)]
    ended = await batch(near, tmp_path / "out", a_todo(a_row("a")))
    assert [r.status for r in ended.results] == ["passed"]


class Away(CannedModel):
    """A model that does not answer until `back` is set."""

    back = False

    async def run(self, task, call):  # type: ignore[no-untyped-def]
        if not self.back:
            raise ModelUnavailable("test", "away")
        return await super().run(task, call)


async def test_a_row_that_halted_goes_on_with_its_session(tmp_path: Path) -> None:
    model = Away()
    near, out = Nearby(World(tmp_path / "world", model=model)), tmp_path / "out"
    first = await batch(near, out, a_todo(a_row("a")))
    (halted,) = first.results
    assert (halted.status, halted.final, halted.away) == ("halted", False, True)
    model.back = True
    second = await batch(near, out, a_todo(a_row("a")))
    (passed,) = second.results
    assert passed.status == "passed"
    assert passed.session == halted.session
    assert len({key for _, _, key in near.submitted}) == 1


async def test_rows_are_not_begun_while_everything_is_away(tmp_path: Path) -> None:
    near = Nearby(World(tmp_path / "world", model=Away()))
    todo = [a_todo(a_row(f"r{n}")) for n in range(AWAY_IN_A_ROW + 4)]
    ended = await batch(near, tmp_path / "out", *todo, how=How(at_once=1))
    assert len(ended.results) == AWAY_IN_A_ROW
    assert len(ended.not_begun) == 4


async def test_a_batch_that_is_stopped_goes_on_where_it_was(near: Nearby, tmp_path: Path) -> None:
    followed = asyncio.Event()

    async def hold(session: str) -> None:
        followed.set()
        await asyncio.Event().wait()

    out, todo = tmp_path / "out", [a_todo(a_row("a")), a_todo(a_row("b"))]
    near.gate = hold
    work = asyncio.ensure_future(batch(near, out, *todo, how=How(at_once=1)))
    await followed.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    (begun,) = near.submitted
    near.gate = None
    ended = await batch(near, out, *todo)
    assert {r.status for r in ended.results} == {"passed"}
    assert {r.key: r.session for r in ended.results}["a"] == begun[0]
    assert near.submitted[1] == begun, "the same session with the same idempotency key"


async def test_what_was_begun_under_other_limits_goes_on_under_those(near: Nearby, tmp_path: Path) -> None:
    out, row = tmp_path / "out", a_row("a")
    near.gate = _raises
    await batch(near, out, a_todo(row))
    near.gate = None
    todo = a_todo(row, limits={"tokens": 900_000})
    assert todo.asked == a_todo(row).asked
    ended = await batch(near, out, todo)
    assert [r.status for r in ended.results] == ["passed"]
    assert len(await near.world.store.sessions()) == 1


async def _raises(session: str) -> None:
    raise RuntimeUnavailable("", "gone")


async def test_a_row_is_asked_anew_where_that_is_wanted(near: Nearby, tmp_path: Path) -> None:
    from dataclasses import replace

    out, todo = tmp_path / "out", a_todo(a_row("a"))
    (first,) = (await batch(near, out, todo)).results
    (second,) = (await batch(near, out, replace(todo, anew=True))).results
    assert second.session != first.session
    assert len({key for _, _, key in near.submitted}) == 2


async def test_a_report_that_is_known_costs_nothing(near: Nearby, tmp_path: Path) -> None:
    todo = a_todo(a_row("a"))
    state = await near.world.ask()
    near.reports[todo.request.question] = near.world.report(state)
    (result,) = (await batch(near, tmp_path / "out", todo)).results
    assert (result.status, result.kept, result.tokens) == ("passed", True, 0)
    assert not near.submitted
    assert (tmp_path / "out" / "a.md").exists()


async def test_folders_are_indexed_once_and_one_that_cannot_be_read_is_said(near: Nearby, tmp_path: Path) -> None:
    near.unreadable = UsageError("no document in /papers can be read")
    sources = SourceChoice(folders=("/papers",), web=True)
    todo = [a_todo(a_row(f"r{n}"), sources=sources) for n in range(3)]
    ended = await batch(near, tmp_path / "out", *todo)
    assert near.indexed == [("/papers",)]
    assert {r.status for r in ended.results} == {"error"}
    assert {r.error.detail for r in ended.results if r.error} == {"no document in /papers can be read"}
    near.unreadable = None
    again = await batch(near, tmp_path / "out", *todo)
    assert {r.status for r in again.results} == {"passed"}, "what was cancelled for it is asked anew"


async def test_no_further_row_is_begun_when_the_money_is_spent(near: Nearby, tmp_path: Path) -> None:
    todo = [a_todo(a_row(f"r{n}")) for n in range(3)]
    ended = await batch(near, tmp_path / "out", *todo, how=How(at_once=1, max_usd=0.0))
    assert (len(ended.results), len(ended.not_begun), ended.money_spent) == (1, 2, True)


async def test_a_report_that_is_gone_is_written_again_without_asking(near: Nearby, tmp_path: Path) -> None:
    out, row = tmp_path / "out", a_row("a")
    todo = a_todo(row)
    await batch(near, out, todo)
    (out / "a.md").unlink()
    folder = BatchFolder(out)
    folder.name_files(["a"])
    made = plan([row], lambda _: todo.request, folder.results.get, files=lambda r: folder.paths(r.key, ("md",)))
    folder.close()
    (rewrite,) = made.todo
    assert rewrite.before is not None
    asked = len(near.submitted)
    (result,) = (await batch(near, out, rewrite)).results
    assert len(near.submitted) == asked
    assert (out / "a.md").exists()
    assert result.tokens == rewrite.before.tokens


async def test_a_refusal_is_an_end_and_says_why(tmp_path: Path) -> None:
    near = Nearby(World(tmp_path / "world", engines=()))
    (result,) = (await batch(near, tmp_path / "out", a_todo(a_row("a")))).results
    assert result.status in ("insufficient_evidence", "halted")
    assert result.error is not None
    assert not result.files
