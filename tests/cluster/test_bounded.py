"""Cancelled, paused, limited and cached, on a real Ray with a model behind HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from benchmarks.simulated_llm import SimulatedLLM, Speed
from marg_ray.client import Marg, make_request
from marg_ray.records import Limits, ReportStatus
from marg_ray.settings import load
from tests.cluster.conftest import LIBRARY

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]
QUESTION = "How does tidal power compare with offshore wind in cost and output?"
LIMIT_S = 120
PRICE = (1.0, 2.0)  # US dollars per million tokens


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[SimulatedLLM]:
    async with SimulatedLLM() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bounded(server: SimulatedLLM, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Marg]:
    models = {"prices": {server.spec: PRICE}}
    settings = load(home=tmp_path_factory.mktemp("home"), model=server.spec, models=models)
    async with Marg(settings) as started:
        yield started


async def _asked(server: SimulatedLLM) -> None:
    server.started.clear()
    async with asyncio.timeout(LIMIT_S):
        await server.started.wait()


@pytest.mark.parametrize("way", ["cancel", "pause"])
async def test_what_is_stopped_is_aborted_at_the_model(bounded: Marg, server: SimulatedLLM, way: str) -> None:
    server.speed = Speed(ttft_s=3600)
    before = len(server.requests)
    asked = asyncio.ensure_future(_asked(server))
    session = await bounded.submit(make_request(f"{QUESTION} ({way})", docs=[LIBRARY], depth="overview"))
    indexing = asyncio.ensure_future(bounded.index([str(LIBRARY)]))
    await asked
    server.ended.clear()
    status = await (bounded.cancel(session) if way == "cancel" else bounded.pause(session))
    assert status == ("cancelled" if way == "cancel" else "paused")
    async with asyncio.timeout(LIMIT_S):
        await server.ended.wait()
        await indexing
    assert [r.status for r in server.requests[before:]] == [0], "the client went away before there was an answer"
    if way == "pause":
        server.speed = Speed()
        assert await bounded.resume(session) == "running"
        async with asyncio.timeout(LIMIT_S):
            assert await bounded.runtime.ended(session) in ("passed", "quality_warning")


async def test_a_budget_in_dollars_holds_and_the_run_ends_in_a_report(bounded: Marg, server: SimulatedLLM) -> None:
    server.speed = Speed()
    whole = await bounded.research(QUESTION, docs=[LIBRARY], web=False, depth="overview")
    cost = whole.usage.cost
    assert cost > 0
    limited = await bounded.research(
        QUESTION, docs=[LIBRARY], web=False, depth="overview", limits=Limits(usd=cost * 0.7), fresh=True
    )
    assert limited.status is ReportStatus.BUDGET_STOPPED
    assert limited.usage.cost <= cost * 0.7
    assert any(s.sentences for s in limited.sections)


async def test_the_same_question_again_is_answered_at_once(bounded: Marg, server: SimulatedLLM) -> None:
    server.speed = Speed()
    first = await bounded.research(QUESTION, docs=[LIBRARY], web=False, depth="overview")
    before = len(server.requests)
    again = await bounded.research(QUESTION.upper() + "??", docs=[LIBRARY], web=False, depth="overview")
    assert again.session_id == first.session_id
    assert len(server.requests) == before
    other = await bounded.research(QUESTION, docs=[LIBRARY], web=False, depth="overview", owner="somebody else")
    assert other.session_id != first.session_id
