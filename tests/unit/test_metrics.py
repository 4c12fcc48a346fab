"""A run's figures: what each stage and tier used and what raising a task bought, from the ledger alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from marg_ray.actors.metrics import RunMetrics, raised_of, spent_by_stage, tiers_of
from marg_ray.errors import ParseError
from marg_ray.models.tasks import ClaimIdea, ClaimIdeas, ExtractClaims, MakePlan
from marg_ray.models.testing import CannedModel
from marg_ray.models.tiers import TieredModel
from marg_ray.records import Role, Usage
from marg_ray.seams import CallKey
from marg_ray.store.protocol import CallRow
from tests.flow import LIMIT_S, World


def invented(task: ExtractClaims, good: ClaimIdeas) -> ClaimIdeas:
    """Of the first section's documents the quotes are made up."""
    if task.section_title != "Background":
        return good
    return ClaimIdeas(claims=[ClaimIdea(claim="So it is.", quote="Nobody ever wrote this.")])


def unreadable(_: MakePlan, __: object) -> MakePlan:
    error = ParseError("make_plan", "no JSON", 4)
    error.spent = Usage(calls=4, tokens_in=400)
    raise error


async def figures(world: World) -> RunMetrics:
    """A session's figures, which are kept aside, after its last entry."""
    kept: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    put = world.store.put_metrics

    async def put_metrics(session_id: str, metrics: str) -> None:
        await put(session_id, metrics)
        kept.set_result(metrics)

    world.store.put_metrics = put_metrics  # type: ignore[method-assign]
    await world.ask()
    async with asyncio.timeout(LIMIT_S):
        await kept
    return RunMetrics.model_validate_json(await world.store.metrics("S"))


async def test_tiers_and_what_raising_bought(tmp_path: Path) -> None:
    fast, strong = CannedModel({ExtractClaims: invented}, name="f"), CannedModel(name="s")
    world = World(tmp_path, model=TieredModel(fast, strong))
    found = await figures(world)
    assert found.raised.times == found.raised.passed == strong.count()["ExtractClaims"] > 0
    assert found.raised.stages == {"read": found.raised.times}
    assert found.raised.tokens > 0
    assert found.raised.vain_tokens > 0
    assert found.tiers["fast"].calls == len(fast.calls)
    assert found.tiers["strong"].calls == len(strong.calls)
    assert found.tiers["fast"].useless == found.raised.times
    assert found.tiers["strong"].useless == 0
    assert sum(t.share for t in found.tiers.values()) == 1
    calls = await world.store.calls("S")
    total = sum((row.usage for row in calls), Usage())
    spent = sum((u for u in found.spent.values()), Usage())
    assert spent.seconds == pytest.approx(total.seconds)
    assert spent.model_copy(update={"seconds": total.seconds}) == total
    assert sum(t.tokens for t in found.tiers.values()) == total.tokens_in + total.tokens_out
    assert {"plan", "read", "draft", "analyse", "review", "summarise"} - found.spent.keys() <= {"summarise"}


async def test_a_call_that_failed_on_both_tiers_is_counted(tmp_path: Path) -> None:
    fast, strong = CannedModel({MakePlan: unreadable}, name="f"), CannedModel({MakePlan: unreadable}, name="s")
    found = await figures(World(tmp_path, model=TieredModel(fast, strong)))
    assert (found.raised.times, found.raised.passed) == (1, 0)
    assert (found.raised.tokens, found.raised.vain_tokens) == (400, 400)
    assert found.spent["plan"] == Usage(calls=8, tokens_in=800)


async def test_one_model_is_no_tier(tmp_path: Path) -> None:
    model = CannedModel()
    found = await figures(World(tmp_path, model=model))
    assert {name: t.calls for name, t in found.tiers.items()} == {"only": len(model.calls)}
    assert found.raised.times == 0


def test_what_is_not_there_is_nothing() -> None:
    assert tiers_of([]) == {}
    assert raised_of([]).times == 0
    search = CallKey.of("S", "search", Role.RESEARCHER, "tides", task_id="S/s1/search/1.0")
    rows = [CallRow(call=search, status="settled", result='{"tries": 1}', usage=Usage(searches=1))]
    assert tiers_of(rows) == {}
    assert spent_by_stage(rows) == {"search": Usage(searches=1)}
