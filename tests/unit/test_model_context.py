"""Every kind of task in a small window: what goes into the prompt, and what is made of the refusals of real servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from benchmarks.simulated_llm import Body, Canned, SimulatedLLM
from marg_ray.models.client import Call, ModelTask
from marg_ray.models.endpoints import Endpoint
from marg_ray.models.openai_api import OpenAIModel
from marg_ray.models.packing import pack
from marg_ray.models.prompting import data
from marg_ray.models.tasks import ExtractClaims, ScoutHit
from marg_ray.records import Note
from marg_ray.settings import ModelSettings
from tests import model_tasks as samples

CALL = Call(session_id="r1", task_id="r1/t", section="s2")
LINES = tuple(f"Fact {n}: the basin holds {n},000 cubic metres of water at spring tide. " * 8 for n in range(1, 41))
DOCUMENT = samples.document("\n\n".join(line.strip() for line in LINES))
SECTIONS = tuple(
    s.model_copy(update={"text": "\n\n".join(f"{s.id} says {n}: " + line for n, line in enumerate(LINES))})
    for s in samples.section_texts()
)
LARGE: tuple[ModelTask[Any], ...] = (
    samples.make_plan(
        scout=tuple(ScoutHit(title=f"Hit {n}", snippet=line, relevance=1 / n) for n, line in enumerate(LINES, 1))
    ),
    ExtractClaims(
        question=samples.QUESTION,
        section_title="Birds",
        queries=("birds",),
        source_title="Tides",
        passages=samples.passages(DOCUMENT),
        document=DOCUMENT,
    ),
    samples.draft_section(evidence=samples.cards(LINES)),
    samples.analyse_evidence(evidence=samples.cards(LINES)),
    samples.review_report(sections=SECTIONS),
    samples.summarise_report(sections=SECTIONS),
)
REFUSALS: dict[str, tuple[int, Any]] = {
    "OpenAI": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in "
                "9115 tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "code": "context_length_exceeded",
            }
        },
    ),
    "vLLM": (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 8192 tokens. However, you requested 9600 tokens (8000 "
            "in the messages, 1600 in the completion). Please reduce the length of the messages or completion.",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    "vLLM, of the prompt": (
        400,
        {"error": {"message": "The decoder prompt (length 9000) is longer than the maximum model length of 8192."}},
    ),
    "llama.cpp": (
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 9115,
                "n_ctx": 8192,
            }
        },
    ),
    "TGI": (
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 9000 `inputs` "
            "tokens and 1600 `max_new_tokens`",
            "error_type": "validation",
        },
    ),
    "Anthropic": (
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "prompt is too long: 9115 tokens > 8192 maximum"},
        },
    ),
    "Gemini": (
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (9115) exceeds the maximum number of tokens allowed (8192).",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
    ),
    "Groq": (
        413,
        {
            "error": {
                "message": "Request too large for model `llama` on tokens per minute (TPM): Limit 8192, Requested "
                "9115, please reduce your message size and try again.",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
    ),
    "Mistral": (
        400,
        {
            "object": "error",
            "message": "Prompt contains 9115 tokens and 0 draft tokens, too large for model with 8192 maximum context "
            "length",
            "type": "invalid_request_error",
        },
    ),
    "LM Studio": (
        400,
        {
            "error": "Trying to keep the first 9115 tokens when context the overflows. However, the model is loaded "
            "with context length of only 8192 tokens, which is not enough."
        },
    ),
    "OpenRouter": (
        400,
        {
            "error": {
                "message": "This endpoint's maximum context length is 8192 tokens. However, you requested about 9115 "
                "tokens (7515 of text input, 1600 in the output).",
                "code": 400,
            }
        },
    ),
    "SGLang": (
        400,
        {
            "object": "error",
            "message": "The input (9115 tokens) is longer than the model's context length (8192 tokens).",
            "code": 400,
        },
    ),
    "xAI": (
        400,
        {"error": "This model's maximum prompt length is 8192 but the request contains 9115 tokens."},
    ),
    "Ollama": (400, {"error": {"message": "the input length exceeds the context length"}}),
    "Bedrock": (400, {"message": "Input is too long for requested model."}),
    "Cohere": (400, {"message": "too many tokens: total number of tokens in the prompt exceeds the limit of 8192"}),
    "a proxy": (413, "<html><body><h1>413 Request Entity Too Large</h1></body></html>"),
}


def _id(task: ModelTask[Any]) -> str:
    return type(task).__name__


def pieces(task: ModelTask[Any]) -> list[tuple[str, ...]]:
    """The texts of what may be left out, each with the sentences or paragraphs that it is shown in."""
    if isinstance(task, ExtractClaims):
        return [tuple(f"| {sentence}" for _, sentence in p.numbered) for p in task.passages]
    texts = [c.quote for c in getattr(task, "evidence", ())] + [h.snippet for h in getattr(task, "scout", ())]
    texts += [p for s in getattr(task, "sections", ()) for p in s.text.split("\n\n")]
    return [(data(text),) for text in texts]


@pytest.mark.parametrize("budget", [1800, 2600, 4000])
@pytest.mark.parametrize("task", LARGE, ids=_id)
def test_a_piece_is_shown_whole_or_not_at_all(task: ModelTask[Any], budget: int) -> None:
    packed = pack(task, budget)
    assert packed.fits
    assert packed.prompt.tokens <= budget
    whole = pieces(task)
    shown = [all(part in packed.prompt.user for part in parts) for parts in whole]
    assert 0 < sum(shown) < len(whole)
    for there, parts in zip(shown, whole, strict=True):
        if not there:
            assert not any(part in packed.prompt.user for part in parts)
    room = budget - packed.prompt.tokens
    assert room < 400, "another piece would have fitted"


@pytest.mark.parametrize("task", LARGE, ids=_id)
def test_what_is_left_out_is_the_least_relevant(task: ModelTask[Any]) -> None:
    if getattr(task, "sections", ()):
        pytest.skip("sections keep their beginnings")
    packed = pack(task, 2600)
    shown = [all(part in packed.prompt.user for part in parts) for parts in pieces(task)]  # best first in the samples
    assert shown == sorted(shown, reverse=True)


@pytest.fixture
async def server() -> AsyncIterator[SimulatedLLM]:
    async with SimulatedLLM() as running:
        yield running


async def asked(server: SimulatedLLM, task: ModelTask[Any], **settings: Any) -> tuple[list[int], tuple[Note, ...]]:
    """The sizes of the requests that a task took, and the notes on its reply."""
    endpoint = Endpoint(provider="sim", model="simulated", base_url=server.base_url, key="sk-1234567890")
    model = OpenAIModel(endpoint, ModelSettings(**settings), sleep=lambda _: asyncio.sleep(0))
    try:
        async with asyncio.timeout(30):
            reply = await model.run(task, CALL)
    finally:
        await model.aclose()
    return [len(json.dumps(body["messages"])) for body in server.bodies], reply.notes


def refusing(refusal: tuple[int, Any], limit: int = 12_000) -> Any:
    """A server that answers so to every request of more characters."""
    status, body = refusal

    def rule(sent: Body) -> Canned | None:
        return Canned(status=status, body=body) if len(json.dumps(sent["messages"])) > limit else None

    return rule


@pytest.mark.parametrize("name", REFUSALS)
async def test_whatever_a_server_says_of_its_window_the_next_prompt_is_smaller(server: SimulatedLLM, name: str) -> None:
    server.rule = refusing(REFUSALS[name])
    sizes, notes = await asked(server, samples.draft_section(evidence=samples.cards(LINES)), context_tokens=65_536)
    assert 2 <= len(sizes) <= 4
    assert sizes == sorted(set(sizes), reverse=True)
    assert [n.kind for n in notes] == ["left_out"]


@pytest.mark.parametrize("task", LARGE, ids=_id)
async def test_every_kind_of_task_comes_back_smaller(server: SimulatedLLM, task: ModelTask[Any]) -> None:
    server.rule = refusing(REFUSALS["OpenAI"])
    sizes, notes = await asked(server, task, context_tokens=65_536)
    assert 2 <= len(sizes) <= 4
    assert sizes == sorted(set(sizes), reverse=True)
    assert [n.kind for n in notes] == ([] if getattr(task, "scout", ()) else ["left_out"])


async def test_a_prompt_that_a_server_cuts_in_silence_is_noticed_for_every_kind_of_task(server: SimulatedLLM) -> None:
    for task in LARGE:
        server.rule = _cutting
        _, notes = await asked(server, task, context_tokens=65_536)
        assert [n.kind for n in notes] == ["prompt_shortened"], _id(task)
        assert "2050" in notes[0].text


def _cutting(body: Body) -> Canned:
    from benchmarks.simulated_llm import answer

    usage = {"prompt_tokens": 2050, "completion_tokens": 100, "total_tokens": 2150}
    message = {"role": "assistant", "content": answer(body)}
    return Canned(body={"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage})
