"""What one call costs in CPU: the model client beside openai's, the making of a prompt, the ledger's and log's entries.

    python benchmarks/call_cost.py [--calls 400] [--at-once 20] [--only clients|prompts|ledger|log|requests]

The model is simulated in a process of its own, so that its work is not counted. openai's client is measured where it
is installed (`pip install 'openai[aiohttp]'`); it is asked for the raw reply, as a client that reads replies itself
would. All figures are milliseconds of CPU per call, this process's only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from marg_ray.actors.entries import BatchedLedger, Begin, End, Entry, Outcome  # noqa: E402
from marg_ray.actors.ledger import LedgerBook  # noqa: E402
from marg_ray.grounding.snapshots import Document  # noqa: E402
from marg_ray.messages import SearchDone, SessionStarted  # noqa: E402
from marg_ray.models.client import Call  # noqa: E402
from marg_ray.models.endpoints import Endpoint  # noqa: E402
from marg_ray.models.exchange import Ask  # noqa: E402
from marg_ray.models.openai_api import OpenAIModel  # noqa: E402
from marg_ray.models.tasks import ExtractClaims, Passage  # noqa: E402
from marg_ray.models.wrappers import asked  # noqa: E402
from marg_ray.records import Limits, Request, Role, Usage  # noqa: E402
from marg_ray.seams import Begun, CallKey, paid  # noqa: E402
from marg_ray.settings import ModelSettings  # noqa: E402
from marg_ray.store.memory import MemoryStore  # noqa: E402
from marg_ray.store.protocol import Store  # noqa: E402
from marg_ray.store.sql import SqlStore, sqlite_url  # noqa: E402

WORDS = 1400  # of a prompt that reads a source
PASSAGES = 10
SENTENCE = (
    "The barrage at the river’s mouth has produced about 540 GWh of power a year – enough for a town – since 1966. "
)
One = Callable[[int], Awaitable[object]]


def extract_task(n: int = 0) -> ExtractClaims:
    """A task of the kind that a report has most of."""
    words = (SENTENCE * (WORDS // len(SENTENCE.split()) + 1)).split()[:WORDS]
    size = WORDS // PASSAGES
    texts = [" ".join(words[at : at + size]) for at in range(0, WORDS, size)]
    passages = [Passage(text=t, start=i * 1000, end=i * 1000 + len(t), score=1.0) for i, t in enumerate(texts)]
    return ExtractClaims(
        question=f"How much power do tidal barrages produce ({n})?",
        section_title="Power",
        queries=("tidal barrage output", "annual energy of barrages"),
        source_title="Tidal power in figures",
        passages=tuple(passages),
        document=Document(title="Tidal power", text=" ".join(texts), parts=()),
    )


async def cpu_ms(one: One, calls: int, at_once: int) -> float:
    """CPU of this process for one call of `one`, in milliseconds, when `at_once` of them are under way."""
    slots = asyncio.Semaphore(at_once)

    async def slotted(n: int) -> None:
        async with slots:
            await one(n)

    await asyncio.gather(*(slotted(-n) for n in range(1, at_once + 1)))  # warms connections and caches
    began = time.process_time()
    await asyncio.gather(*(slotted(n) for n in range(calls)))
    return (time.process_time() - began) * 1000 / calls


# ---- the model client


def server() -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-u", str(ROOT / "benchmarks/simulated_llm.py"), "--ttft", "0.05"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    return process, process.stdout.readline().strip().removesuffix(":simulated")


def an_ask(task: ExtractClaims, model: OpenAIModel) -> Ask:
    from marg_ray.models.packing import pack

    messages = pack(task, 30_000).prompt.messages()
    return Ask(messages=messages, max_tokens=1024, temperature=0.2, name=task.template, output=task.output)


def openai_client(base_url: str, connections: int) -> Any:
    try:
        import httpx2
        import openai
    except ImportError:
        return None
    limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
    http = openai.DefaultAioHttpClient(limits=limits, trust_env=False)
    return openai.AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0, http_client=http)


async def clients(calls: int, at_once: int) -> None:
    process, base_url = server()
    try:
        endpoint = Endpoint(provider="sim", model="simulated", base_url=base_url)
        model = OpenAIModel(endpoint, ModelSettings(concurrency=at_once))
        ask = an_ask(extract_task(), model)

        async def listen(_: str) -> None: ...

        async def whole(_: int) -> None:
            await model.exchange.ask(ask)

        async def streamed(_: int) -> None:
            await model.exchange.ask(ask, listen)

        show("client, ours: a reply in one piece", await cpu_ms(whole, calls, at_once))
        show("client, ours: a reply streamed", await cpu_ms(streamed, calls, at_once))
        await model.aclose()
        if (client := openai_client(base_url, at_once)) is None:
            print("client, openai: not installed")
            return
        schema = json.loads(model.exchange.schema(ask.name, extract_task().output))
        body = {"model": "simulated", "messages": ask.messages, "max_tokens": 1024, "temperature": 0.2}

        async def theirs(_: int) -> None:
            create = client.chat.completions.with_raw_response.create
            raw = await create(**body, extra_body={"response_format": schema})
            json.loads(raw.http_response.text)

        async def theirs_streamed(_: int) -> None:
            create = client.chat.completions.with_streaming_response.create
            async with create(**body, stream=True, extra_body={"response_format": schema}) as response:
                async for line in response.iter_lines():
                    if line.startswith("data: {"):
                        json.loads(line[6:])

        show("client, openai: a reply in one piece", await cpu_ms(theirs, calls, at_once))
        show("client, openai: a reply streamed", await cpu_ms(theirs_streamed, calls, at_once))
        await client.close()
    finally:
        process.terminate()
        process.wait()


_LOAD = """
import sys, time
sys.path.insert(0, {root!r})
import marg_ray.models.openai_api
from benchmarks.processes import memory_mb
import os
before, began = memory_mb([os.getpid()]), time.process_time()
{imports}
print(time.process_time() - began, memory_mb([os.getpid()]) - before)
"""


def loading(what: str, imports: str) -> None:
    code = _LOAD.format(root=str(ROOT), imports=imports)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        print(f"{what}: not installed")
        return
    seconds, megabytes = map(float, done.stdout.split())
    print(f"{what:<58} {seconds:8.2f} s CPU {megabytes:6.1f} MB")


# ---- prompts


async def prompts(calls: int) -> None:
    endpoint = Endpoint(provider="sim", model="simulated", base_url="http://127.0.0.1:9/v1")
    model = OpenAIModel(endpoint, ModelSettings())
    tasks = {n: extract_task(n) for n in range(-1, calls)}
    call = Call(session_id="s", task_id="t")

    async def key(n: int) -> None:
        CallKey.of("s", "model", Role.RESEARCHER, "ExtractClaims", asked(tasks[n]), "sim")

    async def quote(n: int) -> None:
        await model.quote(tasks[n], call)

    show("prompt: the key of what is asked", await cpu_ms(key, calls, 1))
    show("prompt: rendered, packed and quoted", await cpu_ms(quote, calls, 1))


# ---- the ledger


async def started(store: Store, limits: Limits) -> int:
    await store.create("S", owner="local", question="q")
    epoch = await store.take_over("S")
    message = SessionStarted(
        task_id="S/start",
        session_id="S",
        request=Request(question="q", limits=limits),
        started_at="2026-01-01T00:00:00+00:00",
    )
    await store.append("S", message, expected_seq=0, epoch=epoch, status="running")
    return epoch


async def ledger(calls: int, at_once: int) -> None:
    estimate, used = Usage(calls=1, tokens_in=2000, tokens_out=600, cost=1e-5), Usage(calls=1, tokens_in=1900)
    for what, limits, most in (
        ("nothing to lose, no limit", Limits(), Usage()),
        ("priced, no limit", Limits(), estimate),
        ("priced, money limit", Limits(usd=100.0), estimate),
    ):
        for kind in ("memory", "sqlite"):
            with tempfile.TemporaryDirectory() as folder:
                store: Store = MemoryStore()
                if kind == "sqlite":
                    store = await SqlStore.open(sqlite_url(Path(folder) / "marg.db"))
                epoch = await started(store, limits)
                book, result = LedgerBook(store), json.dumps({"text": SENTENCE * 10})

                async def make(result: str = result) -> tuple[str, Usage]:
                    return result, used

                async def one(n: int, book: LedgerBook = book, most: Usage = most, epoch: int = epoch) -> None:
                    call = CallKey.of("S", "model", Role.RESEARCHER, n, task_id=f"S/{n}", epoch=epoch)
                    await paid(book, call, make, most)

                show(f"ledger over {kind}: {what}", await cpu_ms(one, calls, at_once))
                await store.close()


TOGETHER = (1, 5, 25)  # entries that come in one request, or appends of as many sessions at once


async def log(calls: int) -> None:
    """Log entries, and calls that cost nothing as they reach the ledger: so many together."""
    for many in TOGETHER:
        with tempfile.TemporaryDirectory() as folder:
            store = await SqlStore.open(sqlite_url(Path(folder) / "marg.db"))
            for n in range(many):
                await store.create(f"S{n}", owner="local", question="q")
            epochs = {f"S{n}": await store.take_over(f"S{n}") for n in range(many)}
            book, result, rounds = LedgerBook(store), json.dumps({"text": SENTENCE * 10}), calls // many + 1

            async def append(name: str, seq: int, store: Store = store, epochs: dict[str, int] = epochs) -> None:
                found = SearchDone(task_id=f"{name}/{seq}", section="s1", query=SENTENCE)
                await store.append(name, found, expected_seq=seq, epoch=epochs[name], status="running")

            async def appends(n: int, epochs: dict[str, int] = epochs, append: Any = append) -> None:
                await asyncio.gather(*(append(name, max(n, 0)) for name in epochs))

            async def entered(
                n: int, epochs: dict[str, int] = epochs, book: LedgerBook = book, result: str = result
            ) -> None:
                keys = [CallKey.of(s, "search", Role.RESEARCHER, n, epoch=e).anew() for s, e in epochs.items()]
                for granted in await book.enter_all([Begin(key, Usage()) for key in keys]):
                    assert isinstance(granted, Begun)
                assert not any(await book.enter_all([End(key, result, Usage(calls=1)) for key in keys]))

            show(f"log: an entry, {many} at once", await cpu_ms(appends, rounds, 1) / many)
            show(f"ledger: a free call's two entries, {many} at once", await cpu_ms(entered, rounds, 1) / many)
            await store.close()


# ---- requests to the ledger

WAVES = ((16, 0.3), (40, 1.0), (8, 2.0))  # of one report: so many calls at once, of so many seconds (searches, ...)
TRIP_S = 0.005  # there and back, to the process that holds the ledger


class Link:
    """Carries requests to a ledger as another process would: one is under way for a while, and counts as one."""

    def __init__(self, book: LedgerBook) -> None:
        self._book, self.requests, self.entries = book, 0, 0

    async def enter_all(self, entries: Sequence[Entry]) -> list[Outcome]:
        self.requests, self.entries = self.requests + 1, self.entries + len(entries)
        await asyncio.sleep(TRIP_S)
        return await self._book.enter_all(entries)

    async def begin(self, call: CallKey, estimate: Usage) -> Begun:
        self.requests += 1
        await asyncio.sleep(TRIP_S)
        return await self._book.begin(call, estimate)

    async def extend(self, call: CallKey, more: Usage) -> None:
        await self._book.extend(call, more)


async def requests(sessions: int) -> None:
    """How many requests the entries of a report need, when one process works for so many sessions."""
    link = Link(LedgerBook(MemoryStore()))
    batched, random = BatchedLedger(link, link.enter_all), Random(7)

    async def call(session: int, n: int, seconds: float) -> None:
        async def make() -> tuple[str, Usage]:
            if seconds < WAVES[-1][1]:
                await batched.cache_get("page", str(n))
            await asyncio.sleep(seconds * random.lognormvariate(0, 0.5))
            if seconds < WAVES[-1][1]:
                await batched.cache_put("page", str(n), "{}", 60.0)
            return "{}", Usage(calls=1)

        await paid(batched, CallKey.of(f"S{session}", "model", Role.RESEARCHER, n, seconds), make)

    async def report(session: int) -> None:
        await asyncio.sleep(random.random())
        for calls, seconds in WAVES:
            await asyncio.gather(*(call(session, n, seconds) for n in range(calls)))

    await asyncio.gather(*(report(n) for n in range(sessions)))
    print(
        f"ledger: {sessions:2} sessions in a process: {link.entries / sessions:.0f} entries a report in "
        f"{link.requests / sessions:.0f} requests",
        flush=True,
    )


def show(what: str, ms: float) -> None:
    print(f"{what:<58} {ms:8.3f} ms", flush=True)


async def run(args: argparse.Namespace) -> None:
    if args.only in ("", "clients"):
        loading("loaded for the first call, ours", "import aiohttp")
        loading(
            "loaded for the first call, openai",
            "import openai, aiohttp, openai.resources.chat.completions; openai.DefaultAioHttpClient()",
        )
        await clients(args.calls, args.at_once)
    if args.only in ("", "prompts"):
        await prompts(args.calls)
    if args.only in ("", "ledger"):
        await ledger(args.calls, args.at_once)
    if args.only in ("", "log"):
        await log(args.calls)
    if args.only in ("", "requests"):
        for sessions in (1, 5, 25):
            await requests(sessions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=400, help="of each kind")
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--only", choices=["clients", "prompts", "ledger", "log", "requests"], default="")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
