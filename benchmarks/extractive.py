"""How reports without a language model read: 30 questions over two libraries, by the measures that agree with a reader.

    python benchmarks/extractive.py --data PATH [--home DIR] [--depth standard] [--only wiki] [--print] [--hashing]

PATH holds `freshwiki` (100 encyclopaedia articles); the Debian manuals are read where their packages put them. Every
report takes the whole way: plan, search, read, draft, check, review, revise, summarise. Indexes are kept in `--home`.

Printed per question and as a mean: words and sentences; the shares of weak sentences (cosine to what the section asks
below .40), dangling ones (by the rules that chose them, and by patterns of their own), pointers and cross references,
junk, sentences behind their own predecessor, paragraphs of one sentence, sentences that say what another says;
sections filled or listed as not answered, of those planned; then what the composing cost.

Gates: dangling at most .02 by either measure, junk and pointers at most .05, predecessor share at least .40,
one-sentence paragraphs at most .50, every facet filled or listed as not answered, no heading and no sentence twice.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.dangling import dangling
from benchmarks.reports import Desk, Meter, arguments, libraries, questions
from marg_ray.grounding.drafts import render_draft
from marg_ray.models.client import ModelClient
from marg_ray.models.embeddings import HashingEmbedder, MiniLM
from marg_ray.models.extractive import ExtractiveModel
from marg_ray.models.extractive.clauses import TOLD_BY_WORDS, clauses
from marg_ray.models.extractive.enumerations import items
from marg_ray.models.extractive.facets import facet, names_item, speaks_of
from marg_ray.models.extractive.measures import is_name, measure
from marg_ray.models.extractive.words import squeeze
from marg_ray.records import Block, Draft, Sentence
from marg_ray.report.model import Report, ReportSection
from marg_ray.seams import Embedder

WEAK = 0.40
COLUMNS = ("words", "weak", "dangling", "own", "pointer", "junk", "follows", "single", "repeated")
GATES = {  # column: (bound, whether it is the least allowed)
    "dangling": (0.02, False),
    "own": (0.02, False),
    "pointer": (0.05, False),
    "junk": (0.05, False),
    "follows": (0.40, True),
    "single": (0.50, False),
}


@dataclass(frozen=True)
class Row:
    """One report's figures, by column, and what is wrong with it as a whole."""

    figures: dict[str, float]
    filled: int
    listed: int
    planned: int
    cells: tuple[int, int]  # filled or listed, of things asked about times what is asked of each
    twice: tuple[str, ...]
    headings: tuple[str, ...]
    leaning: tuple[str, ...]


def markdown(section: ReportSection, numbers: dict[str, tuple[int, ...]]) -> str:
    """A section as it was written, each piece of evidence under a number of its own."""
    blocks = [
        Block(
            kind=b.kind, text=b.text, level=b.level,
            sentences=tuple(Sentence(text=s.text, citations=s.citations) for s in section.sentences[b.start : b.end]),
        )
        for b in section.blocks
    ]  # fmt: skip
    return render_draft(Draft(section=section.id, revision=0, blocks=tuple(blocks)), numbers)


async def judged(report: Report, embedder: Embedder) -> Row:
    numbers = {e.id: (n,) for n, e in enumerate(report.evidence, 1)}
    written = [s for s in report.sections if s.sentences]
    found = measure([markdown(s, numbers) for s in written], [s.title for s in written])
    leaning = tuple(leaning_in(report))
    prose = sum(b.end - b.start for s in written for b in s.blocks if b.kind == "paragraph")
    figures = {
        "words": found.words, "weak": await _weak(report, embedder), "dangling": found.dangling,
        "own": len(leaning) / prose if prose else 0.0, "pointer": found.pointers, "junk": found.junk,
        "follows": found.follows, "single": found.single, "repeated": found.repeated,
    }  # fmt: skip
    texts = [squeeze(s.text) for section in written for s in section.sentences]
    titles = [s.title.casefold() for s in report.sections]
    listed = {g.section for g in report.gaps}
    return Row(
        figures, len(written), sum(1 for s in report.sections if not s.sentences and s.id in listed),
        len(report.sections), _cells(report), tuple({t for t in texts if texts.count(t) > 1}),
        tuple({t for t in titles if titles.count(t) > 1}), leaning,
    )  # fmt: skip


def leaning_in(report: Report) -> Iterator[str]:
    """Sentences that refer to one which does not stand before them. A name in bold or as heading is one to refer to."""
    quotes = {e.id: squeeze(e.quote) for e in report.evidence}
    for section in report.sections:
        named = is_name(section.title)
        for block in section.blocks:
            if block.kind == "label":
                named = block.text.casefold() != ONLY.casefold() or named
                continue
            before = None
            for sentence in section.sentences[block.start : block.end] if block.kind == "paragraph" else ():
                alone = not named and not (before and _behind(before.text, sentence.text, quotes, sentence.citations))
                if alone and (why := dangling(sentence.text)):
                    yield f"{why} | {sentence.text}"
                before, named = sentence, False


ONLY = "The documents say only"


def _behind(before: str, text: str, quotes: dict[str, str], citations: tuple[str, ...]) -> bool:
    """Whether two sentences stand one behind the other in a passage."""
    for quote in (quotes[c] for c in citations if c in quotes):
        a, b = quote.find(before.rstrip(".")), quote.find(text.rstrip("."))
        if 0 <= a < b and b - (a + len(before)) < 12:
            return True
    return False


async def _weak(report: Report, embedder: Embedder) -> float:
    weak = total = 0
    for section in report.sections:
        texts = [s.text for s in section.sentences]
        if texts:
            asked = facet(report.question, section.title, (section.title,)).query
            vectors = await embedder.embed([asked, *texts])
            cosines = (vectors[1:] @ vectors[0]).tolist()
            weak += sum(c < WEAK for c in cosines)
            total += len(texts)
    return weak / total if total else 0.0


def _cells(report: Report) -> tuple[int, int]:
    """Things asked about, times what is asked of each: how many are answered or listed, of how many."""
    titles = [s.title for s in report.sources]
    found = items(report.question, titles)
    told = " ".join((*report.unknowns, *(g.reason for g in report.gaps))).casefold()
    good = total = 0
    if found is None:
        asked = clauses(report.question, titles)
        for clause in asked:
            section = next((s for s in report.sections if s.title.casefold() == clause.text.casefold()), None)
            section = section or (report.sections[0] if len(asked) == 1 else None)
            stands = section is not None and (bool(section.sentences) or bool(section.gap))
            total += 1
            good += stands or clause.text.casefold() in told
        return good, total
    for name in found.names:
        sections = [s for s in report.sections if names_item(s.title, name) or s.title.casefold() == name.casefold()]
        text = [s.text for section in sections for s in section.sentences]
        for clause in clauses(report.question, titles):
            wanted = facet(report.question, clause.text, (clause.text,))
            wanted = replace(wanted, own=wanted.own - {*found.names}, defined="")
            by_words = wanted.kind in TOLD_BY_WORDS
            total += 1
            answered = any(speaks_of(wanted, t, 0.0) for t in text) if by_words else bool(text)
            good += answered or name.casefold() in told
    return good, total


def line(figures: dict[str, float]) -> str:
    return f"{figures['words']:6.0f} " + " ".join(f"{figures[c]:8.2f}" for c in COLUMNS[1:])


def gates(rows: list[Row]) -> list[tuple[str, bool]]:
    mean = {c: sum(r.figures[c] for r in rows) / len(rows) for c in COLUMNS}
    found = []
    for column, (bound, least) in GATES.items():
        good = mean[column] >= bound if least else mean[column] <= bound
        found.append((f"{column} {mean[column]:.3f} {'>=' if least else '<='} {bound}", good))
    missed = sum(r.planned - r.filled - r.listed for r in rows)
    cells, total = (sum(r.cells[i] for r in rows) for i in (0, 1))
    found.append((f"sections neither filled nor listed: {missed}", missed == 0))
    found.append((f"items x facets filled or listed: {cells} of {total}", cells == total))
    found.append((f"headings twice: {sum(len(r.headings) for r in rows)}", not any(r.headings for r in rows)))
    found.append((f"sentences twice: {sum(len(r.twice) for r in rows)}", not any(r.twice for r in rows)))
    return found


def show(report: Report) -> None:
    numbers = {e.id: (n,) for n, e in enumerate(report.evidence, 1)}
    print(f"\n# {report.title}\n")
    for s in report.summary:
        print(f"- {s.text} {s.numbers}")
    for section in report.sections:
        print(f"\n## {section.title}{' (gap: ' + section.gap + ')' if section.gap else ''}\n")
        print(markdown(section, numbers))
    print("\nnot answered:", report.unknowns, "\nsources:", "; ".join(s.title for s in report.sources), "\n")


async def run(args: argparse.Namespace, home: Path) -> int:
    embedder: Embedder = HashingEmbedder() if args.hashing else MiniLM()
    meter = Meter()

    def make(known: Embedder) -> ModelClient:
        return ExtractiveModel(known, meter)

    desk = Desk(home / ("hashing" if args.hashing else "index"), embedder, make, args.depth)
    rows: list[Row] = []
    print("number  words " + " ".join(f"{c:>8}" for c in COLUMNS[1:]) + "  sections cells")
    for name, folder in libraries(args.data, home).items():
        if args.only and args.only != name:
            continue
        await desk.index(folder)
        for number, question in enumerate(questions()[name][: args.first], 1):
            report, _ = await desk.report(f"{name}{number}", question, folder)
            row = await judged(report, embedder)
            rows.append(row)
            print(f"{name[:4]}{number:3}", line(row.figures), end="  ")
            print(f"{row.filled}+{row.listed}/{row.planned}  {row.cells[0]}/{row.cells[1]}  {question[:50]}")
            for text in (*row.leaning, *(f"twice: {t}" for t in row.twice), *(f"heading: {t}" for t in row.headings)):
                print(f"        {text[:150]}")
            if args.show:
                show(report)
    if not rows:
        print("nothing to measure")
        return 0
    print("   mean", line({c: sum(r.figures[c] for r in rows) / len(rows) for c in COLUMNS}))
    print(f"composing: {meter.seconds / len(rows):.3f} processor seconds a report, embedding apart")
    print(f"everything: {desk.seconds / len(rows):.2f} processor seconds a report")
    failed = 0
    for text, good in gates(rows):
        print("PASS" if good else "FAIL", text)
        failed += not good
    return failed


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--print", action="store_true", dest="show", help="print the reports")
    args = parser.parse_args()
    home = args.home or Path(tempfile.mkdtemp(prefix="reports-"))
    sys.exit(1 if asyncio.run(run(args, home.absolute())) else 0)


if __name__ == "__main__":
    main()
