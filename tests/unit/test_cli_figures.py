"""`marg show --metrics`: a run's figures for programs and for people."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from rich.console import Console

from marg_ray.actors.assembly import Places
from marg_ray.actors.metrics import RaisedFigures, RunMetrics, TierFigures
from marg_ray.cli.figures import figures_table, raised_text
from marg_ray.models.tasks import ExtractClaims
from marg_ray.models.testing import CannedModel
from marg_ray.models.tiers import TieredModel
from marg_ray.store.sql import SqlStore, sqlite_url
from tests.flow import World
from tests.unit.test_cli import marg
from tests.unit.test_metrics import invented


async def _stored(home: Path, world: World) -> None:
    """A finished run's log and calls, in the database of `home`."""
    await world.ask()
    store = await SqlStore.open(sqlite_url(Places(home).database))
    await store.create("S", owner="local", question="How much power?")
    epoch = await store.take_over("S")
    for entry in await world.store.read("S"):
        await store.append("S", entry.message, expected_seq=entry.seq - 1, epoch=epoch, status="passed")
    for row in await world.store.calls("S"):
        await store.settle_call(row.call.model_copy(update={"epoch": 0}), row.result, row.usage)
    await store.close()


def test_figures_come_from_the_log_and_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("MARG_HOME", str(home))
    strong = CannedModel(name="s")
    world = World(home, model=TieredModel(CannedModel({ExtractClaims: invented}, name="f"), strong))
    asyncio.run(_stored(home, world))
    assert marg(monkeypatch, "show", "S", "--metrics") == 0
    said = capsys.readouterr()
    figures = json.loads(said.out)
    times = strong.count()["ExtractClaims"]
    assert figures["raised"]["times"] == figures["raised"]["passed"] == times
    assert set(figures["tiers"]) == {"fast", "strong"}
    assert f"(read {times}), {times} passed" in " ".join(said.err.split())


def test_nothing_of_tiers_where_there_is_one_model() -> None:
    zero = dict.fromkeys(("iterations", "sections", "searches", "sources", "unavailable", "passages"), 0)
    metrics = RunMetrics(
        status="passed", wall_seconds=1, worked_seconds=1, **zero, sentences={}, scores=None, stages={}, usage={},
        failed_tasks=0, takeovers=0, tiers={"only": TierFigures(calls=3, share=1, tokens=9, usd=0)},
    )  # fmt: skip
    console = Console(width=80)
    with console.capture() as shown:
        console.print(figures_table(metrics))
    assert "tier" not in shown.get()


def test_what_raising_bought_in_words() -> None:
    assert raised_text(RaisedFigures()) == "raised to the strong tier: nothing"
    raised = RaisedFigures(times=3, passed=2, tokens=4000, usd=0.5, vain_tokens=1, stages={"read": 2, "plan": 1})
    assert raised_text(raised) == (
        "raised to the strong tier: 3 times (read 2, plan 1), 2 passed; 4,000 tokens, $0.50; 1 token, $0 before in vain"
    )
