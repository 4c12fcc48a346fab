"""What telemetry costs: CPU time of whole runs with it, as a ratio to the same runs without.

    python benchmarks/telemetry_cost.py [--rounds 15]

Real agents, coordinator and ledger in one process, on a model that answers at once, so that a run is CPU time and
nothing else. The ways take turns, so that whatever else the machine does meets all of them; the least of each is
compared, because others can only add to it.
`without` has every function of telemetry replaced by one that does nothing. Lines go to a file.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from marg_ray.actors.trace import trace_of
from marg_ray.settings import TelemetrySettings
from marg_ray.sources.web import search as web_search
from marg_ray.telemetry import events, lines
from marg_ray.telemetry.exposition import exposition
from marg_ray.telemetry.figures import FIGURES, Figures
from marg_ray.telemetry.otlp import readable
from tests.flow import TIDES, World, engine_over, page

PAGES = 12


def nothing(*_: Any, **__: Any) -> None:
    return None


class NoTool:
    """Stands for `events.tool`."""

    def __init__(self, *_: Any) -> None:
        self.fields, self.usage = {}, None

    def __enter__(self) -> NoTool:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


@contextlib.contextmanager
def without() -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name in ("handed_out", "handed_out_again", "recorded", "ended", "model_tried"):
            stack.enter_context(mock.patch.object(events, name, nothing))
        stack.enter_context(mock.patch.object(events, "tool", NoTool))
        stack.enter_context(mock.patch.object(events, "fetching", contextlib.nullcontext))
        stack.enter_context(mock.patch.object(web_search, "searched", nothing))
        for name in ("count", "observe", "set"):
            stack.enter_context(mock.patch.object(Figures, name, nothing))
        yield


@contextlib.contextmanager
def lines_at(level: str, log_format: str, folder: Path) -> Iterator[None]:
    file = str(folder / f"{level}-{log_format}")
    how = TelemetrySettings.model_validate({"log_level": level, "log_format": log_format, "log_file": file})
    lines.configure(how, actor="benchmark")
    try:
        yield
    finally:
        lines.reset()


WAYS = ("without", "default", "info, text", "info, json", "debug, json")


def way(name: str, folder: Path) -> contextlib.AbstractContextManager[None]:
    if name == "without":
        return without()
    level, _, log_format = name.partition(", ")
    return lines_at("warning", "text", folder) if name == "default" else lines_at(level, log_format, folder)


def world(folder: Path) -> World:
    """Enough pages that a run has as many tasks as a real one."""
    texts = {f"{url}/{n}": text for n in range(PAGES // 2) for url, text in TIDES.items()}
    return World(folder, pages={url: page(*text) for url, text in texts.items()}, engines=(engine_over(texts),))


async def run(folder: Path) -> World:
    made = world(folder)
    await made.ask(depth="standard")
    return made


def measure(rounds: int) -> tuple[dict[str, list[float]], World]:
    cpu: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        last = asyncio.run(run(folder / "warm"))
        for n in range(rounds):
            for offset in range(len(WAYS)):
                chosen = WAYS[(n + offset) % len(WAYS)]
                gc.collect()
                with way(chosen, folder):
                    began = time.process_time()
                    last = asyncio.run(run(folder / f"{n}-{offset}"))
                    cpu[chosen].append(time.process_time() - began)
    return cpu, last


async def looked_at(done: World) -> tuple[float, float, int]:
    """Seconds to make a trace of the run and to make it ready for a collector, and the number of its spans."""
    entries, calls = await done.store.read("S"), await done.store.calls("S")
    readable(trace_of("S", entries, calls))  # loads what it needs
    began = time.process_time()
    trace = trace_of("S", entries, calls)
    made = time.process_time()
    readable(trace)
    return made - began, time.process_time() - made, len(trace.spans)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    cpu, done = measure(parser.parse_args().rounds)
    base = min(cpu["without"])
    print(f"CPU time of a report, in one process: {base * 1000:.0f} ms without telemetry; with it:")
    for name in WAYS:
        ratios = [one / other for one, other in zip(cpu[name], cpu["without"], strict=True)]
        print(f"  {name:12s} {min(cpu[name]) / base:6.3f}   (median of pairs {statistics.median(ratios):.3f})")
    made, ready, spans = asyncio.run(looked_at(done))
    print(f"a trace of {spans} spans, when it is wanted: {made / base:.3f}; made ready to send: {ready / base:.3f}")
    began = time.process_time()
    size = len(exposition({f"worker:{n}": FIGURES.taken() for n in range(12)}))
    print(f"a scrape of 12 processes: {(time.process_time() - began) * 1000:.0f} ms, {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
