"""A session runs in one terminal; decisions, steering and the end come from another one."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cluster.conftest import LIBRARY, ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
QUESTION = "What are the environmental effects of tidal barrages?"
ASK = ("research", QUESTION, "--docs", str(LIBRARY), "--depth", "overview", "--offline", "-m", "extractive")
WITHIN_S = 300


class Commands:
    """`marg` in processes of their own, over one home."""

    def __init__(self, home: Path) -> None:
        self.env = {**os.environ, "MARG_HOME": str(home), "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120"}

    async def run(self, *args: str) -> tuple[int, str, str]:
        """To its end: exit code, standard output, standard error."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "marg_ray.cli", *args), env=self.env, cwd=ROOT, stdout=pipe, stderr=pipe
        )
        async with asyncio.timeout(WITHIN_S):
            out, err = await process.communicate()
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()


class Terminal:
    """A command in a terminal: what it shows, and what is typed there."""

    def __init__(self, process: asyncio.subprocess.Process, fd: int) -> None:
        self.process, self.shown, self._fd, self._more = process, "", fd, asyncio.Event()
        asyncio.get_running_loop().add_reader(fd, self._read)

    @classmethod
    async def open(cls, commands: Commands, *args: str) -> Terminal:
        ours, theirs = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "marg_ray.cli", *args),
            **{"env": commands.env, "cwd": ROOT, "start_new_session": True},
            **{"stdin": theirs, "stdout": asyncio.subprocess.DEVNULL, "stderr": theirs},
        )
        os.close(theirs)
        return cls(process, ours)

    def _read(self) -> None:
        try:
            self.shown += os.read(self._fd, 65536).decode("utf-8", "replace")
        except OSError:  # the other end is closed
            asyncio.get_running_loop().remove_reader(self._fd)
        self._more.set()

    async def shows(self, pattern: str, after: int = 0) -> int:
        """Wait until it shows something like `pattern` behind the first `after` characters; where that ends."""
        async with asyncio.timeout(WITHIN_S):
            while not (found := re.compile(pattern).search(self.shown, after)):
                assert self.process.returncode is None, self.shown
                self._more.clear()
                await self._more.wait()
        return found.end()

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    async def ended(self) -> int:
        async with asyncio.timeout(WITHIN_S):
            return await self.process.wait()

    async def close(self) -> None:
        if self.process.returncode is None:
            self.process.terminate()
            await self.ended()
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)


@pytest.fixture
async def commands(home: Path) -> Commands:
    return Commands(home)


@pytest.fixture
async def reviewed(commands: Commands) -> AsyncIterator[Terminal]:
    terminal = await Terminal.open(commands, *ASK, "--review")
    yield terminal
    await terminal.close()


async def test_a_session_in_a_terminal_is_steered_decided_and_cancelled_from_another(
    commands: Commands, reviewed: Terminal
) -> None:
    seen = await reviewed.shows("approve / edit / reject / cancel")
    code, out, err = await commands.run("runs", "--json")
    assert code == 0, err
    row = json.loads(out.splitlines()[0])
    assert row["status"] == "waiting"

    code, out, err = await commands.run("steer", row["id"], "add", "How do eels pass a barrage?", "--by", "ada")
    assert code == 0, err
    assert "nobody works on it" not in out, "it was said to the running session"
    seen = await reviewed.shows("How do eels pass a barrage", seen)
    seen = await reviewed.shows("approve / edit / reject / cancel", seen)

    code, out, err = await commands.run("decide", row["id"], "approve", "--by", "ada")
    assert code == 0, err
    seen = await reviewed.shows("meanwhile, from elsewhere", seen)
    seen = await reviewed.shows("approve / reject / extend / cancel", seen)
    code, _, err = await commands.run("decide", row["id"], "approve", "--on", "7")
    assert code == 2
    assert re.search(r"round [12] of the review waits", err)

    code, out, err = await commands.run("cancel", row["id"], "--by", "ada")
    assert (code, out) == (0, f"{row['id']}: cancelled\n"), err
    assert await reviewed.ended() == 130


async def test_without_a_terminal_a_session_waits_is_decided_and_goes_on(commands: Commands, tmp_path: Path) -> None:
    code, out, err = await commands.run(*ASK, "--approve-plan", "--on-timeout", "wait")
    assert (code, out) == (7, ""), err
    session = re.search(r"`marg decide (\S+) approve`", err)
    assert session is not None
    code, out, err = await commands.run("decide", session[1], "approve", "--by", "ada")
    assert code == 0, err
    assert f"`marg resume {session[1]}` goes on" in out
    target = tmp_path / "report.json"
    code, _, err = await commands.run("resume", session[1], "-o", str(target))
    assert code in (0, 3), err
    report = json.loads(target.read_text("utf-8"))
    assert "plan approved by ada" in [n["text"] for n in report["notes"]]
