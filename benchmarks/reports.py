"""Whole reports in one process, without Ray: real agents, coordinator, library, checks and report.

Two libraries: the FreshWiki articles (Shao et al. 2024) as Markdown files, and the Debian manuals as their packages
install them. Both are written into a folder of the caller's; nothing of them is part of the project.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import yaml

from marg_ray.actors.assembly import Assembly
from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.ledger import LedgerBook
from marg_ray.actors.protocol import Agent
from marg_ray.actors.shelves import LocalShelves
from marg_ray.folding import replay
from marg_ray.messages import Message
from marg_ray.models.client import ModelClient
from marg_ray.models.extractive import ExtractiveModel
from marg_ray.models.select import Choice
from marg_ray.models.wrappers import MeteredModel, free
from marg_ray.records import Depth, Request, Role, SourceChoice
from marg_ray.report.model import Report, from_json
from marg_ray.seams import Embedder, in_thread
from marg_ray.settings import Settings, load
from marg_ray.state import ResearchState
from marg_ray.store.memory import MemoryStore
from marg_ray.tasks import Task

QUESTIONS = Path(__file__).parent / "data" / "reports.yaml"
LIMIT_S = 300  # for one report
_MANUALS = (  # package, folder of its pages, which of them
    ("debian-policy", "/usr/share/doc/debian-policy/policy.html", "*.html"),
    ("developers-reference", "/usr/share/developers-reference", "*.html"),
    ("debian-reference-en", "/usr/share/debian-reference", "*.en.html"),
    ("maint-guide", "/usr/share/doc/maint-guide/html", "*.en.html"),
    ("debian-faq", "/usr/share/doc/debian/FAQ", "*.en.html"),
)
_ENDS = (".", "!", "?", ":", '."', ".”", "₨", "$", "€", "£")  # an article's sentences may be cut at a currency's sign
_NO_TEXT = ("index", "genindex", "search", "upgrading-checklist", "ap-license")

P = ParamSpec("P")
T = TypeVar("T")
MakeModel = Callable[[Embedder], ModelClient]


def quoting(embedder: Embedder) -> ModelClient:
    return ExtractiveModel(embedder, in_thread)


def questions() -> dict[str, list[str]]:
    """The 30 questions, by library."""
    found: dict[str, list[str]] = yaml.safe_load(QUESTIONS.read_text("utf-8"))
    return found


def write_wiki(data: Path, folder: Path) -> str:
    """Write the articles as Markdown, one file each; "" or why there are none."""
    packed = data / "freshwiki/articles.jsonl.gz"
    if not packed.is_file():
        return f"{packed} is missing"
    folder.mkdir(parents=True, exist_ok=True)
    for line in gzip.decompress(packed.read_bytes()).decode().splitlines():
        row = json.loads(line)
        path = folder / f"{row['title'].replace('/', '_')}.md"
        if not path.exists():
            title = row["title"].replace("_", " ")
            summary = re.sub(r"(?<=[a-z)])\.(?=[A-Z])", ". ", row["summary"])  # paragraphs were joined without a space
            path.write_text("\n\n".join([f"# {title}", summary, *_sections(row["content"], 2)]) + "\n", "utf-8")
    return ""


def _sections(sections: list[dict[str, Any]], level: int) -> Iterator[str]:
    for section in sections:
        sentences = [s["sentence"].strip() for s in section.get("section_content", ())]
        below = list(_sections(section.get("subsections", []), level + 1))
        if sentences or below:
            yield f"{'#' * level} {section['section_title']}"
            if sentences:
                yield " ".join(s if s.endswith(_ENDS) else f"{s}." for s in sentences)
            yield from below


def write_debian(folder: Path) -> str:
    """Copy the manuals' pages; "" or why there are none."""
    missing = [package for package, place, _ in _MANUALS if not Path(place).is_dir()]
    if missing:
        return f"not installed: apt-get install {' '.join(missing)}"
    for package, place, pattern in _MANUALS:
        (folder / package).mkdir(parents=True, exist_ok=True)
        for page in sorted(Path(place).glob(pattern)):
            target = folder / package / page.name
            if page.name.split(".")[0] not in _NO_TEXT and not target.exists():
                shutil.copyfile(page, target)
    return ""


@dataclass
class Meter:
    """Runs CPU work in a thread and counts the processor seconds there: what composing costs, embedding apart."""

    spent: dict[str, tuple[int, float]] = field(default_factory=dict)

    async def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        def timed() -> T:
            began = time.thread_time()
            try:
                return work(*args, **kwargs)
            finally:
                name = f"{work.__module__.rpartition('.')[2]}.{getattr(work, '__name__', '')}"
                calls, total = self.spent.get(name, (0, 0.0))
                self.spent[name] = (calls + 1, total + time.thread_time() - began)

        return await in_thread(timed)

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.spent.values())


@dataclass(frozen=True)
class _Parts(Assembly):
    """The parts of a process, around a model of the caller's."""

    make: MakeModel = quoting

    @cached_property
    def model(self) -> ModelClient:
        return MeteredModel(self.make(self.embedder), self.ledger, estimate=free)


@dataclass
class Desk:
    """Answers questions over folders, one after the other."""

    home: Path
    embedder: Embedder
    make: MakeModel = quoting
    depth: Depth = Depth.STANDARD

    def __post_init__(self) -> None:
        self.store = MemoryStore()
        settings: Settings = load(home=self.home, model="extractive")
        choice = Choice(spec_fast="extractive", spec_strong="extractive", why="a benchmark")
        ledger = LedgerBook(self.store)
        self.parts = _Parts(settings, choice, self.embedder, ledger, in_thread, make=self.make)
        self.shelves = LocalShelves(
            settings.home, settings.library, self.embedder, self.parts.places.snapshots, in_thread
        )
        units = replace(self.parts.units(), shelves=self.shelves)
        self.agents: dict[Role, Agent] = {
            role: self.parts.agent(role, units, self._open_store) for role in Role if role is not Role.ASSISTANT
        }
        self.coordinator = Coordinator(self.store, self._dispatch)
        self.seconds = 0.0  # of the processor, in all reports

    async def index(self, folder: Path) -> None:
        """Read the documents before the first question, so that no question pays for it."""
        await self.shelves.fresh((str(folder),))

    async def report(self, name: str, question: str, folder: Path) -> tuple[Report, ResearchState]:
        """Research one question to its end.

        Raises:
            TimeoutError: it takes longer than `LIMIT_S`.
            RuntimeError: no report came of it.
        """
        sources = SourceChoice(folders=(str(folder),), web=False, offline=True, mcp=False)
        began = time.process_time()
        await self.coordinator.submit(name, Request(question=question, depth=self.depth, sources=sources))
        async with asyncio.timeout(LIMIT_S):
            after = 0
            while True:
                progress = await self.coordinator.progress(name, after)
                after += len(progress.entries)
                if progress.status != "running":
                    break
        self.seconds += time.process_time() - began
        state = replay(e.message for e in await self.store.read(name))
        if state.report is None:
            raise RuntimeError(f"no report on {question!r}: {progress.status}")
        return from_json(self.parts.places.artefacts.get(state.report.artefact)), state

    async def _open_store(self) -> MemoryStore:
        return self.store

    async def _dispatch(self, task: Task) -> Message:
        return await self.agents[task.role].handle(task)


def libraries(data: Path | None, home: Path) -> dict[str, Path]:
    """The folders of both libraries, as they are in `home` or made there. One that cannot be made is left out."""
    made: dict[str, Path] = {}
    for name in ("wiki", "debian"):
        folder, why = home / name, ""
        if not folder.exists():
            why = write_debian(folder) if name == "debian" else write_wiki(data, folder) if data else "no --data given"
        if why:
            print(f"skipped: {name} ({why})")
        else:
            made[name] = folder.resolve()
    return made


def arguments(about: str) -> argparse.ArgumentParser:
    """What every benchmark over these questions can be told."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder that holds `freshwiki`")
    parser.add_argument("--home", type=Path, help="where libraries and indexes are kept")
    parser.add_argument("--depth", type=Depth, default=Depth.STANDARD)
    parser.add_argument("--only", choices=("wiki", "debian"))
    parser.add_argument("--first", type=int, help="only so many questions of each library")
    parser.add_argument("--hashing", action="store_true", help="hashed words for embeddings: quick, and worse")
    return parser
