"""The simulated server: what it logs, how it paces, and that it answers every prompt of ours from the prompt alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulated_llm import SimulatedLLM, Speed, answer, read_task, task_name
from marg_ray.models.client import Call, ModelTask
from marg_ray.models.endpoints import Endpoint
from marg_ray.models.openai_api import OpenAIModel
from marg_ray.models.prompting import render
from marg_ray.models.tasks import FreeText
from marg_ray.models.testing import answer as canned_answer
from marg_ray.settings import ModelSettings
from tests import model_tasks as samples
from tests.shared import ROOT

CALL = Call(session_id="r1", task_id="t")


@pytest.mark.parametrize("task", samples.every_task(), ids=lambda t: type(t).__name__)
def test_a_prompt_leads_back_to_its_task(task: ModelTask[Any]) -> None:
    """What it answers from the prompt is what a double answers from the task, as far as the prompt shows it."""
    body = {"messages": render(task).messages()}
    assert task_name(body) == task.template
    again = read_task(task.template, body["messages"][1]["content"])
    assert again is not None
    assert type(again) is type(task)
    text = answer(body)
    kind = task.asked_for()
    given = FreeText(markdown=text) if kind is FreeText else task.understood(kind.model_validate_json(text))
    if task.template != "make_plan":  # given queries of an outline are not read back
        assert given == canned_answer(task)


def test_any_other_prompt_gets_a_sentence() -> None:
    assert answer({"messages": [{"role": "user", "content": "hi"}]}).endswith(".")


async def ask(server: SimulatedLLM, *tasks: ModelTask[Any]) -> None:
    model = OpenAIModel(Endpoint(provider="sim", model="m", base_url=server.base_url), ModelSettings())
    for task in tasks:
        await model.run(task, CALL)
    await model.aclose()


async def test_each_request_is_a_line_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    async with SimulatedLLM(speed=Speed(ttft_s=0.01, tokens_per_s=5000), log=log) as server:
        await ask(server, *samples.every_task())
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [line["task"] for line in lines] == [t.template for t in samples.every_task()]
    for line in lines:
        assert line["start"] + 0.01 <= line["first"] <= line["end"]
        assert line["end"] - line["start"] >= 0.01 + line["tokens_out"] / 5000 - 0.002  # never faster than set
        assert line["status"] == 200
        assert line["tokens_in"] > 100


async def test_jitter_is_the_same_for_the_same_seed() -> None:
    def factors(seed: int) -> list[float]:
        server = SimulatedLLM(speed=Speed(jitter=0.5), seed=seed)
        return [server._random.gauss(0, 0.5) for _ in range(5)]

    assert factors(1) == factors(1) != factors(2)


async def test_an_answer_is_cut_at_the_limit_that_was_asked() -> None:
    async with SimulatedLLM() as server:
        model = OpenAIModel(Endpoint(provider="sim", model="m", base_url=server.base_url), ModelSettings())
        long = samples.draft_section(evidence=samples.cards(samples.PARAGRAPHS * 30), words=5000)
        reply = await model.run(long, CALL)
        await model.aclose()
    assert reply.output.incomplete
    assert reply.output.markdown.rstrip().endswith((".", "。"))


def test_the_command_prints_its_address() -> None:
    command = [sys.executable, "benchmarks/simulated_llm.py", "--ttft", "0.1", "--tps", "50"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(ROOT)}) as run:
        assert run.stdout is not None
        line = run.stdout.readline()
        run.terminate()
    assert line.startswith("http://127.0.0.1:")
    assert line.strip().endswith("/v1:simulated")
