"""Public verification sets as (claim, source texts, label) rows, read from the folder that `--data` names."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    claim: str
    texts: tuple[str, ...]
    supported: bool


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in text.decode("utf-8").split("\n"):
        if line:
            yield json.loads(line)


def _table(path: Path, delimiter: str = ",") -> Iterator[dict[str, str]]:
    csv.field_size_limit(10_000_000)
    text = gzip.decompress(path.read_bytes()).decode("utf-8")
    quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    yield from csv.DictReader(io.StringIO(text), delimiter=delimiter, quoting=quoting)


def wice(data: Path) -> Iterator[Row]:
    for row in _lines(data / "wice/claim_dev.jsonl.gz"):
        yield Row(row["claim"], ("\n\n".join(row["evidence"]),), row["label"] == "supported")


def lfqa(data: Path) -> Iterator[Row]:
    folder = data / "lfqa_verification"
    docs = {
        (row["docs"], row["question_id"]): tuple(d["text"] for d in row["docs_list"])
        for row in _lines(folder / "docs.jsonl.gz")
    }
    for row in _lines(folder / "sentences.jsonl.gz"):
        votes = [label.lower() for label in row["labels"]]
        texts = docs.get((row["docs"], row["question_id"]), ())
        if texts:
            yield Row(row["sentence"], texts, votes.count("supported") * 2 > len(votes))


def factcheck(data: Path) -> Iterator[Row]:
    """Partly supported counts as not supported, as in WiCE and ExpertQA."""
    for row in _lines(data / "factcheck_bench/subtask3_claim_evidence_stance.jsonl.gz"):
        yield Row(row["claim"], (row["evidence"],), row["stance"] == "completely-support")


def attribution(data: Path) -> Iterator[Row]:
    for row in _lines(data / "attributionbench/dev_all_subset_balanced.jsonl.gz"):
        yield Row(row["claim"], tuple(row["references"]), row["attribution_label"] == "attributable")


def begin(data: Path, part: str = "wow") -> Iterator[Row]:
    for row in _table(data / f"begin/begin_dev_{part}.tsv.gz", "\t"):
        if row["begin_label"] != "Generic":
            yield Row(row["response"], (row["knowledge"],), row["begin_label"] == "Fully attributable")


def begin_cmu(data: Path) -> Iterator[Row]:
    """For fitting alone: `begin` is one of the sets that are measured."""
    yield from begin(data, "cmu")


def qags(name: str) -> Callable[[Path], Iterator[Row]]:
    def read(data: Path) -> Iterator[Row]:
        for row in _lines(data / f"qags/mturk_{name}.jsonl"):
            for sentence in row["summary_sentences"]:
                votes = [r["response"] for r in sentence["responses"]]
                yield Row(sentence["sentence"], (row["article"],), votes.count("yes") * 2 > len(votes))

    return read


def cliff(origin: str) -> Callable[[Path], Iterator[Row]]:
    def read(data: Path) -> Iterator[Row]:
        for row in _table(data / "aggrefact_errors/CLIFF_error_types.csv.gz"):
            if row["dataset"] == "CLIFF" and row["origin"] == origin and row["cut"] != "test":
                yield Row(row["summ"], (row["doc"],), row["error_type"].strip() in ("[]", "", "correct", "['correct']"))

    return read


def faithbench(data: Path) -> Iterator[Row]:
    for path in sorted((data / "faithbench").glob("batch_*.json")):
        for row in json.loads(path.read_text("utf-8"))["samples"]:
            bad = any(label.startswith("Unwanted") for a in row["annotations"] for label in a["label"])
            yield Row(row["summary"], (row["source"],), not bad)


def _scifact(data: Path) -> Iterator[tuple[str, str, str]]:
    """Claim, abstract and stance: SUPPORT, CONTRADICT, or nothing where the abstract does not say."""
    corpus = {
        int(r.get("doc_id") or r.get("_id") or r.get("id")): (r["title"], r.get("abstract") or r.get("text"))
        for r in _lines(data / "scifact/corpus.jsonl.gz")
    }
    for row in _lines(data / "scifact/claims_train.jsonl"):
        for number in row["cited_doc_ids"]:
            title, abstract = corpus[int(number)]
            body = " ".join(abstract) if isinstance(abstract, list) else abstract
            stance = row["evidence"].get(str(number))
            yield row["claim"], f"{title}\n\n{body}", stance[0]["label"] if stance else ""


def scifact(data: Path) -> Iterator[Row]:
    for claim, text, stance in _scifact(data):
        yield Row(claim, (text,), stance == "SUPPORT")


def scifact_stances(data: Path) -> Iterator[Row]:
    """Without the claims on which their abstract is silent: supported or contradicted."""
    for claim, text, stance in _scifact(data):
        if stance:
            yield Row(claim, (text,), stance == "SUPPORT")


def climate(data: Path) -> Iterator[Row]:
    for row in _lines(data / "climate_fever/climate-fever.jsonl.gz"):
        for one in row["evidences"]:
            yield Row(row["claim"], (f"{one['article']}. {one['evidence']}",), one["evidence_label"] == "SUPPORTS")


def expertqa(data: Path) -> Iterator[Row]:
    for row in _lines(data / "expertqa/answers_with_claims.jsonl.gz"):
        for claim in row["claims"]:
            if claim["evidence"] and claim["support"] in ("Complete", "Partial", "Incomplete", "Missing"):
                yield Row(claim["claim_string"], tuple(map(str, claim["evidence"])), claim["support"] == "Complete")


SETS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "wice": wice,
    "expertqa": expertqa,
    "lfqa": lfqa,
    "factcheck": factcheck,
    "cliff_cnndm": cliff("cnndm"),
    "cliff_xsum": cliff("xsum"),
    "qags_cnndm": qags("cnndm"),
    "qags_xsum": qags("xsum"),
    "faithbench": faithbench,
    "scifact": scifact,
    "begin_wow": begin,
    "attribution": attribution,
    "climate": climate,
}
MEAN11 = tuple(SETS)[:11]


def articles(data: Path) -> dict[str, list[list[str]]]:
    """Encyclopaedia articles as title to paragraphs to sentences."""
    found: dict[str, list[list[str]]] = defaultdict(list)
    for row in _lines(data / "freshwiki/articles.jsonl.gz"):
        for section in row["content"]:
            sentences = [s["sentence"] for s in section.get("section_content", ())]
            if sentences:
                found[row["title"].replace("_", " ")].append(sentences)
    return dict(found)


def held_out(titles: Iterable[str], count: int = 30) -> list[str]:
    """Titles of the articles that edit suites are made from, and nothing is fitted on: the first by their hash."""
    return sorted(titles, key=lambda t: hashlib.sha256(t.encode()).hexdigest())[:count]
