"""CPU and memory of this process and everything it started, read from /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int | None = None) -> list[int]:
    """The process `root` (default: this one) and all its descendants."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found, todo = [], [root or os.getpid()]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), int(_stat(int(entry.name))[1])
            except (OSError, IndexError):
                continue


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_seconds(pids: list[int] | None = None) -> float:
    """User and system time, of ended children too."""
    total = 0
    for pid in pids or tree():
        try:
            total += sum(int(n) for n in _stat(pid)[11:15])
        except (OSError, IndexError):
            continue
    return total / TICKS


def memory_mb(pids: list[int] | None = None) -> float:
    """Proportional set size: what is shared is counted once."""
    total = 0
    for pid in pids or tree():
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        except OSError:
            continue
    return total / 1024


class PeakMemory:
    """Samples the memory of the process tree while it is open; `mb` is the most that was seen."""

    def __init__(self, every_s: float = 2.0) -> None:
        self.mb, self._every_s, self._stop = 0.0, every_s, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self.mb = max(self.mb, memory_mb())

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self.mb = max(self.mb, memory_mb())
