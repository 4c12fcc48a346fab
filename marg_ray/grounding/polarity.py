"""Whether a sentence and a passage that speak of the same thing say opposite things."""

from __future__ import annotations

import re
from collections.abc import Sequence

from marg_ray.grounding.alignment import Unit
from marg_ray.grounding.opposites import DENIALS, HEDGES, NEGATIONS, QUANTIFIERS, SIDES, WIDE_NEGATIONS
from marg_ray.grounding.terms import STOP_WORDS, stem

_SCOPE = 4  # words after a negation in which the negated word is looked for


def negation_differs(sentence: Unit, units: Sequence[Unit]) -> str:
    """The word that one side negates and the other states, or ""."""
    mine = _negated(sentence.words)
    for unit in units:
        theirs = _negated(unit.words)
        stated = {stem(w) for w in unit.words}
        for word, term in mine.items():
            if term in stated and term not in theirs.values() and not _denied(unit.words):
                return word
        own = {stem(w) for w in sentence.words}
        for word, term in theirs.items():
            repeated = sum(stem(w) == term for w in unit.words) > 1
            if term in own and term not in mine.values() and not _denied(sentence.words) and not repeated:
                return word
    return ""


def wide_negation_differs(sentence: str, unit: str) -> bool:
    """The same for scripts without spaces: one side has a negating letter and the other none."""
    letters = WIDE_NEGATIONS.split()[0]
    return any(c in sentence for c in letters) != any(c in unit for c in letters)


def opposite(sentence: Unit, units: Sequence[Unit]) -> tuple[str, str] | None:
    """A word of the sentence and its opposite in the passage that stands in its place, or None."""
    mine = {stem(w): w for w in sentence.words}
    theirs = {stem(w): w for u in units for w in u.words}
    for term, word in mine.items():
        if term in theirs:
            continue
        for pair, side in SIDES.get(term, ()):
            same = any((pair, side) in SIDES.get(t, ()) for t in theirs)
            if same or any((pair, 1 - side) in SIDES.get(t, ()) for t in mine):
                continue
            for other in theirs:
                if (pair, 1 - side) in SIDES.get(other, ()):
                    return word, theirs[other]
    return None


_ALSO_HEDGES = frozenset(("likely", "would", "should", "can", "suggest", "suggests", "probably", "seems", "appears"))


def lost_hedge(sentence: Unit, units: Sequence[Unit]) -> str:
    """The passage's "may" that the sentence leaves out before the same word, or ""."""
    if any(w in HEDGES or w in _ALSO_HEDGES for w in sentence.words):
        return ""
    for unit in units[:1]:
        for at, word in enumerate(unit.words):
            if word not in HEDGES or (word == "may" and not re.search(r"\bmay\b", unit.text)):
                continue
            hedged = [stem(w) for w in unit.words[at + 1 : at + 5] if w not in STOP_WORDS]
            if hedged and hedged[0] in sentence.terms:
                return word
    return ""


_DENIAL = re.compile(
    r"\b(?:not true|untrue|false(?:ly)?|incorrect|no (?:evidence|proof|sign)|den(?:y|ies|ied)|refuted?|disproved|"
    r"debunked|myth|unproven|rumou?r|hoax|allegation)s?\b.{0,20}\bthat\b|"
    r"\b(?:is|are|was|were) (?:a myth|false|untrue|not true)\b",
    re.IGNORECASE,
)


def denial(sentence: Unit, units: Sequence[Unit]) -> str:
    """The words by which the passage says that something is not so, where the sentence has none such, or ""."""
    if _DENIAL.search(sentence.text):
        return ""
    for unit in units[:1]:
        if match := _DENIAL.search(unit.text):
            return match.group()
    return ""


def added_quantifier(sentence: Unit, units: Sequence[Unit]) -> str:
    """An "all" or "only" that the passage does not say, or ""."""
    theirs = {w for u in units for w in u.words}
    for word in sentence.words:
        if any(word in group and not group & theirs for group in QUANTIFIERS):
            return word
    return ""


def _negated(tokens: Sequence[str]) -> dict[str, str]:
    """The first content word after each negation: word to stem."""
    found: dict[str, str] = {}
    for at, token in enumerate(tokens):
        if token not in NEGATIONS and not token.endswith("n't"):
            continue
        if token in ("no", "not") and tokens[at + 1 : at + 2] in (("only",), ("longer",)) and token == "not":
            continue
        for word in tokens[at + 1 : at + 1 + _SCOPE]:
            if word not in STOP_WORDS and word not in NEGATIONS and word not in ("yet", "still", "been"):
                found[word] = stem(word)
                break
    return found


def _denied(tokens: Sequence[str]) -> bool:
    return any(stem(t) in DENIALS or t in NEGATIONS or t.endswith("n't") for t in tokens)
