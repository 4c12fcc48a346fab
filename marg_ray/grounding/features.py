"""What a statement and the passages it cites have in common, as numbers: the input of the scorer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from marg_ray.grounding.alignment import VAGUE, Alignment, Passage, Unit
from marg_ray.grounding.checks import Complaint
from marg_ray.grounding.dates import find_dates
from marg_ray.grounding.names import has_name, names
from marg_ray.grounding.quantities import find_quantities
from marg_ray.grounding.terms import STOP_WORDS, stem

KINDS = (
    "number", "date", "unit", "name", "negation", "direction", "roles", "hedge", "quantifier", "denial", "rounding",
    "figure", "number word", "splice", "speaker", "quotation",
)  # fmt: skip
RISING, FALLING, FREE = 1, -1, 0
_CLAUSE = re.compile(r"[,;:–—]\s|\s(?:and|but|which|who|while|whereas|because|although|after|before|when|where)\s")
_WINDOW = 3

# Each with the direction in which it may move the score: the fit is held to it, so that it holds elsewhere as well.
NAMES: dict[str, int] = {
    "recall": RISING,  # the alignment's, with titles
    "best sentence": RISING,  # share of the content words, plain
    "best window": RISING,
    "anywhere": RISING,
    "rare in window": RISING,  # the same, weighted by how seldom a word is in the passages
    "weakest clause": RISING,
    "bigrams in window": RISING,
    "bigrams anywhere": RISING,
    "longest run": RISING,  # of the statement's words, as they stand in a sentence of the passages
    "copied": RISING,  # share of the words in runs of three and more
    "order": RISING,  # likeness of the word sequences
    "all words in best": RISING,  # stop words too
    "near numbers": RISING,  # share of the figures whose neighbours in the statement stand near them in the passage
    "missing words": FALLING,
    "missing capitals": FALLING,  # share of the names' words
    "missing figures": FALLING,
    "missing dates": FALLING,
    "replaced": FALLING,  # words that stand for others in the nearest sentence
    "inserted": FALLING,
    "left out": FREE,
    "length": FREE,
    "passage length": FREE,
    "sentences": FREE,
    "figures": FREE,
    "names": FREE,
    "copy share of passage": FREE,
    **{f"complaint: {kind}": FALLING for kind in KINDS},
}


def features(
    text: str, passages: Sequence[Passage], alignment: Alignment, found: Sequence[Complaint], context: Passage
) -> list[float]:
    """The numbers that `NAMES` names, in its order. Without passages nearly all are 0."""
    statement = Unit(text)
    units = [unit for one in passages for unit in one.units]
    terms = [w for w in dict.fromkeys(statement.words) if w not in STOP_WORDS]
    stems = list(dict.fromkeys(stem(w) for w in terms if stem(w) not in VAGUE)) or [stem(w) for w in terms]
    windows = _windows(passages)
    window_terms = [frozenset[str]().union(*(u.terms for u in w)) for w in windows]
    best = max(range(len(windows)), key=lambda i: _share(stems, window_terms[i]), default=None)
    everywhere = context.terms.union(*(p.terms for p in passages)) if passages else context.terms
    weights = _rarity(stems, units)
    nearest = max(units, key=lambda u: (_share(stems, u.terms), -len(u.words)), default=Unit(""))
    window = windows[best] if best is not None else []
    window_words = [w for u in window for w in u.words]
    pairs = list(pairwise(statement.words))
    everywhere_pairs = {pair for u in units for pair in pairwise(u.words)}
    window_pairs = set(pairwise(window_words))
    matcher = SequenceMatcher(None, statement.words, nearest.words, autojunk=False)
    runs = [b.size for b in matcher.get_matching_blocks() if b.size]
    codes = matcher.get_opcodes()
    dates = find_dates(text)
    figures = find_quantities(text, dates)
    mine = names(text)
    known = context.words.union(context.terms, *(p.words | p.terms for p in passages)) if passages else context.words
    initials = frozenset[str]().union(context.acronyms, *(p.acronyms for p in passages))
    count = max(1, len(statement.words))
    kinds = {c.kind for c in found}
    here = window_terms[best] if best is not None else frozenset()
    values = [
        alignment.recall,
        _share(stems, nearest.terms),
        _share(stems, here),
        _share(stems, everywhere),
        sum(weights[t] for t in stems if t in here) / (sum(weights.values()) or 1.0),
        _weakest_clause(text, everywhere),
        sum(p in window_pairs for p in pairs) / max(1, len(pairs)),
        sum(p in everywhere_pairs for p in pairs) / max(1, len(pairs)),
        max(runs, default=0) / count,
        sum(r for r in runs if r >= 3) / count,
        matcher.ratio(),
        sum(w in set(nearest.words) for w in statement.words) / count,
        _near_figures([q.text for q in figures] + [str(d.year) for d in dates if d.year], statement, units),
        math.log1p(len([t for t in stems if t not in everywhere])),
        sum(not has_name(n, known, initials) for n in mine) / max(1, len(mine)),
        sum(1 for q in figures if not any(q.same_value(t) for p in passages for t in p.quantities)),
        sum(1 for d in dates if not any(d.fits(t) for p in passages for t in p.dates)),
        _replaced(codes),
        sum(b - a for tag, a, b, _, _ in codes if tag == "insert" or tag == "delete") / count,
        sum(d - c for tag, _, _, c, d in codes if tag == "insert") / max(1, len(nearest.words)),
        math.log1p(count),
        math.log1p(sum(len(u.words) for u in units)),
        math.log1p(len(units)),
        float(len(figures)),
        float(len(mine)),
        min(1.0, count / max(1, sum(len(u.words) for u in units))),
        *(1.0 if kind in kinds else 0.0 for kind in KINDS),
    ]
    return [float(v) for v in values]


def _share(stems: Sequence[str], there: Iterable[str]) -> float:
    known = there if isinstance(there, frozenset | set) else set(there)
    return sum(t in known for t in stems) / len(stems) if stems else 1.0


def _windows(passages: Sequence[Passage]) -> list[tuple[Unit, ...]]:
    """Every stretch of up to three consecutive sentences of one passage."""
    return [one.units[at : at + _WINDOW] for one in passages for at in range(max(1, len(one.units) - _WINDOW + 1))]


def _rarity(stems: Sequence[str], units: Sequence[Unit]) -> dict[str, float]:
    """Weight of each word: the fewer sentences of the passages have it, the more; what none has counts in full."""
    total = len(units) + 1
    return {t: math.log(1 + total / (1 + sum(t in u.terms for u in units))) for t in stems}


def _weakest_clause(text: str, there: frozenset[str]) -> float:
    shares = []
    for clause in _CLAUSE.split(text):
        own = list(Unit(clause).terms - VAGUE)
        if len(own) >= 2:
            shares.append(_share(own, there))
    return min(shares, default=1.0)


def _near_figures(figures: Sequence[str], statement: Unit, units: Sequence[Unit]) -> float:
    """How much of what stands within four words of a figure also stands within eight words of it in a passage."""
    scores = []
    for figure in figures:
        digits = re.sub(r"[^\d.]", "", figure.replace(",", ""))
        around = _around(statement.words, digits, 4)
        if not digits or not around:
            continue
        best = 0.0
        for unit in units:
            there = _around(unit.words, digits, 8)
            if there:
                best = max(best, len(around & there) / len(around))
        scores.append(best)
    return min(scores, default=1.0)


def _around(tokens: Sequence[str], figure: str, reach: int) -> set[str]:
    near: set[str] = set()
    for at, word in enumerate(tokens):
        if word == figure:
            near |= {stem(w) for w in (*tokens[max(0, at - reach) : at], *tokens[at + 1 : at + 1 + reach])}
    return {w for w in near if w not in STOP_WORDS}


def _replaced(codes: Sequence[tuple[str, int, int, int, int]]) -> float:
    """Places where one to three words stand for one to three others, in what is otherwise the same sentence."""
    same = sum(b - a for tag, a, b, _, _ in codes if tag == "equal")
    mine = sum(b - a for _, a, b, _, _ in codes)
    if not mine or same < 0.5 * mine:
        return 0.0
    return float(sum(1 for tag, a, b, c, d in codes if tag == "replace" and b - a <= 3 and d - c <= 3))
