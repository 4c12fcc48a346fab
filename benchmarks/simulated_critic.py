"""The simulated model with a critic that is not content at once: it sends sections back in its first round.

    python benchmarks/simulated_critic.py --revise 2 --ttft 0.5 --tps 80

So every system that is measured against it walks the same chain: write, be judged, rewrite two sections, be judged.
A rewritten section has its paragraphs in another order.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.rounds import many_sockets
from benchmarks.simulated_llm import Body, Request, SimulatedLLM, Speed

_FIRST_ROUND = re.compile(r"/review/1$")
_REVISION = re.compile(r"/s\d+/draft/(?!1$)\d+$")


class StrictCritic(SimulatedLLM):
    """`revise`: how many sections each session gets back once. Callers name their task (`SESSION/review/1`)."""

    def __init__(self, *, revise: int = 2, **options: Any) -> None:
        super().__init__(**options)
        self._revise = revise

    def text(self, body: Body, record: Request) -> str:
        said = super().text(body, record)
        if record.task == "draft_section" and _REVISION.search(record.caller):
            return "\n\n".join(reversed(said.split("\n\n")))  # the same length, and not the same text
        if record.task != "review_report" or not _FIRST_ROUND.search(record.caller):
            return said
        sections = re.findall(r'^<section id="([^"]*)"', body["messages"][-1]["content"], re.M)
        return sent_back(said, sections[: self._revise])


def sent_back(review: str, sections: list[str]) -> str:
    """The review with a grave fault of clarity in each of `sections`: something that rewriting mends."""
    idea = json.loads(review)
    idea["scores"]["clarity"] = 0.5
    idea["issues"] += [
        {
            "kind": "logic_error",
            "severity": "high",
            "section": section,
            "detail": "The second paragraph does not follow from the first.",
            "fix_query": "",
            "instruction": "Say how the second paragraph follows from the first, or part them.",
        }
        for section in sections
    ]
    return json.dumps(idea)


async def _serve(args: argparse.Namespace) -> None:
    many_sockets()
    speed = Speed(ttft_s=args.ttft, tokens_per_s=args.tps, jitter=args.jitter)
    async with StrictCritic(revise=args.revise, speed=speed, seed=args.seed, log=args.log) as server:
        print(server.base_url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--revise", type=int, default=2, help="sections that are sent back once")
    parser.add_argument("--ttft", type=float, default=0.5, help="seconds to the first token")
    parser.add_argument("--tps", type=float, default=80.0, help="tokens a second of one request")
    parser.add_argument("--jitter", type=float, default=0.0, help="sigma of a log-normal factor on the times")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="a JSON line for each request")
    try:
        asyncio.run(_serve(parser.parse_args()))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
