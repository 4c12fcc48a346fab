"""A simulated SearXNG on loopback, with pages: set latencies, made-up prose, nothing twice.

    python benchmarks/simulated_search.py --latency 0.3 --results 10
    export MARG_SEARCH__SEARXNG_URL=http://127.0.0.1:PORT

`/search?q=...&format=json` answers as SearXNG does, `/page/N` gives plain text. The prose is about pottery, so that in
a ranking by meaning it stands below documents that treat the question, yet has to be embedded and ranked like any.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sys
import time
from pathlib import Path

from aiohttp import web

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.rounds import many_sockets

PAGE_WORDS, SNIPPET_WORDS = 1400, 25  # at least; whole sentences
_SUBJECTS = ("The kiln", "A glaze", "The potter", "This bowl", "Porcelain", "The workshop", "Red clay", "An old jar")
_VERBS = ("was fired in", "came from", "was decorated by", "is stored beside", "was sold at", "has been copied in")
_PLACES = ("a village in the hills", "the market square", "a museum", "the school of crafts", "a family of masters")
_REST = (
    "where ash was mixed into the slip",
    "after the second drying",
    "with a thin white rim",
    "before the handles were set",
    "and it kept its colour for decades",
    "although the wheel was worn",
)


def prose(seed: int, words: int) -> str:
    """About `words` words of whole sentences, the same for the same seed."""
    dice = random.Random(seed)
    lines: list[str] = []
    count = 0
    while count < words:
        kiln = dice.randrange(100, 999)
        parts = (_SUBJECTS, _VERBS, _PLACES, _REST)
        subject, verb, place, rest = (dice.choice(p) for p in parts)
        lines.append(f"{subject} number {kiln} {verb} {place}, {rest}.")
        count += len(lines[-1].split())
    return " ".join(lines)


class SimulatedSearch:
    """The server. `jitter` is the sigma of a log-normal factor on the latency of each request."""

    def __init__(
        self, *, latency_s: float = 0.0, jitter: float = 0.0, results: int = 10, log: Path | None = None, seed: int = 0
    ) -> None:
        self.latency_s, self.jitter, self.results, self._log = latency_s, jitter, results, log
        self._random, self._asked = random.Random(seed), 0
        self.base_url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> SimulatedSearch:
        app = web.Application()
        app.router.add_get("/search", self._search)
        app.router.add_get("/page/{number}", self._page)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=4096).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _search(self, request: web.Request) -> web.Response:
        began, query = time.time(), request.query["q"]
        self._asked += 1
        first = self._asked * 1000
        factor = math.exp(self._random.gauss(0, self.jitter)) if self.jitter else 1.0
        await asyncio.sleep(self.latency_s * factor)
        found = [
            {
                "title": prose(n, 5).rstrip("."),
                "url": f"https://pottery.example/page/{n}",
                "content": prose(n, SNIPPET_WORDS),
                "engine": "simulated",
            }
            for n in range(first, first + self.results)
        ]
        if self._log is not None:
            caller = request.headers.get("X-Marg-Task", "")
            line = {"caller": caller, "query": query, "start": began, "end": time.time()}
            with self._log.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
        return web.json_response({"query": query, "results": found, "unresponsive_engines": []})

    async def _page(self, request: web.Request) -> web.Response:
        return web.Response(text=prose(int(request.match_info["number"]), PAGE_WORDS))


async def _serve(args: argparse.Namespace) -> None:
    many_sockets()
    async with SimulatedSearch(
        latency_s=args.latency, jitter=args.jitter, results=args.results, log=args.log
    ) as server:
        print(server.base_url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.3, help="seconds of a search")
    parser.add_argument("--jitter", type=float, default=0.0, help="sigma of a log-normal factor on it")
    parser.add_argument("--results", type=int, default=10, help="of a search")
    parser.add_argument("--log", type=Path, help="a JSON line for each search")
    try:
        asyncio.run(_serve(parser.parse_args()))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
