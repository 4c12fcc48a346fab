"""How likely a sentence is to be supported by what it cites: the checks' own score and `features`, put together.

Gradient-boosted trees (J. H. Friedman, "Greedy function approximation", 2001), each feature held to the direction that
it may move the score in, their log odds averaged with those of the checks, on a scale of probabilities by Platt's
sigmoid (1999). Fitted by `python -m benchmarks.train_verifier`; the trees are walked here, so that a check loads no
learning library. A probability never lifts a complaint: the verdict is that of the checks (docs/decisions/011).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from marg_ray.grounding.features import NAMES

FILE = "data/scorer.json"
STEEPNESS, MIDDLE = 8.0, 0.62  # of the checks' score as log odds


@dataclass(frozen=True)
class Tree:
    """Node by node: a leaf has feature -1 and its value; others go left where the feature is at most the threshold."""

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[float, ...]

    def __call__(self, x: Sequence[float]) -> float:
        at = 0
        while (feature := self.feature[at]) >= 0:
            at = self.left[at] if x[feature] <= self.threshold[at] else self.right[at]
        return self.value[at]


@dataclass(frozen=True)
class Scorer:
    """`slope` and `shift` turn the averaged log odds into those of a sentence of the sets it was calibrated on."""

    trees: tuple[Tree, ...]
    base: float
    slope: float
    shift: float

    def raw(self, score: float, x: Sequence[float]) -> float:
        """Log odds before calibration. `score`: of the checks, 0 to 1; `x`: as `features.NAMES` has them."""
        return (self.base + sum(tree(x) for tree in self.trees) + STEEPNESS * (score - MIDDLE)) / 2

    def __call__(self, score: float, x: Sequence[float]) -> float:
        """The probability that the sentence is supported, 0 to 1."""
        odds = self.slope * self.raw(score, x) + self.shift
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, odds))))


def from_json(body: dict[str, Any]) -> Scorer:
    """The scorer that `benchmarks.train_verifier` wrote.

    Raises:
        ValueError: it was fitted on other features than those of this version.
    """
    if body["features"] != list(NAMES):
        raise ValueError("the scorer was fitted on other features: python -m benchmarks.train_verifier")
    trees = tuple(
        Tree(*(tuple(tree[k]) for k in ("feature", "threshold", "left", "right", "value"))) for tree in body["trees"]
    )
    return Scorer(trees, *(float(body[k]) for k in ("base", "slope", "shift")))


@cache
def scorer() -> Scorer:
    """The one that ships."""
    return from_json(json.loads(files("marg_ray.grounding").joinpath(FILE).read_text("utf-8")))
