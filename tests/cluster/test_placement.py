"""On a Ray of a head and two pools: who runs where, and what happens when a node is cordoned."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import ray

from benchmarks.chaos import carry_out
from benchmarks.chaos_monkey import Nodes
from benchmarks.simulated_critic import StrictCritic
from benchmarks.simulated_llm import Speed
from marg_ray.actors.deploy import Runtime
from marg_ray.actors.deploy.machines import unshared
from marg_ray.actors.deploy.placement import NoPlace, needs_of, nodes_here
from marg_ray.client import Marg
from marg_ray.settings import RuntimeSettings, Settings, load
from tests.cluster.conftest import LIBRARY

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]

QUESTION = "How does tidal power work?"
DOCUMENTS = ("how-tidal-power-works.md", "severn-barrage.md")
WITHIN_S = 120.0


class Pools(Nodes):
    """A head without any of the pools' resources, and a node of each pool."""

    def __init__(self) -> None:
        super().__init__(beside=0)
        for pool in ("blue", "green"):
            self._cluster.add_node(**self._options, resources={"crew": 20}, labels={"pool": pool})

    def node(self, pool: str) -> Any:
        (id,) = (node.id for node in nodes_here() if node.labels.get("pool") == pool)
        (found,) = (node for node in self._cluster.worker_nodes if node.node_id == id)
        return found

    def cordon(self, node: Any) -> None:
        """No more work for the node, which will go in ten minutes."""
        from ray._raylet import GcsClient
        from ray.core.generated.autoscaler_pb2 import DrainNodeReason

        why = DrainNodeReason.DRAIN_NODE_REASON_PREEMPTION
        until_ms = (time.time_ns() // 1_000_000) + 600_000
        accepted, complaint = GcsClient(address=self.address).drain_node(node.node_id, why, "maintenance", until_ms)
        assert accepted, complaint


@dataclass
class Ground:
    pools: Pools
    server: StrictCritic
    settings: Settings
    marg: Marg
    docs: Path

    def where(self) -> dict[str, str]:
        """The node of each of our actors that lives."""
        import ray._private.state as state

        actors = state.actors(actor_state_name="ALIVE").values()
        return {a["Name"]: a["Address"]["NodeID"] for a in actors if a["Name"]}

    async def all_placed(self, *pools: str) -> dict[str, str]:
        """Where the actors are, once all ten live in these pools."""
        ids = {self.pools.node(pool).node_id for pool in pools}
        async with asyncio.timeout(WITHIN_S):
            while True:
                where = await asyncio.to_thread(self.where)
                if len(where) == 10 and set(where.values()) <= ids:
                    return where
                await asyncio.sleep(0.1)


def settings_of(home: Path, base_url: str, address: str, **runtime: Any) -> Settings:
    given = {"ray_address": address, "probe_s": 0.5, "lease_s": 30.0, "placement": {"all": {"crew": 1}}}
    return load(home=home, model=f"{base_url}:simulated", runtime={**given, **runtime})


@pytest.fixture(scope="module")
async def ground(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    folder = tmp_path_factory.mktemp("placed")
    docs = folder / "docs"
    docs.mkdir()
    for name in DOCUMENTS:
        shutil.copy(LIBRARY / name, docs)
    with Pools() as pools:
        async with StrictCritic(revise=1, speed=Speed(ttft_s=0.1, tokens_per_s=500)) as server:
            settings = settings_of(folder / "home", server.base_url, pools.address)
            async with Marg(settings) as marg:
                await marg.index([str(docs)])
                yield Ground(pools, server, settings, marg, docs)


async def test_actors_are_where_their_pool_is_and_workers_are_spread(ground: Ground) -> None:
    where = await ground.all_placed("blue", "green")
    assert where["worker:0"] != where["worker:1"]


@pytest.mark.parametrize("rule", ["blue", "!blue", "in(blue, green)", "!in(blue, green)", "in(green,red)"])
async def test_labels_mean_what_they_mean_to_ray(ground: Ground, rule: str) -> None:
    needs = needs_of(RuntimeSettings(labels={"worker": {"pool": rule}}), "worker:0")
    there = ray.remote(Somewhere).options(num_cpus=0, **needs.options()).remote()
    id = await there.node.remote()
    ray.kill(there)
    assert id in {node.id for node in nodes_here() if needs.fit(node)}


class Somewhere:
    async def node(self) -> str:
        return str(ray.get_runtime_context().get_node_id())


@pytest.mark.parametrize(
    ("runtime", "named"),
    [
        ({"placement": {"worker": {"quantum": 1}}}, "worker:0: no node has 1 of the resource 'quantum'"),
        (
            {"labels": {"critic": {"pool": "red"}}},
            "agent:critic: no node has the label pool=red (there is blue, green)",
        ),
        ({"placement": {"ledger": {"crew": 21}}}, "ledger: no node has 21 of the resource 'crew' (the largest has 20)"),
    ],
)
async def test_a_place_that_no_node_has_is_an_error_at_once(ground: Ground, runtime: Any, named: str) -> None:
    settings = settings_of(ground.settings.home, ground.server.base_url, ground.pools.address, **runtime)
    with pytest.raises(NoPlace) as refused:
        await asyncio.to_thread(Runtime.start, settings, ground.marg.runtime.choice)
    assert named in str(refused.value)
    assert ray.is_initialized()  # whoever was connected still is


async def test_folders_that_all_nodes_have_are_seen(ground: Ground, tmp_path: Path) -> None:
    here = ray.get_runtime_context().get_node_id()
    nodes = [node if node.id == here else type(node)(node.id, f"host-{n}") for n, node in enumerate(nodes_here())]
    assert await asyncio.to_thread(unshared, [tmp_path], nodes, here) == {}
    assert await asyncio.to_thread(os.listdir, tmp_path) == []


async def test_work_moves_from_a_cordoned_node_and_the_run_ends_with_its_report(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    blue = ground.pools.node("blue")
    assert blue.node_id in (await ground.all_placed("blue", "green")).values()
    running = asyncio.create_task(carry_out(ground.marg, QUESTION, "moved", ground.docs))
    await ground.server.started.wait()
    with caplog.at_level(logging.WARNING):
        await asyncio.to_thread(ground.pools.cordon, blue)
        await ground.all_placed("green")  # while the other node still lives
    assert "leaves its node, which is cordoned" in caplog.text
    await asyncio.to_thread(ground.pools.remove, blue, set())
    run = await running
    assert not run.error
    assert run.content is not None, (run.status, run.failures)
    assert run.faults == 0
    again = await carry_out(ground.marg, QUESTION, "after", ground.docs)
    assert again.content == run.content
