"""The load of `serving.py`: requests that come again in part, sent flat out, and what became of them."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.engine_counters import Counters, read_counters

if TYPE_CHECKING:
    import aiohttp

ROOT = Path(__file__).resolve().parents[1]
DRAFTS = 4  # of each section
CARDS = 8  # pieces of evidence in a prompt
QUESTIONS = (
    "What are the environmental effects of tidal barrages?",
    "Why was the Swansea Bay tidal lagoon rejected?",
    "What is the capacity of the Sihwa Lake tidal power station?",
    "How do the costs of tidal range power compare with those of offshore wind?",
)


# ---- what is asked


def drafts(requests: int, salt: str) -> list[list[dict[str, str]]]:
    """Messages of drafts: sections in turn, each `DRAFTS` times over the same evidence. `salt` marks the evidence."""
    from marg_ray.models.prompting import render
    from marg_ray.models.tasks import DraftSection, EvidenceCard

    texts = [
        p.strip() for f in sorted((ROOT / "examples" / "source").glob("*.txt")) for p in f.read_text().split("\n\n")
    ]
    texts = [t for t in texts if len(t) > 120]
    sections = -(-requests // DRAFTS)
    made = []
    for draft in range(DRAFTS):
        for section in range(sections):
            chosen = [texts[(section * CARDS + n) % len(texts)] for n in range(CARDS)]
            cards = tuple(
                EvidenceCard(
                    number=n, quote=f"{text} ({salt}/{section})", source_title="Review", source_id="", start=0, end=1
                )
                for n, text in enumerate(chosen, 1)
            )
            task = DraftSection(
                question=QUESTIONS[section % len(QUESTIONS)],
                report_title="Tidal power",
                section_title=f"Part {section + 1}",
                queries=("effects", "costs"),
                other_sections=(),
                evidence=cards,
                language="en",
                words=200,
                feedback=(f"say more of what card {draft} states",) if draft else (),
                previous="Tides turn turbines [1]." if draft else "",
            )
            made.append(render(task).messages())
    return made[:requests]


# ---- driving a server


@dataclass
class Round:
    """One load: `at_once` requests under way until all are answered."""

    system: str
    model: str
    at_once: int
    wall_s: float = 0.0
    tokens: int = 0
    first_s: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    counted: Counters = field(default_factory=Counters)

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.wall_s

    def quantile(self, q: float) -> float:
        ordered = sorted(self.first_s)
        return ordered[min(len(ordered) - 1, round(q * (len(ordered) - 1)))] if ordered else float("nan")


async def drive(server: Server, model: str, prompts: list[Any], at_once: int, tokens: int) -> Round:
    """Send all prompts, `at_once` at a time."""
    import aiohttp

    done, waiting = Round(server.system, model, at_once), asyncio.Semaphore(at_once)
    before = await server.counters(model)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        began = time.perf_counter()
        await asyncio.gather(*(_one(session, server, done, p, tokens, waiting) for p in prompts))
        done.wall_s = time.perf_counter() - began
    done.counted = await server.settled(model) - before
    return done


async def _one(
    session: aiohttp.ClientSession, server: Server, done: Round, prompt: Any, tokens: int, waiting: asyncio.Semaphore
) -> None:
    body = {
        "model": done.model,
        "messages": prompt,
        "max_tokens": tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    async with waiting:
        began = first = time.perf_counter()
        try:
            async with session.post(f"{server.base_url}/chat/completions", json=body) as reply:
                if reply.status != 200:
                    done.failed.append((await reply.text())[:200])
                    return
                async for line in reply.content:
                    event = line.removeprefix(b"data:").strip()
                    if not event.startswith(b"{"):
                        continue
                    told = json.loads(event)
                    if first == began and any(c.get("delta", {}).get("content") for c in told.get("choices", ())):
                        first = time.perf_counter()
                    done.tokens += (told.get("usage") or {}).get("completion_tokens", 0)
        except Exception as exc:  # a request that fails is a figure of the table
            done.failed.append(f"{type(exc).__name__}: {exc}")
            return
    done.first_s.append(first - began)


@dataclass(frozen=True)
class Server:
    system: str
    base_url: str
    metrics: str

    async def counters(self, model: str) -> Counters:
        return (await read_counters([self.metrics])).get(model, Counters())

    async def settled(self, model: str, within_s: float = 30.0) -> Counters:
        """The counters once they stand still: Ray exports them with a delay."""
        last = await self.counters(model)
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            await asyncio.sleep(1.5)
            now = await self.counters(model)
            if now == last and not now.running:
                break
            last = now
        return last
