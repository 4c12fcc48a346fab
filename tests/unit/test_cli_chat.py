"""`marg chat` at a terminal: lines in, sentences out, Ctrl-C. The assistant is a double; Ray is not needed for that."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60
CHILD = """
import asyncio, sys
from rich.console import Console
from marg_ray.cli.chat_run import Terminal, Wanted
from marg_ray.memory.chat import Answer, Cited, Looked, Passage
from marg_ray.store.memory import MemoryStore

class Talker:
    async def converse(self, owner, said):
        yield Looked(where="reports", query=said.text, found=1, text="1 report of 1: Tides \\x1b[31m")
        if said.text == "slow":
            print("WAITING", flush=True)
            await asyncio.Event().wait()
        so = Cited(text=f"You said {said.text}.", citations=("e2", "e1"), verdict="partial")
        yield so
        two = Passage(id="e2", quote="q", title="Two", location="two.pdf")
        passages = (Passage(id="e1", quote="q", title="One"), two)
        yield Answer(sentences=(so,), passages=passages, dropped=(Cited(text="x"), Cited(text="y")), notes=("a note",))

async def main():
    terminal = Terminal(MemoryStore(), Talker(), Wanted(as_json=sys.argv[1:] == ["json"]), (), "", Console(stderr=True))
    sys.exit(await terminal.run())

asyncio.run(main())
"""


class Session:
    """A child at a terminal of its own (or over a pipe), read as it writes."""

    def __init__(self, process: asyncio.subprocess.Process, keys: int) -> None:
        self.process, self.keys, self.seen = process, keys, ""

    async def until(self, text: str) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(LIMIT_S):
            while text not in self.seen:
                more = await self.process.stdout.read(4096)
                assert more, f"it ended: {self.seen}"
                self.seen += more.decode()
        self.seen = self.seen.partition(text)[2]

    def types(self, text: str) -> None:
        os.write(self.keys, text.encode())

    async def ends(self) -> int:
        async with asyncio.timeout(LIMIT_S):
            return await self.process.wait()


@pytest.fixture
async def terminal() -> AsyncIterator[Session]:
    keys, slave = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CHILD),
        cwd=ROOT,
        stdin=slave,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    os.close(slave)
    yield Session(process, keys)
    if process.returncode is None:
        process.kill()
        await process.wait()
    os.close(keys)


async def test_a_conversation_at_a_terminal(terminal: Session) -> None:
    await terminal.until("›")
    terminal.types("hello\n")
    await terminal.until("reports: 1 report of 1: Tides")
    await terminal.until("You said hello. [1][2] (partly supported)")
    await terminal.until("[1] Two (two.pdf)")
    await terminal.until("[2] One")
    await terminal.until("2 sentences failed the check and were left out")
    await terminal.until("a note")
    await terminal.until("›")
    terminal.types("slow\n")
    await terminal.until("WAITING")
    terminal.process.send_signal(signal.SIGINT)
    await terminal.until("(stopped)")
    await terminal.until("›")
    terminal.types("again\n")
    await terminal.until("You said again.")
    await terminal.until("›")
    terminal.process.send_signal(signal.SIGINT)
    assert await terminal.ends() == 130
    rest = await terminal.process.stdout.read() if terminal.process.stdout else b""
    assert b"Traceback" not in rest


async def test_the_end_of_input_ends_it(terminal: Session) -> None:
    await terminal.until("›")
    terminal.types("\x04")
    assert await terminal.ends() == 0


@pytest.mark.parametrize("way", ["pipe", "file"])
async def test_lines_that_are_piped_in_are_asked_in_turn(tmp_path: Path, way: str) -> None:
    asked = "one\n\ntwo"
    path = tmp_path / "asked.txt"
    path.write_text(asked, "utf-8")
    with path.open("rb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", CHILD, "json"),
            cwd=ROOT,
            stdin=file if way == "file" else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(LIMIT_S):
            out, _ = await process.communicate(asked.encode() if way == "pipe" else None)
    assert process.returncode == 0
    said = [json.loads(line)["sentences"][0]["text"] for line in out.decode().splitlines()]
    assert said == ["You said one.", "You said two."]
