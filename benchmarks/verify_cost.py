"""What it costs to verify a long report: CPU seconds, and how many times that of reading the same passages once.

    python benchmarks/verify_cost.py [--folder examples/library] [--words 2000] [--sources 40]

The report is made of the folder's own sentences: a third word for word, a third with other words in places, a third two
statements joined by "and". Each cites two passages. No embeddings and no model: the words alone.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from marg_ray.grounding.alignment import passage
from marg_ray.grounding.claims import split_claims
from marg_ray.grounding.sentences import split_sentences
from marg_ray.grounding.verify import verify_draft
from marg_ray.records import Block, Draft, Evidence, Grounding, Sentence
from marg_ray.seams import in_thread

PASSAGE = 5  # sentences
OTHER_WORDS = {
    "produce": "make", "large": "big", "built": "put up", "about": "around", "station": "plant", "water": "sea water",
    "power": "output", "first": "earliest", "because": "as", "costs": "prices",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    draft: Draft
    evidence: dict[str, Evidence]

    @property
    def words(self) -> int:
        return sum(len(s.text.split()) for s in self.draft.sentences)


def sentences_in(folder: Path) -> list[str]:
    """The sentences of the folder's plain texts, of 6 to 40 words."""
    found = []
    for path in sorted([*folder.glob("*.md"), *folder.glob("*.txt"), *folder.glob("*.html")]):
        text = re.sub(r"<[^>]+>", " ", path.read_text("utf-8"))
        found += [s for s in split_sentences(text) if 6 <= len(s.split()) <= 40 and not s.startswith(("#", "|", "-"))]
    return found


def case(sentences: list[str], words: int, sources: int) -> Case:
    """A report of about `words` words over `sources` passages of its sentences; passages repeat no text."""
    chunks = [sentences[n : n + PASSAGE] for n in range(0, len(sentences), PASSAGE)]
    texts = [" ".join(chunks[n % len(chunks)]) + f" This is page {n}." for n in range(sources)]
    evidence = {
        f"e{n}": Evidence(id=f"e{n}", source=f"s{n}", quote=t, start=0, end=len(t)) for n, t in enumerate(texts)
    }
    written: list[Sentence] = []
    used = 0
    for n, text in zip(range(10_000), _rewritten(chunks), strict=False):
        at = n % len(chunks) % sources
        written.append(Sentence(text=text, citations=(f"e{at}", f"e{(at + 1) % sources}")))
        used += len(text.split())
        if used >= words:
            break
    blocks = (Block(kind="paragraph", sentences=tuple(written)),)
    return Case(Draft(section="s1", revision=0, blocks=blocks), evidence)


def _rewritten(chunks: list[list[str]]) -> Iterator[str]:
    """One sentence of each chunk in turn, in three manners."""
    for n, chunk in enumerate(cycle(chunks)):
        one = chunk[n // len(chunks) % len(chunk)]
        match n % 3:
            case 0:
                yield one
            case 1:
                yield re.sub(r"\w+", lambda m: OTHER_WORDS.get(m[0], m[0]), one)
            case _:
                other = chunk[(n // len(chunks) + 1) % len(chunk)]
                yield f"{one.rstrip('.')} and {other[:1].lower()}{other[1:]}"


def read_once(case: Case) -> float:
    """CPU seconds of taking in every passage that is cited: its sentences, words, names, dates and figures."""
    passage.cache_clear()
    began = time.process_time()
    for one in case.evidence.values():
        text = passage(one.quote)
        _ = text.terms, text.words, text.acronyms, text.quantities
    return time.process_time() - began


async def verify(case: Case) -> tuple[float, Grounding]:
    """CPU seconds of the whole check, with nothing remembered, and what it found."""
    passage.cache_clear()
    began = time.process_time()
    found = await verify_draft(case.draft, case.evidence, titles={}, embedder=None, offload=in_thread)
    return time.process_time() - began, found


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("examples/library"))
    parser.add_argument("--words", type=int, default=2000)
    parser.add_argument("--sources", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    one = case(sentences_in(args.folder), args.words, args.sources)
    await verify(one)  # the stemmer and the tables are loaded once in a process
    reading = min(read_once(one) for _ in range(args.rounds))
    rounds = [await verify(one) for _ in range(args.rounds)]
    seconds, found = min(rounds, key=lambda r: r[0])
    began = time.process_time()
    apart = [len(split_claims(s.text)) for s in one.draft.sentences]
    splitting = time.process_time() - began
    several = sum(len(v.claims) > 1 for v in found.verdicts)
    print(f"{one.words} words, {len(one.draft.sentences)} sentences, {len(one.evidence)} passages")
    print(f"{several} sentences of several statements, {sum(apart)} statements, found in {1000 * splitting:.0f} ms CPU")
    print(f"verified in {seconds:.2f} s CPU, {seconds / reading:.1f} times reading the passages ({reading:.3f} s)")


if __name__ == "__main__":
    asyncio.run(main())
