"""A hundred runs while processes are killed and nodes vanish: does anything show afterwards?

    python benchmarks/chaos.py --runs 100 --kills 60
    python benchmarks/chaos.py --runs 10 --kills 8

Every run is a whole one (search, read, write, check, critic, a section sent back, summary) over a library and a
simulated model that gives the same answer to the same prompt. Each question is asked once in peace first. Then the
runs go on, several at a time, on a Ray of three nodes, while `kill -9` hits coordinators, ledger, embedder, workers,
agents, the processes of tasks, and whole nodes, at random moments. Printed are

- completed: runs that ended in a report. All must;
- settled calls paid twice: requests to the model for a call whose result was on disk at that moment (the database
  notes the moment of each settlement). None may be. Calls in which a process died are asked again: "asked again";
- entries lost or doubled: holes and repeats in the logs, and what the log in peace has and this one has not;
- reports that differ from the one in peace, but for times, costs and ids;
- recovery: from a kill until every actor answers again, median and maximum.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.chaos_checks import Paid, content, holes_and_doubles, paid, told, watch_settlements
from benchmarks.chaos_monkey import Monkey, Nodes
from benchmarks.processes import tree
from marg_ray.client import Marg, make_request
from marg_ray.errors import MargError
from marg_ray.report.model import from_json
from marg_ray.settings import Settings, load

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = (
    "What are the environmental effects of tidal barrages?",
    "How much energy do tidal stations produce?",
    "What does tidal power cost?",
    "How are tidal lagoons built?",
    "Why was the Swansea Bay tidal lagoon rejected?",
)
RUN_WITHIN_S = 900.0


@contextmanager
def model_server(folder: Path, ttft: float, tps: float) -> Iterator[tuple[str, Path]]:
    """The simulated model in a process of its own; its address and its log."""
    log = folder / "model.jsonl"
    script = str(ROOT / "benchmarks/simulated_critic.py")
    speed = ["--ttft", str(ttft), "--tps", str(tps), "--jitter", "0.5", "--revise", "1"]
    command = [sys.executable, "-u", script, *speed, "--log", str(log)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), log
    finally:
        process.terminate()
        process.wait()


def chaos_settings(
    home: Path,
    model_url: str,
    address: str = "",
    *,
    coordinators: int = 1,
    lease_s: float = 60.0,
    probe_s: float = 10.0,
) -> Settings:
    """Short leases and beats, so that what hangs is noticed within the benchmark's time."""
    runtime = {
        "ray_address": address,
        "coordinators": coordinators,
        "workers": 2,
        "lease_s": lease_s,
        "probe_s": probe_s,
        "beat_s": 0.5,
        "dead_after_s": 5.0,
    }
    return load(home=home, model=f"{model_url}:simulated", runtime=runtime)


def actor_names(settings: Settings) -> tuple[str, ...]:
    from marg_ray.actors.deploy.handles import AGENTS

    agents = [f"agent:{role}" for role in AGENTS]
    workers = [f"worker:{n}" for n in range(settings.runtime.workers)]
    return (
        *(f"coordinator:{n}" for n in range(settings.runtime.coordinators)),
        "ledger",
        "embedder",
        *workers,
        *agents,
    )


@dataclass
class Run:
    """One run as it went."""

    question: str
    session_id: str
    status: str = ""
    error: str = ""
    seconds: float = 0.0
    asked_again: int = 0  # errors that the one who follows it saw, and went on after
    content: Any = None
    told: set[str] = field(default_factory=set)
    faults: int = 0  # holes and doubles
    failures: list[str] = field(default_factory=list)  # tasks that failed


async def carry_out(marg: Marg, question: str, session_id: str, docs: Path) -> Run:
    run, began = Run(question, session_id), time.monotonic()
    request = make_request(question, docs=[docs], depth="overview", fresh=True)
    try:
        async with asyncio.timeout(RUN_WITHIN_S):
            while True:
                try:
                    await marg.runtime.submit(session_id, request)
                    async for step in marg.follow(session_id):
                        last = step
                    break
                except MargError as exc:
                    if not exc.retryable:
                        raise
                    run.asked_again += 1
                    await asyncio.sleep(0.2)
            run.status = last.progress.status
            entries = (await marg.runtime.progress(session_id)).entries
            run.told, run.faults = told(entries), holes_and_doubles(entries)
            run.failures = [e.message.task_id for e in entries if e.message.kind == "task_failed"]
            if last.state.report is not None:
                run.content = content(from_json(marg.runtime.places.artefacts.get(last.state.report.artefact)))
    except Exception as exc:  # a run that does not complete is what this is about
        run.error = f"{type(exc).__name__}: {exc}"[:300]
    run.seconds = time.monotonic() - began
    return run


async def many(marg: Marg, count: int, at_once: int, docs: Path) -> list[Run]:
    places = asyncio.Semaphore(at_once)

    async def one(number: int) -> Run:
        async with places:
            return await carry_out(marg, QUESTIONS[number % len(QUESTIONS)], f"chaos-{number:03}", docs)

    return await asyncio.gather(*map(one, range(count)))


# ---- what came of it


def different(part: Any, other: Any, where: str = "") -> str:
    """The first place where two contents differ."""
    if isinstance(part, dict) and isinstance(other, dict):
        found = (different(part.get(k), other.get(k), f"{where}.{k}") for k in {**part, **other})
        return next((f for f in found if f), "")
    if isinstance(part, list) and isinstance(other, list) and len(part) == len(other):
        found = (different(a, b, f"{where}[{n}]") for n, (a, b) in enumerate(zip(part, other, strict=True)))
        return next((f for f in found if f), "")
    return "" if part == other else f"{where}: {str(part)[:120]!r} is not {str(other)[:120]!r}"


def show(calm: dict[str, Run], runs: list[Run], monkey: Monkey, calls: Paid) -> bool:
    """Print the figures; says whether they are as they must be."""
    completed = [r for r in runs if r.content is not None]
    lost = sum(r.faults + len(r.told ^ calm[r.question].told) for r in completed)
    differing = [r for r in completed if r.content != calm[r.question].content]
    times = [k.recovered_s for k in monkey.killed]
    by_kind = Counter(k.kind for k in monkey.killed)
    print(f"kills                          {len(monkey.killed)}: " + ", ".join(f"{n} {k}" for k, n in by_kind.items()))
    print(f"completed                      {len(completed)} of {len(runs)}")
    print(f"settled calls paid twice       {len(calls.twice)} of {calls.requests} requests")
    print(f"  asked again, not settled     {calls.again} (a process had died in the call)")
    print(f"entries lost or doubled        {lost}")
    print(f"reports that differ            {len(differing)}")
    if times:
        print(f"recovery                       median {statistics.median(times):.1f} s, maximum {max(times):.1f} s")
        for kind in by_kind:
            own = [k.recovered_s for k in monkey.killed if k.kind == kind]
            print(f"  {kind:<12}                 median {statistics.median(own):.1f} s, maximum {max(own):.1f} s")
    walls = [r.seconds for r in completed] or [0.0]
    peace = statistics.median(r.seconds for r in calm.values())
    print(f"a run                          median {statistics.median(walls):.1f} s, maximum {max(walls):.1f} s")
    print(f"  in peace, alone              median {peace:.1f} s")
    print(f"errors that a client saw       {sum(r.asked_again for r in runs)}")
    for run in runs:
        if run.error or run.content is None:
            print(f"  {run.session_id} {run.status} {run.error}")
        elif gone := sorted(run.told ^ calm[run.question].told):
            print(f"  {run.session_id} log differs by {gone[:6]}; failed: {run.failures[:4]}")
        elif run in differing:
            print(f"  {run.session_id} {different(run.content, calm[run.question].content)}")
    for task in calls.twice[:10]:
        print(f"  paid twice: {task}")
    return len(completed) == len(runs) and not (calls.twice or lost or differing)


async def measure(args: argparse.Namespace, folder: Path, nodes: Nodes, model_url: str, log: Path) -> bool:
    settings = chaos_settings(folder / "home", model_url, nodes.address, coordinators=args.coordinators)
    async with Marg(settings) as marg:
        from marg_ray.actors.deploy import namespace_of

        namespace = namespace_of(settings, marg.runtime.choice)
        monkey = Monkey(nodes, namespace, actor_names(settings), random.Random(args.seed), (args.pause / 4, args.pause))
        await marg.index([str(args.docs)])
        await monkey.whole()
        watch_settlements(marg.runtime.places.database)
        calm = {q: await carry_out(marg, q, f"calm-{n}", args.docs) for n, q in enumerate(QUESTIONS)}
        assert all(r.content is not None for r in calm.values()), [r.error or r.status for r in calm.values()]
        print(f"in peace: {', '.join(f'{r.seconds:.1f} s' for r in calm.values())}", flush=True)
        striking = asyncio.ensure_future(monkey.run(args.kills))
        began = time.monotonic()
        runs = await many(marg, args.runs, args.at_once, args.docs)
        wall = time.monotonic() - began
        if striking.done():
            striking.result()  # what it could not do, it says
        striking.cancel()
        requests = [json.loads(line) for line in (await asyncio.to_thread(log.read_text)).splitlines()]
        print(f"{len(runs)} runs, {args.at_once} at a time, in {wall:.0f} s")
        return show(calm, runs, monkey, paid(marg.runtime.places.database, requests))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--kills", type=int, default=60, help="at most; fewer where the runs end before")
    parser.add_argument("--at-once", type=int, default=10)
    parser.add_argument("--coordinators", type=int, default=2)
    parser.add_argument(
        "--pause", type=float, default=4.0, help="seconds between a recovery and the next kill, at most"
    )
    parser.add_argument("--ttft", type=float, default=0.1, help="seconds to the model's first token")
    parser.add_argument("--tps", type=float, default=400.0, help="tokens a second of one request")
    parser.add_argument("--docs", type=Path, default=ROOT / "examples/library")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is stopped then, too
    with (
        tempfile.TemporaryDirectory(prefix="chaos") as folder,
        model_server(Path(folder), args.ttft, args.tps) as (model_url, log),
        Nodes() as nodes,
    ):
        good = asyncio.run(measure(args, Path(folder), nodes, model_url, log))
    left = [pid for pid in tree() if pid != os.getpid()]
    if left:
        print(f"processes left behind: {left}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
