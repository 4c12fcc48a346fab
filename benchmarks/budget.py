"""Whole runs under random limits: does any spend more than it may, and how does each one end?

    python benchmarks/budget.py [--runs 200] [--seed 1]

Real agents, coordinator and ledger in one process over a model that costs money, overruns estimates within the
longest answer, and is often unreadable and asked again. What it was really paid is counted here, not by the ledger.
One run without limits tells what a run uses; the limits of the others are drawn around that, several at once.
Exit status 1 where a limit did not hold or a run ended in neither a report nor a refusal.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from marg_ray.errors import ParseError
from marg_ray.models.client import Call, ModelTask, OutT, Reply
from marg_ray.models.estimates import Allowance, carrying
from marg_ray.models.testing import answer
from marg_ray.records import Limits, Usage
from marg_ray.state import ResearchState
from tests.flow import TIDES, World, engine_over, page

PRICE = (3.0, 15.0)  # US dollars per million tokens
TRIES = 4
LIMITS = ("tokens", "usd", "searches", "tasks")
CLEAR = frozenset({"passed", "quality_warning", "insufficient_evidence", "budget_stopped"})


def cost(tokens_in: int, tokens_out: int) -> float:
    return (tokens_in * PRICE[0] + tokens_out * PRICE[1]) / 1e6


@dataclass
class Spender:
    """A model that costs money. `paid` is what it really cost; `late` counts requests made after a limit was passed."""

    chance: random.Random
    limits: Limits
    name: str = "spender"
    paid: Usage = field(default_factory=Usage)
    under_way: int = 0
    most_under_way: int = 0
    late: int = 0

    async def quote(self, task: ModelTask[Any], call: Call) -> Usage:
        return self._most(task)

    def _most(self, task: ModelTask[Any]) -> Usage:
        sent = len(task.model_dump_json().encode())
        return Usage(calls=1, tokens_in=sent // 4, tokens_out=task.max_tokens, cost=cost(sent, task.max_tokens))

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        most, spent = self._most(task), Usage()
        allowance = Allowance(most, call.allow)
        for _ in range(TRIES):
            with carrying(spent):
                await allowance.need(spent + most)
            spent += await self._request(task, most)
            if self.chance.random() > 0.2:
                return Reply(output=cast(OutT, answer(task)), usage=spent, model=self.name)
        failed = ParseError(task.template, "no JSON", TRIES)
        failed.spent = spent
        raise failed

    async def _request(self, task: ModelTask[Any], most: Usage) -> Usage:
        if self.limits.tokens is not None and self.paid.tokens_in + self.paid.tokens_out > self.limits.tokens:
            self.late += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        for _ in range(self.chance.randrange(6)):
            await asyncio.sleep(0)
        self.under_way -= 1
        tokens_in = int(most.tokens_in * self.chance.uniform(0.7, 2.0))  # up to twice what was estimated
        tokens_out = int(task.max_tokens * self.chance.choice((0.1, 0.3, 0.5, 1.0)))
        used = Usage(calls=1, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost(tokens_in, tokens_out))
        self.paid += used
        return used


@dataclass(frozen=True)
class Run:
    """How a run under limits ended. `used` is what was really used, by the names of the limits."""

    limits: Limits
    used: dict[str, float]
    status: str
    text: bool  # a report with text in it
    said: bool  # the report or the refusal names its budget
    late: int
    most_under_way: int

    @property
    def clear(self) -> bool:
        stopped = self.status == "budget_stopped"
        return self.status in CLEAR and (self.said or not stopped)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in LIMITS if getattr(self.limits, name) is not None)

    def over(self, name: str) -> float:
        value = getattr(self.limits, name)
        return 0.0 if value is None else max(0.0, self.used[name] - value)

    def share(self, name: str) -> float | None:
        value = getattr(self.limits, name)
        return self.used[name] / value if value else None


def pages(count: int) -> dict[str, tuple[str, str]]:
    """More pages like the two about tides, so that there is something to spend on."""
    bodies = list(TIDES.values())
    return {
        f"https://tides.test/{n}": (
            f"{bodies[n % 2][0]} {n}",
            f"{bodies[n % 2][1]} Survey {n} counted {n + 3} turbines.",
        )
        for n in range(count)
    }


async def one_run(limits: Limits, seed: int, folder: Path, number: int) -> Run:
    chance = random.Random(seed)
    model, found = Spender(chance, limits), pages(6)
    engine = engine_over(found)
    world = World(
        folder / str(number),
        model=model,
        pages={url: page(*text) for url, text in found.items()},
        engines=(engine,),
    )
    state = await world.ask("How much power do tidal stations produce?", depth="overview", limits=limits)
    return measure(world, model, state, limits, len(engine.asked))


def measure(world: World, model: Spender, state: ResearchState, limits: Limits, searches: int) -> Run:
    used = {
        "tokens": float(model.paid.tokens_in + model.paid.tokens_out),
        "usd": model.paid.cost,
        "searches": float(searches),
        "tasks": float(state.tasks_done),
    }
    text = state.report is not None and any(s.draft for s in state.sections.values())
    status = str(state.report.status) if state.report is not None else f"halted: {state.halt}"
    said = any(note.kind == "budget" for note in state.notes)
    return Run(limits, used, status, text, said, model.late, model.most_under_way)


def drawn(chance: random.Random, usual: dict[str, float], names: Sequence[str]) -> Limits:
    """One or several limits, each between next to nothing and more than a run needs."""
    values: dict[str, Any] = {}
    for name in chance.sample(names, chance.choice((1, 1, *range(2, len(names) + 1)))):
        value = usual[name] * chance.choice((0.03, 0.2, 0.4, 0.6, 0.8, 1.0, 1.3)) * chance.uniform(0.7, 1.3)
        values[name] = value if name == "usd" else max(int(name == "tasks"), round(value))
    return Limits(**values)


async def campaign(
    runs: int, seed: int, folder: Path, names: Sequence[str] = LIMITS
) -> tuple[dict[str, float], list[Run]]:
    """What a run without limits uses, and the runs under random limits out of `names`."""
    usual = (await one_run(Limits(), seed, folder, 0)).used
    chance = random.Random(seed)
    limits = [drawn(chance, usual, names) for _ in range(runs)]
    return usual, [await one_run(each, seed + n, folder, n) for n, each in enumerate(limits, 1)]


def broken(runs: Sequence[Run]) -> list[str]:
    """Everything that must not be."""
    found = []
    for n, run in enumerate(runs, 1):
        if run.over("usd") > 1e-9:
            found.append(f"run {n} spent {run.used['usd']:.4f} USD of {run.limits.usd:.4f}")
        if run.over("searches"):
            found.append(f"run {n} made {run.used['searches']:g} searches of {run.limits.searches}")
        if run.late:
            found.append(f"run {n} made {run.late} requests after its tokens were spent")
        if not run.clear:
            found.append(f"run {n} ended as {run.status} under {run.limits!r}")
    return found


def print_table(usual: dict[str, float], runs: Sequence[Run]) -> None:
    print("a run without limits uses " + ", ".join(f"{v:.4g} {k}" for k, v in usual.items()))
    print(f"\n{'limit':<10}{'runs':>6}{'passed':>8}{'by at most':>12}{'used where it alone stopped the run':>38}")
    for name in LIMITS:
        of = [r for r in runs if getattr(r.limits, name) is not None]
        alone = [r for r in of if r.status == "budget_stopped" and r.names == (name,)]
        over, shares = [r.over(name) for r in of], [s for r in alone if (s := r.share(name)) is not None]
        used = f"{statistics.median(shares):.0%} (median of {len(shares)})" if shares else "-"
        print(f"{name:<10}{len(of):>6}{sum(o > 1e-9 for o in over):>8}{max(over, default=0):>12.4g}{used:>38}")
    ends = Counter((r.status, "with text" if r.text else "a refusal") for r in runs)
    print("\nends: " + ", ".join(f"{n} {status} ({what})" for (status, what), n in ends.most_common()))
    clear = sum(r.clear for r in runs)
    print(f"a report or a clear refusal: {clear} of {len(runs)} ({clear / len(runs):.0%})")
    print(f"above their money limit: {sum(r.over('usd') > 1e-9 for r in runs)}")
    print(f"requests after the tokens were spent: {sum(r.late for r in runs)}")
    print(f"requests under way at once: at most {max(r.most_under_way for r in runs)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        usual, runs = asyncio.run(campaign(args.runs, args.seed, Path(folder)))
    print_table(usual, runs)
    for line in (faults := broken(runs)):
        print("FAULT:", line)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
