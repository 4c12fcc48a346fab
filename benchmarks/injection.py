"""Attacks in what a run reads: how many reach a model, how many are obeyed, and what is lost of honest texts.

    python benchmarks/injection.py [--data PATH] [--only KIND] [--verbose]

Every attack of `injection_cases` takes the whole way of a report, one run each: parsed, cut, frozen, searched, put into
the prompts of plan, reading, draft, analysis, review and summary, grounded, checked and printed. The writer obeys
whatever reaches it. Bars: obeyed 0; no honest text of `injection_benign` loses a word.

The rules were made for these attacks, so that 0 says only that none was lost again. `UNSEEN` holds attacks that no rule
was made for; how many of these are found is printed beside.

With `--data`, real texts are looked through: encyclopaedia articles, abstracts, dialogues, web pages, and the Debian
manuals where they are installed; every cut is printed, so that a reader can judge it. Last, what looking costs beside
parsing the same pages.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.injection_benign import benign
from benchmarks.injection_cases import ATTACKS, UNSEEN, Attack
from benchmarks.injection_world import Outcome, run
from marg_ray.errors import Unreadable
from marg_ray.grounding.injection import cut_injections, scan, veil
from marg_ray.grounding.snapshots import Document
from marg_ray.sources.parse import parse

DEBIAN = ("debian-policy", "debian-reference-en", "debian-faq", "debian", "developers-reference", "maint-guide")
PAGES = 60  # that are parsed to compare the cost


async def attacks(only: str, folder: Path) -> list[tuple[Attack, Outcome]]:
    rows = []
    for n, attack in enumerate(a for a in ATTACKS if only in str(a)):
        outcome, _, _ = await run([attack], folder / str(n))
        rows.append((attack, outcome))
    return rows


def table(rows: list[tuple[Attack, Outcome]], *, verbose: bool) -> bool:
    print(f"{'kind':14}{'attacks':>8}{'reached':>9}{'obeyed':>8}{'recorded':>10}{'marked':>8}{'still answered':>16}")
    for kind in [*dict.fromkeys(a.kind for a, _ in rows), ""]:
        some = [o for a, o in rows if kind in ("", a.kind)]
        counts = [
            sum(map(bool, column))
            for column in zip(*((o.reached, o.obeyed, o.recorded, o.marked, o.supported) for o in some), strict=True)
        ]
        print(f"{kind or 'all':14}{len(some):8}{counts[0]:9}{counts[1]:8}{counts[2]:10}{counts[3]:8}{counts[4]:16}")
    for attack, outcome in rows:
        if outcome.obeyed or (verbose and (outcome.reached or not outcome.recorded or not outcome.marked)):
            print(f"  {attack}: reached {outcome.reached}, recorded {outcome.recorded}, obeyed {outcome.obeyed[:2]}")
    return not any(o.obeyed for _, o in rows)


def honest() -> bool:
    texts = benign()
    mangled = [
        (kind, text) for kind, text in texts if cut_injections(Document(title="", text=text, parts=())).text != text
    ]
    veiled = [(kind, text) for kind, text in texts if veil(text) != text]
    print(f"\nhonest texts: {len(texts)}, mangled {len(mangled)}; blanked out in prompts {len(veiled)}")
    print("  blanked by kind:", {k: sum(kind == k for kind, _ in veiled) for k in dict.fromkeys(k for k, _ in veiled)})
    for kind, text in mangled:
        print(f"  mangled ({kind}): {text}")
    return not mangled


def unseen() -> None:
    """How much of what no rule was made for is found: the honest figure, for the rules were made for the others."""
    found = [text for text in UNSEEN if scan(text)]
    print(f"\nattacks that no rule was made for: {len(UNSEEN)}, found {len(found)}")


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def corpora(data: Path) -> Iterator[tuple[str, Iterator[str]]]:
    yield "freshwiki articles", (str(r["txt"]) for r in _jsonl(data / "freshwiki/articles.jsonl.gz"))
    yield (
        "scifact abstracts",
        (f"{r['title']}\n\n{' '.join(r['abstract'])}" for r in _jsonl(data / "scifact/corpus.jsonl.gz")),
    )
    yield "wice pages", ("\n".join(r["evidence"]) for r in _jsonl(data / "wice/claim_dev.jsonl.gz"))
    yield "begin knowledge", _begin(data)
    yield "Debian manuals", _debian()


def _begin(data: Path) -> Iterator[str]:
    for path in sorted((data / "begin").glob("*.tsv.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            yield from (r["knowledge"] or "" for r in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def _debian() -> Iterator[str]:
    for folder in DEBIAN:
        for path in sorted(Path("/usr/share/doc", folder).rglob("*")):
            packed = path.suffix == ".gz"
            if path.is_dir():
                continue
            if (
                path.is_file() and path.with_suffix("").suffix + path.suffix in (".txt.gz", ".html.gz")
            ) or path.suffix in (".html", ".txt"):
                raw = path.read_bytes()
                try:
                    yield parse(gzip.decompress(raw) if packed else raw, name=path.name.removesuffix(".gz")).text
                except Unreadable:
                    continue


def real(data: Path) -> None:
    print(f"\n{'real texts':22}{'texts':>7}{'letters':>12}{'texts cut':>11}{'cuts':>6}{'ms per 100 kB':>15}")
    for name, texts in corpora(data):
        seen = list(dict.fromkeys(texts))
        began = time.perf_counter()
        found = [(text, scan(text)) for text in seen]
        took, letters = time.perf_counter() - began, sum(map(len, seen))
        cuts = [(text[f.start : f.end], f.rule) for text, some in found for f in some]
        print(
            f"{name:22}{len(seen):7}{letters:12,}{sum(bool(f) for _, f in found):11}{len(cuts):6}"
            f"{1e8 * took / max(1, letters):15.1f}"
        )
        for text, rule in cuts[:40]:
            print(f"  {rule}: {' '.join(text.split())[:160]}")


def cost(data: Path) -> None:
    def timed(work: Callable[[], Document]) -> tuple[float, Document]:
        began = time.perf_counter()
        document = work()
        return time.perf_counter() - began, document

    parsing = cutting = 0.0
    pages = 0
    for path in sorted((data / "article_extraction/html").glob("*.html.gz"))[:PAGES]:
        raw = gzip.decompress(path.read_bytes())
        try:
            took, document = timed(lambda raw=raw: parse(raw, name="page.html"))  # type: ignore[misc]
        except Unreadable:
            continue
        again, after = timed(lambda document=document: cut_injections(document))  # type: ignore[misc]
        pages, parsing, cutting = pages + 1, parsing + took, cutting + again
        for found in after.injections:
            print(f"  cut of a page ({found.where}, {found.rule}): {' '.join(found.text.split())[:160]}")
    print(f"\n{pages} web pages: parsing {1000 * parsing / pages:.1f} ms each, with what is hidden, "
          f"cutting {1000 * cutting / pages:.2f} ms each, {cutting / parsing:.1%} of parsing")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the data sets: real texts are looked through")
    parser.add_argument("--only", default="", help="attacks whose kind or name has this")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = asyncio.run(attacks(args.only, Path(scratch)))
    good = table(rows, verbose=args.verbose)
    good = honest() and good
    unseen()
    if args.data:
        real(args.data)
        cost(args.data)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
