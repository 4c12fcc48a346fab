"""Every way in which a model's server fails, through HTTP: what the client makes of it, and what becomes of the run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import pickle
import re
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from benchmarks.simulated_llm import Body, Canned, SimulatedLLM, completion, task_name
from marg_ray.actors.coordinator import Coordinator
from marg_ray.errors import ModelUnavailable, ParseError
from marg_ray.models.client import Call, ModelClient, ModelTask
from marg_ray.models.endpoints import Endpoint
from marg_ray.models.openai_api import OpenAIModel
from marg_ray.models.select import Choice, build_model
from marg_ray.models.tape import Tape, TapedModel
from marg_ray.models.testing import CannedModel
from marg_ray.models.wire import _retry_after
from marg_ray.models.wrappers import aclose
from marg_ray.records import ReportStatus
from marg_ray.settings import ModelSettings, Settings
from marg_ray.state import ResearchState
from marg_ray.store.sql import SqlStore, sqlite_url
from tests import model_tasks as samples
from tests.flow import World, no_pause
from tests.loopback import Seen, Server, message, serve
from tests.plans import as_plan, as_plan_body
from tests.shared import case_file, case_lines, needs_shared

CALL = Call(session_id="r1", task_id="r1/x")
KEY = "sk-live-51HqXyZ0123456789abcdefgh"
HANGS_S = 0.2


async def ignore(_: str) -> None: ...


WATCHED = Call(session_id="r1", task_id="r1/x", on_delta=ignore)
Answer = Callable[[Seen, asyncio.StreamWriter], Any]


@asynccontextmanager
async def model_at(url: str, **settings: Any) -> AsyncIterator[OpenAIModel]:
    endpoint = Endpoint(provider="sim", model="m", base_url=url, key=KEY)
    model = OpenAIModel(endpoint, ModelSettings(**{"retries": 1, **settings}), sleep=no_pause)
    try:
        yield model
    finally:
        await model.aclose()


async def failure_of(answer: Answer, call: Call = CALL, **settings: Any) -> tuple[str, Server]:
    """What the error says when a server answers like this, to a section that is asked for."""
    async with serve(answer) as server, model_at(f"{server.url}/v1", **settings) as model:
        async with asyncio.timeout(20):
            with pytest.raises(ModelUnavailable) as caught:
                await model.run(samples.draft_section(), call)
    assert KEY not in str(caught.value)
    return str(caught.value), server


def event(**delta: Any) -> bytes:
    return f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n".encode()


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


class Hearing(SimulatedLLM):
    """Keeps the keys that it is given."""

    keys: list[str]

    async def _complete(self, request: Any) -> Any:
        self.keys = [*getattr(self, "keys", []), request.headers["Authorization"]]
        return await super()._complete(request)


class TestServersThatStop:
    async def test_a_server_that_accepts_and_says_nothing(self) -> None:
        async def hang(_: Seen, writer: asyncio.StreamWriter) -> None:
            await asyncio.Event().wait()

        for call in (CALL, WATCHED):
            said, server = await failure_of(hang, call, timeout_s=HANGS_S)
            assert f"no answer within {HANGS_S:g} s" in said
            assert len(server.seen) == 2

    async def test_a_stream_that_falls_silent(self) -> None:
        async def silent(_: Seen, writer: asyncio.StreamWriter) -> None:
            writer.write(STREAM + chunk(event(content="It ro")))
            await writer.drain()
            await asyncio.Event().wait()

        said, server = await failure_of(silent, WATCHED, silence_s=HANGS_S)
        assert "fell silent" in said
        assert len(server.seen) == 2

    async def test_a_body_that_falls_silent(self) -> None:
        async def silent(_: Seen, writer: asyncio.StreamWriter) -> None:
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"choi')
            await writer.drain()
            await asyncio.Event().wait()

        assert "fell silent" in (await failure_of(silent, silence_s=HANGS_S))[0]

    async def test_a_slow_first_token_is_waited_for(self) -> None:
        async def late(_: Seen, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(3 * 0.05)  # longer than the silence that is borne once it has begun
            end = f"data: {json.dumps({'choices': [{'delta': {}, 'finish_reason': 'stop'}]})}\n\n".encode()
            writer.write(STREAM + chunk(event(content="It rose [1].")) + chunk(end) + b"0\r\n\r\n")

        async with serve(late) as server, model_at(f"{server.url}/v1", silence_s=0.05) as model:
            reply = await model.run(samples.draft_section(), WATCHED)
        assert reply.output.markdown == "It rose [1]."

    @pytest.mark.parametrize("where", ["before", "headers", "body", "stream"])
    async def test_a_connection_that_is_reset(self, where: str) -> None:
        async def reset(_: Seen, writer: asyncio.StreamWriter) -> None:
            if where == "headers":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Ty")
            elif where == "body":
                writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"choi')
            elif where == "stream":
                writer.write(STREAM + chunk(event(content="It ro")))
            await writer.drain()
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # a reset, not an orderly end
            writer.transport.abort()
            raise ConnectionError

        said, server = await failure_of(reset, WATCHED if where == "stream" else CALL)
        assert "broke off" in said
        assert len(server.seen) >= 2

    async def test_a_host_without_a_name_and_one_without_a_certificate(self, tmp_path: Path) -> None:
        async with model_at("http://no-such-host.invalid/v1") as model:
            with pytest.raises(ModelUnavailable, match=r"no connection to no-such-host\.invalid"):
                await model.run(samples.make_plan(), CALL)
        cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
        try:
            made += ["-keyout", str(key), "-out", str(cert)]
            await asyncio.to_thread(lambda: subprocess.run(made, check=True, capture_output=True))
        except FileNotFoundError:
            pytest.skip("there is no openssl to make a certificate with")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)

        async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            raise AssertionError("a request came through")

        server = await asyncio.start_server(never, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        try:
            async with model_at(f"https://localhost:{port}/v1") as model:
                with pytest.raises(ModelUnavailable, match=rf"no connection to localhost:{port}.*certificate"):
                    await model.run(samples.make_plan(), CALL)
        finally:
            server.close()


class TestRepliesThatAreNone:
    @pytest.mark.parametrize(
        ("content_type", "body", "said"),
        [
            ("text/html", "<html>Log in</html>", "not JSON but a web page"),
            ("application/json", "", "not JSON"),
            ("application/json", '{"choices": [{"mess', "not JSON"),
            ("text/plain", "upstream connect error", "not JSON"),
            ("application/octet-stream", "\0\1\2", "not JSON"),
            ("application/json", "[1, 2]", "no chat completion"),
            ("application/json", '{"choices": []}', "no choices"),
            ("application/json", '{"choices": null, "error": {"message": "overloaded"}}', "overloaded"),
            ("application/json", '{"choices": [{"error": {"message": "upstream died"}}]}', "upstream died"),
            ("text/event-stream", "data: {}\n\n", "no choices"),
            ("text/event-stream", 'data: {"error": {"message": "gpu lost"}}\n\n', "gpu lost"),
            (
                "text/event-stream",
                'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "error"}]}\n\n',
                "gave up in the middle",
            ),
        ],
    )
    @pytest.mark.parametrize("call", [CALL, WATCHED], ids=["whole", "watched"])
    async def test_what_is_no_completion_is_asked_again_and_named(
        self, content_type: str, body: str, said: str, call: Call
    ) -> None:
        async def answer(_: Seen, writer: asyncio.StreamWriter) -> None:
            writer.write(message(200, body, Content_Type=content_type))

        told, server = await failure_of(answer, call)
        assert said in told
        assert len(server.seen) == 2

    async def test_a_stream_that_nobody_asked_for_is_read(self) -> None:
        async def answer(_: Seen, writer: asyncio.StreamWriter) -> None:
            end = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
            writer.write(message(200, event(content="It rose [1].") + end, Content_Type="text/event-stream"))

        async with serve(answer) as server, model_at(f"{server.url}/v1") as model:
            assert (await model.run(samples.draft_section(), CALL)).output.markdown == "It rose [1]."

    @pytest.mark.parametrize(
        ("said", "fields", "finish"),
        [
            ("the model refused: I can not help with that", {"refusal": "I can not help with that"}, "stop"),
            ("content filter", {"content": "It ro"}, "content_filter"),
            ("the answer is empty", {"reasoning_content": "So the plan could be: Draft only"}, "stop"),
            ("the answer is empty", {"content": " \n"}, "stop"),
            ("the answer is empty", {"content": "<think>hm</think>"}, "stop"),
        ],
    )
    async def test_a_reply_without_an_answer_is_asked_again_and_named(
        self, said: str, fields: Body, finish: str
    ) -> None:
        reply = Canned(body={"choices": [{"message": {"content": None, **fields}, "finish_reason": finish}]})
        async with SimulatedLLM(rule=lambda _: reply) as server, model_at(server.base_url) as model:
            tasks: list[ModelTask[Any]] = [samples.make_plan(), samples.draft_section()]
            for task in tasks:
                server.requests.clear()
                with pytest.raises(ParseError, match=said) as caught:
                    await model.run(task, CALL)
                assert len(server.requests) == 4
                assert "Draft only" not in str(caught.value)

    async def test_json_that_the_provider_itself_found_wrong_is_mended(self) -> None:
        plan = '{"title": "Tides", "sections": [{"title": "Power", "queries": ["tidal power"],}]}'
        error = {"message": "Failed to generate JSON", "code": "json_validate_failed", "failed_generation": plan}
        refused = Canned(status=400, body={"error": error})
        async with SimulatedLLM(replies=[refused]) as server, model_at(server.base_url) as model:
            assert (await model.run(samples.make_plan(), CALL)).output.title == "Tides"
            assert len(server.requests) == 1


class TestLimits:
    def test_when_to_ask_again_in_every_spelling(self) -> None:
        later = datetime.now(UTC) + timedelta(seconds=30)
        for headers, text, low, high in (
            ({"retry-after": "7"}, "", 7, 7),
            ({"retry-after": format_datetime(later, usegmt=True)}, "", 20, 30),
            ({"retry-after": format_datetime(later - timedelta(hours=1), usegmt=True)}, "", 0, 0),
            ({"retry-after-ms": "1500"}, "", 1.5, 1.5),
            ({}, "Rate limit reached. Please try again in 7.66s. Visit ...", 7.66, 7.66),
            ({}, "Please try again in 1m12.5s.", 72.5, 72.5),
            ({}, "Please try again in 20ms.", 0.02, 0.02),
            ({}, "please retry after 20 seconds", 20, 20),
            ({}, '{"details": [{"@type": "RetryInfo", "retryDelay": "37s"}]}', 37, 37),
        ):
            assert low <= (_retry_after(headers, text) or 0) <= high, (headers, text)
        assert _retry_after({"retry-after": "soon"}) is None
        assert _retry_after({}, "Please try again in a while") is None

    async def test_an_account_that_is_empty_is_not_asked_again(self) -> None:
        spent = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
        for canned in (
            Canned(status=429, body={"error": spent}),
            Canned(status=402, body={"error": {"message": "Insufficient Balance"}}),
        ):
            async with SimulatedLLM(replies=[canned]) as server, model_at(server.base_url) as model:
                with pytest.raises(ModelUnavailable, match=r"quota|Balance"):
                    await model.run(samples.make_plan(), CALL)
                assert len(server.requests) == 1

    async def test_an_error_in_a_list_is_read(self) -> None:
        told = [{"error": {"code": 400, "message": "API key not valid", "status": "INVALID_ARGUMENT"}}]
        refused = Canned(status=400, body=told)
        async with SimulatedLLM(rule=lambda _: refused) as server, model_at(server.base_url) as model:
            with pytest.raises(ModelUnavailable, match=r"unavailable: API key not valid \(HTTP 400\)"):
                await model.run(samples.make_plan(), CALL)


# ---- one after the other


async def test_several_fallbacks_are_asked_in_order() -> None:
    down = Canned(status=401, body={"error": "no"})
    async with (
        SimulatedLLM(rule=lambda _: down) as one,
        SimulatedLLM(rule=lambda _: down) as two,
        SimulatedLLM() as three,
    ):
        models = ModelSettings(fallback=f" {two.spec} , {three.spec}")
        settings = Settings(model=one.spec, models=models)
        model = build_model(Choice(one.spec, one.spec, ""), settings, extractive_factory=CannedModel, env={})
        reply = await model.run(samples.make_plan(), CALL)
        assert reply.output.sections
        (note,) = [n for n in reply.notes if n.kind == "model_fallback"]
        assert "answered for" in note.text
        assert [len(s.requests) for s in (one, two, three)] == [1, 1, 1]
        three.rule = lambda _: down
        with pytest.raises(ModelUnavailable) as caught:
            await model.run(samples.make_plan(), CALL)
        assert all(s.base_url.split("/")[2] in str(caught.value) for s in (one, two, three))
        await aclose(model)


async def test_the_last_resort_may_be_no_model_at_all() -> None:
    down = Canned(status=401, body={"error": "no"})
    async with SimulatedLLM(rule=lambda _: down) as one:
        settings = Settings(model=one.spec, models=ModelSettings(fallback="extractive"))
        model = build_model(Choice(one.spec, one.spec, ""), settings, extractive_factory=CannedModel, env={})
        assert (await model.run(samples.make_plan(), CALL)).model == "canned"
        await aclose(model)


# ---- whole runs


def world(folder: Path, model: ModelClient) -> World:
    return World(folder, model=model)


async def run_with(folder: Path, server: SimulatedLLM, **settings: Any) -> tuple[World, ResearchState]:
    """A run whose model answers through HTTP, to its end."""
    async with model_at(server.base_url, **settings) as model:
        made = world(folder, model)
        return made, await made.ask()


def plan_rule(
    content: str | None = None, canned: Canned | None = None, at: str = "make_plan"
) -> Callable[[Body], Canned | None]:
    """The server answers one kind of task like this, and all others well."""

    def rule(body: Body) -> Canned | None:
        if task_name(body) != at:
            return None
        return canned or completion(content or "")

    return rule


async def test_all_models_are_down_the_run_halts_with_exit_code_5_and_goes_on_later(tmp_path: Path) -> None:
    down = Canned(status=503, body={"error": "down"})
    async with SimulatedLLM(rule=lambda _: down) as server, model_at(server.base_url, retries=0) as model:
        made = world(tmp_path, model)
        state = await made.ask()
        assert state.halt is not None
        assert (state.halt.error, state.halt.exit_code, state.halt.stage) == ("ModelUnavailable", 5, "plan")
        assert state.plan is None
        assert state.report is None
        server.rule = None
        await made.coordinator.resume("S")
        async with asyncio.timeout(60):
            while await made.coordinator.ended("S") == "running":
                pass
        state = await made.coordinator.state("S")
        assert state.report is not None
        assert made.report(state).references


async def test_a_model_that_leaves_after_the_evidence_leaves_no_invented_text(tmp_path: Path) -> None:
    rule = plan_rule(canned=Canned(status=500, body={"error": "down"}), at="draft_section")
    async with SimulatedLLM(rule=rule) as server:
        _, state = await run_with(tmp_path, server, retries=0)
    assert state.halt is not None
    assert (state.halt.stage, state.halt.exit_code) == ("draft", 5)
    assert state.report is None


@pytest.mark.parametrize(
    ("status", "body"), [(503, "down, {key}"), (401, "Incorrect API key provided: {key}"), (400, "{key}")]
)
async def test_no_key_in_anything_that_a_failing_run_writes(
    tmp_path: Path, status: int, body: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Store, ledger, events, tape, snapshots, reports, logs, output, reprs and pickles, whatever the server echoes."""
    caplog.set_level(logging.DEBUG)
    told = {"error": {"message": body.format(key=KEY), "headers": f"Authorization: Bearer {KEY}"}}
    home = tmp_path / "home"
    home.mkdir()
    reprs: list[str] = []
    refused = Canned(status=status, body=told)
    async with Hearing(rule=lambda b: None if task_name(b) == "make_plan" else refused) as server:
        assert isinstance(server, Hearing)
        settings = Settings(home=home, model=server.spec, models=ModelSettings(api_key=SecretStr(KEY), retries=1))
        inner = build_model(Choice(server.spec, server.spec, ""), settings, extractive_factory=CannedModel, env={})
        model = TapedModel(Tape(home / "tape", replays=False), inner)
        assert isinstance(inner, OpenAIModel)
        inner.exchange._sleep = no_pause
        made = world(home, model)
        made.store = await SqlStore.open(sqlite_url(home / "marg.db"))  # type: ignore[assignment]
        made.ledger = type(made.ledger)(made.store)
        made.agents = made._agents()
        made.coordinator = Coordinator(made.store, made._dispatch)
        state = await made.ask()
        assert state.halt is not None
        with pytest.raises(ModelUnavailable) as caught:
            await model.run(samples.draft_section(), CALL)
        reprs += [
            repr(caught.value),
            str(pickle.loads(pickle.dumps(caught.value))),
            repr(settings),
            repr(inner.endpoint),
        ]
        reprs += [
            settings.model_dump_json(),
            repr(state),
            repr(await made.ledger.calls("S")),
            repr(vars(inner.endpoint.redact)),
        ]
        await made.coordinator.close()
        await aclose(model)
        assert f"Bearer {KEY}" in server.keys, "the key does go to the server"
    files = [p for p in home.rglob("*") if p.is_file()]
    assert any(p.parent.parent.name == "model" for p in files), "the tape has the failure"
    assert any(p.name.startswith("marg.db") for p in files)
    assert [p for p in files if KEY.encode() in p.read_bytes()] == []
    out = capfd.readouterr()
    assert KEY not in "".join((*reprs, caplog.text, out.out, out.err))


# ---- the cases again, from the socket to the end of a run


@needs_shared
@pytest.mark.parametrize("number", range(6))
async def test_a_rejected_draft_in_a_plan_reply_reaches_nothing(tmp_path: Path, number: int) -> None:
    case = case_lines("LLM-01", "replies.jsonl")[number]
    canned = Canned.of({"body": as_plan_body(case["body"])})
    async with SimulatedLLM(rule=plan_rule(canned=canned)) as server:
        made, state = await run_with(tmp_path, server)
        assert sum(r.task == "make_plan" for r in server.requests) == 1
    assert state.plan is not None
    assert state.plan.title == "Tidal power outlook"
    assert len(state.plan.sections) == 3
    assert state.plan.sections[0].queries[0] == "tidal power stations in operation"
    written = made.report(state).model_dump_json() + repr([e.message for e in await made.store.read("S")])
    assert "Wave power" not in written
    assert "Draft only" not in written


@needs_shared
async def test_almost_json_gives_the_evident_plan_or_is_asked_again(tmp_path: Path) -> None:
    for n, case in enumerate(case_lines("LLM-03", "replies.jsonl")):
        bad = completion(as_plan(case["content"]))
        async with SimulatedLLM(replies=[bad]) as server:
            made, state = await run_with(tmp_path / str(n), server)
            plans = sum(r.task == "make_plan" for r in server.requests)
        assert state.plan is not None, case["name"]
        assert state.plan.sections, case["name"]
        assert plans <= 2, case["name"]
        titles = [s.title for s in state.plan.sections]
        assert "size" not in titles, case["name"]
        log = json.dumps([e.message.model_dump(mode="json") for e in await made.store.read("S")], allow_nan=False)
        assert "\\u0007" not in log, case["name"]
        if case["name"] == "python-dict":
            assert titles == ["Owner's view"]
        if case["name"] == "comment-in-json" and plans == 1:
            assert "https://example.org/a//b" in log


@needs_shared
async def test_a_cut_plan_is_not_the_plan_and_a_cut_section_is_completed_or_marked(tmp_path: Path) -> None:
    cases = {c["name"]: c for c in case_lines("LLM-04", "replies.jsonl")}
    for name in ("plan-cut-in-string", "plan-cut-but-valid", "plan-cut-but-router-says-stop"):
        cut = Canned.of({"body": as_plan_body(cases[name]["body"])})
        async with SimulatedLLM(replies=[cut]) as server:
            _, state = await run_with(tmp_path / name, server)
            assert sum(r.task == "make_plan" for r in server.requests) == 2
        assert state.plan is not None
        assert "Fo" not in [s.title for s in state.plan.sections]
        assert state.plan.title != "Six questions on tides"
    cut = Canned.of(cases["section-cut-mid-sentence"])
    async with SimulatedLLM(rule=plan_rule(canned=cut, at="draft_section")) as server:
        made, state = await run_with(tmp_path / "section", server)
    report = made.report(state)
    assert report.status is not ReportStatus.PASSED
    assert {n.kind for n in report.notes} & {"output_cut", "incomplete"}
    closing = (".", "!", "?", "]", ":", "|")
    assert [s.text for section in report.sections for s in section.sentences if not s.text.endswith(closing)] == []


@needs_shared
@pytest.mark.parametrize("at", ["make_plan", "draft_section"])
async def test_a_reply_with_nothing_usable_never_ends_in_a_report_made_of_it(
    tmp_path: Path, at: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for n, case in enumerate(case_lines("LLM-06", "http-replies.jsonl")):
        async with SimulatedLLM(rule=plan_rule(canned=Canned.of(case), at=at)) as server:
            made, state = await run_with(tmp_path / str(n), server)
            asked = sum(r.task == at for r in server.requests)
        sections = 1 if at == "make_plan" else max(1, len(state.sections))
        assert asked <= 4 * sections * 3, case["name"]
        if case["name"] == "unauthorised":
            assert asked <= sections
        log = repr([e.message for e in await made.store.read("S")])
        assert "three steps about tides" not in log
        for crash in ("TypeError", "AttributeError", "KeyError", "IndexError"):
            assert crash not in log + caplog.text, case["name"]
        assert state.halt is not None or state.report is not None
        if state.report is not None:
            report = made.report(state)
            assert report.notes, case["name"]
            if at == "draft_section":
                assert report.status is not ReportStatus.PASSED, case["name"]
        else:
            assert state.halt is not None
            assert state.halt.stage == ("plan" if at == "make_plan" else "draft")


@needs_shared
async def test_an_overflow_in_a_run_leads_to_a_smaller_prompt(tmp_path: Path) -> None:
    refusal = Canned.of(json.loads(case_file("LLM-08", "overflow.json").read_text("utf-8")))

    def rule(body: Body) -> Canned | None:
        return refusal if len(json.dumps(body)) > 6_000 and task_name(body) == "draft_section" else None

    async with SimulatedLLM(rule=rule) as server:
        made, state = await run_with(tmp_path, server)
        drafts = [len(json.dumps(b)) for b in server.bodies if task_name(b) == "draft_section"]
    assert state.report is not None
    assert len(drafts) == len(set(drafts)) or all(size <= 6_000 for size in drafts)
    with contextlib.suppress(IndexError):
        assert made.report(state).references


def test_every_row_of_the_matrix_names_a_test() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "model-failures.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| --- ", "| what "))]
    assert len(rows) > 30
    assert [row for row in rows if not re.search(r"\| `test_\w+` \|$", row)] == []
