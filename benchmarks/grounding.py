"""How well the deterministic verifier agrees with people, and how many single-fact edits it catches.

    python -m benchmarks.grounding --data PATH [--rows 300] [--edits 60] [--worst wice]

Prints balanced accuracy per set for the verdict "supported", for one threshold over all sets, for word recall alone.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.edits import by_kind, edits
from benchmarks.verification_sets import MEAN11, SETS, Row, articles
from marg_ray.grounding.citations import normalise
from marg_ray.grounding.sentences import split_sentences
from marg_ray.grounding.verify import Check, check_sentence
from marg_ray.records import Evidence, Verdict


def checks(row: Row) -> list[Check]:
    """One check per sentence of the claim; the claim is as good as the worst."""
    evidence = [
        Evidence(id=f"e{n}", source=f"s{n}", quote=text, start=0, end=len(text)) for n, text in enumerate(row.texts)
    ]
    claim = normalise(row.claim, ()).text
    found = [check_sentence(s, evidence) for s in split_sentences(claim)]
    return [c for c in found if c.verdict is not Verdict.NOT_FACTUAL] or found


def balanced(predicted: Sequence[bool], truth: Sequence[bool]) -> float:
    def share(want: bool) -> float:
        chosen = [p == want for p, t in zip(predicted, truth, strict=True) if t == want]
        return sum(chosen) / len(chosen) if chosen else 0.5

    return 50 * (share(True) + share(False))


def best_threshold(scores: dict[str, list[float]], truth: dict[str, list[bool]]) -> float:
    def mean(threshold: float) -> float:
        return sum(balanced([s >= threshold for s in scores[n]], truth[n]) for n in MEAN11)

    return max((t / 100 for t in range(5, 100)), key=mean)


def human_sets(data: Path, limit: int, worst: str) -> None:
    dice = random.Random(7)
    truth: dict[str, list[bool]] = {}
    verdicts: dict[str, list[bool]] = {}
    scores: dict[str, list[float]] = {}
    recalls: dict[str, list[float]] = {}
    seconds, count = 0.0, 0
    for name, read in SETS.items():
        rows = list(read(data))
        dice.shuffle(rows)
        rows = rows[:limit]
        start = time.perf_counter()
        checked = [checks(r) for r in rows]
        seconds, count = seconds + time.perf_counter() - start, count + sum(map(len, checked))
        truth[name] = [r.supported for r in rows]
        verdicts[name] = [all(c.verdict is Verdict.SUPPORTED for c in one) for one in checked]
        scores[name] = [min((c.score for c in one), default=0.0) for one in checked]
        recalls[name] = [min((c.recall for c in one), default=0.0) for one in checked]
        if name == worst:
            show_worst(rows, checked)
    by_score, by_recall = best_threshold(scores, truth), best_threshold(recalls, truth)
    print(f"{'set':14}{'n':>5}{'base':>6}{'verdict':>9}{'score':>7}{'recall':>8}")
    for name in SETS:
        row = columns(name, truth, verdicts, scores, recalls, by_score, by_recall)
        print(
            f"{name:14}{len(truth[name]):>5}{100 * sum(truth[name]) / len(truth[name]):>6.0f}"
            + "".join(f"{v:>8.1f}" for v in row)
        )
    mean = [
        sum(c) / len(MEAN11)
        for c in zip(*(columns(n, truth, verdicts, scores, recalls, by_score, by_recall) for n in MEAN11), strict=True)
    ]
    print(
        f"MEAN11 verdict {mean[0]:.1f}, score >= {by_score:.2f} {mean[1]:.1f}, recall >= {by_recall:.2f} {mean[2]:.1f}"
    )
    print(f"{1000 * seconds / count:.2f} ms a sentence")


def columns(
    name: str,
    truth: dict[str, list[bool]],
    verdicts: dict[str, list[bool]],
    scores: dict[str, list[float]],
    recalls: dict[str, list[float]],
    by_score: float,
    by_recall: float,
) -> tuple[float, float, float]:
    return (
        balanced(verdicts[name], truth[name]),
        balanced([s >= by_score for s in scores[name]], truth[name]),
        balanced([r >= by_recall for r in recalls[name]], truth[name]),
    )


def show_worst(rows: Sequence[Row], checked: Sequence[list[Check]]) -> None:
    shown = 0
    for row, found in zip(rows, checked, strict=True):
        if row.supported and found and found[0].verdict is not Verdict.SUPPORTED:
            worst = min(found, key=lambda c: c.score)
            print(
                json.dumps([row.claim[:250], worst.verdict, round(worst.recall, 2), worst.reason], ensure_ascii=False)
            )
            shown += 1
        if shown >= 25:
            return


def edit_suite(data: Path, per_kind: int, show: str) -> None:
    kept: list[bool] = []
    caught: list[bool] = []
    for kind, found in by_kind(edits(articles(data), per_kind)):
        good = [all(c.verdict is Verdict.SUPPORTED for c in checks(Row(e.text, (e.evidence,), True))) for e in found]
        if not found:
            continue
        if found[0].kept:
            kept += good
            print(f"  {kind:10} kept   {100 * sum(good) / len(good):5.1f} of {len(good)}")
        else:
            caught += [not g for g in good]
            print(f"  {kind:10} caught {100 - 100 * sum(good) / len(good):5.1f} of {len(good)}")
        if kind == show:
            for edit, ok in zip(found, good, strict=True):
                if ok != edit.kept:
                    print(
                        "   ",
                        edit.text,
                        "|||",
                        edit.evidence,
                        "|||",
                        [c.reason for c in checks(Row(edit.text, (edit.evidence,), True))],
                    )
    print(f"edits caught {100 * sum(caught) / len(caught):.1f}, paraphrases kept {100 * sum(kept) / len(kept):.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--edits", type=int, default=60)
    parser.add_argument("--worst", default="", help="a set or kind of edit whose mistakes are shown")
    options = parser.parse_args()
    human_sets(options.data, options.rows, options.worst)
    edit_suite(options.data, options.edits, options.worst)


if __name__ == "__main__":
    main()
