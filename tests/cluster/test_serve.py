"""`marg serve` as a process: asked over HTTP, ended with Ctrl-C, started again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cluster.conftest import LIBRARY, ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

QUESTION = "What are the environmental effects of tidal barrages?"
STARTS_WITHIN_S, ENDS_WITHIN_S = 240, 120


@dataclass
class Server:
    process: asyncio.subprocess.Process
    url: str
    told: list[str]  # on standard error
    reading: asyncio.Task[None]

    async def end(self, sign: int = signal.SIGINT) -> int:
        """Interrupt it; its exit code. Nothing that it started is left then."""
        family = [os.pidfd_open(pid) for pid in descendants(self.process.pid)]
        assert len(family) > 5, "Ray and its actors were not seen"
        self.process.send_signal(sign)
        async with asyncio.timeout(ENDS_WITHIN_S):
            code = await self.process.wait()
            await self.reading
            await asyncio.to_thread(gone, family)
        return code


def gone(family: Sequence[int]) -> None:
    """Return when the processes behind these descriptors have ended."""
    for process in family:
        ended, _, _ = select.select([process], [], [], ENDS_WITHIN_S)
        assert ended, "a process was left behind"
        os.close(process)


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that they have."""
    family, parents = set[int](), {pid}
    while parents:
        parents = {child for parent in parents for child in children(parent)}
        family |= parents
    return family


def children(pid: int) -> list[int]:
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, listed.read_text().split())
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def command(home: Path, *words: str) -> asyncio.subprocess.Process:
    env = {**os.environ, "MARG_HOME": str(home), "PYTHONPATH": str(ROOT), "MARG_MODEL": "extractive"}
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "marg_ray.cli", "serve", *words), env=env, cwd=ROOT, stdout=pipe, stderr=pipe
    )


@contextlib.asynccontextmanager
async def serving(home: Path, port: int, *words: str) -> AsyncIterator[Server]:
    process = await command(home, "--port", str(port), "--docs", str(LIBRARY), "--offline", "--no-open", *words)
    told: list[str] = []
    reading = asyncio.create_task(_listen(process, told))
    try:
        assert process.stdout is not None
        async with asyncio.timeout(STARTS_WITHIN_S):
            line = (await process.stdout.readline()).decode()
        url = f"http://127.0.0.1:{port}"
        assert url in line, f"{line}\n{''.join(told)}"
        yield Server(process, url, told, reading)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _listen(process: asyncio.subprocess.Process, told: list[str]) -> None:
    assert process.stderr is not None
    while line := await process.stderr.readline():
        told.append(line.decode())


async def until_over(client: httpx.AsyncClient, session_id: str) -> dict[str, Any]:
    """Follow a session by its events to its end; how it stands then."""
    async with client.stream("GET", f"/v1/research/{session_id}/events", timeout=120) as events:
        async for _ in events.aiter_lines():
            pass
    view: dict[str, Any] = (await client.get(f"/v1/research/{session_id}")).json()
    return view


async def until_planned(client: httpx.AsyncClient, session_id: str) -> None:
    async with client.stream("GET", f"/v1/research/{session_id}/events?board=0", timeout=120) as events:
        async for line in events.aiter_lines():
            if line == "event: plan_ready":
                return
    raise AssertionError("the session ended without a plan")


async def log_ids(client: httpx.AsyncClient, session_id: str) -> Sequence[int]:
    found = []
    async with client.stream("GET", f"/v1/research/{session_id}/events?board=0", timeout=120) as events:
        async for line in events.aiter_lines():
            if line.startswith("id:"):
                found.append(int(line.removeprefix("id:")))
    return found


async def test_a_restart_of_the_server_loses_nothing(tmp_path: Path) -> None:
    """One session is over when the server is interrupted, another under way."""
    port, key = free_port(), {"Idempotency-Key": "k-1"}
    body, longer = {"question": QUESTION, "depth": "overview"}, {"question": QUESTION, "depth": "standard"}
    async with serving(tmp_path, port) as server, httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        taken = await client.post("/v1/research", json=body, headers=key)
        assert taken.status_code == 202, taken.text
        over = taken.json()["id"]
        view = await until_over(client, over)
        assert view["status"] in ("passed", "quality_warning"), view
        for name, kind in {"md": "text/markdown", "json": "application/json", "html": "text/html"}.items():
            report = await client.get(f"/v1/research/{over}/report.{name}")
            assert report.headers["content-type"].startswith(kind)
        ids = await log_ids(client, over)
        assert ids == list(range(1, view["seq"] + 1))
        again = await client.post("/v1/research", json=body)
        assert (again.status_code, again.json()["id"]) == (200, over)
        under_way = (await client.post("/v1/research", json=longer)).json()["id"]
        await until_planned(client, under_way)
        assert await server.end() == 0
        assert "1 session under way" in "".join(server.told)
    async with serving(tmp_path, port, "--replicas", "2") as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            assert (await client.post("/v1/research", json=body, headers=key)).json()["id"] == over
            assert (await client.get(f"/v1/research/{over}")).json()["status"] == view["status"]
            assert await log_ids(client, over) == ids
            view = await until_over(client, under_way)
            assert view["status"] in ("passed", "quality_warning"), view
            assert await log_ids(client, under_way) == list(range(1, view["seq"] + 1))
        assert await server.end(signal.SIGTERM) == 0, "".join(server.told)


async def test_a_port_that_is_taken_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = await command(tmp_path, "--port", str(taken.getsockname()[1]), "--no-open")
        _, err = await process.communicate()
    assert process.returncode == 2
    assert err.decode().count("\n") <= 2
    assert "is taken" in err.decode()
