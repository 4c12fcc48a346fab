"""Whether the library answers what it can and refuses what it cannot.

    python benchmarks/refusal.py --wiki DIR --debian DIR [--home DIR] [--json FILE]

DIR wiki: the 100 FreshWiki articles as Markdown, one file each. DIR debian: the manuals debian-policy,
developers-reference, debian-reference-en, debian-faq and maint-guide, as the packages install them. The questions are
in `data/refusal.yaml`; the thresholds of `sources/answerability.py` were chosen on the odd ones only.

Bars: at most 15 % of the answerable and re-worded questions refused, at most 10 % of the others answered as if known.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from marg_ray.models.embeddings import MiniLM
from marg_ray.records import Zone
from marg_ray.settings import LibrarySettings
from marg_ray.sources.library.library import Library
from marg_ray.sources.library.refresh import Progress
from marg_ray.sources.parse import parse

QUESTIONS = Path(__file__).parent / "data" / "refusal.yaml"
KNOWN = ("answerable", "reworded")


@dataclass(frozen=True)
class Asked:
    library: str
    kind: str
    held_out: bool
    question: str
    zone: Zone
    cosine: float
    coverage: float
    missing: tuple[str, ...]
    first: str  # title of the best document
    seconds: float


async def ask(library: Library, name: str, kinds: dict[str, list[str]]) -> list[Asked]:
    asked = []
    for kind, questions in kinds.items():
        for number, question in enumerate(questions):
            began = time.perf_counter()
            found = await library.search(question, 5)
            a, took = found.answerability, time.perf_counter() - began
            first = found.hits[0].title if found.hits else ""
            held_out = number % 2 == 1
            asked.append(
                Asked(name, kind, held_out, question, a.zone, a.cosine, a.coverage, a.missing_terms, first, took)
            )
    return asked


def table(title: str, asked: list[Asked]) -> None:
    print(f"\n{title}\n  {'kind':12}{'n':>5}" + "".join(f"{zone:>10}" for zone in Zone))
    for kind in dict.fromkeys(a.kind for a in asked):
        some = [a for a in asked if a.kind == kind]
        shares = (sum(a.zone is zone for a in some) / len(some) for zone in Zone)
        print(f"  {kind:12}{len(some):5}" + "".join(f"{share:10.0%}" for share in shares))
    known = [a for a in asked if a.kind in KNOWN]
    other = [a for a in asked if a.kind not in KNOWN]
    refused = sum(a.zone is Zone.NOTHING for a in known) / len(known)
    taken = sum(a.zone is Zone.ANSWER for a in other) / len(other)
    print(f"  refused though known: {refused:.1%} (bar 15 %)   answered though unknown: {taken:.1%} (bar 10 %)")


def show(progress: Progress) -> None:
    if progress.done == progress.total or progress.done % 500 < 128:
        print(f"\r  {progress.stage} {progress.done} of {progress.total}   ", end="", flush=True)


async def run(folders: dict[str, Path], home: Path) -> list[Asked]:
    questions: dict[str, dict[str, list[str]]] = yaml.safe_load(QUESTIONS.read_text("utf-8"))
    model = MiniLM()
    asked: list[Asked] = []
    for name, folder in folders.items():
        library = await Library.open(home, [folder], LibrarySettings(), model)
        began = time.perf_counter()
        report = await library.refresh(parse, on_progress=show)
        took = time.perf_counter() - began
        await library.search("warm", 1)
        size = f"{report.documents} documents, {report.passages} passages"
        print(f"\r{name}: {size}, {report.embedded} embedded in {took:.0f} s")
        asked += await ask(library, name, questions[name])
    return asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wiki", type=Path, required=True)
    parser.add_argument("--debian", type=Path, required=True)
    parser.add_argument("--home", type=Path, help="keep the index here")
    parser.add_argument("--json", type=Path, help="write every question's figures")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        asked = asyncio.run(run({"wiki": args.wiki, "debian": args.debian}, args.home or Path(scratch)))
    for title, part in (("tuning half", False), ("held-out half", True)):
        table(title, [a for a in asked if a.held_out is part])
    print("\nrefused though known, or answered though unknown:")
    for a in asked:
        if (a.kind in KNOWN and a.zone is Zone.NOTHING) or (a.kind not in KNOWN and a.zone is Zone.ANSWER):
            print(f"  {a.library:7}{a.kind:11}{a.cosine:.2f} {a.coverage:.2f}  {a.question}  [{a.first}]")
    seconds = sorted(a.seconds for a in asked)
    print(f"\nms per query: median {1000 * seconds[len(seconds) // 2]:.0f}, worst {1000 * seconds[-1]:.0f}")
    if args.json:
        rows: list[dict[str, Any]] = [asdict(a) for a in asked]
        args.json.write_text(json.dumps(rows, indent=1, default=str))


if __name__ == "__main__":
    main()
