"""Lines, figures and the trace of a real runtime: every process speaks, and the last trace is sent at the end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from marg_ray.client import Marg
from marg_ray.settings import load
from marg_ray.telemetry.spans import trace_id
from tests.cluster.conftest import LIBRARY
from tests.loopback import reply, serve

pytestmark = [pytest.mark.cluster]


async def test_every_process_says_what_it_does(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    telemetry = {"log_level": "info", "log_format": "json", "log_file": str(file)}
    async with serve(reply(200, b"", Content_Type="application/x-protobuf")) as collector:
        settings = load(
            home=tmp_path / "home", model="extractive", telemetry={**telemetry, "otlp_endpoint": collector.url}
        )
        marg = Marg(settings, offline=True)
        await marg.start()
        try:
            report = await marg.research(
                "What are the environmental effects of tidal barrages?", docs=[LIBRARY], depth="overview"
            )
            figures = await marg.runtime.figures()
        finally:
            await asyncio.to_thread(marg.close)  # while the collector answers
        bodies = [ExportTraceServiceRequest.FromString(seen.body) for seen in collector.seen]
    said = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    mine = [line for line in said if line.get("session") == report.session_id]
    events = {(line["actor"].partition(":")[0], line["event"]) for line in mine}
    assert {
        ("coordinator", "ENTER"),
        ("coordinator", "EXIT"),
        ("worker", "TOOL_CALL"),
        ("worker", "TOOL_RESULT"),
    } <= events
    assert {("agent", "TOOL_CALL"), ("agent", "TOOL_RESULT")} <= events

    assert {"coordinator:0", "worker:0", "worker:1", "ledger", "embedder", "agent:planner", "agent:critic"} <= set(
        figures
    )
    taken = {actor: found for actor, found in figures.items() if found is not None}
    done = {place: n for place, n in taken["coordinator:0"].values.items() if place[0] == "marg_tasks_total"}
    assert done["marg_tasks_total", ("planner", "plan", "done")] == 1
    assert taken["coordinator:0"].values["marg_places", ("running",)] >= 0
    granted = ("marg_ledger_calls_total", ("model", "granted"))
    assert taken["ledger"].values[granted] > 3
    models = sum(
        v for found in taken.values() for (name, _), v in found.values.items() if name == "marg_model_calls_total"
    )
    assert models == taken["ledger"].values[granted]

    spans = [s for body in bodies for r in body.resource_spans for scope in r.scope_spans for s in scope.spans]
    assert {span.trace_id.hex() for span in spans} == {trace_id(report.session_id)}
    assert {span.name for span in spans} >= {"invoke_workflow marg-research", "invoke_agent critic", "chat extractive"}
