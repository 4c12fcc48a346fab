"""Fits the verifier's scorer and writes marg_ray/grounding/data/scorer.json. The same data gives the same file.

    python -m benchmarks.train_verifier --data PATH [--out FILE] [--rounds 80]

It is fitted on people's labels whose licences are clear (`CLEAR`: WiCE, SciFact, Factcheck-Bench, ExpertQA, BEGIN) and
on statements made from encyclopaedia articles (`benchmarks/synthetic_pairs.py`), never on the other sets that
`benchmarks/grounding.py` measures. Prints, each sentence scored by a model that has seen nothing of its evidence: AUC
per set, for the checks alone and for the scorer; the error of its probabilities in ten bins; and the same for each set
when the model has seen no set of its family.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.synthetic_pairs import pairs
from benchmarks.verification_sets import MEAN11, SETS, Row, articles, begin_cmu, held_out
from marg_ray.grounding.citations import normalise
from marg_ray.grounding.features import NAMES
from marg_ray.grounding.scorer import MIDDLE, STEEPNESS, Scorer, from_json
from marg_ray.grounding.sentences import split_sentences
from marg_ray.grounding.verify import features_of, plain_text
from marg_ray.records import Evidence

CLEAR = ("wice", "scifact", "factcheck", "expertqa", "begin_wow", "begin_cmu")
MADE = "synthetic"
WEIGHT_OF_MADE = 3.0  # a set of people's labels counts 1
SEED, FOLDS = 5, 4
OUT = Path(__file__).resolve().parents[1] / "marg_ray" / "grounding" / "data" / "scorer.json"
Numbers = tuple[float, tuple[float, ...]]  # the checks' score, and the features


@dataclass(frozen=True)
class Sample:
    """One claim, a row of numbers for each of its sentences. Samples of one `group` share their evidence."""

    origin: str
    group: str
    supported: bool
    rows: tuple[Numbers, ...]


# ---- the samples


def _rows_of(row: Row) -> tuple[Numbers, ...]:
    evidence = [Evidence(id=f"e{n}", source=f"s{n}", quote=t, start=0, end=len(t)) for n, t in enumerate(row.texts)]
    found = (features_of(plain_text(s), evidence) for s in split_sentences(normalise(row.claim, ()).text))
    return tuple((score, tuple(x)) for score, x in filter(None, found))


def _sample(named: tuple[str, Row]) -> Sample:
    origin, row = named
    group = hashlib.sha256("\0".join(row.texts).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return Sample(origin, group, row.supported, _rows_of(row))


def samples(named: Sequence[tuple[str, Row]]) -> list[Sample]:
    with ProcessPoolExecutor(2) as pool:
        return [s for s in pool.map(_sample, named, chunksize=32) if s.rows]


def labelled(data: Path, names: Iterable[str], most: int = 0) -> list[tuple[str, Row]]:
    readers = {**SETS, "begin_cmu": begin_cmu}
    found = []
    for name in names:
        rows = list(readers[name](data))
        random.Random(SEED).shuffle(rows)
        found += [(name, row) for row in rows[: most or None]]
    return found


def made(data: Path, per_article: int) -> list[tuple[str, Row]]:
    """Statements from the articles that the edit suites do not use."""
    found = articles(data)
    kept = set(held_out(found))
    texts = {title: text for title, text in found.items() if title not in kept}
    return [(MADE, Row(p.text, (p.evidence,), p.supported)) for p in pairs(texts, per_article)]


# ---- the fit


def _table(chosen: Sequence[Sample]) -> tuple[Any, Any, Any]:
    """Features, labels and weights: each set counts the same, and each label in it. A claim of several sentences that
    is not supported is left out: nobody says which of them it is."""
    x, y, w = [], [], []
    counts: dict[tuple[str, bool], int] = defaultdict(int)
    for one in chosen:
        counts[one.origin, one.supported] += 1
    for one in chosen:
        if not one.supported and len(one.rows) > 1:
            continue
        share = (WEIGHT_OF_MADE if one.origin == MADE else 1.0) * 1000 / counts[one.origin, one.supported]
        for _, row in one.rows:
            x.append(row)
            y.append(one.supported)
            w.append(share / len(one.rows))
    return np.array(x, np.float64), np.array(y), np.array(w)


def fit(chosen: Sequence[Sample], rounds: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    x, y, w = _table(chosen)
    model = HistGradientBoostingClassifier(
        max_iter=rounds,
        learning_rate=0.06,
        max_leaf_nodes=8,
        min_samples_leaf=60,
        l2_regularization=10.0,
        monotonic_cst=list(NAMES.values()),
        random_state=SEED,
    )
    return model.fit(x, y, sample_weight=w)


def log_odds(model: Any, chosen: Sequence[Sample]) -> list[float]:
    """As `Scorer.raw` has them; a claim's are those of its weakest sentence."""
    if not chosen:
        return []
    trees = iter(model.decision_function(np.array([x for one in chosen for _, x in one.rows], np.float64)))
    return [min((next(trees) + STEEPNESS * (score - MIDDLE)) / 2 for score, _ in one.rows) for one in chosen]


def out_of_fold(chosen: Sequence[Sample], rounds: int) -> list[float]:
    """Each sample's log odds by a model that has seen nothing of its group."""
    fold_of = [int(hashlib.sha256(one.group.encode()).hexdigest(), 16) % FOLDS for one in chosen]
    given = [0.0] * len(chosen)
    for fold in range(FOLDS):
        model = fit([one for one, f in zip(chosen, fold_of, strict=True) if f != fold], rounds)
        where = [i for i, f in enumerate(fold_of) if f == fold]
        for i, odds in zip(where, log_odds(model, [chosen[i] for i in where]), strict=True):
            given[i] = odds
    return given


def calibration(chosen: Sequence[Sample], odds: Sequence[float]) -> tuple[float, float]:
    """Slope and shift of Platt's sigmoid over people's labels, each set counting the same."""
    from sklearn.linear_model import LogisticRegression

    people = [(o, one) for o, one in zip(odds, chosen, strict=True) if one.origin != MADE]
    counts: dict[str, int] = defaultdict(int)
    for _, one in people:
        counts[one.origin] += 1
    x, y = np.array([[o] for o, _ in people]), np.array([one.supported for _, one in people])
    w = np.array([1000 / counts[one.origin] for _, one in people])
    model = LogisticRegression(C=1e6).fit(x, y, sample_weight=w)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def as_json(model: Any, slope: float, shift: float) -> dict[str, Any]:
    trees = []
    for (one,) in model._predictors:
        leaf = one.nodes["is_leaf"].astype(bool)
        trees.append(
            {
                "feature": np.where(leaf, -1, one.nodes["feature_idx"]).tolist(),
                "threshold": np.where(leaf, 0.0, one.nodes["num_threshold"]).tolist(),  # in full: it divides neighbours
                "left": one.nodes["left"].tolist(),
                "right": one.nodes["right"].tolist(),
                "value": np.where(leaf, one.nodes["value"], 0.0).round(6).tolist(),
            }
        )
    base = float(np.ravel(model._baseline_prediction)[0])
    numbers = {"base": round(base, 6), "slope": round(slope, 6), "shift": round(shift, 6)}
    return {"features": list(NAMES), "fitted on": [*CLEAR, MADE], **numbers, "trees": trees}


# ---- what is printed


def auc(odds: Sequence[float], truth: Sequence[bool]) -> float:
    from sklearn.metrics import roc_auc_score

    return 100 * float(roc_auc_score(truth, odds)) if len(set(truth)) == 2 else 50.0


def checks_alone(one: Sample) -> float:
    return min(score for score, _ in one.rows)


def bins_error(probabilities: Sequence[float], truth: Sequence[bool]) -> float:
    """Expected calibration error over ten bins of one width, in points."""
    p, t = np.array(probabilities), np.array(truth)
    where = np.minimum((p * 10).astype(int), 9)
    return 100 * sum(abs(p[where == b].mean() - t[where == b].mean()) * (where == b).mean() for b in set(where))


def report(
    people: Sequence[Sample], odds: dict[int, float], others: dict[int, float], scale: tuple[float, float]
) -> None:
    by_set: dict[str, list[Sample]] = defaultdict(list)
    for one in people:
        by_set[one.origin].append(one)
    print(
        f"{'set':14}{'n':>6}{'checks':>8}{'scorer':>8}{'unseen':>8}{'error':>7}   (AUC; unseen: no set of its family)"
    )
    rows = []
    for name, chosen in by_set.items():
        truth = [one.supported for one in chosen]
        mine, unseen = [odds[id(one)] for one in chosen], [others[id(one)] for one in chosen]
        p = [1 / (1 + np.exp(-(scale[0] * o + scale[1]))) for o in mine]
        row = [
            auc([checks_alone(one) for one in chosen], truth),
            auc(mine, truth),
            auc(unseen, truth),
            bins_error(p, truth),
        ]
        print(f"{name:14}{len(chosen):>6}{row[0]:>8.1f}{row[1]:>8.1f}{row[2]:>8.1f}{row[3]:>7.1f}")
        if name in MEAN11:
            rows.append(row)
    print(f"{'MEAN11':20}" + "".join(f"{v:>{w}.1f}" for v, w in zip(np.mean(rows, axis=0), (8, 8, 8, 7), strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--per-article", type=int, default=30)
    parser.add_argument("--only-fit", action="store_true", help="write the file and print nothing about it")
    options = parser.parse_args()
    train = samples([*labelled(options.data, CLEAR), *made(options.data, options.per_article)])
    odds = out_of_fold(train, options.rounds)
    scale = calibration(train, odds)
    model = fit(train, options.rounds)
    body = as_json(model, *scale)
    _agree(from_json(body), model, train[:200])
    options.out.write_text(json.dumps(body, separators=(",", ":")) + "\n", "utf-8")
    print(f"{options.out}: {len(train)} samples, {len(body['trees'])} trees, {options.out.stat().st_size // 1000} kB")
    if options.only_fit:
        return
    unseen = samples(labelled(options.data, [n for n in SETS if n not in CLEAR], 700))
    known = dict(zip(map(id, [*train, *unseen]), [*odds, *log_odds(model, unseen)], strict=True))
    others = dict(known)
    for family in {name.split("_")[0] for name in CLEAR}:
        theirs = [one for one in train if one.origin.startswith(family)]
        without = fit([one for one in train if not one.origin.startswith(family)], options.rounds)
        others.update(zip(map(id, theirs), log_odds(without, theirs), strict=True))
    report([*train, *unseen], known, others, scale)


def _agree(scorer: Scorer, model: Any, chosen: Sequence[Sample]) -> None:
    """What is written scores as what was fitted."""
    mine = [min(scorer.raw(*row) for row in one.rows) for one in chosen]
    worst = max(abs(a - b) for a, b in zip(mine, log_odds(model, chosen), strict=True))
    if worst > 0.02:
        raise RuntimeError(f"the written trees differ from the fitted ones by {worst:.3f}")


if __name__ == "__main__":
    main()
