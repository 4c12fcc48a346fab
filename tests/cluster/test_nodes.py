"""On a Ray of three nodes: every kind of process is killed, nodes vanish, a coordinator dies for good."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest
import ray

from benchmarks.chaos_monkey import actors
from marg_ray.actors.deploy.runtime import shard_of
from tests.cluster.chaos import Ground, ground

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(420)]

TWENTY = (
    *("coordinator", "ledger", "worker", "node", "agent", "process"),
    *("coordinator", "embedder", "worker", "agent", "process"),
    *("coordinator", "ledger", "worker", "node", "agent", "agent"),
    *("ledger", "agent", "worker"),
)


@pytest.fixture(scope="module")
async def hurt(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    async with ground(tmp_path_factory.mktemp("home")) as made:
        yield made


async def test_twenty_kills_at_random_moments_leave_no_trace(hurt: Ground) -> None:
    async def strike() -> None:
        for kind in TWENTY:
            await asyncio.sleep(hurt.monkey.chance.uniform(*hurt.monkey.pause_s))
            await hurt.monkey.strike(kind)

    runs = await hurt.runs_while(asyncio.create_task(strike()))
    assert len(hurt.monkey.killed) >= len(TWENTY) - 2  # a process of tasks may be missed
    assert sum(k.kind == "node" for k in hurt.monkey.killed) == 2
    hurt.check(runs)


async def test_every_agent_dies_once_in_the_middle_of_a_run(hurt: Ground) -> None:
    async def strike() -> None:
        for name, pid in sorted((await asyncio.to_thread(actors)).items()):
            if name.startswith("agent:"):
                os.kill(pid, signal.SIGKILL)
        await hurt.monkey.whole()

    hurt.check(await hurt.runs_while(asyncio.create_task(strike())))


@pytest.mark.parametrize("name", ["worker:0", "agent:critic"])
async def test_an_actor_that_hangs_is_passed_over_or_started_again(hurt: Ground, name: str) -> None:
    pid = (await asyncio.to_thread(actors))[name]
    os.kill(pid, signal.SIGSTOP)
    hurt.check([await hurt.run()])
    await hurt.monkey.whole()
    assert (await asyncio.to_thread(actors))[name] != pid


async def test_a_coordinator_that_is_dead_for_good_leaves_its_sessions_to_the_other(hurt: Ground) -> None:
    async def strike() -> None:
        its = tuple(f"hurt-{n}/" for n in range(first, first + at_once) if shard_of(f"hurt-{n}", 2) == 0)
        while not any(r.caller.startswith(its) and r.status == 0 for r in hurt.server.requests):
            await hurt.server.started.wait()  # until one of its sessions has a call open
            hurt.server.started.clear()
        ray.kill(ray.get_actor("coordinator:0", namespace=hurt.monkey.namespace), no_restart=True)

    first, at_once = hurt.runs + 1, 4
    while shard_of(f"hurt-{first}", 2) != 0:  # the first of them is the one's that dies
        first += 1
    hurt.runs = first - 1
    runs = await hurt.runs_while(asyncio.create_task(strike()), at_once=at_once)
    hurt.check(runs)
