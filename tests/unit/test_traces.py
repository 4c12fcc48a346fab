"""Traces on their way to a collector: a real OTLP receiver on loopback, and collectors that are away, slow or odd."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from marg_ray.actors import traces as module
from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.trace import trace_of
from marg_ray.actors.traces import SPACE, Traces
from marg_ray.store.memory import MemoryStore
from marg_ray.telemetry.otlp import address_of, exporter
from marg_ray.telemetry.spans import Trace
from tests.flow import LIMIT_S, World
from tests.loopback import Answer, Server, reply, serve

OK = reply(200, b"", Content_Type="application/x-protobuf")


def spans_in(server: Server) -> list[ProtoSpan]:
    found = []
    for seen in server.seen:
        request = ExportTraceServiceRequest.FromString(seen.body)
        found += [span for r in request.resource_spans for scope in r.scope_spans for span in scope.spans]
    return found


@asynccontextmanager
async def world_with(
    folder: Path, send: Callable[[Trace], bool], *, looks: bool = False, store: MemoryStore | None = None
) -> AsyncIterator[tuple[World, Traces]]:
    world = World(folder)
    if store is not None:
        world.store = store
    traces = Traces(world.store, send, looks=looks)
    world.coordinator = Coordinator(world.store, world._dispatch, traces=traces)
    try:
        yield world, traces
    finally:
        await traces.close()


def marked(store: MemoryStore) -> asyncio.Event:
    """Set when the store is told that the collector has a trace."""
    told, put = asyncio.Event(), store.cache_put

    async def cache_put(space: str, key: str, value: str, ttl_s: float) -> None:
        await put(space, key, value, ttl_s)
        if space == SPACE:
            told.set()

    store.cache_put = cache_put  # type: ignore[method-assign]
    return told


async def test_a_finished_session_arrives_at_a_collector_as_one_trace(tmp_path: Path) -> None:
    async with serve(OK) as server, world_with(tmp_path, exporter(server.url)) as (world, traces):
        await world.ask()
        await world.coordinator.send_traces(LIMIT_S)
        spans = spans_in(server)
        trace = trace_of("S", await world.store.read("S"), await world.store.calls("S"))
        assert {seen.target for seen in server.seen} == {"/v1/traces"}
        assert {span.trace_id.hex() for span in spans} == {trace.id}
        parents = {span.span_id.hex(): span.parent_span_id.hex() for span in spans}
        assert parents == {span.id: span.parent for span in trace.spans}
        times = {span.span_id.hex(): (span.start_time_unix_nano, span.end_time_unix_nano) for span in spans}
        assert all(abs(times[s.id][1] - times[s.id][0] - s.seconds * 1e9) < 2000 for s in trace.spans)
        chat = next(span for span in spans if span.name.startswith("chat"))
        attributes = {a.key: a.value for a in chat.attributes}
        assert attributes["gen_ai.operation.name"].string_value == "chat"
        assert attributes["gen_ai.usage.input_tokens"].int_value > 0
        assert chat.kind == ProtoSpan.SPAN_KIND_CLIENT
        sent = await world.store.cache_get(SPACE, "S")
        assert sent is not None
        assert sent.value == str(len(await world.store.read("S")))
        assert traces is not None


async def test_a_long_trace_goes_in_several_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marg_ray.telemetry.otlp.AT_ONCE", 7)
    async with serve(OK) as server, world_with(tmp_path, exporter(server.url)) as (world, _):
        await world.ask()
        await world.coordinator.send_traces(LIMIT_S)
        whole = trace_of("S", await world.store.read("S"), await world.store.calls("S"))
        assert len(server.seen) == -(-len(whole.spans) // 7) > 2
        assert {span.span_id.hex() for span in spans_in(server)} == {span.id for span in whole.spans}


async def stuck(*_: object) -> None:
    await asyncio.Event().wait()


AWAY: dict[str, Answer] = {
    "refuses": reply(500, "no"),
    "does not know": reply(404, "no"),
    "speaks nonsense": lambda seen, writer: _write(writer, b"\x00\x01\r\n\r\n"),
    "hangs up": lambda seen, writer: _write(writer, b""),
    "never answers": stuck,
}


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()
    writer.close()


@pytest.mark.parametrize("trouble", [*AWAY, "is not there"])
async def test_a_collector_that_fails_touches_no_run(trouble: str, tmp_path: Path) -> None:
    async with serve(AWAY.get(trouble, OK)) as server:
        url = server.url if trouble in AWAY else "http://127.0.0.1:9"
        async with world_with(tmp_path, exporter(url, timeout_s=0.2)) as (world, traces):
            state = await world.ask()
            assert state.report is not None
            assert state.report.status == "passed"
            await asyncio.wait_for(world.coordinator.send_traces(LIMIT_S), LIMIT_S)
            assert await world.store.cache_get(SPACE, "S") is None  # it is sent later
            assert traces._ended.empty()


async def test_a_run_does_not_wait_for_its_trace(tmp_path: Path) -> None:
    go_on = threading.Event()

    def slow(trace: Trace) -> bool:
        return go_on.wait(LIMIT_S)

    async with world_with(tmp_path, slow) as (world, traces):
        state = await world.ask()  # ends while the first trace is on its way
        assert state.report is not None
        assert not await traces.flush(0.01)
        go_on.set()
        await world.coordinator.send_traces(LIMIT_S)
        assert await world.store.cache_get(SPACE, "S") is not None


async def test_an_exporter_that_raises_is_a_failure_of_telemetry_alone(tmp_path: Path) -> None:
    def odd(trace: Trace) -> bool:
        raise ZeroDivisionError

    async with world_with(tmp_path, odd) as (world, _):
        assert (await world.ask()).report is not None
        await world.coordinator.send_traces(LIMIT_S)
        assert await world.store.cache_get(SPACE, "S") is None


async def test_what_a_dead_process_did_not_send_the_next_one_does_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.ask()  # no collector is set: as if the process had died before it was told
    sent: list[Trace] = []

    def send(trace: Trace) -> bool:
        sent.append(trace)
        return True

    told = marked(world.store)
    async with world_with(tmp_path / "next", send, looks=True, store=world.store) as (_, traces):
        traces.start()
        await asyncio.wait_for(told.wait(), LIMIT_S)
        await traces._catch_up()  # a second look finds nothing to send
    assert [trace.session for trace in sent] == ["S"]
    assert sent[0] == trace_of("S", await world.store.read("S"), await world.store.calls("S"))


async def test_while_the_collector_is_away_it_is_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.01)
    answers = iter([False, False])
    sent: list[str] = []

    def send(trace: Trace) -> bool:
        arrived = next(answers, True)
        sent.append(trace.session)
        return arrived

    async with world_with(tmp_path, send, looks=True) as (world, _):
        told = marked(world.store)
        await world.ask()
        await asyncio.wait_for(told.wait(), LIMIT_S)
    assert sent == ["S"] * 3


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("http://collector:4318", "http://collector:4318/v1/traces"),
        ("http://collector:4318/", "http://collector:4318/v1/traces"),
        ("https://api.test/otlp/v1/traces", "https://api.test/otlp/v1/traces"),
    ],
)
def test_an_endpoint_without_a_path_means_the_usual_one(endpoint: str, address: str) -> None:
    assert address_of(endpoint) == address
