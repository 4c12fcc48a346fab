"""What every model backend must do, whichever it is: the suite is the definition of `ModelClient`."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from benchmarks.simulated_llm import Canned, SimulatedLLM, Speed, answer
from marg_ray.models.client import Call, ModelClient, ModelTask
from marg_ray.models.endpoints import Endpoint
from marg_ray.models.openai_api import OpenAIModel
from marg_ray.models.tape import Tape, TapedModel
from marg_ray.models.tasks import TASKS, EvidenceCard, FreeText
from marg_ray.models.testing import CannedModel, ScriptedModel
from marg_ray.models.testing import answer as good_answer
from marg_ray.models.tiers import TieredModel
from marg_ray.models.wrappers import FallbackModel
from marg_ray.seams import in_thread
from marg_ray.settings import ModelSettings
from tests import model_tasks as samples

CALL = Call(session_id="r1", task_id="r1/x", section="s1")
MARK = re.compile(r"\[(\d+(?:\s*,\s*\d+)*)\]")
LINK = re.compile(r"https?://|www\.|\]\(")


@dataclass
class Door:
    """Holds the calls of a backend while it is shut."""

    shut: bool = False
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def pass_through(self) -> None:
        if self.shut:
            self.arrived.set()
            await asyncio.Event().wait()


@dataclass
class Backend:
    model: ModelClient
    hold: Callable[[], asyncio.Event] | None = None  # makes calls wait; the event says that one arrived
    free: Callable[[], None] = lambda: None


def behind(door: Door, model: ModelClient) -> Backend:
    def hold() -> asyncio.Event:
        door.shut = True
        return door.arrived

    def free() -> None:
        door.shut = False

    return Backend(model, hold, free)


class Everything(ScriptedModel):
    """A script that never runs dry: each answer is made when it is asked for."""

    async def run(self, task: ModelTask[Any], call: Call) -> Any:
        self._any.append(good_answer)
        return await super().run(task, call)


def endpoint(server: SimulatedLLM) -> Endpoint:
    return Endpoint(provider="sim", model="simulated", base_url=server.base_url)


async def scripted() -> AsyncIterator[Backend]:
    yield Backend(Everything([]))


async def canned() -> AsyncIterator[Backend]:
    door = Door()
    yield behind(door, CannedModel(before=lambda task, call: door.pass_through()))


async def openai_api() -> AsyncIterator[Backend]:
    async with SimulatedLLM() as server:
        model = OpenAIModel(endpoint(server), ModelSettings())

        def hold() -> asyncio.Event:
            server.started.clear()
            server.speed = Speed(ttft_s=3600)
            return server.started

        def free() -> None:
            server.speed = Speed()

        yield Backend(model, hold, free)
        await model.aclose()


async def talkative_api() -> AsyncIterator[Backend]:
    """A model that thinks aloud and fences its JSON, behind a server that knows no schema."""

    def rule(body: dict[str, Any]) -> Canned:
        if "response_format" in body:
            return Canned(status=400, body={"error": {"message": "response_format is not supported"}})
        text = answer(body)
        if text.startswith("{"):
            text = f"Here it is:\n```json\n{text}\n```\nAnything else?"
        return Canned(
            body={"choices": [{"message": {"content": f"<think>Maybe {{}}?</think>\n{text}"}, "finish_reason": "stop"}]}
        )

    async with SimulatedLLM(rule=rule) as server:
        model = OpenAIModel(endpoint(server), ModelSettings())
        yield Backend(model)
        await model.aclose()


async def wrapped() -> AsyncIterator[Backend]:
    door = Door()
    strong = FallbackModel(CannedModel(name="a", before=lambda task, call: door.pass_through()), CannedModel(name="b"))
    yield behind(door, TieredModel(CannedModel(name="c"), strong))


async def extractive() -> AsyncIterator[Backend]:
    module = pytest.importorskip("marg_ray.models.extractive", reason="the extractive model is not here")
    embeddings = pytest.importorskip("marg_ray.models.embeddings", reason="the embeddings are not here")
    door = Door()

    async def offload(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        await door.pass_through()
        return await in_thread(fn, *args, **kwargs)

    yield behind(door, module.ExtractiveModel(embeddings.HashingEmbedder(), offload))


class Again:
    """What a recording answers: each task is recorded just before."""

    def __init__(self, folder: Path, model: ModelClient) -> None:
        self._first = TapedModel(Tape(folder, replays=False), model)
        self._again = TapedModel(Tape(folder, replays=True), None, name=model.name)
        self.name = self._again.name

    async def run(self, task: ModelTask[Any], call: Call) -> Any:
        await self._first.run(task, replace(call, on_delta=None))
        return await self._again.run(task, call)


async def recording() -> AsyncIterator[Backend]:
    door = Door()
    with TemporaryDirectory() as folder:
        model = CannedModel(before=lambda task, call: door.pass_through())
        yield behind(door, TapedModel(Tape(Path(folder), replays=False), model))


async def replaying() -> AsyncIterator[Backend]:
    with TemporaryDirectory() as folder:
        yield Backend(Again(Path(folder), CannedModel()))


BACKENDS = (scripted, canned, openai_api, talkative_api, wrapped, extractive, recording, replaying)


@pytest.fixture(params=BACKENDS, ids=lambda make: make.__name__)
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    async for made in request.param():
        yield made


@pytest.fixture
def model(backend: Backend) -> ModelClient:
    return backend.model


def cited(text: str) -> set[int]:
    return {int(n) for group in MARK.findall(text) for n in group.split(",")}


def squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("kind", range(len(TASKS)), ids=[t.__name__ for t in TASKS])
async def test_each_task_is_answered_in_its_type(model: ModelClient, kind: int) -> None:
    task = samples.every_task()[kind]
    reply = await model.run(task, CALL)
    assert type(reply.output) is task.output
    task.output.model_validate(reply.output.model_dump())
    json.dumps(reply.output.model_dump(mode="json"), allow_nan=False).encode("utf-8")
    assert reply.model
    assert model.name
    assert reply.usage.tokens_in >= 0
    assert reply.left_out == ()


async def test_a_plan_is_bounded_and_searchable(model: ModelClient) -> None:
    plan = (await model.run(samples.make_plan(outline=(), max_sections=4), CALL)).output
    assert 1 <= len(plan.sections) <= 4
    assert all(1 <= len(s.queries) <= 5 and all(q.strip() for q in s.queries) for s in plan.sections)


async def test_a_given_outline_is_kept(model: ModelClient) -> None:
    task = samples.make_plan()
    plan = (await model.run(task, CALL)).output
    assert [s.title for s in plan.sections] == [e.title for e in task.outline]


async def test_quotes_stand_in_the_passages(model: ModelClient) -> None:
    task = samples.extract_claims()
    ideas = (await model.run(task, CALL)).output
    assert 1 <= len(ideas.claims) <= task.max_claims
    for idea in ideas.claims:
        assert any(squeezed(idea.quote) in squeezed(p.text) for p in task.passages), idea.quote


async def test_a_document_without_passages_yields_nothing_invented(model: ModelClient) -> None:
    ideas = (await model.run(samples.extract_claims(passages=(), document=samples.document("")), CALL)).output
    assert ideas.claims == []


def numbered_from(first: int) -> tuple[EvidenceCard, ...]:
    return tuple(c.model_copy(update={"number": first + n}) for n, c in enumerate(samples.cards()))


@pytest.mark.parametrize("first", [1, 7, 100])
async def test_a_section_cites_only_what_it_was_given(model: ModelClient, first: int) -> None:
    evidence = numbered_from(first)
    text = (await model.run(samples.draft_section(evidence=evidence), CALL)).output.markdown
    assert cited(text)
    assert cited(text) <= {card.number for card in evidence}
    assert not LINK.search(text)
    assert not text.lstrip().startswith("# ")


async def test_without_evidence_a_section_cites_nothing(model: ModelClient) -> None:
    text = (await model.run(samples.draft_section(evidence=(), feedback=(), previous=""), CALL)).output.markdown
    assert cited(text) == set()


async def test_a_summary_cites_only_what_the_sections_cite(model: ModelClient) -> None:
    task = samples.summarise_report()
    text = (await model.run(task, CALL)).output.markdown
    assert text.strip()
    assert cited(text) <= cited(" ".join(s.text for s in task.sections))


async def test_findings_rest_on_given_cards(model: ModelClient) -> None:
    evidence = numbered_from(5)
    idea = (await model.run(samples.analyse_evidence(evidence=evidence), CALL)).output
    assert all(set(f.evidence) <= {c.number for c in evidence} and f.evidence for f in idea.findings)
    assert (await model.run(samples.analyse_evidence(evidence=()), CALL)).output.findings == []


async def test_a_review_scores_within_bounds_and_names_known_sections(model: ModelClient) -> None:
    task = samples.review_report()
    review = (await model.run(task, CALL)).output
    assert all(0 <= score <= 1 for score in review.scores.model_dump().values())
    assert {i.section for i in review.issues} <= {"", *(s.id for s in task.sections)}


@pytest.mark.parametrize("first", [1, 40])
async def test_an_answer_cites_only_what_it_was_given(model: ModelClient, first: int) -> None:
    evidence = numbered_from(first)
    text = (await model.run(samples.answer_question(evidence=evidence), CALL)).output.markdown
    assert cited(text)
    assert cited(text) <= {card.number for card in evidence}
    assert not LINK.search(text)


async def test_without_evidence_an_answer_says_that_it_is_unknown(model: ModelClient) -> None:
    text = (await model.run(samples.answer_question(evidence=()), CALL)).output.markdown
    assert cited(text) == set()
    assert "UNKNOWN:" in text


async def test_a_turn_is_understood_by_itself_and_searchable(model: ModelClient) -> None:
    idea = (await model.run(samples.plan_turn(tried=()), CALL)).output
    assert idea.question.strip()
    assert 1 <= len(idea.queries) <= 3
    assert all(q.strip() for q in idea.queries)
    again = (await model.run(samples.plan_turn(tried=tuple(idea.queries)), CALL)).output
    assert set(again.queries).isdisjoint(idea.queries)


STRANGE = "Ще не вмерла. 𝒳 = 5 µm 👩‍🔬; «так»! العربية؟ 潮汐发电站的成本很高。 Fin: 3 < 4 & 5 > 4 {{ x }} {% y %}"


async def test_letters_of_every_kind_pass(model: ModelClient) -> None:
    doc = samples.document(STRANGE)
    ideas = await model.run(samples.extract_claims(document=doc, passages=samples.passages(doc)), CALL)
    assert all(squeezed(i.quote) in squeezed(STRANGE) for i in ideas.output.claims)
    for task in samples.every_task():
        asked = task.model_copy(update={"question": STRANGE})
        json.dumps((await model.run(asked, CALL)).output.model_dump(mode="json")).encode("utf-8")


async def test_a_watcher_gets_the_text_that_is_answered(backend: Backend) -> None:
    pieces: list[str] = []

    async def watch(text: str) -> None:
        pieces.append(text)

    reply = await backend.model.run(samples.draft_section(), replace(CALL, on_delta=watch))
    assert isinstance(reply.output, FreeText)
    if pieces:  # a backend may answer without streaming
        assert "".join(pieces).strip() == reply.output.markdown


async def test_many_at_once_do_not_mix(model: ModelClient) -> None:
    async def one(first: int) -> tuple[int, set[int]]:
        task = samples.draft_section(evidence=numbered_from(first))
        return first, cited((await model.run(task, CALL)).output.markdown)

    for first, numbers in await asyncio.gather(*(one(n * 10) for n in range(1, 9))):
        assert numbers <= {first, first + 1, first + 2}


async def test_a_cancelled_call_stops_and_the_next_one_works(backend: Backend) -> None:
    if backend.hold is None:
        pytest.skip("this backend answers at once: there is nothing to hold")
    arrived = backend.hold()
    running = asyncio.create_task(backend.model.run(samples.draft_section(), CALL))
    async with asyncio.timeout(20):
        await arrived.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    backend.free()
    assert (await backend.model.run(samples.draft_section(), CALL)).output.markdown


async def test_the_same_task_twice_has_answers_of_one_type(model: ModelClient) -> None:
    first = await model.run(samples.analyse_evidence(), CALL)
    second = await model.run(samples.analyse_evidence(), CALL)
    assert type(first.output) is type(second.output)
