"""What runs at the same time shares nothing: sessions side by side in one runtime, sections streamed side by side."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.simulated_llm import Canned, SimulatedLLM
from marg_ray.folding import replay
from marg_ray.models.client import Call
from marg_ray.models.endpoints import Endpoint
from marg_ray.models.openai_api import OpenAIModel
from marg_ray.records import Request
from marg_ray.settings import ModelSettings
from marg_ray.sources.web.engine import PUBLIC, EngineReply
from tests import model_tasks as samples
from tests.flow import World, page
from tests.shared import case_file, needs_shared

LIMIT_S = 60
SECRETS = ("HERON-A1", "OTTER-B2")
TEXTS = {
    f"https://{word.lower()}.test/": (
        f"The {word} station",
        f"The {word} tidal power station opened in {year}. It produces {mw} megawatts of electricity, and its "
        f"{turbines} turbines stand in the mouth of the {word} river.",
    )
    for word, year, mw, turbines in (("HERON-A1", 1971, 310, 12), ("OTTER-B2", 1984, 95, 4))
}


class ByWord:
    """Finds the page that the query names."""

    name = "by-word"
    pace = PUBLIC

    async def search(self, query: str, limit: int) -> EngineReply:
        await asyncio.sleep(0)
        found = [(url, title, text) for url, (title, text) in TEXTS.items() if url[8:-6].split("-")[0] in query.lower()]
        return EngineReply(entries=tuple({"href": u, "title": t, "body": x} for u, t, x in found))

    async def close(self) -> None:
        return None


@pytest.mark.parametrize("round_", range(5))
async def test_sessions_that_run_at_once_share_nothing(tmp_path: Path, round_: int) -> None:
    world = World(
        tmp_path,
        pages={url: page(*text) for url, text in TEXTS.items()},
        engines=(ByWord(),),  # type: ignore[arg-type]
    )
    asked = {
        f"{word}/{n}": Request(question=f"How much power does the {word} tidal station produce?", depth="overview")
        for word in SECRETS
        for n in range(3)
    }
    await asyncio.gather(*(world.coordinator.submit(name, request) for name, request in asked.items()))
    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(*(world.coordinator.ended(name, LIMIT_S) for name in asked))
    for name in asked:
        own, other = SECRETS if name.startswith(SECRETS[0]) else SECRETS[::-1]
        entries = await world.store.read(name)
        text = " ".join(e.message.model_dump_json() for e in entries)
        assert own in text
        assert other not in text, f"{name} knows of {other}"
        state = replay(e.message for e in entries)
        assert {s.location for s in state.sources.values()} == {f"https://{own.lower()}.test/"}
        assert all(e.message.task_id.startswith(name) for e in entries)
        report = world.report(state)
        assert [r.number for r in report.references] == [1]
        calls = await world.store.calls(name)
        assert all(c.call.session_id == name for c in calls)


@needs_shared
async def test_mem_03_streams_of_parallel_sections_stay_apart() -> None:
    wanted = json.loads(case_file("MEM-03", "scenario.json").read_text("utf-8"))["parallel_sections"]

    def stream(body: dict[str, object]) -> Canned:
        prompt = json.dumps(body["messages"])
        (title,) = [t for t in wanted["titles"] if f"Section {t} of" in prompt]
        events = [{"choices": [{"delta": {"content": piece}}]} for piece in wanted["streams"][title]]
        events.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        text = "".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n"
        return Canned(body=text, content_type="text/event-stream", delay_s=0.01)

    told: dict[str, list[str]] = {title: [] for title in wanted["titles"]}
    async with SimulatedLLM(rule=stream) as server:
        model = OpenAIModel(Endpoint(provider="", model="simulated", base_url=server.base_url), ModelSettings())

        async def draft(title: str) -> str:
            async def watch(text: str) -> None:
                told[title].append(text)

            task = samples.draft_section(section_title=f"Section {title} of", previous="", feedback=())
            call = Call(session_id="r", task_id=f"r/{title}/draft/1", section=title, on_delta=watch)
            return (await model.run(task, call)).output.markdown

        texts = await asyncio.gather(*(draft(t) for t in wanted["titles"]))
        await model.aclose()
    for title, text in zip(wanted["titles"], texts, strict=True):
        joined = "".join(told[title])
        assert joined == " ".join(f"{title[0]}{n}" for n in (1, 2, 3))
        assert text.strip() == joined.strip()
