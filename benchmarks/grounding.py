"""How well the deterministic verifier agrees with people, and how many single-fact edits it catches.

    python -m benchmarks.grounding --data PATH [--rows 300] [--edits 60] [--worst wice]

Prints per set, beside published figures, balanced accuracy and precision of the verdict "supported", AUC of its
probability, and balanced accuracy of word recall alone at its best threshold. No threshold is set per set.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.edits import by_kind, edits
from benchmarks.verification_sets import MEAN11, SETS, Row, articles, scifact_stances
from marg_ray.grounding.citations import normalise
from marg_ray.grounding.sentences import split_sentences
from marg_ray.grounding.verify import Check, check_sentence
from marg_ray.records import Evidence, Verdict

FITTED = ("wice", "scifact", "factcheck", "expertqa", "begin_wow")  # what the scorer is fitted on
PUBLISHED = {  # balanced accuracy as others report it, on other parts of the same sets
    "wice": "MiniCheck-L 72.2, HHEM-2.1 75.9, AlignScore 66.0, GPT-4o 78.5",
    "expertqa": "MiniCheck-L 59.0, HHEM-2.1 58.4, GPT-4o 59.6",
    "lfqa": "MiniCheck-L 85.2, HHEM-2.1 84.1, GPT-4o 83.6",
    "factcheck": "MiniCheck-L 74.7, HHEM-2.1 71.8, GPT-4o 77.5",
    "cliff_cnndm": "QAFactEval 71.6, SummaC-ZS 64.6",
    "cliff_xsum": "QAFactEval 62.6, SummaC-ZS 59.6",
    "qags_cnndm": "QAFactEval 75.4, SummaC-ZS 65.5 (whole summaries)",
    "qags_xsum": "QAFactEval 75.6, SummaC-ZS 69.8",
    "faithbench": "HHEM-2.1 54.3, GPT-4o 56.2",
}


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


def auc(scores: Sequence[float], truth: Sequence[bool]) -> float:
    """Share of pairs, in %, in which the supported claim scores higher; a tie counts half."""
    yes = [s for s, t in zip(scores, truth, strict=True) if t]
    no = sorted(s for s, t in zip(scores, truth, strict=True) if not t)
    if not yes or not no:
        return 50.0
    return 100 * sum(bisect_left(no, s) + bisect_right(no, s) for s in yes) / (2 * len(yes) * len(no))


@dataclass(frozen=True)
class Measured:
    """The claims of one set: what people say, and what the verifier does."""

    truth: list[bool]
    checked: list[list[Check]]

    @property
    def verdicts(self) -> list[bool]:
        return [all(c.verdict is Verdict.SUPPORTED for c in one) for one in self.checked]

    @property
    def probabilities(self) -> list[float]:
        return [min((c.probability or 0.0 for c in one), default=0.0) for one in self.checked]

    @property
    def recalls(self) -> list[float]:
        return [min((c.recall for c in one), default=0.0) for one in self.checked]

    @property
    def precision(self) -> float:
        """In %, of the verdict "supported"."""
        said = [t for t, v in zip(self.truth, self.verdicts, strict=True) if v]
        return 100 * sum(said) / len(said) if said else 0.0


def best_threshold(scores: dict[str, list[float]], sets: dict[str, Measured], names: Sequence[str]) -> float:
    def mean(threshold: float) -> float:
        return sum(balanced([s >= threshold for s in scores[n]], sets[n].truth) for n in names)

    return max((t / 100 for t in range(5, 100)), key=mean)


def human_sets(data: Path, limit: int, worst: str) -> None:
    dice = random.Random(7)
    sets: dict[str, Measured] = {}
    seconds, count = 0.0, 0
    for name, read in SETS.items():
        rows = list(read(data))
        dice.shuffle(rows)
        rows = rows[:limit]
        start = time.process_time()
        checked = [checks(r) for r in rows]
        seconds, count = seconds + time.process_time() - start, count + sum(map(len, checked))
        sets[name] = Measured([r.supported for r in rows], checked)
        if name == worst:
            show_worst(rows, checked)
    recalls = {n: m.recalls for n, m in sets.items()}
    one = best_threshold(recalls, sets, MEAN11)
    print(f"{'set':14}{'n':>5}{'base':>6}{'verdict':>9}{'precision':>11}{'AUC':>7}{'recall':>8}   published")
    table = {}
    for name, m in sets.items():
        simple = balanced([r >= one for r in recalls[name]], m.truth)
        table[name] = (balanced(m.verdicts, m.truth), m.precision, auc(m.probabilities, m.truth), simple)
        base = 100 * sum(m.truth) / len(m.truth)
        row = "".join(f"{v:>{w}.1f}" for v, w in zip(table[name], (9, 11, 7, 8), strict=True))
        print(f"{name:14}{len(m.truth):>5}{base:>6.0f}{row}   {PUBLISHED.get(name, '')}")
    for label, names in (
        ("MEAN11", MEAN11),
        ("never fitted", [n for n in MEAN11 if n not in FITTED]),
        ("fitted on", [n for n in MEAN11 if n in FITTED]),
    ):
        row = "".join(f"{sum(table[n][c] for n in names) / len(names):>{w}.1f}" for c, w in enumerate((9, 11, 7, 8)))
        print(f"{label:25}{row}")
    print(f"recall: the simple rule, at its best one threshold ({one:.2f}). Verdicts have thresholds of their own.")
    print(
        "Balanced accuracy, precision of 'supported', AUC of the probability, all in %; probabilities of the sets that"
    )
    print("the scorer was fitted on flatter: python -m benchmarks.train_verifier prints them out of fold.")
    print(f"{1000 * seconds / count:.2f} ms of CPU a sentence")
    against(data)


def against(data: Path) -> None:
    """SciFact alone: claims that their abstract supports from those that it contradicts."""
    rows = list(scifact_stances(data))
    measured = Measured([r.supported for r in rows], [checks(r) for r in rows])
    caught = [not v for v, t in zip(measured.verdicts, measured.truth, strict=True) if not t]
    said = [any(c.verdict is Verdict.CONTRADICTED for c in one) for one in measured.checked]
    right = [s for s, t in zip(said, measured.truth, strict=True) if not t]
    area = auc(measured.probabilities, measured.truth)
    print(
        f"SciFact, supported against contradicted ({len(rows)}): AUC {area:.1f}; "
        f"of the contradicted {100 * sum(caught) / len(caught):.0f} % are not called supported, "
        f"{100 * sum(right) / len(right):.0f} % are called contradicted"
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
