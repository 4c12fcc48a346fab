"""What calls cost: bounded before, asked for before every further try, and counted however they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from benchmarks.simulated_llm import Canned, SimulatedLLM, Speed, completion
from marg_ray.actors.ledger import LedgerBook
from marg_ray.errors import BudgetExceeded, ModelUnavailable, ParseError
from marg_ray.messages import SessionStarted
from marg_ray.models import packing
from marg_ray.models.client import Call, ModelTask, OutT, Reply
from marg_ray.models.endpoints import Endpoint
from marg_ray.models.openai_api import OpenAIModel
from marg_ray.models.testing import CannedModel, ScriptedModel
from marg_ray.models.tiers import TieredModel
from marg_ray.models.wrappers import FallbackModel, MeteredModel
from marg_ray.records import Limits, Request, Usage
from marg_ray.settings import ModelSettings
from marg_ray.store.memory import MemoryStore
from tests import model_tasks as samples

WAIT_S = 20
Make = Callable[..., OpenAIModel]
BAD = completion("this is no JSON")


async def no_pause(_: float) -> None:
    await asyncio.sleep(0)


@pytest.fixture
async def server() -> AsyncIterator[SimulatedLLM]:
    async with SimulatedLLM() as running:
        yield running


@pytest.fixture
async def make(server: SimulatedLLM) -> AsyncIterator[Make]:
    made: list[OpenAIModel] = []

    def build(**settings: Any) -> OpenAIModel:
        endpoint = Endpoint(provider="sim", model="simulated", base_url=server.base_url, price=(1.0, 10.0))
        made.append(OpenAIModel(endpoint, ModelSettings(**settings), sleep=no_pause))
        return made[-1]

    yield build
    for model in made:
        await model.aclose()


class Purse:
    """Grants `left` further tries."""

    def __init__(self, left: int = 100) -> None:
        self.left = left
        self.asked: list[Usage] = []

    async def __call__(self, more: Usage) -> None:
        self.asked.append(more)
        if not self.left:
            raise BudgetExceeded("usd", 1, 1)
        self.left -= 1

    @property
    def call(self) -> Call:
        return Call(session_id="S", task_id="S/t", allow=self)


class Quoted:
    """A double that says what its tasks cost."""

    def __init__(self, inner: CannedModel | ScriptedModel, cost: float) -> None:
        self.inner, self.cost = inner, cost
        self.name = inner.name

    async def quote(self, task: ModelTask[Any], call: Call) -> Usage:
        return Usage(calls=1, tokens_in=10, cost=self.cost)

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        return await self.inner.run(task, call)


class TestQuotes:
    @pytest.mark.parametrize("task", samples.every_task(), ids=lambda t: type(t).__name__)
    async def test_no_answer_costs_more_than_was_quoted(self, make: Make, task: ModelTask[Any]) -> None:
        model = make()
        quoted = await model.quote(task, Purse().call)
        reply = await model.run(task, Purse().call)
        assert 0 < reply.usage.cost <= quoted.cost
        assert reply.usage.tokens_out <= quoted.tokens_out

    async def test_it_holds_for_the_longest_answer_and_a_token_a_byte(self, server: SimulatedLLM, make: Make) -> None:
        model, task = make(), samples.make_plan()
        quoted = await model.quote(task, Purse().call)
        await model.run(task, Purse().call)
        (body,) = server.bodies
        sent = sum(len(m["content"].encode()) for m in body["messages"]) + len(str(body["response_format"]))
        assert quoted.cost >= (sent * 1.0 + body["max_tokens"] * 10.0) / 1e6

    async def test_a_prompt_is_rendered_once_for_both(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        packed: list[object] = []

        def counted(task: Any, *args: Any, **kwargs: Any) -> Any:
            packed.append(task)
            return real(task, *args, **kwargs)

        real = packing.pack
        monkeypatch.setattr("marg_ray.models.openai_api.pack", counted)
        model, task = make(), samples.make_plan()
        await model.quote(task, Purse().call)
        await model.run(task, Purse().call)
        assert packed == [task]


class TestFurtherTries:
    async def test_an_unreadable_answer_is_asked_again_only_with_leave(self, server: SimulatedLLM, make: Make) -> None:
        server.replies.append(BAD)
        purse = Purse()
        reply = await make().run(samples.make_plan(), purse.call)
        assert reply.usage.calls == 2
        (more,) = purse.asked
        assert more.calls == 1
        assert more.cost > 0

    async def test_without_leave_the_call_ends_with_what_it_cost(self, server: SimulatedLLM, make: Make) -> None:
        server.rule = lambda _: BAD
        with pytest.raises(BudgetExceeded) as refused:
            await make().run(samples.make_plan(), Purse(left=1).call)
        assert len(server.requests) == 2
        spent = refused.value.spent  # type: ignore[attr-defined]
        assert spent.calls == 2
        assert spent.cost > 0

    async def test_an_answer_that_never_came_may_have_been_paid(self, server: SimulatedLLM, make: Make) -> None:
        server.replies.append(Canned(body={}, delay_s=3600))
        purse = Purse()
        reply = await make(timeout_s=0.3).run(samples.make_plan(), purse.call)
        assert reply.usage.calls == 2
        assert [more.calls for more in purse.asked] == [1]

    async def test_a_server_that_is_down_is_asked_again_without_more(self, server: SimulatedLLM, make: Make) -> None:
        server.replies.append(Canned(status=503, body={"error": "down"}))
        purse = Purse(left=0)
        reply = await make().run(samples.make_plan(), purse.call)
        assert (reply.usage.calls, reply.usage.throttled, purse.asked) == (1, 0, [])

    async def test_a_cancelled_call_counts_what_was_under_way(self, server: SimulatedLLM, make: Make) -> None:
        server.speed = Speed(ttft_s=3600)
        model, task = make(), samples.make_plan()
        quoted = await model.quote(task, Purse().call)
        running = asyncio.create_task(model.run(task, Purse().call))
        async with asyncio.timeout(WAIT_S):
            await server.started.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await running
        assert cancelled.value.spent == quoted  # type: ignore[attr-defined]


class TestThrottling:
    async def test_answers_that_say_too_many_are_counted(self, server: SimulatedLLM, make: Make) -> None:
        server.replies += [Canned(status=429, body={"error": "slow"})] * 2
        reply = await make().run(samples.rewrite_query(), Purse().call)
        assert reply.usage.throttled == 2

    async def test_a_failed_call_reports_them_too(self, server: SimulatedLLM, make: Make) -> None:
        server.rule = lambda _: Canned(status=429, body={"error": "slow"})
        with pytest.raises(ModelUnavailable) as caught:
            await make().run(samples.rewrite_query(), Purse().call)
        assert caught.value.spent == Usage(throttled=4)


class TestOtherModels:
    async def test_a_second_model_is_asked_only_with_leave(self) -> None:
        gone = ModelUnavailable("a", "down")
        gone.spent = Usage(calls=1, cost=0.25)
        purse, second = Purse(left=0), CannedModel(name="b")
        model = FallbackModel(Quoted(ScriptedModel([gone], name="a"), 1.0), Quoted(second, 3.0))
        with pytest.raises(BudgetExceeded) as refused:
            await model.run(samples.make_plan(), purse.call)
        assert second.calls == []
        assert purse.asked == [Usage(calls=1, cost=2.25)]  # 0.25 spent and 3 for the next, 1 was reserved
        assert refused.value.spent == gone.spent  # type: ignore[attr-defined]

    async def test_a_second_model_that_is_no_dearer_needs_no_more(self) -> None:
        purse = Purse(left=0)
        first = Quoted(ScriptedModel([ModelUnavailable("a", "down")], name="a"), 1.0)
        reply = await FallbackModel(first, Quoted(CannedModel(name="b"), 1.0)).run(samples.make_plan(), purse.call)
        assert (reply.model, purse.asked) == ("b", [])

    async def test_the_strong_tier_is_asked_only_with_leave(self) -> None:
        failed = ParseError("make_plan", "no title", 4)
        failed.spent = Usage(calls=4, cost=0.5)
        purse, strong = Purse(left=0), CannedModel(name="s")
        model = TieredModel(Quoted(ScriptedModel([failed], name="f"), 0.5), Quoted(strong, 4.0))
        with pytest.raises(BudgetExceeded) as refused:
            await model.run(samples.make_plan(), purse.call)
        assert strong.calls == []
        assert [more.cost for more in purse.asked] == [4.0]
        assert refused.value.spent == failed.spent  # type: ignore[attr-defined]


class TestThroughTheLedger:
    @pytest.fixture
    async def store(self) -> MemoryStore:
        store = MemoryStore()
        await store.create("S", owner="local", question="q")
        epoch = await store.take_over("S")
        started = SessionStarted(
            task_id="S/start",
            session_id="S",
            request=Request(question="q", limits=Limits(usd=0.06)),
            started_at="2026-01-01T00:00:00+00:00",
        )
        await store.append("S", started, expected_seq=0, epoch=epoch, status="running")
        return store

    async def test_money_is_never_overspent_however_bad_the_model(
        self, server: SimulatedLLM, make: Make, store: MemoryStore
    ) -> None:
        server.rule = lambda _: BAD
        model = MeteredModel(make(), LedgerBook(store))
        ends = []
        for n in range(40):
            task = samples.make_plan().model_copy(update={"question": f"question {n}"})
            with pytest.raises((BudgetExceeded, ParseError)) as ended:
                await model.run(task, Call(session_id="S", task_id=f"S/{n}"))
            ends.append(ended.type)
        account = await store.account("S")
        prices = [1.0, 10.0]
        billed = sum(r.tokens_in * prices[0] + r.tokens_out * prices[1] for r in server.requests) / 1e6
        assert 0.5 * 0.06 < billed <= 0.06
        assert account.spent.cost == pytest.approx(billed, rel=0.2)
        assert ends[0] is ParseError
        assert ends[-1] is BudgetExceeded

    async def test_a_cancelled_call_is_charged_and_may_be_asked_again(
        self, server: SimulatedLLM, make: Make, store: MemoryStore
    ) -> None:
        server.speed = Speed(ttft_s=3600)
        model, call = MeteredModel(make(), LedgerBook(store)), Call(session_id="S", task_id="S/t")
        running = asyncio.create_task(model.run(samples.make_plan(), call))
        async with asyncio.timeout(WAIT_S):
            await server.started.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert (await store.account("S")).spent.cost > 0
        server.speed = Speed()
        assert (await model.run(samples.make_plan(), call)).output.title
