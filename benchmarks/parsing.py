"""Parsing: main-text F1 against plain trafilatura on the same pages, and speed by format.

    python benchmarks/parsing.py articles --data PATH     pages with true main text (ground-truth.json.gz, html/)
    python benchmarks/parsing.py speed FILE [FILE ...]    seconds, letters and pages a second for any files

F1 is that of Scrapinghub's article-extraction benchmark: runs of four words as multisets, precision and recall
averaged over the pages, then combined. Times are of the processor, so that a busy machine gives the same figures.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from marg_ray.errors import Unreadable
from marg_ray.sources.parse import parse

_WORD = re.compile(r"\w+")
NGRAM = 4

Extract = Callable[[bytes, str], str]


def runs(text: str) -> Counter[tuple[str, ...]]:
    words = _WORD.findall(text)
    if 0 < len(words) < NGRAM:
        return Counter({tuple(words): 1})
    return Counter(tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1))


def page_score(true: str, found: str) -> tuple[float, float]:
    """Precision and recall of one page."""
    a, b = runs(true), runs(found)
    both = sum((a & b).values())
    return (both / b.total() if b else 0.0), (both / a.total() if a else 1.0)


def ours(body: bytes, name: str) -> str:
    try:
        document = parse(body, name=name, media_type="text/html")
    except Unreadable as error:
        print(f"  {error}", file=sys.stderr)
        return ""
    parts = ((p.kind, document.text[p.start : p.end]) for p in document.parts)
    # The true texts leave the headline out.
    return "\n".join(text for kind, text in parts if kind != "heading" or text != document.title)


def plain(body: bytes, name: str) -> str:
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    return trafilatura.extract(body, include_comments=False) or ""


def articles(data: Path, worst: int) -> None:
    parse(b"Warm up: the models that tell languages load here, once.", name="warm.txt")
    truth = json.loads(gzip.decompress((data / "ground-truth.json.gz").read_bytes()))
    pages = {key: gzip.decompress((data / "html" / f"{key}.html.gz").read_bytes()) for key in truth}
    for label, extract in (("trafilatura", plain), ("marg_ray", ours)):
        started = time.process_time()
        scores = {k: page_score(truth[k]["articleBody"], extract(body, f"{k}.html")) for k, body in pages.items()}
        took = time.process_time() - started
        precision = sum(p for p, _ in scores.values()) / len(scores)
        recall = sum(r for _, r in scores.values()) / len(scores)
        f1 = 2 * precision * recall / (precision + recall)
        measures = f"P {precision:.3f}  R {recall:.3f}  F1 {f1:.3f}"
        print(f"{label:12} pages {len(scores)}  {measures}  {took / len(scores) * 1e3:.0f} ms/page")
        for key in sorted(scores, key=lambda k: min(scores[k]))[:worst]:
            print(f"    {key[:12]} P {scores[key][0]:.2f} R {scores[key][1]:.2f}")


def speed(files: list[Path]) -> None:
    parse(b"Warm up: the models that tell languages load here, once and for all files.", name="warm.txt")
    for path in files:
        body = path.read_bytes()
        started = time.process_time()
        try:
            document = parse(body, name=path.name)
        except Unreadable as error:
            print(f"{path.name}: {error.why}")
            continue
        took = time.process_time() - started
        pages = max((p.page or 0 for p in document.parts), default=0)
        rate = f"{pages / took:.0f} pages/s" if pages else f"{len(body) / took / 1e6:.1f} MB/s"
        print(f"{path.name:36} {len(body) / 1e6:6.2f} MB  {took:6.2f} s  {len(document.text):>9,} letters  {rate}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of_articles = commands.add_parser("articles")
    of_articles.add_argument("--data", type=Path, required=True)
    of_articles.add_argument("--worst", type=int, default=0, help="also name this many of the worst pages")
    commands.add_parser("speed").add_argument("files", type=Path, nargs="+")
    args = parser.parse_args()
    if args.command == "articles":
        articles(args.data, args.worst)
    else:
        speed(args.files)


if __name__ == "__main__":
    main()
