"""`marg batch` for real: killed and run again, attached to a cluster, and as a job of one with its dashboard."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chaos_monkey import tree
from marg_ray.batch.results import RowResult
from tests.cluster.conftest import LIBRARY, ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(420)]
LIMIT_S = 300
QUESTIONS = (
    "What are the environmental effects of tidal barrages?",
    "Why was the Swansea Bay tidal lagoon rejected?",
    "Who won the 1998 football world cup in France?",
)
TO_THE_END = ("--offline", "-m", "extractive", "--depth", "overview")


def questions(folder: Path) -> Path:
    """A row that is answered, one with a key and a folder of its own, one that nothing answers, one that is wrong."""
    rows = [
        {"question": QUESTIONS[0], "docs": str(LIBRARY)},
        {"question": QUESTIONS[1], "key": "swansea", "docs": str(LIBRARY), "topic": "lagoons"},
        {"question": QUESTIONS[2], "key": "football", "docs": str(LIBRARY)},
        {"question": "lost?", "docs": "/no/such/folder"},
    ]
    path = folder / "questions.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def environment(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "MARG_HOME": str(home), "PYTHONPATH": str(ROOT), **more}


async def command(env: dict[str, str], *args: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "marg_ray.cli", "batch", *args),
        **{"env": env, "cwd": ROOT, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE},
        limit=2**22,
    )


async def finished(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    async with asyncio.timeout(LIMIT_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def events(process: asyncio.subprocess.Process) -> AsyncIterator[dict[str, Any]]:
    assert process.stdout is not None
    async with asyncio.timeout(LIMIT_S):
        async for line in process.stdout:
            yield json.loads(line)


async def sessions(env: dict[str, str]) -> set[str]:
    listing = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "marg_ray.cli", "runs", "--json"), env=env, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await listing.communicate()
    return {json.loads(line)["id"] for line in out.splitlines()}


def results(out: Path) -> dict[str, RowResult]:
    lines = [RowResult.model_validate_json(line) for line in (out / "results.jsonl").read_text("utf-8").splitlines()]
    assert len({r.key for r in lines}) == len(lines), "a row has two lines"
    return {r.key: r for r in lines}


def check(out: Path, formats: tuple[str, ...] = ("md",)) -> dict[str, RowResult]:
    """What every whole run over the questions must leave."""
    found = results(out)
    assert {r.status for r in found.values()} == {"passed", "insufficient_evidence", "invalid"}, found
    swansea = found["swansea"]
    assert swansea.supported is not None
    assert swansea.supported > 0.9
    assert swansea.quality is not None
    assert swansea.words > 50
    assert swansea.sources > 0
    assert swansea.seconds > 0
    assert swansea.meta == {"topic": "lagoons"}
    for fmt in formats:
        assert "Swansea" in (out / f"swansea.{fmt}").read_text("utf-8")
    assert found["football"].error is not None
    assert not found["football"].files
    return found


def tear(path: Path) -> None:
    with open(path, "ab") as torn:
        torn.write(b'{"key": "swansea", "status": "pas')


# ---- in a runtime of its own


async def test_a_killed_batch_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    env, out = environment(tmp_path / "home"), tmp_path / "out"
    args = (str(questions(tmp_path)), "-o", str(out), "--at-once", "1", "--json", "--max-failed", "1", *TO_THE_END)
    first = await command(env, *args)
    begun: dict[str, str] = {}
    async for event in events(first):
        if event["kind"] == "begun":
            begun[event["key"]] = event["session"]
        if len(begun) == 2:
            break
    first.send_signal(signal.SIGKILL)
    await finished(first)
    before = results(out)
    assert len([r for r in before.values() if r.final]) == 1
    tear(out / "results.jsonl")

    code, told, err = await finished(await command(env, *args, "-f", "md", "-f", "json"))
    assert code == 0, err + told
    after = check(out, ("md", "json"))
    assert {key: after[key].session for key in begun} == begun
    told_of = [json.loads(line) for line in told.splitlines()]
    assert {e["key"] for e in told_of if e["kind"] == "ended"} == {*begun, "football"}
    assert (told_of[-1]["kind"], told_of[-1]["delivered"], told_of[-1]["refused"]) == ("end", 2, 1)
    assert await sessions(env) == {r.session for r in after.values() if r.session}

    nothing_starts = {**env, "MARG_RUNTIME__RAY_ADDRESS": "127.0.0.1:9"}
    code, _, err = await finished(await command(nothing_starts, *args))
    assert code == 0, err
    code, _, err = await finished(await command(nothing_starts, *args, "--max-refused", "0"))
    assert code == 8, err


# ---- on a cluster


@dataclass(frozen=True)
class Head:
    """A head node with its dashboard."""

    address: str
    dashboard: str
    home: Path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def end_since(before: set[int]) -> None:
    """End the processes below this one that were not there `before`."""
    for pid in set(tree()) - before:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def a_head(home: Path) -> Iterator[Head]:
    from ray._private.authentication import authentication_token_setup as token
    from ray.cluster_utils import Cluster

    before, environ, cluster = set(tree()), dict(os.environ), None
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as temp:
        os.environ |= {
            "RAY_TMPDIR": temp,
            "PYTHONPATH": str(ROOT),
            "RAY_idle_worker_killing_time_threshold_ms": "600000",
        }
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        try:
            token.enable_token_auth_by_default()
            token.ensure_token_if_auth_enabled(create_token_if_missing=True)
            options = {
                "num_cpus": 4,
                "object_store_memory": 100 * 2**20,
                "include_dashboard": True,
                "dashboard_host": "127.0.0.1",
                "dashboard_port": free_port(),
                "dashboard_agent_listen_port": free_port(),
            }
            try:
                cluster = Cluster(initialize_head=True, head_node_args=options, shutdown_at_exit=False)
            except Exception:  # on a busy machine a start may run out of its own time
                end_since(before)
                cluster = Cluster(initialize_head=True, head_node_args=options, shutdown_at_exit=False)
            yield Head(str(cluster.address), f"http://{cluster.head_node.webui_url}", home)
        finally:
            if cluster is not None:
                cluster.shutdown()
            end_since(before)
            os.environ.clear()
            os.environ |= environ


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    with a_head(tmp_path_factory.mktemp("home")) as started:
        yield started


async def test_an_interrupted_command_leaves_its_rows_to_the_cluster_and_collects_them(
    head: Head, tmp_path: Path
) -> None:
    env, out = environment(head.home, MARG_RUNTIME__RAY_ADDRESS=head.address), tmp_path / "out"
    args = (str(questions(tmp_path)), "-o", str(out), "--max-failed", "1", "--json", *TO_THE_END)
    first = await command(env, *args)
    begun: dict[str, str] = {}
    async for event in events(first):
        if event["kind"] == "begun":
            begun[event["key"]] = event["session"]
        if len(begun) == 3:
            break
    first.send_signal(signal.SIGINT)
    code, _, err = await finished(first)
    assert code == 130, err
    assert "of 4 rows are done" in err
    assert "go on on the cluster" in err
    code, told, err = await finished(await command(env, *args))
    assert code == 0, err + told
    assert {key: check(out)[key].session for key in begun} == begun


async def test_a_batch_runs_as_a_job_of_the_cluster(head: Head, tmp_path: Path) -> None:
    env, out = environment(head.home), tmp_path / "out"
    args = (str(questions(tmp_path)), "-o", str(out), "--submit", head.dashboard, "--env", "MARG_HOME", "--fresh")
    args = (*args, *TO_THE_END)
    code, _, err = await finished(await command(env, *args, "--max-failed", "1", "--no-wait"))
    assert code == 0, err
    assert "rows submitted to" in err
    assert str(LIBRARY) in err, "what must be on shared storage is named"
    code, _, err = await finished(await command(env, *args, "--max-failed", "1"))
    assert "works on this batch already" in err
    assert code == 0, err
    check(out)
    assert not any(r.kept for r in results(out).values()), "it was researched by the job"
    assert "passed  swansea: " in err
    assert "insufficient_evidence  football: " in err
    assert "succeeded" in err
    code, told, err = await finished(await command(env, *args, "--max-refused", "0", "--json"))
    assert code == 8, err
    assert "failed" in err
    end = json.loads(told.splitlines()[-1])
    assert (end["kind"], end["exit_code"]) == ("end", 8)


async def test_a_cluster_that_is_not_there_is_said(tmp_path: Path) -> None:
    env = environment(tmp_path / "home")
    args = (str(questions(tmp_path)), "-o", str(tmp_path / "out"), "--submit", "http://127.0.0.1:9")
    code, _, err = await finished(await command(env, *args))
    assert code == 5
    assert "http://127.0.0.1:9" in err
    assert "--submit" in err
    assert "Traceback" not in err
