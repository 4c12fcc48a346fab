"""`marg mcp` as a client starts it: a process on standard input and output, with a real Ray behind it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from tests.cluster.conftest import LIBRARY, ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(280)]

QUESTION = "What are the environmental effects of tidal barrages?"


async def test_the_tools_over_a_process_whose_output_is_the_protocol_alone(tmp_path: Path) -> None:
    wire = tmp_path / "wire.jsonl"
    command = [
        sys.executable,
        "-m",
        "marg_ray.cli",
        "mcp",
        "--docs",
        str(LIBRARY),
        "--offline",
        "--model",
        "extractive",
    ]
    server = StdioServerParameters(
        command="bash",
        args=["-c", f"{shlex.join(command)} | tee {shlex.quote(str(wire))}"],
        env={"MARG_HOME": str(tmp_path / "home"), "RAY_DEDUP_LOGS": "0"},
        cwd=ROOT,
    )
    told: list[str] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with Client(server, read_timeout_seconds=240) as client:
        assert "research_status" in {t.name for t in (await client.list_tools()).tools}
        found = await client.call_tool("rag_search", {"query": "fish in the estuary", "limit": 3})
        passages = found.structured_content["passages"]
        assert passages
        summary = await client.call_tool("doc_summary", {"document": passages[0]["document"], "sentences": 2})
        assert len(summary.structured_content["sentences"]) == 2
        web = await client.call_tool("web_search", {"query": "tides"})
        assert web.is_error
        arguments = {"question": QUESTION, "depth": "overview", "wait_s": 200}
        report = await client.call_tool("research", arguments, progress_callback=progress)
        assert report.structured_content["status"] == "passed"
        assert report.structured_content["report"].startswith("# ")
        assert any("planned" in line for line in told)
        again = await client.call_tool("research", arguments)
        assert again.structured_content["cached"]
    lines = wire.read_text().splitlines()
    assert len(lines) > 10
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)
