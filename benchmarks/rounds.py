"""A system under test as a process of its own, so that its CPU and memory are counted apart from everybody else's.

The parent writes a line of JSON with case numbers; the child runs all of them at once and answers with a line.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Ran:
    """One session as it went. `tasks` are its steps in order, each with the query it searched for, if it did."""

    wall_s: float = 0.0
    error: str = ""
    words: int = 0
    tasks: list[tuple[str, str]] = field(default_factory=list)
    session_id: str = ""


Session = Callable[[int], Awaitable[Ran]]


def many_sockets() -> None:
    """Lift this process's limit of open files as far as it goes: a hundred sessions hold thousands of connections."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def serve(session: Session, about: Callable[[], Mapping[str, Any]] = dict) -> None:
    """The child's side. `about` tells the parent something after each round (names of processes)."""
    many_sockets()
    _say({"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        began = time.perf_counter()
        ran = await asyncio.gather(*(_timed(session, n) for n in json.loads(line)))
        wall = time.perf_counter() - began
        _say({"wall_s": wall, "ran": [vars(r) for r in ran], **about()})


async def _timed(session: Session, number: int) -> Ran:
    began = time.perf_counter()
    try:
        ran = await session(number)
    except Exception as exc:  # a session that fails is a figure of the table
        ran = Ran(error=f"{type(exc).__name__}: {exc}"[:300])
    ran.wall_s = time.perf_counter() - began
    return ran


def _say(line: Mapping[str, Any]) -> None:
    print(json.dumps(line), flush=True)


class Child:
    """The parent's side: starts `command`, waits until it is ready, sends rounds."""

    def __init__(self, *command: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-u", *command], stdin=pipe, stdout=pipe, text=True, cwd=ROOT, bufsize=1
        )
        self.pid = self.process.pid
        self._read()

    def run(self, cases: list[int]) -> tuple[float, list[Ran], dict[str, Any]]:
        """Seconds for all together, the sessions, and what else the child told."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(cases) + "\n")
        self.process.stdin.flush()
        line = self._read()
        return line.pop("wall_s"), [Ran(**r) for r in line.pop("ran")], line

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise RuntimeError(f"the process ended with {self.process.wait()}")
