"""A whole run in one process without Ray: real agents, parser, grounding and report; only the world is made up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from marg_ray.actors.analyst import Analyst
from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.critic import Critic
from marg_ray.actors.fanout import Units
from marg_ray.actors.formatter import Formatter
from marg_ray.actors.ledger import LedgerBook
from marg_ray.actors.planner import Planner
from marg_ray.actors.protocol import Agent
from marg_ray.actors.researcher import Researcher
from marg_ray.actors.synthesizer import Synthesizer
from marg_ray.errors import FetchFailed
from marg_ray.folding import replay
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.messages import Message
from marg_ray.models.client import ModelClient
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.models.testing import CannedModel
from marg_ray.models.wrappers import MeteredModel
from marg_ray.records import Request, Role
from marg_ray.report.model import Report, from_json
from marg_ray.seams import in_thread
from marg_ray.settings import SearchSettings
from marg_ray.sources.protocol import Fetched, Searcher
from marg_ray.sources.web.engine import EngineReply
from marg_ray.sources.web.search import WebSearch
from marg_ray.sources.web.testing import ScriptedEngine
from marg_ray.state import ResearchState
from marg_ray.store.artefacts import Artefacts
from marg_ray.store.memory import MemoryStore
from marg_ray.tasks import SearchTask, Task

LIMIT_S = 60
PAGE = """<html><head><title>{title}</title></head><body><article><h1>{title}</h1>{body}</article></body></html>"""
TIDES = {
    "https://tides.test/rance": (
        "La Rance",
        "The Rance tidal power station in Brittany opened in 1966. Its 24 turbines have a capacity of 240 megawatts. "
        "The station produces about 500 gigawatt hours of electricity a year. Silt has collected in the estuary since "
        "the barrage was built, and some fish became rare while others came back.",
    ),
    "https://tides.test/sihwa": (
        "Sihwa Lake",
        "The Sihwa Lake tidal power station in South Korea opened in 2011. Its ten turbines have a capacity of 254 "
        "megawatts, which makes it the largest tidal power station in the world. The exchange of water improved the "
        "quality of the lake, and the chemical oxygen demand fell.",
    ),
}


def page(title: str, text: str) -> bytes:
    return PAGE.format(title=title, body="".join(f"<p>{p}</p>" for p in text.split("\n\n"))).encode()


@dataclass
class Pages:
    """A fetcher over pages in memory; anything else is not found."""

    pages: Mapping[str, bytes | Exception]
    media_type: str = "text/html"
    fetched: list[str] = field(default_factory=list)

    async def fetch(self, url: str) -> Fetched:
        self.fetched.append(url)
        body = self.pages.get(url, FetchFailed(url, "not found", 404))
        if isinstance(body, Exception):
            raise body
        now = datetime.now(UTC)
        return Fetched(
            url=url, final_url=url, status=200, media_type=self.media_type, charset="", body=body, fetched_at=now
        )


class NoShelves:
    async def searchers(self, task: SearchTask) -> Sequence[Searcher]:
        return ()


def engine_over(pages: Mapping[str, tuple[str, str]]) -> ScriptedEngine:
    """An engine that finds all pages, whatever it is asked."""
    entries = tuple({"href": url, "title": title, "body": text[:300]} for url, (title, text) in pages.items())
    return ScriptedEngine([EngineReply(entries=entries)])


@dataclass
class World:
    """Everything outside the run. The default: two pages about tides, and a model that answers from its input."""

    folder: Path
    model: ModelClient = field(default_factory=CannedModel)
    pages: Mapping[str, bytes | Exception] = field(
        default_factory=lambda: {url: page(*text) for url, text in TIDES.items()}
    )
    engines: Sequence[ScriptedEngine] = field(default_factory=lambda: (engine_over(TIDES),))
    broken: frozenset[str] = frozenset()  # kinds of tasks whose agent raises
    others: Mapping[str, Searcher] = field(default_factory=dict)  # sources beside the web

    def __post_init__(self) -> None:
        self.store = MemoryStore()
        self.ledger = LedgerBook(self.store)
        self.fetcher = Pages(self.pages)
        self.snapshots = Snapshots(self.folder / "snapshots")
        self.artefacts = Artefacts(self.folder / "reports")
        self.agents = self._agents()
        self.coordinator = Coordinator(self.store, self._dispatch)

    def _agents(self) -> dict[Role, Agent]:
        model, embedder = MeteredModel(self.model, self.ledger), HashingEmbedder()
        self.embedder = embedder
        units = Units(
            model=model,
            embedder=embedder,
            ledger=self.ledger,
            snapshots=self.snapshots,
            shelves=NoShelves(),
            web=WebSearch(self.engines, SearchSettings(per_minute=10_000), sleep=no_pause) if self.engines else None,
            others=self.others,
            fetcher=self.fetcher,
            offload=in_thread,
        )
        agents: list[Agent] = [
            Planner(model=model, light=in_thread, embedder=embedder),
            Researcher(workers=units),
            Synthesizer(workers=units, model=model, light=in_thread),
            Analyst(model=model, offload=in_thread),
            Critic(model=model, embedder=embedder, light=in_thread),
            Formatter(
                artefacts=self.artefacts,
                open_store=self._open_store,
                model_name=self.model.name,
                light=in_thread,
                snapshots=self.snapshots,
            ),
        ]
        return {agent.role: agent for agent in agents}

    async def _open_store(self) -> MemoryStore:
        return self.store

    async def _dispatch(self, task: Task) -> Message:
        if task.kind in self.broken:
            raise ZeroDivisionError(f"{task.kind} is broken")
        return await self.agents[task.role].handle(task)

    async def ask(self, question: str = "How much power do tidal stations produce?", **fields: object) -> ResearchState:
        """Run a session to its end; returns the state its log gives."""
        request = Request.model_validate({"question": question, "depth": "overview", **fields})
        await self.coordinator.submit("S", request)
        async with asyncio.timeout(LIMIT_S):
            after = 0
            while True:
                progress = await self.coordinator.progress("S", after)
                after += len(progress.entries)
                if progress.status != "running":
                    break
        return replay(e.message for e in await self.store.read("S"))

    def report(self, state: ResearchState) -> Report:
        assert state.report is not None
        return from_json(self.artefacts.get(state.report.artefact))


class Held(World):
    """A world in which no section is written until `go` is set."""

    def __post_init__(self) -> None:
        self.go = asyncio.Event()
        super().__post_init__()

    async def _dispatch(self, task: Task) -> Message:
        if task.kind == "draft":
            await self.go.wait()
        return await super()._dispatch(task)


async def no_pause(_: float) -> None:
    await asyncio.sleep(0)
