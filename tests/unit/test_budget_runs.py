"""Whole runs under random limits: none spends more than it may, each ends in a report or says why not."""

from __future__ import annotations

from pathlib import Path

from benchmarks.budget import broken, campaign

RUNS = 40  # `benchmarks/budget.py` does 200


async def test_no_run_passes_its_limits_and_each_comes_to_an_end(tmp_path: Path) -> None:
    usual, runs = await campaign(RUNS, seed=7, folder=tmp_path, names=("tokens", "usd", "tasks"))
    assert broken(runs) == []
    assert usual["usd"] > 0
    stopped = [run for run in runs if run.status == "budget_stopped"]
    assert len(stopped) > RUNS / 4  # else the limits were no limits
    assert any(run.text for run in stopped)  # what was found is written up
    assert any(run.status != "budget_stopped" for run in runs)
