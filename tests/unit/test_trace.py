"""A session as spans: from its log and its calls alone, with right parents, causes, times and sums."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from marg_ray.actors.calls import _named
from marg_ray.actors.faults import Faults
from marg_ray.actors.trace import trace_of
from marg_ray.errors import BudgetExceeded, ParseError, SearchUnavailable
from marg_ray.messages import PlanDecided, SessionPaused, SessionResumed
from marg_ray.models.tasks import DraftSection, ExtractClaims
from marg_ray.models.testing import CannedModel
from marg_ray.models.tiers import TieredModel
from marg_ray.records import Request, Role, Usage
from marg_ray.seams import CallKey, paid
from marg_ray.state import role_of
from marg_ray.store.protocol import CallRow, LogEntry, Store
from marg_ray.telemetry import spans as names
from marg_ray.telemetry.spans import Span, Trace
from tests.flow import LIMIT_S, TIDES, World
from tests.lives import Life, Server
from tests.unit.test_metrics import invented

QUESTION = "How much power do ZEBRAFISH tidal stations produce?"
MARGIN = timedelta(milliseconds=1)


async def traced(store: Store, session: str = "S") -> Trace:
    return trace_of(session, await store.read(session), await store.calls(session))


async def trace_of_a_run(world: World, **fields: object) -> Trace:
    await world.ask(QUESTION, **fields)
    return await traced(world.store)


def of_kind(trace: Trace, *kinds: str) -> list[Span]:
    return [span for span in trace.spans if span.kind in kinds]


# ---- what is in it


async def test_every_answer_is_a_span_of_the_session_with_its_calls_below(tmp_path: Path) -> None:
    world = World(tmp_path)
    trace = await trace_of_a_run(world)
    entries, calls = await world.store.read("S"), await world.store.calls("S")
    root, tasks = trace.root, of_kind(trace, "task")
    assert (root.parent, root.start, root.end) == ("", entries[0].at, entries[-1].at)
    assert [t.end for t in tasks] != []
    assert sorted(t.end for t in tasks) == [e.at for e in entries if role_of(e.message) is not None]
    assert {t.parent for t in tasks} == {root.id}
    assert len(of_kind(trace, "model", "search", "fetch")) == len(calls)
    by_id = {span.id: span for span in trace.spans}
    assert len(by_id) == len(trace.spans)
    for call in of_kind(trace, "model", "search", "fetch"):
        task = by_id[call.parent]
        assert task.kind == "task"
        assert task.start <= call.start <= call.end <= task.end
    for span in trace.spans:
        assert root.start <= span.start <= span.end <= root.end
    assert Counter(str(s.attributes[names.AGENT]) for s in tasks) == Counter(
        str(role_of(e.message)) for e in entries if role_of(e.message) is not None
    )


async def test_tokens_and_cost_add_up_to_what_the_ledger_has(tmp_path: Path) -> None:
    world = World(tmp_path)
    trace = await trace_of_a_run(world)
    spent = sum((row.usage for row in await world.store.calls("S")), Usage())
    for spans in ([trace.root], of_kind(trace, "task"), of_kind(trace, "model")):
        assert sum(int(s.attributes.get(names.INPUT_TOKENS, 0)) for s in spans) == spent.tokens_in > 0  # type: ignore[arg-type]
        assert sum(int(s.attributes.get(names.OUTPUT_TOKENS, 0)) for s in spans) == spent.tokens_out > 0  # type: ignore[arg-type]


async def test_a_span_names_what_made_it_due_and_how_long_it_waited(tmp_path: Path) -> None:
    trace = await trace_of_a_run(World(tmp_path))
    by_id = {span.id: span for span in trace.spans}
    kinds = {
        (t.attributes["marg.task.kind"], by_id[t.after].attributes.get("marg.task.kind", ""))
        for t in of_kind(trace, "task")
    }
    assert {("search", ""), ("plan", "search"), ("search", "plan"), ("read", "search"), ("ground", "draft")} <= kinds
    for task in of_kind(trace, "task"):
        cause = by_id[task.after]
        due = cause.start if cause.kind == "session" else cause.end
        assert task.start - timedelta(seconds=task.waited) - due < MARGIN


async def test_the_critical_path_explains_the_whole_time(tmp_path: Path) -> None:
    trace = await trace_of_a_run(World(tmp_path))
    chain = [s for s in of_kind(trace, "task") if s.critical]
    assert [s.attributes["marg.task.kind"] for s in (chain[0], chain[1], chain[-1])] == ["search", "plan", "format"]
    for earlier, later in pairwise(chain):
        assert later.after == earlier.id
    explained = sum(span.seconds + span.waited for span in chain)
    assert explained == pytest.approx(trace.root.seconds, abs=0.05)


async def test_the_same_trace_has_the_same_ids_whenever_it_is_made(tmp_path: Path) -> None:
    world = World(tmp_path)
    trace = await trace_of_a_run(world)
    assert await traced(world.store) == trace
    assert (len(trace.id), {len(span.id) for span in trace.spans}) == (32, {16})
    part = (await world.store.read("S"))[:6]
    early = trace_of("S", part, await world.store.calls("S"))
    both = {s.id for s in early.spans if "marg.unfinished" not in s.attributes}
    assert both <= {s.id for s in trace.spans}
    assert early.status == "running"
    assert early.root.status == "unset"


# ---- names


def test_the_names_are_those_of_the_conventions() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
    from opentelemetry.semconv.attributes import error_attributes, server_attributes

    ours = {
        name: value for name, value in vars(names).items() if isinstance(value, str) and value.startswith("gen_ai.")
    }
    assert len(ours) >= 11
    theirs = {value for name, value in vars(gen_ai).items() if name.startswith("GEN_AI_")}
    assert set(ours.values()) <= theirs
    assert names.ERROR == error_attributes.ERROR_TYPE
    assert (names.ADDRESS, names.PORT) == (server_attributes.SERVER_ADDRESS, server_attributes.SERVER_PORT)


async def test_operations_and_span_names_are_those_of_the_conventions(tmp_path: Path) -> None:
    from opentelemetry.semconv._incubating.attributes.gen_ai_attributes import GenAiOperationNameValues

    known = {operation.value for operation in GenAiOperationNameValues}
    trace = await trace_of_a_run(World(tmp_path, model=CannedModel(name="groq:llama-3.3-70b")))
    for span in trace.spans:
        if span.kind == "wait":
            continue
        operation = span.attributes[names.OPERATION]
        assert operation in known
        named = {"chat": names.REQUEST_MODEL, "execute_tool": names.TOOL_NAME, "invoke_agent": names.AGENT}
        wanted = span.attributes[named.get(str(operation), names.WORKFLOW)]
        assert span.name == f"{operation} {wanted}"
        assert span.attributes[names.CONVERSATION] == "S"
    (model,) = {(s.attributes[names.PROVIDER], s.attributes[names.RESPONSE_MODEL]) for s in of_kind(trace, "model")}
    assert model == ("groq", "llama-3.3-70b")


@pytest.mark.parametrize(
    ("name", "model", "provider", "server"),
    [
        ("openai:gpt-5", "gpt-5", "openai", None),
        ("gemini:gemini-2.5-pro", "gemini-2.5-pro", "gcp.gemini", None),
        ("ollama:llama3:8b", "llama3:8b", "ollama", None),
        ("127.0.0.1:8000:meta/llama:fp8", "meta/llama:fp8", "openai", ("127.0.0.1", 8000)),
        ("models.test:qwen", "qwen", "openai", ("models.test", None)),
        ("[::1]:8000:qwen", "qwen", "openai", ("[::1]", 8000)),
        ("extractive", "extractive", "marg-ray", None),
    ],
)
def test_a_models_name_says_whose_it_is(name: str, model: str, provider: str, server: tuple[str, int] | None) -> None:
    short, found = _named(name)
    assert (short, found[names.REQUEST_MODEL], found[names.PROVIDER]) == (model, model, provider)
    assert (found.get(names.ADDRESS), found.get(names.PORT)) == (server or (None, None))


# ---- runs that do not go smoothly


async def test_tries_of_two_tiers_are_spans_one_after_the_other(tmp_path: Path) -> None:
    model = TieredModel(CannedModel({ExtractClaims: invented}, name="f"), CannedModel(name="s"))
    trace = await trace_of_a_run(World(tmp_path, model=model))
    raised = [s for s in of_kind(trace, "model") if s.attributes.get("marg.raised")]
    assert raised
    for strong in raised:
        fast = next(
            s for s in of_kind(trace, "model") if s.parent == strong.parent and s.attributes["marg.tier"] == "fast"
        )
        assert (fast.status, fast.error, strong.status) == ("error", "useless", "ok")
        assert fast.end <= strong.start


async def test_failed_tasks_and_calls_are_errors_of_their_class(tmp_path: Path) -> None:
    def fails(*_: object) -> None:
        error = ParseError("draft_section", "no Markdown", 4)
        error.spent = Usage(calls=1, tokens_in=70)
        raise error

    trace = await trace_of_a_run(
        World(tmp_path, model=CannedModel({DraftSection: fails}), broken=frozenset({"analyse"}))
    )
    failed = [s for s in of_kind(trace, "task") if s.status == "error"]
    assert {(s.attributes["marg.task.kind"], s.attributes[names.ERROR]) for s in failed} >= {
        ("draft", "ParseError"),
        ("analyse", "ZeroDivisionError"),
    }
    calls = [s for s in of_kind(trace, "model") if s.status == "error"]
    assert calls
    assert {int(s.attributes[names.INPUT_TOKENS]) for s in calls} == {70}  # type: ignore[arg-type]


async def test_waiting_for_the_owner_and_pauses_are_spans_of_their_own(tmp_path: Path) -> None:
    world = World(tmp_path)
    request = Request(question=QUESTION, depth="overview", approve_plan=True)  # type: ignore[arg-type]
    await world.coordinator.submit("S", request)
    async with asyncio.timeout(LIMIT_S):
        while await world.coordinator.ended("S") != "waiting":
            pass
    await world.coordinator.pause("S")
    await world.coordinator.resume("S")
    from marg_ray.actors.owner import Decision

    await world.coordinator.decide("S", Decision(what="approve"))
    async with asyncio.timeout(LIMIT_S):
        while await world.coordinator.ended("S") == "running":
            pass
    trace, log = await traced(world.store), await world.store.read("S")
    at = {type(e.message): e.at for e in log}
    waits = [(s.attributes["marg.wait"], s.start, s.end) for s in of_kind(trace, "wait")]
    assert ("paused", at[SessionPaused], at[SessionResumed]) in waits
    assert waits[-1] == ("decision on the plan", at[SessionResumed], at[PlanDecided])
    assert [e.name for e in trace.root.events] == [
        "session_started",
        "session_paused",
        "session_resumed",
        "plan_decided",
    ]
    chain = [s for s in of_kind(trace, "task") if s.critical]
    assert [s.attributes["marg.task.kind"] for s in chain[:2]] == ["search", "plan"]  # it goes on before the decision


async def test_a_task_that_never_answered_keeps_the_calls_that_were_paid(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.ask(QUESTION)
    log = await world.store.read("S")
    cut = next(n for n, e in enumerate(log) if e.message.kind == "draft_ready")  # the process died before it was said
    trace = trace_of("S", log[:cut], await world.store.calls("S"))
    lost = [s for s in of_kind(trace, "task") if s.attributes.get("marg.unfinished")]
    assert log[cut].message.task_id.removeprefix("S/") in {s.attributes["marg.task.id"] for s in lost}
    assert {s.status for s in lost} == {"unset"}
    models = len([row for row in await world.store.calls("S") if row.call.kind == "model"])
    assert len(of_kind(trace, "model")) == models


async def test_a_call_that_died_with_its_process_says_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.ask(QUESTION)
    log = await world.store.read("S")
    task = next(e.message.task_id for e in log if e.message.kind == "draft_ready")
    call = CallKey.of("S", "model", Role.SYNTHESIZER, "another", task_id=task)
    row = CallRow(call=call, status="begun", lost=Usage(cost=0.5), begun=3, begun_at=log[0].at)
    trace = trace_of("S", log, [*await world.store.calls("S"), row])
    (span,) = [s for s in of_kind(trace, "model") if s.attributes.get("marg.begun")]
    assert (span.status, span.attributes["marg.lost_usd"], span.attributes["marg.unfinished"]) == ("unset", 0.5, True)


async def test_a_log_of_another_version_still_gives_a_trace(tmp_path: Path) -> None:
    """Task ids that this version would not hand out: causes come from the times in the log."""
    world = World(tmp_path)
    await world.ask(QUESTION)

    def renamed(entry: LogEntry) -> LogEntry:
        if role_of(entry.message) is None:
            return entry
        message = entry.message.model_copy(update={"task_id": f"{entry.message.task_id}/old"})
        return entry.model_copy(update={"message": message})

    log = [renamed(entry) for entry in await world.store.read("S")]
    trace = trace_of("S", log, ())
    tasks = of_kind(trace, "task")
    assert len(tasks) == sum(role_of(e.message) is not None for e in log)
    assert all(t.after for t in tasks)
    assert any(t.critical for t in tasks)


@pytest.mark.parametrize("error", [SearchUnavailable("away"), BudgetExceeded("tokens", 1, 2)])
async def test_a_call_that_was_given_back_is_no_span(error: Exception, tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.ask(QUESTION)
    before = await traced(world.store)
    task = (await world.store.read("S"))[1].message.task_id

    async def make() -> tuple[str, Usage]:
        raise error

    with pytest.raises(type(error)):
        await paid(world.ledger, CallKey.of("S", "search", Role.RESEARCHER, "q", task_id=task), make, Usage(cost=1.0))
    assert await traced(world.store) == before


def test_a_session_without_entries_has_no_trace() -> None:
    with pytest.raises(ValueError, match="no trace"):
        trace_of("S", [], [])


# ---- to a collector


def exported_texts(request: Any) -> str:
    from google.protobuf.json_format import MessageToJson

    return str(MessageToJson(request))


async def test_no_text_of_the_owners_is_exported(tmp_path: Path) -> None:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    from marg_ray.telemetry.otlp import readable

    trace = await trace_of_a_run(World(tmp_path))
    assert QUESTION in trace.root.about
    assert {s.about for s in of_kind(trace, "fetch")} == set(TIDES)
    text = exported_texts(encode_spans(readable(trace)))
    assert [word for word in ("ZEBRAFISH", "/rance", "La Rance", "megawatts") if word in text] == []
    assert "tides.test" in text  # the host of a page is its address in the conventions


async def test_the_json_of_a_trace_comes_back_as_it_was(tmp_path: Path) -> None:
    trace = await trace_of_a_run(World(tmp_path))
    assert Trace.model_validate(json.loads(trace.model_dump_json())) == trace


async def test_the_ledger_knows_how_long_every_call_took(tmp_path: Path) -> None:
    world = World(tmp_path)
    began = datetime.now(UTC)
    await world.ask(QUESTION)
    rows: Sequence[CallRow] = await world.store.calls("S")
    assert {row.call.kind for row in rows} == {"model", "search", "fetch"}
    assert all(row.usage.seconds > 0 for row in rows if row.call.kind == "fetch")
    assert all(row.begun_at is not None and began - MARGIN <= row.begun_at <= datetime.now(UTC) for row in rows)
    state = await world.coordinator.state("S")
    assert sum(usage.seconds for usage in state.usage.values()) == 0  # what answers say was spent is as it was


@pytest.mark.parametrize("visit", [3, 12, 21, 33])
async def test_a_run_that_died_and_went_on_is_one_trace(visit: int, tmp_path: Path) -> None:
    """An owner who steers, edits and extends; a process that dies in the middle; another that goes on."""
    first = Life(tmp_path, model=Server(), faults=Faults(script=[("store/append.crash_after", visit)]))
    assert await first.live()
    early = await traced(first.disk)
    assert early.root.status == "unset"
    second = Life(tmp_path, model=first.server, disk=first.disk)
    assert not await second.live()
    trace, log = await traced(first.disk), await first.disk.read("S")
    assert trace.root.attributes["marg.takeovers"] == 1
    tasks, by_id = of_kind(trace, "task"), {span.id: span for span in trace.spans}
    assert len(by_id) == len(trace.spans)
    answered = [t for t in tasks if "marg.unfinished" not in t.attributes]
    assert sorted(t.end for t in answered) == [e.at for e in log if role_of(e.message) is not None]
    assert all(t.after in by_id for t in answered)
    assert {s.parent for s in of_kind(trace, "model", "search", "fetch")} <= {t.id for t in tasks}
    settled = [row for row in await first.disk.calls("S") if row.status == "settled"]
    assert len(of_kind(trace, "model", "search", "fetch")) >= len(settled)
    assert {s.attributes["marg.wait"] for s in of_kind(trace, "wait")} == {
        "decision on the plan",
        "decision on the review",
    }
    names_of = [e.name for e in trace.root.events]
    assert {"plan_decided", "steered", "review_decided"} <= set(names_of)
    texts = [str(v) for e in trace.root.events for v in e.attributes.values()]
    assert not any("silt" in text or "Name the years" in text for text in texts)
    chain = [t for t in answered if t.critical]
    assert chain[0].attributes["marg.task.kind"] == "search"
    assert chain[-1].attributes["marg.task.kind"] == "format"
