"""What the tests that kill processes stand on: a Ray of three nodes, a simulated model, two coordinators."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.chaos import Run, actor_names, carry_out, chaos_settings, different
from benchmarks.chaos_checks import paid, watch_settlements
from benchmarks.chaos_monkey import Monkey, Nodes
from benchmarks.simulated_critic import StrictCritic
from benchmarks.simulated_llm import Speed
from marg_ray.actors.deploy import namespace_of
from marg_ray.client import Marg
from tests.cluster.conftest import LIBRARY

QUESTIONS = ("What are the environmental effects of tidal barrages?", "How does tidal power work?")
DOCUMENTS = ("environmental-effects.md", "how-tidal-power-works.md", "severn-barrage.md")
HEALTH = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000, "health_check_failure_threshold": 2}


@dataclass
class Ground:
    """A runtime to be hurt, and its runs in peace."""

    marg: Marg
    monkey: Monkey
    server: StrictCritic
    calm: dict[str, Run]
    docs: Path
    runs: int = 0

    async def run(self) -> Run:
        self.runs += 1
        number = self.runs
        return await carry_out(self.marg, QUESTIONS[number % len(QUESTIONS)], f"hurt-{number}", self.docs)

    async def runs_while(self, hurting: asyncio.Task[None], at_once: int = 3) -> list[Run]:
        """Runs, always some at once, until `hurting` is done; each to its end."""

        async def one_after_the_other() -> list[Run]:
            done = [await self.run()]
            while not hurting.done():
                done.append(await self.run())
            return done

        done = await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
        await hurting
        return [run for some in done for run in some]

    def check(self, runs: Sequence[Run]) -> None:
        """Nothing shows that they were disturbed."""
        for run in runs:
            calm = self.calm[run.question]
            assert not run.error, (run.session_id, run.error)
            assert run.content is not None, (run.session_id, run.status, run.failures)
            assert run.asked_again == 0, "whoever followed it saw an error"
            assert run.faults == 0, "the log has holes or doubles"
            assert run.told == calm.told, (run.session_id, run.told ^ calm.told, run.failures)
            assert run.content == calm.content, different(run.content, calm.content)
        calls = paid(self.marg.runtime.places.database, [asdict(r) for r in self.server.requests])
        assert calls.requests > 0
        assert not calls.twice, "a settled call was paid again"


@asynccontextmanager
async def ground(folder: Path, coordinators: int = 2) -> AsyncIterator[Ground]:
    speed = Speed(ttft_s=0.1, tokens_per_s=500)
    docs = folder / "docs"
    docs.mkdir()
    for name in DOCUMENTS:
        shutil.copy(LIBRARY / name, docs)
    with Nodes(health=HEALTH) as nodes:
        async with StrictCritic(revise=1, speed=speed) as server:
            times = {"lease_s": 30.0, "probe_s": 1.0}
            settings = chaos_settings(
                folder / "home", server.base_url, nodes.address, coordinators=coordinators, **times
            )
            async with Marg(settings) as marg:
                names = actor_names(settings)
                namespace = namespace_of(settings, marg.runtime.choice)
                monkey = Monkey(nodes, namespace, names, random.Random(4), pause_s=(0.0, 1.5))
                await marg.index([str(docs)])
                await monkey.whole()
                watch_settlements(marg.runtime.places.database)
                calm = {q: await carry_out(marg, q, f"calm-{n}", docs) for n, q in enumerate(QUESTIONS)}
                assert all(run.content is not None for run in calm.values()), calm
                yield Ground(marg, monkey, server, calm, docs)
