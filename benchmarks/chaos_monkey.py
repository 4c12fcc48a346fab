"""A Ray of several nodes on this machine, and somebody who kills what runs on it."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.processes import tree

WHOLE_WITHIN_S = 180.0
KINDS = ("coordinator", "ledger", "embedder", "worker", "agent", "process", "node")


class Nodes:
    """A head that lives, with the driver on it, and nodes beside it that come and go. Leaves nothing behind.

    `health`: how Ray looks after its nodes ("health_check_period_ms" and so on), where not by its defaults.
    """

    def __init__(self, beside: int = 2, cpus: int = 2, health: Mapping[str, int] | None = None) -> None:
        self._temp = tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True)
        self._environment, self._before = dict(os.environ), set(tree())
        os.environ |= {
            "RAY_TMPDIR": self._temp.name,  # else every Ray that starts on this machine would join this one
            "RAY_idle_worker_killing_time_threshold_ms": "600000",
            "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
        }
        self._options = {"num_cpus": cpus, "object_store_memory": 100 * 2**20, "include_dashboard": False}
        self._cluster: Any = None
        try:
            self._cluster = _cluster({**self._options, "_system_config": dict(health or {})})
            for _ in range(beside):
                self.add()
        except BaseException:
            self.__exit__()
            raise

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a library that this process has loaded does not like forks
            self._cluster.add_node(**self._options)

    def choose(self, chance: random.Random) -> tuple[Any, set[int]]:
        """A node that may be lost, and the processes on it."""
        node = chance.choice(sorted(self._cluster.worker_nodes, key=lambda n: str(n.node_id)))
        raylet = node.all_processes["raylet"][0].process.pid
        return node, set(tree(raylet))

    def remove(self, node: Any, cut: set[int]) -> None:
        """The node is lost; `cut` dies at the same moment, what else is on it lives on until it notices."""
        for pid in cut:
            _kill(pid)
        self._cluster.remove_node(node, allow_graceful=False)

    def __enter__(self) -> Nodes:
        return self

    def __exit__(self, *exc: object) -> None:
        ours = set(tree()) - self._before
        if self._cluster is not None:
            self._cluster.shutdown()
        for pid in ours & set(tree()):
            _kill(pid)
        os.environ.clear()
        os.environ |= self._environment
        self._temp.cleanup()


def _cluster(options: dict[str, Any]) -> Any:
    """A head node, protected by a token as every Ray that starts by itself."""
    from ray._private.authentication import authentication_token_setup as token
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    token.enable_token_auth_by_default()
    token.ensure_token_if_auth_enabled(create_token_if_missing=True)
    # no exit hooks of its own: they can only be set in the main thread, which has other things to do
    return Cluster(initialize_head=True, head_node_args=options, shutdown_at_exit=False)


def actors() -> dict[str, int]:
    """Our actors that live, with their processes."""
    import ray._private.state as state

    alive = (a for a in state.actors().values() if a["State"] == "ALIVE" and a["Name"])
    return {str(a["Name"]): int(a["Pid"]) for a in alive}


def plain_workers() -> list[int]:
    """Ray's processes that carry out tasks and hold no actor."""
    held = set(actors().values())
    found = []
    for pid in tree():
        title = _title(pid)
        if title.startswith(("ray::IDLE", "ray::_run")) and pid not in held:
            found.append(pid)
    return found


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def _kill(pid: int, how: int = signal.SIGKILL) -> bool:
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        return False
    return True


@dataclass(frozen=True)
class Killed:
    what: str
    kind: str
    recovered_s: float


@dataclass
class Monkey:
    """Kills at random moments. After each, waits until every actor answers again, and notes how long that took."""

    nodes: Nodes | None
    namespace: str
    names: tuple[str, ...]  # of the actors that there are to be
    chance: random.Random
    pause_s: tuple[float, float] = (0.5, 4.0)
    killed: list[Killed] = field(default_factory=list)

    async def whole(self) -> None:
        """Return when every actor answers."""
        async with asyncio.timeout(WHOLE_WITHIN_S):
            await asyncio.gather(*map(self._answers, self.names))

    async def _answers(self, name: str) -> None:
        import ray
        from ray.exceptions import RayError

        while True:
            try:
                actor: Any = await asyncio.to_thread(ray.get_actor, name, self.namespace)
                await asyncio.wait_for(actor.ping.options(max_task_retries=0).remote(), 5.0)
                return
            except (ValueError, RayError, TimeoutError):  # not there yet, or starting again
                await asyncio.sleep(0.05)

    async def strike(self, kind: str) -> Killed | None:
        """Kill one of a kind; None where there is none at this moment."""
        alive = await asyncio.to_thread(actors)
        began = time.monotonic()
        what, pids = await asyncio.to_thread(self._hit, kind, alive)
        if not what:
            return None
        await self._replaced({name: pid for name, pid in alive.items() if pid in pids})
        done = Killed(what, kind, time.monotonic() - began)
        self.killed.append(done)
        if kind == "node" and self.nodes is not None:
            await asyncio.to_thread(self.nodes.add)
        return done

    def _hit(self, kind: str, alive: dict[str, int]) -> tuple[str, set[int]]:
        """What was killed, and its processes; half of the lost nodes take theirs with them at once."""
        if kind == "node":
            if self.nodes is None:
                return "", set()
            node, pids = self.nodes.choose(self.chance)
            self.nodes.remove(node, pids if self.chance.random() < 0.5 else set())
            return "a node", pids
        if kind == "process":
            found = plain_workers()
            pid = self.chance.choice(found) if found else 0
            return ("a task's process", {pid}) if pid and _kill(pid) else ("", set())
        names = sorted(n for n in alive if n.partition(":")[0] == kind)
        name = self.chance.choice(names) if names else ""
        return (name, {alive[name]}) if name and _kill(alive[name]) else ("", set())

    async def _replaced(self, victims: dict[str, int]) -> None:
        """Return when other processes have the victims' places, and every actor answers."""
        async with asyncio.timeout(WHOLE_WITHIN_S):
            while True:
                now = await asyncio.to_thread(actors)
                if all(now.get(name, pid) != pid for name, pid in victims.items()):
                    break
                await asyncio.sleep(0.05)
        await self.whole()

    async def run(self, kills: int) -> None:
        """Kill `kills` times: each kind in turn, in a random order, at random moments."""
        kinds: list[str] = []
        while len(self.killed) < kills:
            if not kinds:
                kinds = [k for k in KINDS if k != "node" or self.nodes is not None]
                kinds += ["agent"] * 2  # there are six of them
                self.chance.shuffle(kinds)
            await asyncio.sleep(self.chance.uniform(*self.pause_s))
            await self.strike(kinds.pop())
