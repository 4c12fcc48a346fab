"""How much of a document a reader must be shown: the share of claims whose evidence is among its best windows.

    python benchmarks/reading_budget.py --data PATH [--limit N]

PATH holds `wice` (WiCE, Kamoi et al. 2023: claims of Wikipedia, the articles they cite, and the sentences that support
each). For each number of words the best windows of the article are taken, as when a page is read. Asked is the claim
itself (`claim`), or only the article's and section's titles on Wikipedia (`topic`: vaguer than a section's queries).
`kept`: the windows hold all sentences of one of the sets that support the claim. `floor`: windows below a quarter of
the best one's score are left out as well.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from marg_ray.grounding.snapshots import Document, Part
from marg_ray.models.embeddings import MiniLM
from marg_ray.records import Span
from marg_ray.sources.ranking import best_windows

BUDGETS = (1_000_000, 1400, 1000, 700, 500)
PARAGRAPH = 3  # sentences: the set gives no paragraphs
FLOOR = 0.25


@dataclass(frozen=True)
class Case:
    document: Document
    queries: dict[str, tuple[str, ...]]
    supports: tuple[tuple[tuple[int, int], ...], ...]  # alternative sets of places in the text

    def kept(self, windows: Sequence[Span]) -> bool:
        return any(all(_inside(place, windows) for place in places) for places in self.supports)

    def words(self, windows: Sequence[Span]) -> int:
        return sum(len(self.document.text[w.start : w.end].split()) for w in windows)


def _inside(place: tuple[int, int], windows: Sequence[Span]) -> bool:
    return any(w.start <= place[0] and place[1] <= w.end for w in windows)


def case_of(row: dict[str, Any]) -> Case:
    """A claim and the article it cites, its sentences in paragraphs of three."""
    sentences = [str(s).strip() for s in row["evidence"]]
    parts: list[Part] = []
    places: list[tuple[int, int]] = []
    text = ""
    for at in range(0, len(sentences), PARAGRAPH):
        text += "\n\n" if text else ""
        start = len(text)
        for sentence in sentences[at : at + PARAGRAPH]:
            text += " " if len(text) > start else ""
            places.append((len(text), len(text) + len(sentence)))
            text += sentence
        parts.append(Part(kind="paragraph", start=start, end=len(text)))
    meta = row["meta"]
    topic = (f"{meta['claim_title']} {meta['claim_section']}", meta["claim_title"])
    return Case(
        document=Document(title=sentences[0][:80], text=text, parts=tuple(parts), language="en"),
        queries={"claim": (row["claim"],), "topic": topic},
        supports=tuple(tuple(places[i] for i in chosen) for chosen in row["supporting_sentences"] if chosen),
    )


def cases(data: Path, limit: int) -> list[Case]:
    """The supported claims of the development set."""
    lines = gzip.decompress((data / "wice/claim_dev.jsonl.gz").read_bytes()).decode().splitlines()
    rows = [json.loads(line) for line in lines]
    return [case_of(r) for r in rows if r["label"] == "supported" and any(r["supporting_sentences"])][:limit]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=10_000, help="of the claims")
    args = parser.parse_args()
    found, embedder = cases(args.data, args.limit), MiniLM()
    print(f"{len(found)} claims\n{'asked':<8}{'words':>8}{'shown':>8}{'kept':>8}{'with floor':>12}{'kept':>8}")
    for asked in ("claim", "topic"):
        for budget in BUDGETS:
            shown, few = [], []
            for case in found:
                windows = await best_windows(case.queries[asked], case.document, embedder, budget)
                best = max((w.score for w in windows), default=0.0)
                shown.append((case, windows))
                few.append((case, [w for w in windows if w.score >= FLOOR * best]))
            name = "all" if budget == BUDGETS[0] else f"{budget:,}"
            print(f"{asked:<8}{name:>8}{_row(shown)}{_row(few, 12)}", flush=True)


def _row(chosen: Sequence[tuple[Case, Sequence[Span]]], width: int = 8) -> str:
    count = max(1, len(chosen))
    words = sum(case.words(windows) for case, windows in chosen) // count
    return f"{words:>{width},}{sum(case.kept(windows) for case, windows in chosen) / count:>8.3f}"


if __name__ == "__main__":
    asyncio.run(main())
