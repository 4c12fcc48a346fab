"""The chat API with OpenAI's own client, against a real server on loopback over whole runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import httpx
import openai
import pytest

from marg_ray.actors.coordinator import Coordinator
from marg_ray.api.app import create_app
from marg_ray.api.openai.answers import answer_markdown
from marg_ray.api.openai.asked import EARLIER, asked_in
from marg_ray.api.openai.bodies import ChatIn
from marg_ray.api.openai.errors import BadParameter, ModelUnknown, error_of
from marg_ray.api.openai.streaming import in_pieces
from marg_ray.api.service import Answer, Assistant, Cited, Turn
from marg_ray.errors import ModelUnavailable, UsageError
from marg_ray.kinds import Depth
from marg_ray.memory.cache import QueryCache
from marg_ray.report.assemble import build_report
from marg_ray.settings import Settings
from tests.asked import MANY, QUESTION, parts_of, settled
from tests.flow import Held, World
from tests.followed import listening
from tests.report_sample import inputs

ASK: dict[str, Any] = {"model": "marg-research-overview", "messages": [{"role": "user", "content": QUESTION}]}


class Knows:
    """An assistant that answers what holds one of its words, from the first passage of the report."""

    def __init__(self, *words: str) -> None:
        self.words, self.asked = words, list[tuple[str, str, str, int]]()

    async def answer(self, owner: str, session_id: str, question: str, history: Sequence[Turn] = ()) -> Answer:
        self.asked.append((owner, session_id, question, len(history)))
        if not any(word in question for word in self.words):
            return Answer(sentences=(Cited(text="The evidence does not say."),), known=False)
        return Answer(sentences=(Cited(text="It opened in 1966.", citations=("e1",)),))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def assistant() -> Knows:
    return Knows("1966", "opened")


@pytest.fixture
async def address(world: World, assistant: Knows) -> AsyncIterator[str]:
    service = replace(parts_of(world, service=MANY | {"heartbeat_s": 0.2}), assistant=cast(Assistant, assistant))
    async with listening(create_app(service)) as port:
        yield f"http://127.0.0.1:{port}/v1"


@pytest.fixture
async def client(address: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=address, api_key="none", max_retries=0) as made:
        yield made


async def pieces_of(stream: Any) -> tuple[str, str, list[Any]]:
    """Reasoning, content, and the chunks they came in."""
    chunks = [chunk async for chunk in stream]
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    reasoning = "".join(getattr(d, "reasoning_content", None) or "" for d in deltas)
    return reasoning, "".join(d.content or "" for d in deltas), chunks


# ---- answers


async def test_models_are_listed_and_looked_up(client: openai.AsyncOpenAI) -> None:
    names = [m.id async for m in client.models.list()]
    assert names == ["marg-research", "marg-research-overview", "marg-research-deep"]
    assert (await client.models.retrieve("marg-research")).owned_by == "marg-ray"
    with pytest.raises(openai.NotFoundError, match="there is no model 'gpt-5'"):
        await client.models.retrieve("gpt-5")


async def test_the_answer_is_the_report(client: openai.AsyncOpenAI, world: World) -> None:
    reply = await client.chat.completions.create(**ASK)
    assert reply.choices[0].finish_reason == "stop"
    content = reply.choices[0].message.content or ""
    assert content.startswith("# ")
    assert "240 megawatts" in content
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0
    marg = (reply.model_extra or {})["marg"]
    row = await world.store.session(marg["session_id"])
    assert (marg["status"], reply.id) == (row.status, f"chatcmpl-{row.id}")
    spent = (await world.store.account(row.id)).spent
    assert reply.usage.total_tokens == spent.tokens_in + spent.tokens_out
    assert "planned" in (reply.choices[0].message.model_extra or {})["reasoning_content"]


def test_the_client_that_blocks_gets_the_same(tmp_path: Path) -> None:
    """In a thread beside the server's loop, as a program without one would use it."""

    async def run() -> tuple[str, str]:
        async with listening(create_app(parts_of(World(tmp_path), service=MANY))) as port:
            return await asyncio.to_thread(ask, f"http://127.0.0.1:{port}/v1")

    def ask(address: str) -> tuple[str, str]:
        with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as client:
            whole = client.chat.completions.create(**ASK).choices[0].message.content or ""
            pieces = [c.choices[0].delta.content or "" for c in client.chat.completions.create(**ASK, stream=True)]
            return whole, "".join(pieces)

    whole, streamed = asyncio.run(run())
    assert whole.partition("\n")[0] == streamed.partition("\n")[0] != ""
    assert "240 megawatts" in streamed


async def test_a_stream_tells_what_is_done_and_then_the_report(client: openai.AsyncOpenAI, world: World) -> None:
    stream = await client.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True})
    reasoning, content, chunks = await pieces_of(stream)
    row = (await world.store.sessions())[0]
    assert reasoning.startswith(f"session {row.id}: /v1/research/{row.id}\n")
    for step in ("planner: planned", "researcher: ", "synthesizer: wrote", "critic: "):
        assert step in reasoning
    assert content.startswith("# ")
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [c for c in chunks if c.usage] == [chunks[-1]]
    assert chunks[-1].choices == []
    assert {c.id for c in chunks} == {f"chatcmpl-{row.id}"}


async def test_the_bytes_of_a_stream_end_with_done_and_name_the_session(address: str, world: World) -> None:
    async with (
        httpx.AsyncClient() as http,
        http.stream("POST", f"{address}/chat/completions", json=ASK | {"stream": True}) as reply,
    ):
        body = await reply.aread()
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["x-session-id"] == (await world.store.sessions())[0].id
    frames = body.split(b"\n\n")
    assert frames[-2:] == [b"data: [DONE]", b""]
    assert all(f.startswith(b"data: ") or f.startswith(b":") for f in frames[:-1])
    first = json.loads(frames[1].removeprefix(b"data: "))["choices"][0]["delta"]
    assert first["reasoning"] == first["reasoning_content"]


async def test_a_quiet_stream_gives_signs_of_life_and_who_leaves_stops_nothing(tmp_path: Path) -> None:
    world = Held(tmp_path)
    app = create_app(parts_of(world, service=MANY | {"heartbeat_s": 0.05}))
    async with listening(app) as port, httpx.AsyncClient() as http:
        asked: dict[str, Any] = {"json": ASK | {"stream": True}, "timeout": 30}
        async with http.stream("POST", f"http://127.0.0.1:{port}/v1/chat/completions", **asked) as reply:
            beats = 0
            async for line in reply.aiter_lines():
                beats += line == ":"
                if beats == 3:
                    break
        session_id = reply.headers["x-session-id"]
        world.go.set()
        assert await settled(world.coordinator, session_id) == "passed"


async def test_an_idempotency_key_starts_one_session(client: openai.AsyncOpenAI, world: World) -> None:
    key = {"Idempotency-Key": "the same"}
    first, again = [await client.chat.completions.create(**ASK, extra_headers=key) for _ in range(2)]
    assert first.id == again.id
    assert len(await world.store.sessions()) == 1
    other = ASK | {"messages": [{"role": "user", "content": "Something else?"}]}
    with pytest.raises(openai.BadRequestError, match="belongs to another request"):
        await client.chat.completions.create(**other, extra_headers=key)


async def test_what_was_asked_before_is_answered_at_once_and_costs_nothing(
    client: openai.AsyncOpenAI, world: World, tmp_path: Path
) -> None:
    world.coordinator = Coordinator(
        world.store, world._dispatch, cache=QueryCache(world.store, Settings(home=tmp_path), model="canned")
    )
    # the server was made over the other coordinator; one that keeps reports answers from here on
    app = create_app(parts_of(world, service=MANY))
    async with (
        listening(app) as port,
        openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as cached,
    ):
        first, again = [await cached.chat.completions.create(**ASK) for _ in range(2)]
        assert first.id == again.id
        assert (again.model_extra or {})["marg"]["cached"]
        assert again.usage is not None
        assert again.usage.total_tokens == 0


async def test_a_refusal_is_an_honest_answer(tmp_path: Path) -> None:
    world = World(tmp_path, pages={})
    async with (
        listening(create_app(parts_of(world, service=MANY))) as port,
        openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client,
    ):
        reply = await client.chat.completions.create(**ASK)
    assert "**No report.**" in (reply.choices[0].message.content or "")
    assert reply.choices[0].finish_reason == "stop"
    assert (reply.model_extra or {})["marg"]["status"] == "insufficient_evidence"


async def test_a_spent_limit_is_told_as_a_cut(client: openai.AsyncOpenAI) -> None:
    reply = await client.chat.completions.create(**ASK, extra_body={"limits": {"tasks": 4}})
    assert reply.choices[0].finish_reason == "length"
    assert (reply.model_extra or {})["marg"]["status"] == "budget_stopped"


async def test_a_session_that_is_cancelled_is_an_error(tmp_path: Path) -> None:
    world = Held(tmp_path)
    async with (
        listening(create_app(parts_of(world, service=MANY))) as port,
        openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as held,
    ):
        stream = await held.chat.completions.create(**ASK, stream=True)

        async def cancelled_on_the_way() -> None:
            async for _ in stream:
                rows = await world.store.sessions()
                if rows and rows[0].seq > 3:
                    await world.coordinator.cancel(rows[0].id)

        with pytest.raises(openai.APIError, match="cancelled"):
            await cancelled_on_the_way()


# ---- conversations


def then(content: str, question: str, **fields: Any) -> dict[str, Any]:
    first = ASK["messages"][0]
    return ASK | {"messages": [first, {"role": "assistant", "content": content}, {"role": "user", "content": question}]}


async def test_a_question_about_the_report_is_answered_from_its_evidence(
    client: openai.AsyncOpenAI, world: World, assistant: Knows
) -> None:
    report = await client.chat.completions.create(**ASK)
    content = report.choices[0].message.content or ""
    reply = await client.chat.completions.create(**then(f"  {content}\n", "When was it opened?"))
    assert reply.choices[0].message.content.startswith("It opened in 1966.")
    assert (reply.model_extra or {})["marg"]["follow_up"]
    assert reply.id == report.id
    assert assistant.asked == [("local", report.id.removeprefix("chatcmpl-"), "When was it opened?", 2)]
    assert len(await world.store.sessions()) == 1


async def test_what_the_report_does_not_answer_is_researched_and_that_is_said(
    client: openai.AsyncOpenAI, world: World
) -> None:
    report = (await client.chat.completions.create(**ASK)).choices[0].message.content or ""
    reply = await client.chat.completions.create(**then(report, "What do tidal stations cost?"))
    assert (reply.choices[0].message.content or "").startswith("> The report of this conversation does not answer")
    assert len(await world.store.sessions()) == 2


async def test_earlier_turns_of_others_are_not_dropped_in_silence(client: openai.AsyncOpenAI) -> None:
    reply = await client.chat.completions.create(**then("Hello, how can I help?", QUESTION))
    assert (reply.choices[0].message.content or "").startswith(f"> {EARLIER}\n\n# ")


async def test_a_report_can_be_asked_about_by_its_session(client: openai.AsyncOpenAI) -> None:
    report = await client.chat.completions.create(**ASK)
    session_id = report.id.removeprefix("chatcmpl-")
    asked = ASK | {"messages": [{"role": "user", "content": "When was it opened?"}]}
    reply = await client.chat.completions.create(**asked, metadata={"session_id": session_id})
    assert (reply.choices[0].message.content or "").startswith("It opened in 1966.")
    with pytest.raises(openai.NotFoundError, match="there is no session"):
        await client.chat.completions.create(**asked, extra_body={"session_id": "20200101-000000-000000"})


def test_an_answer_cites_by_the_reports_numbers() -> None:
    report = build_report(inputs())
    first = report.evidence[0]
    text = answer_markdown(Answer(sentences=(Cited(text="So it is.", citations=(first.id, "e-unknown")),)), report)
    number = next((r.number for r in report.references if r.source == first.source), None)
    assert number is not None
    assert text.startswith(f"So it is. [{number}]\n\n- [{number}] ")


# ---- refusals


async def errors_of(client: openai.AsyncOpenAI, **body: Any) -> openai.APIStatusError:
    with pytest.raises(openai.APIStatusError) as caught:
        await client.chat.completions.create(**ASK | body)
    return caught.value


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"model": "gpt-5"}, 404, "model"),
        ({"n": 2}, 400, "n"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, 400, "tools"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format"),
        ({"logprobs": True}, 400, "logprobs"),
        ({"modalities": ["text", "audio"]}, 400, "modalities"),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "assistant", "content": "Hello"}]}, 400, "messages"),
        ({"messages": [{"role": "user", "content": " ?! "}]}, 400, None),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
            400,
            "messages.0.content",
        ),
        ({"metadata": {"web": "perhaps"}}, 400, "metadata.web"),
        ({"metadata": {"depth": "abyssal"}}, 400, "depth"),
        ({"extra_body": {"limits": {"dollars": 3}}}, 400, "limits.dollars"),
        ({"extra_body": {"sources": {"web": False}}}, 400, None),
    ],
)
async def test_what_cannot_be_met_is_refused_in_openais_form(
    client: openai.AsyncOpenAI, world: World, body: dict[str, Any], status: int, param: str | None
) -> None:
    error = await errors_of(client, **body)
    assert error.status_code == status
    assert isinstance(error.body, dict)
    assert set(error.body) == {"message", "type", "param", "code"}
    assert error.body["param"] == param
    assert error.body["type"] in ("invalid_request_error", "not_found_error")
    assert not await world.store.sessions()


async def test_guards_refuse_in_openais_form_too(tmp_path: Path) -> None:
    app = create_app(parts_of(World(tmp_path), service={"auth": "on"}))
    async with (
        listening(app) as port,
        openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client,
    ):
        with pytest.raises(openai.AuthenticationError) as caught:
            await client.models.list()
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["code"] == "invalid_api_key"


async def test_what_changes_nothing_is_accepted_and_named(client: openai.AsyncOpenAI) -> None:
    reply = await client.chat.completions.create(
        **ASK, temperature=0.2, max_tokens=100, user="u", tools=[], tool_choice="none", n=1
    )
    marg = (reply.model_extra or {})["marg"]
    assert marg["ignored"] == ["max_tokens", "temperature", "tool_choice", "user"]


# ---- what is asked


def asked(**fields: Any) -> Any:
    return asked_in(ChatIn.model_validate(ASK | fields)).research


def test_depth_follows_from_the_most_particular_word() -> None:
    model = {"model": "marg-research"}
    assert asked(**model).depth is Depth.STANDARD
    assert asked(model="marg-research-deep").depth is Depth.DEEP
    assert asked(**model, reasoning_effort="low").depth is Depth.OVERVIEW
    assert asked(model="marg-research-deep", reasoning_effort="low").depth is Depth.DEEP
    assert asked(model="marg-research-deep", metadata={"depth": "standard"}).depth is Depth.STANDARD
    assert asked(**model, metadata={"depth": "deep"}, depth="overview").depth is Depth.OVERVIEW


def test_metadata_can_say_what_fields_say() -> None:
    said = asked(metadata={"web": "no", "library": "TRUE", "cost": "0.5", "seconds": "60", "fresh": "1", "mine": "x"})
    assert (said.sources.web, said.sources.library, said.fresh) == (False, True, True)
    assert (said.limits.cost, said.limits.seconds) == (0.5, 60)


def test_text_parts_are_one_question() -> None:
    parts = [{"type": "text", "text": "What are"}, {"type": "text", "text": "tides?"}]
    assert asked(messages=[{"role": "user", "content": parts}]).question == "What are\ntides?"


def test_errors_can_be_sent_between_processes() -> None:
    import pickle

    for error in (BadParameter("n", "what", "todo"), ModelUnknown("m")):
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.more) == (str(error), error.more)
        assert isinstance(again, UsageError)


def test_a_problem_in_openais_form() -> None:
    problem = {"code": "TooBusy", "detail": "9 sessions wait already", "hint": "try again in 30 s"}
    assert error_of(problem, 429) == {
        "message": "9 sessions wait already. try again in 30 s",
        "type": "rate_limit_error",
        "param": None,
        "code": "TooBusy",
    }


def test_pieces_join_to_the_text() -> None:
    text = "# A\n\nb c\n\n\n" + "long " * 400 + "\n\nend\n"
    pieces = list(in_pieces(text))
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 600


async def test_an_assistant_that_is_away_is_an_error_and_no_new_research(
    client: openai.AsyncOpenAI, world: World, assistant: Knows, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = (await client.chat.completions.create(**ASK)).choices[0].message.content or ""

    async def away(*_: Any) -> Answer:
        raise ModelUnavailable("sim:m", "no answer")

    monkeypatch.setattr(assistant, "answer", away)
    with pytest.raises(openai.InternalServerError, match="unavailable"):
        await client.chat.completions.create(**then(report, "When was it opened?"))
    assert len(await world.store.sessions()) == 1


async def test_a_named_report_is_not_passed_over_where_nobody_can_answer_from_it(tmp_path: Path) -> None:
    async with (
        listening(create_app(replace(parts_of(World(tmp_path), service=MANY), assistant=None))) as port,
        openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client,
    ):
        with pytest.raises(openai.BadRequestError, match="answers no questions about reports"):
            await client.chat.completions.create(**ASK, extra_body={"session_id": "20261130-120000-ab12cd"})
