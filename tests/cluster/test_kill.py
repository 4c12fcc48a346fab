"""The command is killed in mid-run, from outside; `marg resume` finishes it and pays for nothing twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulated_llm import SimulatedLLM, Speed
from tests.cluster.conftest import LIBRARY, ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(420)]
QUESTION = "How does tidal power compare with offshore wind in cost and output?"


async def command(env: dict[str, str], *args: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "marg_ray.cli",
        *args,
        env=env,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def finished(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def calls_of(env: dict[str, str]) -> list[dict[str, Any]]:
    code, out, err = await finished(await command(env, "show", "last", "--calls"))
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


async def test_a_killed_command_is_resumed_and_no_settled_call_is_paid_again(tmp_path: Path) -> None:
    async with SimulatedLLM(speed=Speed(ttft_s=0.3, tokens_per_s=300)) as server:
        env = {**os.environ, "MARG_HOME": str(tmp_path / "home"), "MARG_MODEL": server.spec, "PYTHONPATH": str(ROOT)}
        first = await command(env, "research", QUESTION, "--docs", str(LIBRARY), "--depth", "overview")
        async with asyncio.timeout(300):
            while sum(r.status == 200 for r in server.requests) < 6:  # some are settled, others under way
                await server.ended.wait()
                server.ended.clear()
        first.send_signal(signal.SIGKILL)
        await finished(first)
        before = [r.caller for r in server.requests if r.status == 200]

        code, out, err = await finished(await command(env, "runs", "--json"))
        assert code == 0, err
        (row,) = map(json.loads, out.splitlines())
        assert row["status"] in ("interrupted", "running")

        settled = {c["call"]["task_id"] for c in await calls_of(env) if c["status"] == "settled"}
        assert settled

        pressed = [
            await command(env, "resume", "last", "-o", str(tmp_path / name)) for name in ("report.json", "2.json")
        ]
        told = await asyncio.gather(
            *(finished(p) for p in pressed)
        )  # two at once: one works, the other follows or is told
        fine = [code for code, _, _ in told if code in (0, 3)]
        assert fine, told
        for (code, _, err), name in zip(told, ("report.json", "2.json"), strict=True):
            if code in (0, 3):
                assert json.loads((tmp_path / name).read_text("utf-8"))["sections"]
            else:
                assert "another" in err or "epoch" in err, err

        model = [c for c in await calls_of(env) if c["call"]["kind"] == "model"]
        assert all(c["status"] == "settled" for c in model)
        # what was answered and settled before the kill was asked once; only what was under way is asked again
        asked = Counter(r.caller for r in server.requests)
        twice = {caller for caller, times in asked.items() if times > 1}
        assert not twice & settled
        assert len(before) - len(twice & set(before)) >= 4

        code, out, err = await finished(await command(env, "show", "last", "--log"))
        tasks = [line.split()[0] for line in out.splitlines()]
        assert tasks == [str(n) for n in range(1, len(tasks) + 1)]
