"""Fifty sessions and two hundred readers of their events over HTTP: does anybody wait for anybody else?

    python benchmarks/http_load.py [--sessions 50] [--readers 200] [--rounds nobody boards ...] [--marg-serve]

The service runs as it is, with the simulated model and search (see `throughput.py`); the readers are a process of their
own that speaks plain HTTP/1.1 and stamps what arrives. A round is one set of sessions:

nobody   the sessions alone
boards   readers as the web page is one: every event, and the board whenever it changes
events   `?board=0`
naive    the usual way, for comparison: each reader's stream asks the coordinator for itself and writes out every event

lag      from the moment the coordinator recorded an event to the moment a reader had it. The coordinator tells what
         happens within a tenth of a second together, so half of that is in every figure
spread   between the first and the last reader of a session to have the same event: what being one of many costs
lost, doubled   event numbers that a reader did not get by the end of its session, or got twice

CPU is that of the process that serves HTTP, by event and reader, less what it needs in the round `nobody`. With
`--marg-serve` the service is the command `marg serve` (Ray Serve's proxy in front; no naive round), else the same
application on a server of this script. `others`: share of the cores that other programs took meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.accounting import Accounts
from benchmarks.processes import memory_mb, tree
from benchmarks.rounds import ROOT, many_sockets
from benchmarks.throughput import Servers, servers
from benchmarks.throughput_case import CASES, SECTIONS

if TYPE_CHECKING:
    from fastapi import FastAPI

NOBODY = "nobody"
PATHS = {NOBODY: "", "boards": "/events", "events": "/events?board=0", "naive": "/naive"}
PARTS = {"ServeReplica": "service", "ProxyActor": "Serve's proxy", "CoordinatorActor": "coordinators"}
SERVING = ("service", "Serve's proxy")
STARTS_WITHIN_S, LOOK_EVERY_S = 600.0, 0.2


# ---- readers, in a process of their own


@dataclass
class Got:
    """What one reader had."""

    session: int
    came: dict[int, float] = field(default_factory=dict)  # event number to moment
    said: dict[int, float] = field(default_factory=dict)  # and the moment it was recorded
    doubled: int = 0
    boards: int = 0
    size: int = 0
    joined: float = 0.0
    ended: bool = False


_EVENT = re.compile(rb"^id: (\d+)\nevent: \w+\ndata: .*?\"at\":\"([^\"]+)\"", re.S)


async def read(port: int, path: str, got: Got) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise SystemExit(f"{path}: {head.decode()}")
        got.joined = time.time()
        async for at, frame in frames(reader):
            got.size += len(frame)
            found = _EVENT.match(frame)
            if found is None:
                got.boards += frame.startswith(b"event: board")
                got.ended = got.ended or frame.startswith(b"event: end")
                continue
            seq = int(found[1])
            got.doubled += seq in got.came
            got.came.setdefault(seq, at)
            got.said[seq] = datetime.fromisoformat(found[2].decode()).timestamp()
    finally:
        writer.close()


async def frames(reader: asyncio.StreamReader) -> AsyncIterator[tuple[float, bytes]]:
    """Each event with the moment it came, until the answer ends."""
    rest = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        rest += (await reader.readexactly(size + 2))[:-2]
        now = time.time()
        *whole, rest = rest.split(b"\n\n")
        for frame in whole:
            yield now, frame


async def read_all(port: int, paths: list[str], readers: int, limit_s: float) -> dict[str, Any]:
    got = [Got(n % len(paths)) for n in range(readers)]
    async with asyncio.timeout(limit_s):
        await asyncio.gather(*(read(port, paths[g.session], g) for g in got))
    return told_of(got)


def told_of(got: list[Got]) -> dict[str, Any]:
    lags = [came - g.said[seq] for g in got for seq, came in g.came.items() if g.said[seq] > g.joined]
    together: dict[tuple[int, int], list[float]] = defaultdict(list)
    for g in got:
        for seq, came in g.came.items():
            if g.said[seq] > g.joined:
                together[g.session, seq].append(came)
    spreads = [max(came) - min(came) for came in together.values() if len(came) > 1]
    moments = [came for g in got for came in g.came.values()] or [0.0]
    by_reader = [statistics.median(ms) for g in got if (ms := [c - g.said[s] for s, c in g.came.items()])]
    last: dict[int, int] = defaultdict(int)
    for g in got:
        last[g.session] = max(last[g.session], *g.came, 0)
    return {
        "events": sum(last.values()),
        "delivered": sum(len(g.came) for g in got),
        "seconds": max(moments) - min(moments),
        "lag": quantiles(lags),
        "spread": quantiles(spreads),
        "readers": quantiles(by_reader),
        "lost": sum(last[g.session] - len(g.came) for g in got),
        "doubled": sum(g.doubled for g in got),
        "boards": sum(g.boards for g in got),
        "mb": sum(g.size for g in got) / 2**20,
        "unended": sum(not g.ended for g in got),
    }


def quantiles(values: list[float]) -> list[float]:
    """Median, 95 % and most, in milliseconds."""
    ordered = sorted(values) or [0.0]
    return [1000 * ordered[round(q * (len(ordered) - 1))] for q in (0.5, 0.95, 1.0)]


# ---- the service, in a process of its own


async def serve_here(args: argparse.Namespace) -> None:
    """The application on a server of this process, with the naive route beside its own."""
    import uvicorn

    from marg_ray.api.routes.events import hub_of
    from marg_ray.client import Marg
    from marg_ray.serve_app import Setup, application
    from marg_ray.settings import load

    settings = load()
    async with Marg(settings) as marg:
        await marg.index([str(args.docs)])
        app = await application(Setup(settings, marg.runtime.choice, (args.docs.resolve(),)))
        add_naive(app)
        config = uvicorn.Config(app, port=args.port, log_level="warning", timeout_graceful_shutdown=2)
        try:
            await uvicorn.Server(config).serve()
        finally:
            hub_of(app).close()
            await asyncio.sleep(0.1)  # for those that were cancelled, while Ray is there


def add_naive(app: FastAPI) -> None:
    """A stream for each reader, straight from the coordinator."""
    from starlette.responses import StreamingResponse

    from marg_ray.api.narrate import public
    from marg_ray.api.streams import OVER

    sessions = app.state.service.sessions

    async def stream(session_id: str) -> AsyncIterator[str]:
        after, status = 0, ""
        while status not in OVER:
            progress = await sessions.progress(session_id, after, 10.0)
            for entry in progress.entries:
                after = entry.seq
                data = json.dumps(public(entry), separators=(",", ":"))
                yield f"id: {entry.seq}\nevent: {entry.message.kind}\ndata: {data}\n\n"
            status = progress.status
        yield "event: end\ndata: {}\n\n"

    async def naive(session_id: str) -> StreamingResponse:
        return StreamingResponse(stream(session_id), media_type="text/event-stream")

    app.add_api_route("/v1/research/{session_id}/naive", naive, include_in_schema=False)


@contextlib.contextmanager
def service(args: argparse.Namespace, served: Servers, home: str) -> Iterator[tuple[int, int]]:
    """The service under test; its process and port."""
    port = free_port()
    env = {**os.environ, "MARG_HOME": home, "MARG_MODEL": f"{served.model_url}:simulated", "RAY_worker_niceness": "0"}
    env |= {"MARG_SEARCH__ENGINES": '["searxng"]', "MARG_SEARCH__SEARXNG_URL": served.search_url}
    env |= {"MARG_SEARCH__PER_MINUTE": "1000000", "MARG_SEARCH__AT_ONCE": "1000", "MARG_CACHE__REPORT_S": "0"}
    env |= {"MARG_MODELS__CONCURRENCY": "4000", "MARG_ADMISSION__SESSIONS": "1000", "MARG_CACHE__SEARCH_S": "0"}
    env |= {"MARG_SERVICE__PER_MINUTE": "1000000"}  # all readers and sessions come from one address
    own = [str(Path(__file__).resolve()), "--serve", "--port", str(port), "--docs", str(args.docs)]
    command = ["-m", "marg_ray.cli", "serve", "--port", str(port), "--docs", str(args.docs), "--no-open"]
    process = subprocess.Popen([sys.executable, *(command if args.marg_serve else own)], env=env, cwd=ROOT)
    try:
        wait_for(port, process)
        yield process.pid, port
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=10):
                return
        except OSError:
            time.sleep(LOOK_EVERY_S)
    raise SystemExit("the service did not start")


def parts_of(root: int, *, own: bool) -> dict[int, str]:
    """The processes that are accounted for by name."""
    found = {root: "service"} if own else {}
    for pid in tree(root):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace")
        except OSError:
            continue
        found.setdefault(pid, next((part for mark, part in PARTS.items() if f"ray::{mark}" in command), "rest"))
    return found


# ---- a round


def ask(port: int, number: int, case: int) -> list[str]:
    """Start `number` sessions; their paths."""
    paths = []
    for n in range(number):
        chosen = CASES[(case + n) % len(CASES)]
        outline = [{"title": title, "queries": chosen.queries(title)} for title in SECTIONS]
        body = {"question": chosen.question, "outline": outline, "sources": {"web": True}, "fresh": True}
        data, kind = json.dumps(body).encode(), {"Content-Type": "application/json"}
        with urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{port}/v1/research", data, kind), timeout=60
        ) as answer:
            paths.append(str(json.load(answer)["links"]["self"]))
    return paths


def measure(kind: str, args: argparse.Namespace, root: int, port: int, served: Servers, case: int) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).resolve()), "--read"]
    readers = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        names = parts_of(root, own=not args.marg_serve)
        with Accounts({"runtime": root, **served.pids, "readers": readers.pid}, names) as accounts:
            paths = ask(port, args.sessions, case)
            job = {"port": port, "paths": [path + PATHS[kind] for path in paths], "readers": args.readers}
            if kind == NOBODY:
                wait_until_over(port, paths, args.limit)
                job["readers"] = 0
            said, _ = readers.communicate(json.dumps(job | {"limit_s": args.limit}), timeout=args.limit + 60)
        if not said:
            raise SystemExit(f"the readers ended with {readers.returncode}")
    finally:
        readers.kill()
        readers.wait()
    found: dict[str, Any] = json.loads(said)
    serving = [pid for pid, part in names.items() if part in SERVING]
    cpu = accounts.seconds()
    return found | {
        "round": kind,
        "cpu": cpu,
        "serving_s": sum(cpu.get(part, 0.0) for part in SERVING),
        "memory_mb": sum(memory_mb([pid]) for pid in serving),
        "others": accounts.others,
    }


def wait_until_over(port: int, paths: list[str], limit_s: float) -> None:
    until, left = time.monotonic() + limit_s, {path.rpartition("/")[2] for path in paths}
    while left and time.monotonic() < until:
        time.sleep(1.0)
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/v1/research?status=running&limit=500", timeout=60
        ) as said:
            left &= {session["id"] for session in json.load(said)["sessions"]}


HEAD = (
    f"{'round':8}{'events':>8}{'delivered/s':>13}{'lag ms p50':>12}{'p95':>7}{'max':>7}{'spread p50':>12}{'p95':>7}"
    f"{'max':>7}{'lost':>6}{'doubled':>9}{'boards':>8}{'MB':>6}{'CPU us':>8}{'memory MB':>11}{'others':>8}"
)


def print_row(m: dict[str, Any], alone_s: float) -> None:
    """`alone_s`: CPU seconds of the serving process without readers."""
    m["cpu_us"] = 1e6 * max(0.0, m["serving_s"] - alone_s) / (m["delivered"] or 1)
    lag, spread = ("".join(f"{ms:>{width}.0f}" for ms, width in zip(m[k], (12, 7, 7), strict=True)) for k in LATENESS)
    print(
        f"{m['round']:8}{m['events']:>8}{m['delivered'] / (m['seconds'] or 1):>13.0f}{lag}{spread}{m['lost']:>6}"
        f"{m['doubled']:>9}{m['boards']:>8}{m['mb']:>6.0f}{m['cpu_us']:>8.0f}{m['memory_mb']:>11.0f}{m['others']:>8.0%}",
        flush=True,
    )


LATENESS = ("lag", "spread")


def run(args: argparse.Namespace) -> None:
    rounds = [kind for kind in args.rounds if kind != "naive" or not args.marg_serve]
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as home,
        servers(args, Path(folder)) as served,
        service(args, served, home) as (root, port),
    ):
        measure("events", argparse.Namespace(**vars(args) | {"sessions": 1, "readers": 1}), root, port, served, 0)
        print(f"{args.sessions} sessions, {args.readers} readers, {'marg serve' if args.marg_serve else 'own server'}")
        print(HEAD, flush=True)
        found = []
        for n, kind in enumerate(rounds):
            found.append(measure(kind, args, root, port, served, 1 + n * args.sessions))
            print_row(found[-1], next((m["serving_s"] for m in found if m["round"] == NOBODY), 0.0))
    tell(found)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))


def tell(found: list[dict[str, Any]]) -> None:
    by_round = {m["round"]: m for m in found}
    for m in found:
        parts = ", ".join(f"{part} {s:.1f}" for part, s in m["cpu"].items())
        print(f"{m['round']}: CPU s: {parts}")
        if m["round"] == NOBODY:
            continue
        least, most = m["readers"][0], m["readers"][2]
        print(f"{m['round']}: the median lag of a reader is {least:.0f} ms, of the last one {most:.0f} ms")
        if m["unended"]:
            print(f"{m['round']}: {m['unended']} streams ended without an end")
    if "naive" in by_round:
        for kind in set(by_round) - {"naive", NOBODY}:
            ratio = by_round["naive"]["cpu_us"] / (by_round[kind]["cpu_us"] or 1)
            print(f"CPU of the serving process, by event and reader: naive is {ratio:.1f} times {kind}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=50, help="at once")
    parser.add_argument("--readers", type=int, default=200, help="spread over the sessions")
    parser.add_argument("--rounds", nargs="+", choices=PATHS, default=list(PATHS))
    parser.add_argument("--marg-serve", action="store_true", help="the command itself, behind Ray Serve's proxy")
    parser.add_argument("--ttft", type=float, default=0.5, help="seconds to the first token")
    parser.add_argument("--tps", type=float, default=60.0, help="tokens a second of one request")
    parser.add_argument("--search", type=float, default=0.3, help="seconds of a web search")
    parser.add_argument("--results", type=int, default=10, help="of a web search")
    parser.add_argument("--jitter", type=float, default=0.8, help="sigma of a log-normal factor on all latencies")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that a round may take")
    parser.add_argument("--docs", type=Path, default=ROOT / "examples/library")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    for hidden in ("--serve", "--read"):
        parser.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    many_sockets()
    if args.serve:
        with contextlib.suppress(KeyboardInterrupt):  # how it is ended
            asyncio.run(serve_here(args))
    elif args.read:
        job = json.loads(sys.stdin.read())
        print(json.dumps(asyncio.run(read_all(job["port"], job["paths"], job["readers"], job["limit_s"]))))
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # what was started is ended first
        run(args)


if __name__ == "__main__":
    main()
