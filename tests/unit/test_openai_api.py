"""The client against a server on the loopback that answers, refuses, breaks off and misbehaves as real ones do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import pickle
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulated_llm import Body, Canned, SimulatedLLM, Speed, completion
from marg_ray.errors import ContextOverflow, ModelError, ModelUnavailable, OutputCut, ParseError
from marg_ray.models.client import Call
from marg_ray.models.endpoints import Endpoint, Structure
from marg_ray.models.exchange import strict_schema
from marg_ray.models.openai_api import OpenAIModel
from marg_ray.models.tasks import TASKS, FreeText
from marg_ray.models.wire import Wire, WireError
from marg_ray.settings import ModelSettings
from tests import model_tasks as samples
from tests.plans import as_plan_body
from tests.shared import case_file, case_lines, needs_shared

CALL = Call(session_id="r1", task_id="r1/plan", section="s2")
KEY = "sk-test-1234567890abcdef"
Make = Callable[..., OpenAIModel]


class Sleeps:
    """A clock that only moves when somebody sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.now = 100.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


@pytest.fixture
async def server() -> AsyncIterator[SimulatedLLM]:
    async with SimulatedLLM() as running:
        yield running


@pytest.fixture
def sleeps() -> Sleeps:
    return Sleeps()


@pytest.fixture
async def make(server: SimulatedLLM, sleeps: Sleeps) -> AsyncIterator[Make]:
    made: list[OpenAIModel] = []

    def build(provider: str = "sim", **settings: Any) -> OpenAIModel:
        endpoint = Endpoint(provider=provider, model="simulated", base_url=server.base_url, key=KEY, price=(1.0, 10.0))
        model = OpenAIModel(endpoint, ModelSettings(**settings), sleep=sleeps.sleep, clock=sleeps.clock)
        made.append(model)
        return model

    yield build
    for model in made:
        await model.aclose()


class TestAnswers:
    async def test_a_plan_comes_typed_and_counted(self, server: SimulatedLLM, make: Make) -> None:
        reply = await make().run(samples.make_plan(), CALL)
        assert [s.title for s in reply.output.sections] == ["Power", "Birds"]
        assert reply.model == "sim:simulated"
        assert reply.usage.calls == 1
        assert reply.usage.cost == pytest.approx((reply.usage.tokens_in + 10 * reply.usage.tokens_out) / 1e6)
        (body,) = server.bodies
        assert body["response_format"]["json_schema"]["name"] == "make_plan"
        assert body["temperature"] == 0.2
        assert not body.get("stream")

    async def test_text_is_asked_for_without_a_schema(self, server: SimulatedLLM, make: Make) -> None:
        reply = await make().run(samples.draft_section(), CALL)
        assert "[2]" in reply.output.markdown
        assert "response_format" not in server.bodies[0]

    async def test_it_streams_only_when_somebody_watches(self, server: SimulatedLLM, make: Make) -> None:
        pieces: list[str] = []

        async def watch(text: str) -> None:
            pieces.append(text)

        call = Call(session_id="r1", task_id="t", on_delta=watch)
        reply = await make().run(samples.draft_section(), call)
        assert "".join(pieces) == reply.output.markdown
        assert len(pieces) == 1  # the clock stood still: everything in one batch
        assert server.bodies[0]["stream"] is True
        assert reply.usage.tokens_out == server.requests[0].tokens_out
        await make().run(samples.make_plan(), call)
        assert not server.bodies[1].get("stream")
        assert len(pieces) == 1

    async def test_a_slow_stream_is_passed_on_in_batches(
        self, server: SimulatedLLM, make: Make, sleeps: Sleeps
    ) -> None:
        pieces: list[str] = []

        async def watch(text: str) -> None:
            pieces.append(text)

        clock = iter(range(10**6))
        model = OpenAIModel(make().endpoint, ModelSettings(), clock=lambda: next(clock) * 0.05)
        reply = await model.run(samples.draft_section(), Call(session_id="r", task_id="t", on_delta=watch))
        await model.aclose()
        assert "".join(pieces) == reply.output.markdown
        assert 1 < len(pieces) < server.requests[0].tokens_out

    async def test_a_cancelled_call_ends_at_the_server_too(self, server: SimulatedLLM, make: Make) -> None:
        server.speed = Speed(ttft_s=3600)
        running = asyncio.create_task(make().run(samples.make_plan(), CALL))
        async with asyncio.timeout(20):
            await server.started.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await server.ended.wait()
        assert server.requests[0].status == 0

    async def test_many_calls_at_once(self, server: SimulatedLLM, make: Make) -> None:
        model = make(concurrency=8)
        replies = await asyncio.gather(*(model.run(samples.rewrite_query(), CALL) for _ in range(40)))
        assert len(replies) == len(server.requests) == 40

    async def test_a_proxy_is_not_asked_for_this_machine(
        self, server: SimulatedLLM, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        assert (await make(retries=0).run(samples.rewrite_query(), CALL)).output.query


class TestReasoning:
    @needs_shared
    async def test_a_draft_never_becomes_the_plan(self, server: SimulatedLLM, make: Make) -> None:
        cases = case_lines("LLM-01", "replies.jsonl")
        for case in cases:
            server.replies.append(Canned.of({"body": as_plan_body(case["body"])}))
            reply = await make().run(samples.make_plan(), CALL)
            assert reply.output.title == "Tidal power outlook", case["name"]
            assert reply.output.sections[0].queries[0] == "tidal power stations in operation"
            assert "Wave" not in repr(reply)
        assert len(server.requests) == len(cases)

    async def test_a_watcher_sees_no_reasoning(self, server: SimulatedLLM, make: Make) -> None:
        seen: list[str] = []

        async def watch(text: str) -> None:
            seen.append(text)

        events = [
            {"choices": [{"delta": {"reasoning_content": "secret one"}}]},
            {"choices": [{"delta": {"content": "<thi"}}]},
            {"choices": [{"delta": {"content": "nk>secret two</th"}}]},
            {"choices": [{"delta": {"content": "ink>It rose"}}]},
            {"choices": [{"delta": {"content": " [1]."}, "finish_reason": "stop"}]},
        ]
        stream = "".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n"
        server.replies.append(Canned(body=stream, content_type="text/event-stream"))
        reply = await make().run(samples.draft_section(), Call(session_id="r", task_id="t", on_delta=watch))
        assert "".join(seen) == reply.output.markdown == "It rose [1]."

    async def test_a_model_that_thinks_in_silence_gets_room_too(self, server: SimulatedLLM, make: Make) -> None:
        server.replies.append(completion("", "length"))
        assert (await make(context_tokens=32_000).run(samples.rewrite_query(), CALL)).output.query
        assert server.bodies[1]["max_tokens"] >= 4000

    async def test_a_model_that_thinks_gets_room_for_it(self, server: SimulatedLLM, make: Make) -> None:
        body = completion("", "length").body
        body["choices"][0]["message"]["reasoning_content"] = "hm " * 50
        server.replies.append(Canned(body=body))
        model = make(context_tokens=32_000)
        reply = await model.run(samples.rewrite_query(), CALL)
        assert reply.output.query
        first, second = server.bodies
        assert second["max_tokens"] >= first["max_tokens"] + 4000
        await model.run(samples.rewrite_query(), CALL)
        assert server.bodies[2]["max_tokens"] >= 4000


class TestRetries:
    async def test_pauses_of_1_2_4_seconds_then_unavailable(
        self, server: SimulatedLLM, make: Make, sleeps: Sleeps
    ) -> None:
        server.rule = lambda _: Canned(status=503, body={"error": {"message": f"down, key {KEY}"}})
        with pytest.raises(ModelUnavailable, match="down") as caught:
            await make().run(samples.make_plan(), CALL)
        assert sleeps.slept == [1.0, 2.0, 4.0]
        assert len(server.requests) == 4
        assert KEY not in str(caught.value)
        assert KEY not in repr(pickle.loads(pickle.dumps(caught.value)))

    @pytest.mark.parametrize("status", [408, 429, 500, 502, 529])
    async def test_it_recovers(self, server: SimulatedLLM, make: Make, sleeps: Sleeps, status: int) -> None:
        server.replies.append(Canned(status=status, body="busy", content_type="text/plain"))
        reply = await make().run(samples.rewrite_query(), CALL)
        assert reply.output.query
        assert sleeps.slept == [1.0]

    @pytest.mark.parametrize("status", [429, 503])
    @pytest.mark.parametrize(("value", "waited"), [("7", 7.0), ("0.5", 0.5), ("9999", 60.0)])
    async def test_retry_after_is_honoured_within_a_minute(
        self, server: SimulatedLLM, make: Make, sleeps: Sleeps, value: str, waited: float, status: int
    ) -> None:
        server.replies.append(Canned(status=status, body={"error": "slow"}, headers={"Retry-After": value}))
        await make().run(samples.rewrite_query(), CALL)
        assert sum(sleeps.slept) == pytest.approx(waited)

    async def test_everybody_waits_when_the_server_says_so(
        self, server: SimulatedLLM, make: Make, sleeps: Sleeps
    ) -> None:
        model = make()
        server.rule = lambda _: Canned(status=429, body={"error": "slow"}, headers={"Retry-After": "9"})
        with pytest.raises(ModelUnavailable):
            await model.run(samples.rewrite_query(), CALL)
        server.rule = None
        before = sleeps.now
        model.exchange._not_before = before + 9
        await model.run(samples.rewrite_query(), CALL)
        assert sleeps.now - before == pytest.approx(9)
        assert model.exchange.breaker.state == "closed"  # busy is not broken

    async def test_nobody_listens(self, sleeps: Sleeps) -> None:
        async with SimulatedLLM() as gone:
            address = gone.base_url
        endpoint = Endpoint(provider="sim", model="m", base_url=address)
        model = OpenAIModel(endpoint, ModelSettings(), sleep=sleeps.sleep, clock=sleeps.clock)
        with pytest.raises(ModelUnavailable, match=endpoint.host):
            await model.run(samples.make_plan(), CALL)
        assert sleeps.slept == [1.0, 2.0, 4.0]
        await model.aclose()

    async def test_a_server_that_never_answers(self, server: SimulatedLLM, make: Make) -> None:
        server.rule = lambda _: Canned(body={}, delay_s=3600)
        with pytest.raises(ModelUnavailable, match=r"no answer within 0\.05 s"):
            await make(timeout_s=0.05, retries=1).run(samples.make_plan(), CALL)
        assert len(server.requests) == 2

    async def test_a_stream_that_breaks_off_is_asked_again(self, server: SimulatedLLM, make: Make) -> None:
        async def watch(_: str) -> None: ...

        half = 'data: {"choices": [{"delta": {"content": "It ro"}}]}\n\n'
        server.replies.append(Canned(body=half, content_type="text/event-stream"))
        reply = await make().run(samples.draft_section(), Call(session_id="r", task_id="t", on_delta=watch))
        assert "It ro" not in reply.output.markdown.split(" [")[0]
        assert len(server.requests) == 2

    @pytest.mark.parametrize("status", [401, 403, 404, 400])
    async def test_what_cannot_get_better_is_not_retried(
        self, server: SimulatedLLM, make: Make, sleeps: Sleeps, status: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        server.rule = lambda _: Canned(status=status, body={"error": {"message": f"Incorrect API key: {KEY}"}})
        with pytest.raises(ModelUnavailable) as caught:
            await make().run(samples.make_plan(), CALL)
        assert len(server.requests) == 1
        assert sleeps.slept == []
        assert KEY not in str(caught.value)
        assert KEY not in caplog.text

    async def test_the_breaker_opens_and_lets_one_try(self, server: SimulatedLLM, make: Make, sleeps: Sleeps) -> None:
        model = make()
        server.rule = lambda _: Canned(status=500, body={"error": "broken"})
        for _ in range(2):
            with pytest.raises(ModelUnavailable):
                await model.run(samples.make_plan(), CALL)
        asked = len(server.requests)
        assert asked == 5
        with pytest.raises(ModelUnavailable, match="left alone"):
            await model.run(samples.make_plan(), CALL)
        assert len(server.requests) == asked
        server.rule = None
        sleeps.now += 31
        assert (await model.run(samples.make_plan(), CALL)).output.title
        assert model.exchange.breaker.state == "closed"

    async def test_a_cancelled_probe_leaves_the_door_open(
        self, server: SimulatedLLM, make: Make, sleeps: Sleeps
    ) -> None:
        model = make(retries=0)
        for _ in range(5):
            model.exchange.breaker.failed()
        sleeps.now += 31
        server.speed = Speed(ttft_s=3600)
        probe = asyncio.create_task(model.run(samples.make_plan(), CALL))
        async with asyncio.timeout(20):
            await server.started.wait()
        with pytest.raises(ModelUnavailable, match="left alone"):
            await model.run(samples.make_plan(), CALL)
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
        server.speed = Speed()
        assert (await model.run(samples.make_plan(), CALL)).output.sections


class TestUnusableReplies:
    @needs_shared
    @pytest.mark.parametrize("task", [samples.make_plan(), samples.draft_section()], ids=["plan", "section"])
    async def test_each_is_an_error_of_ours(self, server: SimulatedLLM, make: Make, task: Any) -> None:
        for case in case_lines("LLM-06", "http-replies.jsonl"):
            server.requests.clear()
            given = Canned.of(case)
            server.rule = lambda _, given=given: given  # type: ignore[misc]
            with pytest.raises(ModelError) as caught:
                await make().run(task, CALL)
            said = str(caught.value)
            assert KEY not in said
            assert "three steps about tides" not in said
            if case["name"] == "unauthorised":
                assert len(server.requests) == 1
            assert len(server.requests) <= 4, case["name"]
            if case["name"] == "choices-null-with-error":
                assert "model overloaded, try later" in said
            if case["name"] == "html-from-proxy":
                assert "not JSON" in said
                assert make().endpoint.host in said

    junk = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("choices"),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "message",
                        "content",
                        "finish_reason",
                        "usage",
                        "error",
                        "code",
                        "delta",
                        "prompt_tokens",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=10,
    )

    @given(junk)
    def test_whatever_comes_is_an_answer_or_an_error_of_ours(self, reply: Any) -> None:
        wire = Wire(Endpoint(provider="x", model="m", base_url="http://h/v1"), timeout_s=1, connections=1)
        with contextlib.suppress(WireError):
            assert isinstance(wire._whole(json.dumps(reply), "application/json").text, str)

    @given(junk)
    async def test_whatever_is_streamed_too(self, event: Any) -> None:
        async def lines() -> AsyncIterator[str]:
            yield f"data: {json.dumps(event)}"
            yield "data: [DONE]"

        async def ignore(_: str) -> None: ...

        wire = Wire(Endpoint(provider="x", model="m", base_url="http://h/v1"), timeout_s=1, connections=1)
        with contextlib.suppress(WireError):
            assert isinstance((await wire._from_events(lines(), ignore)).text, str)

    async def test_a_re_ask_shows_the_complaint_at_temperature_0(self, server: SimulatedLLM, make: Make) -> None:
        server.replies.append(completion('{"title": "Tides"}'))
        reply = await make().run(samples.make_plan(), CALL)
        assert reply.output.sections
        assert reply.usage.calls == 2
        first, second = server.bodies
        assert second["messages"][: len(first["messages"])] == first["messages"]
        assert second["messages"][-2] == {"role": "assistant", "content": '{"title": "Tides"}'}
        assert "sections: Field required" in second["messages"][-1]["content"]
        assert second["temperature"] == 0.0

    async def test_after_three_re_asks_the_complaint_is_the_error(self, server: SimulatedLLM, make: Make) -> None:
        server.rule = lambda _: completion('{"title": "Tides"}')
        with pytest.raises(ParseError, match="sections: Field required") as caught:
            await make().run(samples.make_plan(), CALL)
        assert (caught.value.tries, len(server.requests)) == (4, 4)
        assert caught.value.spent.calls == 4

    async def test_roles_alternate_after_an_empty_answer(self, server: SimulatedLLM, make: Make) -> None:
        server.replies.append(completion(""))
        await make().run(samples.make_plan(), CALL)
        assert [m["role"] for m in server.bodies[1]["messages"]] == ["system", "user"]


def without(*features: str) -> Callable[[Body], Canned | None]:
    """A server that does not know some fields, and says so as servers do."""

    def rule(body: Body) -> Canned | None:
        kind = (body.get("response_format") or {}).get("type", "")
        for feature in features:
            if feature == kind or feature in body:
                message = {
                    "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                    "temperature": "Unsupported value: 'temperature' does not support 0.2 with this model.",
                }.get(feature, f"response_format {feature} is not supported by this model")
                return Canned(status=400, body={"error": {"message": message, "type": "invalid_request_error"}})
        return None

    return rule


class TestFeatures:
    @pytest.mark.parametrize(
        ("missing", "left"),
        [
            (("json_schema",), Structure.OBJECT),
            (("json_schema", "json_object"), Structure.PROMPT),
            (("max_tokens", "temperature"), Structure.SCHEMA),
        ],
    )
    async def test_what_a_server_lacks_is_left_out_and_remembered(
        self, server: SimulatedLLM, make: Make, missing: tuple[str, ...], left: Structure
    ) -> None:
        server.rule = without(*missing)
        model = make()
        assert (await model.run(samples.make_plan(), CALL)).output.sections
        assert len(server.requests) == 1 + len(missing)
        assert model.exchange.abilities.structure is left
        await model.run(samples.make_plan(), CALL)
        assert len(server.requests) == 2 + len(missing)

    @pytest.mark.parametrize("task", [t for t in TASKS if t.output is not FreeText], ids=lambda t: t.__name__)
    def test_schemas_are_strict(self, task: Any) -> None:
        schema = strict_schema(task.asked_for().model_json_schema())
        assert "maxLength" not in json.dumps(schema), "hosted services refuse it"

        def check(node: Any) -> None:
            if isinstance(node, list):
                for item in node:
                    check(item)
            if isinstance(node, dict):
                if "properties" in node and node.get("type") == "object":
                    assert node["additionalProperties"] is False
                    assert node["required"] == list(node["properties"])
                assert "default" not in node
                for value in node.values():
                    check(value)

        check(schema)
        assert set(schema["properties"]) == set(task.asked_for().model_fields)

    @pytest.mark.parametrize("task", [t for t in TASKS if t.output is not FreeText], ids=lambda t: t.__name__)
    def test_an_engine_that_holds_to_it_is_told_how_long_a_string_may_get(self, task: Any) -> None:
        def unbounded(node: Any) -> bool:
            if isinstance(node, list):
                return any(map(unbounded, node))
            if not isinstance(node, dict):
                return False
            free = node.get("type") == "string" and not {"enum", "const", "maxLength"} & node.keys()
            return free or any(map(unbounded, node.values()))

        assert not unbounded(strict_schema(task.asked_for().model_json_schema(), bounded=True))

    async def test_only_an_engine_of_ones_own_is_told(self, server: SimulatedLLM, make: Make) -> None:
        for provider, told in (("vllm", True), ("openai", False)):
            await make(provider=provider).run(samples.make_plan(), CALL)
            assert ("maxLength" in json.dumps(server.bodies[-1]["response_format"])) is told


class TestCuts:
    @needs_shared
    @pytest.mark.parametrize("name", ["plan-cut-in-string", "plan-cut-but-valid"])
    async def test_a_cut_plan_gets_more_room_and_then_an_error(
        self, server: SimulatedLLM, make: Make, name: str
    ) -> None:
        (case,) = [c for c in case_lines("LLM-04", "replies.jsonl") if c["name"] == name]
        cut = Canned.of({"body": as_plan_body(case["body"])})
        server.replies.append(cut)
        assert (await make().run(samples.make_plan(), CALL)).output.title != "Six questions on tides"
        first, second = server.bodies
        assert second["max_tokens"] > first["max_tokens"]
        server.rule = lambda _: cut
        with pytest.raises(OutputCut, match="output limit"):
            await make().run(samples.make_plan(), CALL)
        assert len(server.requests) == 4

    @needs_shared
    async def test_a_cut_that_the_router_hides(self, server: SimulatedLLM, make: Make) -> None:
        (case,) = [c for c in case_lines("LLM-04", "replies.jsonl") if "router" in c["name"]]
        server.rule = lambda _: Canned.of({"body": as_plan_body(case["body"])})
        with pytest.raises(ParseError, match="ends before"):
            await make().run(samples.make_plan(), CALL)
        assert len(server.requests) <= 4

    @needs_shared
    async def test_a_section_is_continued(self, server: SimulatedLLM, make: Make) -> None:
        cases = {c["name"]: c for c in case_lines("LLM-04", "replies.jsonl")}
        server.replies.extend(Canned.of(cases[n]) for n in ("section-cut-mid-sentence", "section-continuation"))
        reply = await make().run(samples.draft_section(), CALL)
        end = "which means that the basin can be emptied and filled within one tide [2]."
        assert reply.output.markdown.endswith(end)
        assert reply.output.markdown.startswith("The barrage opened decades ago and still runs [1].\n\nIts turbines")
        assert not reply.output.incomplete
        assert reply.notes == ()

    @needs_shared
    async def test_a_section_cut_twice_ends_whole_and_is_marked(self, server: SimulatedLLM, make: Make) -> None:
        cases = {c["name"]: c for c in case_lines("LLM-04", "replies.jsonl")}
        server.rule = lambda _: Canned.of(cases["section-cut-mid-sentence"])
        reply = await make().run(samples.draft_section(), CALL)
        assert reply.output.incomplete
        assert reply.output.markdown == "The barrage opened decades ago and still runs [1]."
        (note,) = reply.notes
        assert (note.kind, note.section) == ("output_cut", "s2")
        assert len(server.requests) == 2

    @pytest.mark.parametrize("told", [True, False], ids=["usage told", "usage not told"])
    async def test_the_rest_of_a_long_answer_is_asked_for_only_where_the_window_has_room(
        self, server: SimulatedLLM, make: Make, told: bool
    ) -> None:
        """The prompt fits and is not packed again: it is the answer that fills the window."""
        window, prompt = 4096, 1045
        text = "The barrage gives 240 megawatts [1]. " * 180

        def strict(sent: Body) -> Canned:
            before = prompt + sum(len(m["content"]) // 4 for m in sent["messages"] if m["role"] == "assistant")
            most = sent.get("max_completion_tokens") or sent["max_tokens"]
            if before + most > window:
                body = f'{{"error": {{"message": "maximum context length is {window} tokens", "code": 400}}}}'
                return Canned(status=400, body=body)
            usage = {"prompt_tokens": before, "completion_tokens": most} if told else {}
            cut = completion(text + "It gives", "length", **usage)
            return cut if told else Canned(body={k: v for k, v in cut.body.items() if k != "usage"})

        server.rule = strict
        reply = await make(context_tokens=window).run(samples.draft_section(), CALL)
        assert reply.output.incomplete
        assert reply.output.markdown.endswith("The barrage gives 240 megawatts [1].")
        assert reply.left_out == ()
        assert [n.kind for n in reply.notes] == ["output_cut"]
        assert len(server.requests) <= 2

    async def test_a_model_without_closing_marks_is_not_called_cut(self, server: SimulatedLLM, make: Make) -> None:
        text = "Wading birds lost about 40 % of their feeding ground [2] and did not return to it later"
        server.replies.extend([completion(text), completion("DONE")])
        reply = await make().run(samples.draft_section(), CALL)
        assert (reply.output.markdown, reply.output.incomplete, reply.notes) == (text, False, ())


QUOTES = tuple(f"Fact {n}: the basin holds {n},000 cubic metres of water at spring tide. " * 21 for n in range(1, 41))


class TestContext:
    @needs_shared
    @pytest.mark.parametrize("window", [8192, 32_768, 131_072])
    async def test_a_refused_prompt_comes_back_smaller(self, server: SimulatedLLM, make: Make, window: int) -> None:
        case = json.loads(case_file("LLM-08", "overflow.json").read_text("utf-8"))
        refusal = Canned.of(case)
        server.rule = lambda body: refusal if len(json.dumps(body)) > 20_000 else None
        evidence = samples.cards(QUOTES)
        assert 55_000 < sum(len(c.quote) for c in evidence) < 65_000
        async with asyncio.timeout(10):
            reply = await make(context_tokens=window).run(samples.draft_section(evidence=evidence), CALL)
        sizes = [len(json.dumps(body)) for body in server.bodies]
        assert len(sizes) <= 4
        assert sizes == sorted(sizes, reverse=True)
        assert len(set(sizes)) == len(sizes)
        shown = server.bodies[-1]["messages"][1]["content"]
        for card in evidence:
            assert (f'n="{card.number}"' not in shown) == (card.number in reply.left_out)
        (note,) = [n for n in reply.notes if n.kind == "left_out"]
        assert all(f"Source {n}" in note.text for n in reply.left_out)

    async def test_a_window_that_nothing_fits_is_named(self, server: SimulatedLLM, make: Make) -> None:
        refusal = Canned(status=400, body={"error": {"message": "This model's maximum context length is 8192 tokens"}})
        server.rule = lambda _: refusal
        with pytest.raises(ContextOverflow, match="8192"):
            await make(context_tokens=32_768).run(samples.draft_section(evidence=samples.cards(QUOTES)), CALL)
        assert len(server.requests) <= 4
        sizes = [len(json.dumps(body)) for body in server.bodies]
        assert sizes == sorted(set(sizes), reverse=True)

    async def test_a_prompt_that_fits_is_not_shrunk_for_its_answer(self, server: SimulatedLLM, make: Make) -> None:
        message = (
            "'max_tokens' is too large: 1600. This model's maximum context length is 2048 tokens and your request has "
            "900 input tokens"
        )
        server.rule = lambda body: Canned(status=400, body={"error": message}) if body["max_tokens"] > 1100 else None
        reply = await make().run(samples.draft_section(), CALL)
        first, second = server.bodies
        assert second["messages"] == first["messages"]
        assert second["max_tokens"] < first["max_tokens"]
        assert reply.left_out == ()

    @needs_shared
    async def test_a_prompt_shortened_in_silence_is_noticed(self, server: SimulatedLLM, make: Make) -> None:
        case = json.loads(case_file("LLM-08", "quietly-shortened.json").read_text("utf-8"))
        server.rule = lambda _: Canned.of(case)
        evidence = samples.cards(tuple(q[:700] for q in QUOTES[:36]))
        reply = await make(context_tokens=32_768).run(samples.draft_section(evidence=evidence), CALL)
        (note,) = [n for n in reply.notes if n.kind == "prompt_shortened"]
        assert "2050" in note.text
        sent = sum(len(m["content"]) for m in server.bodies[0]["messages"])
        assert 25_000 < sent < 35_000
        assert str(sent // 4)[:2] in note.text

    async def test_ollama_is_told_the_context_size(self, server: SimulatedLLM, make: Make) -> None:
        await make("ollama", context_tokens=16_384).run(samples.draft_section(), CALL)
        assert server.bodies[0]["options"] == {"num_ctx": 16_384}
        endpoint = replace(make("ollama").endpoint, window=32_000)
        model = OpenAIModel(endpoint, ModelSettings())
        await model.run(samples.draft_section(), CALL)
        await model.aclose()
        assert server.bodies[1]["options"] == {"num_ctx": 32_000}
