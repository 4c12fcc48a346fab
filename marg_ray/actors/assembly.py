"""Puts agents and workers together from settings and the seams they stand on. Knows no Ray.

Imports are local: a process that holds the formatter does not load what a reader needs.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marg_ray.records import Role
from marg_ray.seams import Embedder, Ledger, Offload, in_thread
from marg_ray.settings import Settings

if TYPE_CHECKING:
    from marg_ray.actors.conversing import Conversing
    from marg_ray.actors.fanout import Units
    from marg_ray.actors.protocol import Agent
    from marg_ray.actors.researcher import Workers
    from marg_ray.grounding.snapshots import Snapshots
    from marg_ray.memory.spaces import CacheStore
    from marg_ray.models.client import ModelClient
    from marg_ray.models.select import Choice
    from marg_ray.models.tape import Tape
    from marg_ray.store.artefacts import Artefacts
    from marg_ray.store.protocol import Store

OpenStore = Callable[[], Awaitable["Store"]]


@dataclass(frozen=True)
class Places:
    """Where things lie: under `MARG_HOME`, or in the database and the bucket that the settings name."""

    home: Path
    database_url: str = ""
    files: str = ""  # folder or fsspec URL

    @classmethod
    def of(cls, settings: Settings) -> Places:
        return cls(settings.home, settings.store.url, settings.store.files)

    @property
    def database(self) -> Path:
        return self.home / "marg.db"

    @property
    def store_url(self) -> str:
        from marg_ray.store.sql import sqlite_url

        return self.database_url or sqlite_url(self.database)

    @property
    def snapshots(self) -> Snapshots:
        from marg_ray.grounding.snapshots import Snapshots

        return Snapshots(self._folder("snapshots"))

    @property
    def artefacts(self) -> Artefacts:
        from marg_ray.store.artefacts import Artefacts

        return Artefacts(self._folder("reports"))

    def _folder(self, name: str) -> Path | str:
        if "://" in self.files:
            return f"{self.files.rstrip('/')}/{name}"
        return (Path(self.files).expanduser() if self.files else self.home) / name


def model_name(choice: Choice) -> str:
    """What is written on a report: of an address only the model's name."""
    fast, strong = (re.sub(r"^https?://[^/]+[^:]*:", "", spec) for spec in (choice.spec_fast, choice.spec_strong))
    return strong if fast == strong else f"{strong} (writing), {fast} (reading)"


def asked_of(choice: Choice) -> str:
    """The models that answer, as a part of the key under which a report is kept."""
    return f"{choice.spec_strong} {choice.spec_fast}"


@dataclass(frozen=True)
class Assembly:
    """One process's parts. `choice` is the model picked at the edge; everything else follows from the settings."""

    settings: Settings
    choice: Choice
    embedder: Embedder
    ledger: Ledger
    offload: Offload  # for CPU work of tens of milliseconds and more
    light: Offload = in_thread  # for less than that: a hop to another process would cost more than the work
    caches: CacheStore | None = None

    @property
    def places(self) -> Places:
        return Places.of(self.settings)

    @cached_property
    def model(self) -> ModelClient:
        """The chosen model, every call through the ledger."""
        from marg_ray.models.extractive import ExtractiveModel
        from marg_ray.models.select import build_model
        from marg_ray.models.tape import TapedModel
        from marg_ray.models.wrappers import MeteredModel, estimate, free

        def extractive() -> ModelClient:
            return ExtractiveModel(self.embedder, self.offload)

        estimated = free if self.choice.extractive else estimate
        if self.tape is not None and self.tape.replays:  # nothing of the model is needed, not even its key
            model: ModelClient = TapedModel(self.tape, None, name=asked_of(self.choice), otherwise=estimated)
        else:
            model = build_model(self.choice, self.settings, extractive_factory=extractive)
            if self.tape is not None:
                model = TapedModel(self.tape, model, otherwise=estimated)
        return MeteredModel(model, self.ledger, estimate=estimated)

    @cached_property
    def tape(self) -> Tape | None:
        """Where the run is recorded, or replayed from."""
        from marg_ray.models.tape import Tape

        return Tape.of(self.settings.tape)

    @cached_property
    def judging(self) -> Embedder:
        """The embedder for what ranks and checks; the model without a model has one of its own."""
        from marg_ray.memory.tape import TapedEmbedder

        return TapedEmbedder(self.tape, self.embedder) if self.tape is not None else self.embedder

    def units(self) -> Units:
        from marg_ray.actors.fanout import Units
        from marg_ray.actors.shelves import LocalShelves
        from marg_ray.memory.pages import CachedPages
        from marg_ray.memory.searches import KeptSearches
        from marg_ray.memory.spaces import Space
        from marg_ray.sources.fetch import GuardedFetcher
        from marg_ray.sources.mcp import build_mcp_sources
        from marg_ray.sources.web.search import build_web_search

        s, snapshots = self.settings, self.places.snapshots
        kept: dict[str, Any] = {}
        if self.caches is not None and self.tape is None:
            engines = " ".join((*s.search.engines, s.search.searxng_url))
            kept["searches"] = KeptSearches(Space(self.caches, "search", s.cache.search_s), engines)
            pages = Space(self.caches, "page", s.cache.page_s)
            kept["pages"] = CachedPages(pages, snapshots, self.light)
        units = Units(
            model=self.model,
            embedder=self.judging,
            ledger=self.ledger,
            snapshots=snapshots,
            shelves=LocalShelves(s.home, s.library, self.embedder, snapshots, self.offload),
            web=build_web_search(s.search),
            others=build_mcp_sources(s.mcp, snapshots, self.offload),
            fetcher=GuardedFetcher(s.fetch),
            offload=self.offload,
            light=self.light,
            **kept,
        )
        return units if self.tape is None else taped(units, self.tape)

    def agent(self, role: Role, workers: Workers, open_store: OpenStore) -> Agent:
        """The agent of one role."""
        match role:
            case Role.PLANNER:
                from marg_ray.actors.planner import Planner

                replays = self.tape is not None and self.tape.replays  # its searches need no vectors
                return Planner(model=self.model, light=self.light, embedder=None if replays else self.embedder)
            case Role.RESEARCHER:
                from marg_ray.actors.researcher import Researcher

                return Researcher(workers=workers)
            case Role.SYNTHESIZER:
                from marg_ray.actors.synthesizer import Synthesizer

                return Synthesizer(workers=workers, model=self.model, light=self.light)
            case Role.ANALYST:
                from marg_ray.actors.analyst import Analyst

                return Analyst(model=self.model, offload=self.offload)
            case Role.CRITIC:
                from marg_ray.actors.critic import Critic

                judged = self.settings.grounding.judge == "auto" and not self.choice.extractive
                calls = self.settings.grounding.judge_calls if judged else 0
                return Critic(model=self.model, embedder=self.judging, light=self.light, judge_calls=calls)
            case Role.FORMATTER:
                from marg_ray.actors.formatter import Formatter

                return Formatter(
                    artefacts=self.places.artefacts,
                    open_store=open_store,
                    model_name=model_name(self.choice),
                    light=self.light,
                    snapshots=self.places.snapshots,
                    tape=self.tape,
                )
            case Role.ASSISTANT:
                raise ValueError("the assistant answers chats, not research tasks")

    def assistant(self, workers: Workers, open_store: OpenStore) -> Conversing:
        """Who answers questions about reports, and talks."""
        from marg_ray.actors.conversing import assistant_over

        return assistant_over(
            self.settings,
            model=self.model,
            embedder=self.judging,
            light=self.light,
            artefacts=self.places.artefacts,
            snapshots=self.places.snapshots,
            workers=workers,
            open_store=open_store,
        )


def taped(units: Units, tape: Tape) -> Units:
    """The units with the tape before everything they ask outside."""
    from marg_ray.memory.tape import TapedFetcher, TapedSearch, TapedShelves, Texts, taped_others

    web, texts = units.web, Texts(tape, units.snapshots)
    return replace(
        units,
        shelves=TapedShelves(tape, units.shelves, texts),
        web=TapedSearch(tape, web, {"source": "web"}) if web is not None else None,
        others=taped_others(tape, units.others, texts),
        fetcher=TapedFetcher(tape, units.fetcher),
    )
