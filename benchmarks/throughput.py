"""One, ten, fifty sessions at once: MARG-Ray beside the usual LangGraph pipeline, in the same run.

    pip install langgraph
    python benchmarks/throughput.py [--sessions 1 10 50] [--jitter 0.8] [--systems ours parallel ...]

The model and the web search are simulated, each in a process of its own, with set speeds; so what is measured is the
machinery. A system is a process of its own too: its CPU is counted by part, and the servers' apart from it.

What is equal: the questions, the outline (5 sections of 3 sub-queries), the words asked for, the length of answers to
the same kind of call, the latency and number of results of a search, a critic that sends two sections back once.

(A reader's answer names sentences by number; the baseline's copies them, as such pipelines do, and so is longer.)

What is not: MARG-Ray reads sources and keeps verbatim quotes, looks at the sources before it plans (a search), checks
every sentence, and analyses across sources. The baseline writes from snippets; with `+reading` it reads as many pages
and extracts claims from them, which makes the chains comparable. The chain of each is printed with its calls.

Pages: MARG-Ray fetches nothing from a loopback address, by design. It searches the simulated web like the baseline, and
ranks what comes, but its documents are the library in `examples/library`, indexed before the clock starts; what the web
returns (pottery) ranks below them and is not fetched. The baseline gets its pages without latency. Library searches are
extra work on our side.

`chain`: the longest path of calls that depend on each other, at the speeds that the servers logged, the median session.
No program can be faster. `p50` and so on are of N sessions that start together; `others` is the share of the cores that
other programs took meanwhile: where it is not near zero, times say little.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.accounting import Accounts
from benchmarks.critical_path import longest_chain
from benchmarks.rounds import ROOT, Child, Ran, serve
from benchmarks.throughput_case import CASES, SECTIONS

BASELINES = {
    "parallel": ("parallel",),
    "parallel+scoring": ("parallel", "--scoring"),
    "parallel+reading": ("parallel", "--reading"),
    "parallel+reading+scoring": ("parallel", "--reading", "--scoring"),
    "sequential": ("sequential",),
    "sequential+scoring": ("sequential", "--scoring"),
}
OURS = "ours"
SYSTEMS = (OURS, *BASELINES)


# ---- the servers


@dataclass
class Servers:
    """The simulated model and search, with what they logged."""

    folder: Path
    model_url: str = ""
    search_url: str = ""
    pids: dict[str, int] = field(default_factory=dict)
    _read: dict[str, int] = field(default_factory=dict)

    def lines(self, name: str) -> list[dict[str, Any]]:
        """What a server logged since the last look."""
        log = self.folder / f"{name}.jsonl"
        new = log.read_text().splitlines()[self._read.get(name, 0) :] if log.exists() else []
        self._read[name] = self._read.get(name, 0) + len(new)
        return [json.loads(line) for line in new]


@contextmanager
def servers(args: argparse.Namespace, folder: Path) -> Iterator[Servers]:
    jitter = ["--jitter", str(args.jitter)]
    speeds = ["--ttft", str(args.ttft), "--tps", str(args.tps), *jitter, "--log", str(folder / "model.jsonl")]
    search = ["--latency", str(args.search), *jitter, "--log", str(folder / "search.jsonl")]
    started = [
        _server("simulated_critic.py", *speeds),
        _server("simulated_search.py", *search, "--results", str(args.results)),
    ]
    try:
        (model, model_url), (web, search_url) = started
        pids = {"model server": model.pid, "search server": web.pid}
        yield Servers(folder, model_url, search_url, pids)
    finally:
        for process, _ in started:
            process.terminate()
            process.wait()


def _server(script: str, *options: str) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-u", str(ROOT / "benchmarks" / script), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


# ---- our side


async def run_ours(args: argparse.Namespace) -> None:
    """The child process: a runtime that takes rounds of sessions."""
    os.environ.setdefault(
        "RAY_worker_niceness", "0"
    )  # Ray's processes would yield to everything; the baseline does not
    from marg_ray.client import Marg
    from marg_ray.records import OutlineEntry
    from marg_ray.settings import load

    search = {"engines": ("searxng",), "searxng_url": args.search_url, "per_minute": 1_000_000, "at_once": 1_000}
    settings = load(  # limits that the baseline does not have are lifted, and what is kept of answers is not used
        home=args.home,
        model=f"{args.model_url}:simulated",
        search=search,
        models={"concurrency": 4000},
        admission={"sessions": 1000},
        cache={"report_s": 0, "search_s": 0},
    )
    async with Marg(settings) as marg:
        await marg.index([str(args.docs)])

        async def session(number: int) -> Ran:
            case = CASES[number]
            outline = tuple(OutlineEntry(title=t, queries=case.queries(t)) for t in SECTIONS)
            report = await marg.research(case.question, docs=[args.docs], web=True, outline=outline)
            words = sum(len(s.text.split()) for section in report.sections for s in section.sentences)
            return Ran(session_id=report.session_id, words=words)

        await serve(session, lambda: {"names": _actors()})


def read_tasks(home: Path, ran: list[Ran]) -> None:
    """What the sessions did, from their logs. After the clock has stopped: a session is not slower for being told."""
    from marg_ray.messages import SearchDone
    from marg_ray.sources.queries import search_query
    from marg_ray.store.sql import SqlStore, sqlite_url

    async def read() -> None:
        store = await SqlStore.open(sqlite_url(home / "marg.db"))
        for one in ran:
            said = [e.message for e in await store.read(one.session_id)] if one.session_id else []
            one.tasks = [(m.task_id, search_query(m.query) if isinstance(m, SearchDone) else "") for m in said]
        await store.close()

    asyncio.run(read())


def _actors() -> dict[int, str]:
    """Process ids of our actors, with the part they are counted as."""
    import ray._private.state as state

    alive = [actor for actor in state.actors().values() if actor["State"] == "ALIVE"]
    return {int(actor["Pid"]): actor["Name"] for actor in alive}


# ---- measuring


@dataclass
class Measured:
    """One system with N sessions at once."""

    system: str
    sessions: int
    wall_s: float
    walls: list[float]
    chains: list[float]
    calls: dict[str, tuple[int, float]]  # kind of call to number a report and seconds a call
    chain: list[tuple[str, float]]  # of one session: task and seconds
    failed: list[str]
    words: int
    cpu: dict[str, float]  # seconds a report
    memory: dict[str, float]
    others: float = 0.0  # share of the cores that other programs took meanwhile

    @property
    def ended(self) -> int:
        return self.sessions - len(self.failed)

    def quantile(self, q: float) -> float:
        ordered = sorted(self.walls)
        return ordered[min(len(ordered) - 1, round(q * (len(ordered) - 1)))]


def weights_of(ran: Ran, model: list[dict[str, Any]], searches: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds that each task of a session waited for a server."""
    mine = {task for task, _ in ran.tasks}
    weights: dict[str, float] = defaultdict(float)
    for line in model:
        if line["caller"] in mine:
            weights[line["caller"]] += line["end"] - line["start"]
    by_query: dict[str, list[float]] = defaultdict(list)
    for line in searches:
        by_query[line["caller"] or line["query"]].append(line["end"] - line["start"])
    for task, query in ran.tasks:
        waited = by_query.get(task) or by_query.get(query)
        if query and waited:
            weights[task] += statistics.median(waited)
    return dict(weights)


def measure(
    system: str, child: Child, served: Servers, cases: list[int], names: dict[int, str], home: Path
) -> Measured:
    with Accounts({system: child.pid, **served.pids}, names) as accounts:
        wall, ran, told = child.run(cases)
    names.update({int(pid): name for pid, name in told.get("names", {}).items()})
    accounts.names.update(names)
    if system == OURS:
        read_tasks(home, ran)
    model, searches = served.lines("model"), served.lines("search")
    good = [r for r in ran if not r.error]
    chains, example = [], []
    for r in good:
        weights = weights_of(r, model, searches)
        seconds, tasks = longest_chain(r.session_id, [t for t, _ in r.tasks], weights)
        chains.append(seconds)
        example = [(t.removeprefix(r.session_id + "/"), weights[t]) for t in tasks if t in weights]
    kinds = Counter(line["task"] for line in model)
    spent = {k: statistics.mean(m["end"] - m["start"] for m in model if m["task"] == k) for k in kinds}
    calls = {k: (round(n / len(ran)), spent[k]) for k, n in kinds.items()}
    return Measured(
        system=system,
        sessions=len(ran),
        wall_s=wall,
        walls=[r.wall_s for r in ran],
        chains=chains or [0.0],
        calls=calls | {"search": (round(len(searches) / len(ran)), _mean(searches))},
        chain=example,
        failed=[r.error for r in ran if r.error],
        words=round(statistics.mean(r.words for r in good)) if good else 0,
        cpu={part: s / len(ran) for part, s in accounts.seconds().items()},
        memory={"all": accounts.peak_mb, **accounts.peak_by_part},
        others=accounts.others,
    )


def _mean(lines: list[dict[str, Any]]) -> float:
    return statistics.mean(m["end"] - m["start"] for m in lines) if lines else 0.0


def measure_system(system: str, args: argparse.Namespace, served: Servers) -> list[Measured]:
    """A warm-up session, then each number of sessions, in one process."""
    with tempfile.TemporaryDirectory() as home:
        child = Child(*_command(system, args, served, home))
        names: dict[int, str] = {}
        found = []
        try:
            next_case = 1
            measure(system, child, served, [0], names, Path(home))  # warms the processes
            for number in args.sessions:
                cases = [(next_case + n) % len(CASES) for n in range(number)]
                next_case += number
                found.append(measure(system, child, served, cases, names, Path(home)))
                print_row(found[-1], found[0])
        finally:
            child.close()
    return found


def _command(system: str, args: argparse.Namespace, served: Servers, home: str) -> list[str]:
    if system == OURS:
        options = ["--home", home, "--docs", str(args.docs)]
        addresses = ["--model-url", served.model_url, "--search-url", served.search_url]
        return [str(Path(__file__).resolve()), "--child", *addresses, *options]
    script = str(ROOT / "benchmarks/baseline_langgraph.py")
    name = "lg" + "".join(word[0] for word in system.split("+"))
    return [script, *BASELINES[system], "--name", name, "--model", served.model_url, "--search", served.search_url]


# ---- showing


HEAD = (
    f"{'system':26}{'N':>4}{'ended':>7}{'chain':>8}{'p50':>8}{'p95':>8}{'max':>8}{'p50/chain':>11}{'p50/single':>12}"
    f"{'rep/min':>9}{'CPU s/rep':>11}{'peak MB':>9}{'words':>7}{'others':>8}"
)


def own_cpu(m: Measured) -> float:
    """Without the simulated servers."""
    return sum(s for part, s in m.cpu.items() if not part.endswith(" server"))


def print_row(m: Measured, single: Measured) -> None:
    chain, p50 = statistics.median(m.chains), m.quantile(0.5)
    ratio = p50 / single.quantile(0.5) if single.sessions == 1 else float("nan")
    print(
        f"{m.system:26}{m.sessions:>4}{f'{m.ended}/{m.sessions}':>7}{chain:>8.1f}{p50:>8.1f}{m.quantile(0.95):>8.1f}"
        f"{max(m.walls):>8.1f}{p50 / (chain or 1):>11.2f}{ratio:>12.2f}{60 * m.ended / m.wall_s:>9.1f}"
        f"{own_cpu(m):>11.2f}{m.memory['all']:>9.0f}{m.words:>7}{m.others:>8.0%}",
        flush=True,
    )
    for why, times in Counter(m.failed).items():
        print(f"    {times} x {why}", flush=True)


def print_parts(all_of: list[Measured]) -> None:
    print("\nCPU seconds a report, by part (memory in MB at the peak)")
    for m in all_of:
        parts = ", ".join(
            f"{part} {s:.2f}" + (f" ({m.memory[part]:.0f})" if part in m.memory else "") for part, s in m.cpu.items()
        )
        print(f"  {m.system}, {m.sessions} at once: {parts}")
    print("\nThe chain of one session: what waits for what, seconds of each call")
    for m in all_of:
        if m.sessions == 1:
            steps = " > ".join(f"{task} {seconds:.1f}" for task, seconds in m.chain)
            print(f"  {m.system}: {steps}")
            calls = ", ".join(f"{n} {kind} ({s:.1f} s)" for kind, (n, s) in m.calls.items())
            print(f"    all calls: {calls}")


def run(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder, servers(args, Path(folder)) as served:
        kind = f"log-normal latencies, sigma {args.jitter:g}" if args.jitter else "equal latencies"
        print(f"{kind}: first token {args.ttft:g} s, {args.tps:g} tokens/s, search {args.search:g} s")
        print(HEAD, flush=True)
        all_of = [m for system in args.systems for m in measure_system(system, args, served)]
        print_parts(all_of)
        if args.json:
            args.json.write_text(json.dumps([vars(m) for m in all_of], indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 10, 50], help="at once")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--ttft", type=float, default=0.5, help="seconds to the first token")
    parser.add_argument("--tps", type=float, default=60.0, help="tokens a second of one request")
    parser.add_argument("--search", type=float, default=0.3, help="seconds of a web search")
    parser.add_argument("--results", type=int, default=10, help="of a web search")
    parser.add_argument("--jitter", type=float, default=0.0, help="sigma of a log-normal factor on all latencies")
    parser.add_argument("--docs", type=Path, default=ROOT / "examples/library")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    for hidden in ("--model-url", "--search-url", "--home"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        asyncio.run(run_ours(args))
    else:
        run(args)


if __name__ == "__main__":
    main()
