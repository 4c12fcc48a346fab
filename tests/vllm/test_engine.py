"""What only the real engine can show: guided JSON, streaming, usage, aborted requests, the prefix cache."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from marg_ray.models.client import Call, ModelClient
from marg_ray.models.exchange import Ask
from marg_ray.models.openai_api import OpenAIModel
from marg_ray.models.prompting import render
from marg_ray.models.tasks import FreeText, JudgeClaims
from tests import model_tasks as samples
from tests.vllm.conftest import FAST, STRONG, Engine, client

CALL = Call(session_id="r1", task_id="r1/x", section="s1")
CALLS = 50
AT_ONCE = 25


def told_apart(task: Any, number: int) -> Any:
    """The same kind of task, but no prompt twice."""
    if isinstance(task, JudgeClaims):
        first, *others = task.claims
        first = first.model_copy(update={"text": f"{first.text} (case {number})"})
        return task.model_copy(update={"claims": (first, *others)})
    return task.model_copy(update={"question": f"{task.question} (case {number})"})


async def test_guided_json_is_valid_for_every_schema_in_all_of_fifty_calls(engine: Engine) -> None:
    """As it comes from the engine: no repair, no second try, and against the very schema that was sent."""
    fast = client(engine, engine.settings.models.fast)  # the answers of the other tier are kept short here
    tasks = [t for t in samples.every_task() if t.output is not FreeText]
    room, failed, kinds = asyncio.Semaphore(AT_ONCE), [], set()

    async def one(number: int) -> None:
        task = tasks[number % len(tasks)]
        task = told_apart(task, number)
        exchange, output = fast.exchange, task.asked_for()
        ask = Ask(messages=render(task).messages(), max_tokens=2048, temperature=0.2, name=task.template, output=output)
        async with room:
            answer = await exchange.ask(ask)
        try:
            schema = json.loads(exchange.schema(task.template, output))["json_schema"]["schema"]
            jsonschema.validate(json.loads(answer.text), schema)
            output.model_validate_json(answer.text)
            kinds.add(output)
        except (ValueError, jsonschema.ValidationError) as exc:
            failed.append(f"{task.template} ({answer.finish}): {exc}\n{answer.text}")

    await asyncio.gather(*(one(number) for number in range(CALLS)))
    await fast.aclose()
    assert failed == []
    assert kinds == {t.asked_for() for t in tasks}


async def test_an_answer_is_streamed_as_it_is_written(strong: ModelClient) -> None:
    pieces: list[float] = []

    async def watch(text: str) -> None:
        pieces.append(time.monotonic())

    await strong.run(samples.draft_section(), replace(CALL, on_delta=watch))
    assert len(pieces) > 1
    assert pieces[0] < pieces[-1] < time.monotonic()


async def test_usage_is_what_the_engine_counted(engine: Engine, strong: ModelClient) -> None:
    before = await engine.later(STRONG)
    reply = await strong.run(samples.summarise_report(), CALL)
    now = await engine.until(STRONG, lambda c: (c - before).finished == reply.usage.calls)
    assert (now - before).prompt_tokens == reply.usage.tokens_in
    assert (now - before).answer_tokens == reply.usage.tokens_out
    assert reply.usage.cost == 0


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_a_cancelled_call_is_aborted_in_the_engine(engine: Engine, strong: ModelClient, streamed: bool) -> None:
    async def watch(text: str) -> None: ...

    before = await engine.later(STRONG)
    call = replace(CALL, on_delta=watch if streamed else None)
    running = asyncio.create_task(strong.run(samples.draft_section(), call))
    await engine.until(STRONG, lambda now: now.running > 0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    after = await engine.until(STRONG, lambda now: now.running == 0)
    assert (after - before).finished == 0, "it was written to its end, for nobody"
    assert after.answer_tokens == (await engine.later(STRONG)).answer_tokens


async def test_the_second_draft_of_a_section_finds_its_evidence_in_the_prefix_cache(
    engine: Engine, strong: ModelClient
) -> None:
    evidence = samples.cards(tuple(f"{p} (recorded at site {n})" for n, p in enumerate(samples.PARAGRAPHS * 2)))
    first = samples.draft_section(evidence=evidence, feedback=(), previous="")
    await strong.run(first, CALL)
    before = await engine.until(STRONG, lambda now: now.running == 0)
    again = first.model_copy(update={"feedback": ("say more of the birds",), "previous": "Dunlin vanished [2]."})
    reply = await strong.run(again, CALL)
    now = await engine.until(STRONG, lambda c: (c - before).prompt_tokens >= reply.usage.tokens_in)
    assert (now - before).hit_rate > 0.5, "stable text and evidence come first, so that most of a prompt comes again"


async def test_a_prompt_that_is_too_long_is_packed_smaller(engine: Engine) -> None:
    models = engine.settings.models.model_copy(update={"context_tokens": 65_536})  # more than the engine has
    model: OpenAIModel = client(engine, models.strong, models)
    evidence = samples.cards(tuple(f"{p} Number {n}." for n, p in enumerate(samples.PARAGRAPHS * 60)))
    reply = await model.run(samples.draft_section(evidence=evidence), CALL)
    await model.aclose()
    assert reply.left_out
    assert model.window == engine.served.window


async def test_both_tiers_answer_under_their_names(engine: Engine) -> None:
    from marg_ray.models.select import get_json

    told = await get_json(f"{engine.served.base_url}/models", 5.0)
    assert {m["id"] for m in told["data"]} == {FAST, STRONG} == {engine.served.fast, engine.served.strong}
    assert engine.served.notes == ()
