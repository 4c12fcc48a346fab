"""What a report costs beyond the model: wall time against the critical path of the model's own time.

    python benchmarks/overhead.py [--docs FOLDER] [--ttft 0.4] [--tps 80] [--rounds 3]

Runs whole reports on a real Ray with the model simulated in a process of its own. Prints, for each round, wall time,
critical path, their ratio, CPU seconds and peak memory; start-up is measured apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.critical_path import critical_path
from benchmarks.processes import PeakMemory, cpu_seconds, tree
from marg_ray.actors.coordinator import new_session_id
from marg_ray.client import Marg, error_of, make_request
from marg_ray.settings import load

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = (
    "What are the environmental effects of tidal barrages?",
    "How does tidal power compare with offshore wind in cost and output?",
    "Which tidal power stations have been built, and how much do they produce?",
)


def simulated_server(args: argparse.Namespace, log: Path) -> tuple[subprocess.Popen[str], str]:
    """The server as a process of its own, so that its work is not counted as ours; returns its address."""
    command = [sys.executable, "-u", str(ROOT / "benchmarks/simulated_llm.py"), "--log", str(log)]
    command += ["--ttft", str(args.ttft), "--tps", str(args.tps), "--jitter", str(args.jitter)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert server.stdout is not None
    line = server.stdout.readline()
    return server, line[line.index("http") :].split()[0].removesuffix(":simulated")


def model_seconds(log: Path, since: int) -> tuple[dict[str, float], int, float]:
    """Seconds per task id from the lines after `since`, how many lines there are now, and the model's time in all."""
    lines = log.read_text().splitlines() if log.exists() else []
    weights: dict[str, float] = {}
    for line in lines[since:]:
        entry = json.loads(line)
        weights[entry["caller"]] = weights.get(entry["caller"], 0.0) + entry["end"] - entry["start"]
    return weights, len(lines), sum(weights.values())


async def one_round(marg: Marg, question: str, args: argparse.Namespace, log: Path, lines: int) -> dict[str, Any]:
    session_id = new_session_id()
    request = make_request(question, docs=[args.docs], depth=args.depth, web=False)
    ours = tree()
    cpu, began = cpu_seconds(ours), time.perf_counter()
    with PeakMemory() as memory:
        async for step in marg.run(session_id, request):
            last = step
        wall = time.perf_counter() - began
    error = error_of(last.state, session_id)
    if error is not None:
        raise error
    entries = (await marg.runtime.progress(session_id)).entries
    weights, lines, in_all = model_seconds(log, lines)
    path, chain = critical_path([e.message for e in entries], weights)
    if args.chain:
        for task in chain:
            print(f"    {weights.get(task, 0.0):6.2f} s  {task}")
    return {
        "wall_s": round(wall, 2),
        "critical_path_s": round(path, 2),
        "ratio": round(wall / path, 3),
        "model_s_in_all": round(in_all, 1),
        "calls": len(weights),
        "cpu_s": round(cpu_seconds() - cpu, 2),
        "peak_mb": round(memory.mb),
        "lines": lines,
    }


async def run(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests.jsonl"
        server, address = simulated_server(args, log)
        try:
            settings = load(home=Path(folder) / "home", model=f"{address}:simulated")
            began = time.perf_counter()
            async with Marg(settings) as marg:
                print(f"start-up: Ray and handles {time.perf_counter() - began:.2f} s", flush=True)
                began = time.perf_counter()
                await marg.index([str(args.docs)])
                print(f"index of {args.docs}: {time.perf_counter() - began:.2f} s", flush=True)
                lines = 0
                for n in range(args.rounds):
                    figures = await one_round(marg, QUESTIONS[n % len(QUESTIONS)], args, log, lines)
                    lines = figures.pop("lines")
                    print(json.dumps({"round": n + 1, **figures}), flush=True)
        finally:
            server.terminate()
            server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--docs", type=Path, default=ROOT / "examples/library")
    parser.add_argument("--depth", default="standard", choices=["overview", "standard", "deep"])
    parser.add_argument("--ttft", type=float, default=0.4, help="seconds to the first token")
    parser.add_argument("--tps", type=float, default=80.0, help="tokens a second of one request")
    parser.add_argument("--jitter", type=float, default=0.0, help="sigma of a log-normal factor on the times")
    parser.add_argument("--rounds", type=int, default=3, help="the first one warms the processes")
    parser.add_argument("--chain", action="store_true", help="print the tasks of the critical path")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
