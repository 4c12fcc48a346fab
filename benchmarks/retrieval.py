"""Recall of the library's ranking on public sets: what each part of it is worth.

    python benchmarks/retrieval.py --data PATH [--sets hotpot,musique,scifact]

PATH holds `multihop_small` (HotpotQA and MuSiQue questions with their passages, from HippoRAG's repository, MIT) and
`scifact` (Wadden et al. 2020). Multi-hop sets: recall@5, recall@10 and the share of questions with all gold passages
among ten. SciFact: nDCG@10. Intervals are 95 % bootstraps over questions.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from marg_ray.models.embeddings import MiniLM
from marg_ray.sources.library.hybrid import rank
from marg_ray.sources.library.index import Index
from marg_ray.sources.library.passages import Piece, row_of

METHODS: dict[str, dict[str, Any]] = {
    "words (BM25)": {"dense_weight": 0.0, "second_hop": False},
    "meaning (MiniLM)": {"dense_weight": 1.0, "second_hop": False},
    "fusion .75": {"second_hop": False},
    "fusion + second hop": {"second_hop": True},
}


@dataclass(frozen=True)
class Question:
    text: str
    gold: frozenset[int]  # passage numbers


def lines(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.decode().splitlines() if line.strip()]


def multihop(data: Path, name: str) -> tuple[list[tuple[str, str]], list[Question]]:
    passages = [(p["title"], p["text"]) for p in lines(data / f"multihop_small/{name}100_corpus.jsonl.gz")]
    by_title = {title: i for i, (title, _) in enumerate(passages)}
    questions = []
    for q in lines(data / f"multihop_small/{name}100_queries.jsonl.gz"):
        gold = q["gold_passages"] if "gold_passages" in q else [by_title[t] for t in q["gold_titles"]]
        questions.append(Question(q["question"], frozenset(gold)))
    return passages, questions


def scifact(data: Path, limit: int) -> tuple[list[tuple[str, str]], list[Question]]:
    """The first `limit` training claims with evidence, over the cited abstracts and as many others as make 1,500."""
    claims = [c for c in lines(data / "scifact/claims_train.jsonl") if c["evidence"]][:limit]
    cited = {int(d) for c in claims for d in c["cited_doc_ids"]}
    docs = lines(data / "scifact/corpus.jsonl.gz")
    kept = [d for d in docs if d["doc_id"] in cited]
    kept += [d for d in docs if d["doc_id"] not in cited][: max(0, 1500 - len(kept))]
    number = {d["doc_id"]: i for i, d in enumerate(kept)}
    passages = [(d["title"], " ".join(d["abstract"])) for d in kept]
    asked = [
        Question(c["claim"], frozenset(number[int(d)] for d in c["cited_doc_ids"] if int(d) in number)) for c in claims
    ]
    return passages, [q for q in asked if q.gold]


def recall(k: int) -> Callable[[list[int], frozenset[int]], float]:
    return lambda order, gold: len(gold & set(order[:k])) / len(gold)


def all_found(order: list[int], gold: frozenset[int]) -> float:
    return float(gold <= set(order[:10]))


def ndcg(order: list[int], gold: frozenset[int]) -> float:
    got = sum(1 / np.log2(place + 2) for place, i in enumerate(order[:10]) if i in gold)
    return float(got / sum(1 / np.log2(place + 2) for place in range(min(10, len(gold)))))


def interval(values: list[float]) -> str:
    means = np.random.default_rng(7).choice(values, (2000, len(values))).mean(1)
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{100 * np.mean(values):5.1f} ({100 * low:.0f}-{100 * high:.0f})"


async def measure(name: str, passages: list[tuple[str, str]], questions: list[Question], model: MiniLM) -> None:
    rows = [row_of(title, text, Piece(0, len(text))) for title, text in passages]
    began = time.perf_counter()
    vectors = await model.embed([row.embedded for row in rows])
    took = time.perf_counter() - began
    index = Index.of(
        [(str(i), title, [row]) for i, ((title, _), row) in enumerate(zip(passages, rows, strict=True))], vectors
    )
    print(f"\n{name}: {len(questions)} questions, {len(rows)} passages, {len(rows) / took:.0f} embedded per second")
    measures: dict[str, Callable[[list[int], frozenset[int]], float]] = (
        {"nDCG@10": ndcg, "recall@10": recall(10)}
        if name == "SciFact"
        else {"recall@5": recall(5), "recall@10": recall(10), "all gold @10": all_found}
    )
    print(f"  {'method':22}" + "".join(f"{m:>18}" for m in measures) + f"{'ms/query':>10}")
    await model.embed([q.text for q in questions])  # ms/query: without the query's own embedding
    for method, options in METHODS.items():
        began = time.perf_counter()
        orders = [[int(i) for i in (await rank(index, q.text, model, **options)).order[:10]] for q in questions]
        ms = 1000 * (time.perf_counter() - began) / len(questions)
        cells = [interval([f(o, q.gold) for o, q in zip(orders, questions, strict=True)]) for f in measures.values()]
        print(f"  {method:22}" + "".join(f"{c:>18}" for c in cells) + f"{ms:10.0f}")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="hotpot,musique,scifact")
    parser.add_argument("--claims", type=int, default=200, help="SciFact claims")
    args = parser.parse_args()
    model = MiniLM()
    await model.warm()
    for name in args.sets.split(","):
        match name:
            case "hotpot":
                await measure("HotpotQA", *multihop(args.data, "hotpotqa"), model)
            case "musique":
                await measure("MuSiQue", *multihop(args.data, "musique"), model)
            case "scifact":
                await measure("SciFact", *scifact(args.data, args.claims), model)
            case _:
                parser.error(f"unknown set {name!r}")


if __name__ == "__main__":
    asyncio.run(main())
