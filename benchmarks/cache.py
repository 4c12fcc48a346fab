"""What the caches save: a first and a second ask in a running system, and each cache beside what it stands for.

    python benchmarks/cache.py [--asks 20] [--files 1000] [--no-system]

The first part starts a runtime with the extractive model over examples/library, asks once, asks again in other
spellings, and once more with the report cache passed over. The second part measures parts by themselves: a look through
a folder of many files, a known report in the store, and embeddings from the file against embeddings computed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from marg_ray.client import Marg
from marg_ray.memory.cache import KeptReport, QueryCache, source_fingerprint
from marg_ray.memory.vectors import VectorFile
from marg_ray.models.embeddings import Cache, MiniLM
from marg_ray.records import Request, SourceChoice
from marg_ray.settings import Settings
from marg_ray.store.sql import SqlStore, sqlite_url

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "examples" / "library"
QUESTION = "What are the environmental effects of tidal power?"
SPELLINGS = (QUESTION, "what are the environmental effects of tidal power", f"  {QUESTION.upper()}?? ")
AIM_S = 0.050  # a second ask, in a running system


async def timed(rounds: int, act: Callable[[int], Awaitable[object]]) -> list[float]:
    took = []
    for n in range(rounds):
        began = time.perf_counter()
        await act(n)
        took.append(time.perf_counter() - began)
    return took


def line(what: str, took: list[float]) -> None:
    print(f"  {what:<52} median {statistics.median(took) * 1e3:9.2f} ms   most {max(took) * 1e3:9.2f} ms")


# ---- a running system


async def system(home: Path, asks: int) -> bool:
    """First and further asks of one runtime; whether the aim was met."""
    settings = Settings(home=home, model="extractive")
    async with Marg(settings, offline=True) as marg:
        began = time.perf_counter()
        first = await marg.research(QUESTION, docs=[LIBRARY])
        first_s = time.perf_counter() - began
        texts = set()

        async def again(n: int) -> None:
            texts.add((await marg.research(SPELLINGS[n % len(SPELLINGS)], docs=[LIBRARY])).model_dump_json())

        took = await timed(asks, again)
        began = time.perf_counter()
        await marg.research(QUESTION, docs=[LIBRARY], fresh=True)
        fresh_s = time.perf_counter() - began
        print(f"  {'first ask, the runtime starting beside it':<52} {first_s:16.2f} s")
        print(f"  {'the same, fresh, in the runtime that is up':<52} {fresh_s:16.2f} s")
        line(f"{asks} further asks", took)
        median = statistics.median(took)
        print(f"  ratio: {first_s / median:,.0f} to the first, {fresh_s / median:,.0f} to the fresh one")
        same = texts == {first.model_dump_json()}
        print(f"  the same report each time: {'yes' if same else 'NO'}")
    store = await SqlStore.open(sqlite_url(home / "marg.db"))
    for count in await store.cache_counts():
        print(f"  cache of {count.space:<10} {count.entries:5d} entries {count.hits:5d} hits")
    await store.close()
    met = same and median < AIM_S
    print(f"  under {AIM_S * 1e3:.0f} ms: {'yes' if met else 'NO'}")
    return met


# ---- the parts by themselves


async def parts(home: Path, files: int) -> None:
    docs = home / "docs"
    for n in range(files):
        path = docs / f"folder {n % 20}" / f"document {n}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Document {n}.")

    async def look(_: int) -> None:
        source_fingerprint([str(docs)], (), max_bytes=2**20, home=home / "none")

    line(f"a look through {files} files", await timed(15, look))
    store = await SqlStore.open(sqlite_url(home / "parts.db"))
    cache = QueryCache(store, Settings(home=home / "none"), model="extractive")
    request = Request(question=QUESTION, sources=SourceChoice(folders=(str(LIBRARY),), web=False))
    asked = await cache.ask(request)
    await cache.space.write(asked.key, KeptReport(session_id="S", artefact="0" * 64).model_dump_json())
    line("a known report, found in the store", await timed(30, lambda _: cache.ask(request)))
    await store.close()


async def embeddings(home: Path) -> None:
    words = " ".join(p.read_text("utf-8") for p in sorted(LIBRARY.glob("*.md"))).split()
    passages = [" ".join(words[n : n + 80]) for n in range(0, len(words) - 80, 20)]
    plain = MiniLM()
    await plain.warm()
    computed = await timed(1, lambda _: plain.embed(passages))
    first = VectorFile(home / "vectors.db", model=MiniLM.name)
    vectors = await plain.embed(passages)
    keyed = {Cache.key(text): row for text, row in zip(passages, vectors, strict=True)}
    missed = await timed(1, lambda _: first.read(list(keyed)))
    first.write(keyed)
    await first.close()
    second = VectorFile(home / "vectors.db", model=MiniLM.name)
    read = await timed(1, lambda _: second.read(list(keyed)))
    await second.close()
    for what, took in (("computed", computed), ("looked for in vain", missed), ("read from the file", read)):
        print(f"  {what:<52} {took[0] / len(passages) * 1e3:13.3f} ms a passage ({len(passages)} passages)")


async def main(options: argparse.Namespace) -> int:
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    met = True
    with tempfile.TemporaryDirectory(prefix="marg-cache-") as home:
        if not options.no_system:
            print("a running system, extractive model over examples/library")
            met = await system(Path(home) / "system", options.asks)
        print("the parts by themselves")
        await parts(Path(home), options.files)
        print("embeddings")
        await embeddings(Path(home))
    return 0 if met else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--asks", type=int, default=20)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--no-system", action="store_true", help="only the parts, without Ray")
    sys.exit(asyncio.run(main(parser.parse_args())))
