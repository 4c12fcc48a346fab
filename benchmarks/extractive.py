"""How reports without a language model read: the measures that agree with a careful reader, over a list of questions.

    python benchmarks/extractive.py FOLDER QUESTIONS.txt [--depth standard] [--print] [--home DIR]

QUESTIONS.txt holds one question a line. The folder is indexed once (in `--home`, kept between calls). Printed per
question and as a mean: words, sentences; the shares of dangling starts, of junk, of pointers and cross references, of
sentences behind their own predecessor, of paragraphs with one sentence, of repeated sentences; sections filled of
those planned; calls and processor seconds per task. Aims: dangling at most .02, junk and pointers at most .05,
predecessor share at least .40, one-sentence paragraphs at most .50, repeated 0.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from marg_ray.models.client import Call, ModelTask, OutT
from marg_ray.models.embeddings import HashingEmbedder, MiniLM
from marg_ray.models.extractive import ExtractiveModel
from marg_ray.models.extractive.measures import Measures, measure
from marg_ray.models.tasks import (
    DraftSection,
    EvidenceCard,
    ExtractClaims,
    MakePlan,
    Passage,
    ScoutHit,
    SectionIdea,
    SectionText,
    SummariseReport,
)
from marg_ray.records import Depth, Hit
from marg_ray.seams import Embedder, in_thread
from marg_ray.settings import LibrarySettings
from marg_ray.sources.library.library import Library
from marg_ray.sources.parse import parse

WORDS = {Depth.OVERVIEW: 250, Depth.STANDARD: 350, Depth.DEEP: 400}
SECTIONS = {Depth.OVERVIEW: 3, Depth.STANDARD: 6, Depth.DEEP: 10}
READ = {Depth.OVERVIEW: 2, Depth.STANDARD: 4, Depth.DEEP: 6}


@dataclass
class Clock:
    """Calls and processor seconds (embedding included) per kind of task."""

    spent: dict[str, tuple[int, float]] = field(default_factory=dict)

    def add(self, name: str, seconds: float) -> None:
        calls, total = self.spent.get(name, (0, 0.0))
        self.spent[name] = (calls + 1, total + seconds)


@dataclass(frozen=True)
class Written:
    """A report as far as this benchmark needs it."""

    title: str
    sections: tuple[SectionText, ...]
    planned: int
    summary: str
    sources: dict[int, str]  # evidence number: title

    @property
    def measures(self) -> Measures:
        return measure([s.text for s in self.sections], [s.title for s in self.sections])


class Writer:
    """Plan, search, read, draft and summarise, one step after the other, without agents."""

    def __init__(self, library: Library, embedder: Embedder, depth: Depth) -> None:
        self.library, self.depth = library, depth
        self.model = ExtractiveModel(embedder, in_thread)
        self.clock = Clock()
        self.sources: dict[int, str] = {}

    async def run(self, task: ModelTask[OutT]) -> OutT:
        began = time.process_time()
        reply = await self.model.run(task, Call(session_id="benchmark", task_id=task.template))
        self.clock.add(type(task).__name__, time.process_time() - began)
        return reply.output

    async def write(self, question: str) -> Written:
        scout = (await self.library.search(question, 6)).hits
        hits = tuple(
            ScoutHit(title=h.title, snippet=h.snippet, headings=h.headings, relevance=h.relevance) for h in scout
        )
        limit = SECTIONS[self.depth]
        plan = await self.run(
            MakePlan(question=question, depth=self.depth, language="en", max_sections=limit, scout=hits)
        )
        titles = tuple(s.title for s in plan.sections)
        sections = []
        for n, idea in enumerate(plan.sections, 1):
            cards = await self._evidence(question, idea)
            if cards and (text := await self._draft(question, plan.title, idea, titles, cards)):
                sections.append(SectionText(id=f"s{n}", title=idea.title, text=text))
        summary = SummariseReport(question=question, language="en", sections=tuple(sections))
        brief = (await self.run(summary)).markdown if sections else ""
        return Written(plan.title, tuple(sections), len(titles), brief, dict(self.sources))

    async def _evidence(self, question: str, idea: SectionIdea) -> tuple[EvidenceCard, ...]:
        found: dict[str, Hit] = {}
        for query in idea.queries:
            for hit in (await self.library.search(query, READ[self.depth])).hits:
                known = found.get(hit.source_id)
                spans = (*known.spans, *hit.spans) if known else hit.spans
                found[hit.source_id] = hit.model_copy(update={"spans": spans})
        cards: list[EvidenceCard] = []
        for hit in found.values():
            cards += await self._read(question, idea, hit)
        return tuple(cards)

    async def _read(self, question: str, idea: SectionIdea, hit: Hit) -> list[EvidenceCard]:
        document = self.library.snapshots.document(hit.source_id)
        passages = tuple(
            Passage(text=document.text[s.start : s.end], start=s.start, end=s.end, heading=s.heading, score=s.score)
            for s in {(s.start, s.end): s for s in hit.spans}.values()
        )
        ask = ExtractClaims(
            question=question,
            section_title=idea.title,
            queries=tuple(idea.queries),
            source_title=hit.title,
            passages=passages,
            document=document,
        )
        cards = []
        for claim in (await self.run(ask)).claims:
            start = document.text.find(claim.quote)
            if start < 0:
                raise SystemExit(f"not a passage of {hit.title}: {claim.quote!r}")
            number = len(self.sources) + 1
            self.sources[number] = hit.title
            cards.append(
                EvidenceCard(
                    number=number,
                    quote=claim.quote,
                    source_title=hit.title,
                    source_id=hit.source_id,
                    start=start,
                    end=start + len(claim.quote),
                    heading=document.heading_path(start),
                    claim=claim.claim,
                    relevance=hit.relevance,
                    published=hit.published,
                )
            )
        return cards

    async def _draft(
        self, question: str, title: str, idea: SectionIdea, titles: Sequence[str], cards: tuple[EvidenceCard, ...]
    ) -> str:
        ask = DraftSection(
            question=question,
            report_title=title,
            section_title=idea.title,
            queries=tuple(idea.queries),
            other_sections=tuple(t for t in titles if t != idea.title),
            evidence=cards,
            language="en",
            words=WORDS[self.depth],
        )
        return (await self.run(ask)).markdown


def show(written: Written) -> None:
    print(f"\n# {written.title}\n\n{written.summary}")
    for section in written.sections:
        print(f"\n## {section.title}\n\n{section.text}")
    print("\nSources:", "; ".join(dict.fromkeys(written.sources.values())))


def row(measures: Measures) -> str:
    values = asdict(measures)
    words, sentences = values.pop("words"), values.pop("sentences")
    return f"{words:6.0f} {sentences:5.0f} " + " ".join(f"{v:8.2f}" for v in values.values())


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--depth", type=Depth, default=Depth.STANDARD)
    parser.add_argument("--print", action="store_true", dest="show", help="print the reports")
    parser.add_argument("--home", type=Path, help="where the index is kept")
    parser.add_argument("--hashing", action="store_true", help="hashed words for embeddings: quick, and worse")
    args = parser.parse_args()
    embedder = HashingEmbedder() if args.hashing else MiniLM()
    home = args.home or Path(tempfile.mkdtemp(prefix="extractive-"))
    library = await Library.open(home, [args.folder], LibrarySettings(), embedder)
    await library.refresh(parse)
    print("  words sent. dangling     junk pointers  follows   single repeated  sections")
    rows: list[Measures] = []
    spent = Clock()
    for question in filter(None, map(str.strip, args.questions.read_text("utf-8").splitlines())):
        writer = Writer(library, embedder, args.depth)
        written = await writer.write(question)
        rows.append(written.measures)
        print(row(written.measures), f"   {len(written.sections)}/{written.planned}  {question[:60]}")
        for name, (calls, seconds) in writer.clock.spent.items():
            known = spent.spent.get(name, (0, 0.0))
            spent.spent[name] = (known[0] + calls, known[1] + seconds)
        if args.show:
            show(written)
    if rows:
        count = len(rows)
        total = {k: sum(asdict(m)[k] for m in rows) / count for k in asdict(rows[0])}
        print(row(Measures(**total)), "   mean")
    for name, (calls, seconds) in spent.spent.items():
        print(f"{name}: {calls} calls, {seconds / calls:.3f} processor seconds each")


if __name__ == "__main__":
    asyncio.run(main())
