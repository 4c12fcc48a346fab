"""Who spent how much: CPU seconds and memory of process trees, by part, while they run."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from benchmarks.processes import TICKS, cpu_seconds, memory_mb, tree

_RAY = (
    ("/raylet/raylet", "raylet, gcs"),
    ("gcs_server", "raylet, gcs"),
    ("log_monitor", "ray's monitors"),
    ("dashboard", "ray's monitors"),
    ("Dashboard", "ray's monitors"),
    ("runtime_env", "ray's monitors"),
    ("RuntimeEnv", "ray's monitors"),
    ("monitor.py", "ray's monitors"),
    ("ray::", "task processes"),
    ("default_worker.py", "task processes"),
)


class Accounts:
    """Samples the trees under `roots` (part to process id). A process that ends keeps what it had last.

    CPU is sampled every second, memory every five: reading it is not free. A process is called what `names` says;
    else by its command line, where it is one of Ray's; else by its root.
    """

    def __init__(self, roots: Mapping[str, int], names: Mapping[int, str] | None = None) -> None:
        self.names: dict[int, str] = dict(names or {})
        self._roots = dict(roots)
        self._cpu: dict[int, float] = {}
        self._from: dict[int, float] = {}
        self._part: dict[int, str] = {}
        self._machine = (0.0, 0.0)
        self.others = 0.0  # share of the machine's cores that was busy with something else
        self.peak_mb, self.peak_by_part = 0.0, dict[str, float]()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Accounts:
        self._sample()
        self._from = dict(self._cpu)
        self._machine = _machine()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()
        busy, whole = (now - before for now, before in zip(_machine(), self._machine, strict=True))
        self.others = max(0.0, busy - sum(self.seconds().values())) / (whole or 1.0)
        self._weigh()

    def seconds(self) -> dict[str, float]:
        """CPU seconds since the start, by part, most first."""
        spent: dict[str, float] = defaultdict(float)
        for pid, cpu in self._cpu.items():
            spent[self._name(pid)] += cpu - self._from.get(pid, 0.0)
        return dict(sorted(spent.items(), key=lambda p: -p[1]))

    def _run(self) -> None:
        ticks = 0
        while not self._stop.wait(1.0):
            self._sample()
            ticks += 1
            if ticks % 5 == 0:
                self._weigh()

    def _sample(self) -> None:
        for root, pid in self._roots.items():
            for child in tree(pid):
                self._cpu[child] = max(cpu_seconds([child]), self._cpu.get(child, 0.0))
                self._part[child] = self._known(child, root, root_pid=pid) or self._part.get(child, root)

    def _known(self, pid: int, root: str, *, root_pid: int) -> str:
        if pid == root_pid:
            return root
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            return ""
        return next((part for mark, part in _RAY if mark in command), root)

    def _name(self, pid: int) -> str:
        return self.names.get(pid) or self._part[pid]

    def _weigh(self) -> None:
        """Memory of what is measured, without the servers: only processes of the first root."""
        pids = tree(next(iter(self._roots.values())))
        by_part: dict[str, float] = defaultdict(float)
        for pid in pids:
            self._part.setdefault(pid, next(iter(self._roots)))
            by_part[self._name(pid)] += memory_mb([pid])
        total = sum(by_part.values())
        if total > self.peak_mb:
            self.peak_mb, self.peak_by_part = total, dict(by_part)


def _machine() -> tuple[float, float]:
    """Seconds that the cores of this machine were busy, and all their seconds, since it was started."""
    fields = [int(n) / TICKS for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)
