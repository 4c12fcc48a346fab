"""A question that was answered before is answered by a command at once, without a runtime."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from marg_ray.client import Marg
from tests.cluster.conftest import LIBRARY, ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]
QUESTION = "What are the environmental effects of tidal barrages?"


async def test_the_command_gives_the_report_that_is_there(marg: Marg, home: Path, tmp_path: Path) -> None:
    report = await marg.research(QUESTION, docs=[LIBRARY], depth="overview")
    env = {**os.environ, "MARG_HOME": str(home), "PYTHONPATH": str(ROOT), "MARG_RUNTIME__RAY_ADDRESS": "127.0.0.1:9"}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "marg_ray.cli", "research", QUESTION.lower(), "--docs", str(LIBRARY)),
        *("--depth", "overview", "--offline", "-m", "extractive", "-o", str(tmp_path / "r.json")),
        **{"env": env, "cwd": ROOT, "stdout": pipe, "stderr": pipe},
    )
    _, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert "`--fresh` researches it anew" in err.decode()
    assert report.session_id in (tmp_path / "r.json").read_text("utf-8")
