"""How long until work begins: the command's help, a cold start, and a start attached to a running Ray.

    python benchmarks/startup.py [--rounds 2]

Each figure is taken in fresh processes. "First task" is the moment the coordinator has handed a task to an agent,
counted from the start of the process; it stands beside what importing Ray and `ray.init` alone take in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

RAY_ALONE = """
import os, time
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray, logging
ray.init(log_to_driver=False, logging_level=logging.ERROR, **{options!r})
print("AT", time.time())
"""

FIRST_TASK = """
import asyncio, time
from marg_ray.client import Marg, make_request
from marg_ray.settings import load

async def main():
    marg = Marg(load(), offline=True)
    await marg.start()
    started = time.time()
    await marg.runtime.submit("S%d" % time.time_ns(), make_request({question!r}, docs=[{docs!r}], offline=True))
    sessions = await marg.runtime.sessions(1)
    while not (await marg.runtime.progress(sessions[0].id, 0, 0.01)).running:
        pass
    print("AT", time.time(), started)
    marg.close()

asyncio.run(main())
"""


def seconds_until(code: str, env: dict[str, str]) -> tuple[float, float]:
    """Run `code` in a fresh process; seconds from its start to the moment it prints, and to its second moment."""
    began = time.time()
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, cwd=ROOT)
    lines = [line for line in done.stdout.splitlines() if line.startswith("AT ")]
    if not lines:
        raise SystemExit(f"the process said: {done.stderr[-2000:]}")
    at = [float(word) - began for word in lines[0].split()[1:]]
    return at[0], at[-1]


def help_seconds(env: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "marg_ray.cli", "--help"], env=env, capture_output=True, check=True, cwd=ROOT)
    return time.perf_counter() - began


@contextmanager
def running_ray(env: dict[str, str]) -> Iterator[str]:
    """A Ray of its own on this machine, ended afterwards."""
    ray = str(Path(sys.executable).with_name("ray"))
    command = [ray, "start", "--head", "--port=0", "--include-dashboard=false", "--disable-usage-stats"]
    command += ["--object-store-memory", str(256 * 2**20)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    address = re.findall(r"\d+\.\d+\.\d+\.\d+:\d+", done.stdout)[0]
    try:
        yield address
    finally:
        subprocess.run([ray, "stop", "--force"], env=env, capture_output=True, check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    docs = str(ROOT / "examples/library")
    code = FIRST_TASK.format(question="How does tidal power work?", docs=docs)
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "MARG_HOME": home, "MARG_MODEL": "extractive", "PYTHONPATH": str(ROOT)}
        helps = [help_seconds(env) for _ in range(5)]
        print(json.dumps({"marg --help": round(statistics.median(helps), 3)}), flush=True)
        for n in range(args.rounds):
            options: dict[str, object] = {"include_dashboard": False, "object_store_memory": 256 * 2**20}
            alone, _ = seconds_until(RAY_ALONE.format(options=options), env)
            first, started = seconds_until(code, env)
            figures = {
                "round": n + 1,
                "ray alone": alone,
                "started": started,
                "first task": first,
                "beyond ray": first - alone,
            }
            print(json.dumps({k: round(v, 2) for k, v in figures.items()}), flush=True)
        with running_ray(env) as address:
            env["MARG_RUNTIME__RAY_ADDRESS"] = address
            seconds_until(code, env)  # creates the actors
            for n in range(args.rounds):
                alone, _ = seconds_until(RAY_ALONE.format(options={"address": "auto"}), env)
                first, started = seconds_until(code, env)
                figures = {"attached, ray alone": alone, "connected": started, "first task": first}
                print(json.dumps({"round": n + 1} | {k: round(v, 2) for k, v in figures.items()}), flush=True)


if __name__ == "__main__":
    main()
