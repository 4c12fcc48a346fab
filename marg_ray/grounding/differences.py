"""Where a sentence is nearly a copy of a passage's sentence: the small changes that turn its meaning round."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import combinations

from marg_ray.grounding.alignment import Unit
from marg_ray.grounding.opposites import NEGATIONS, SIDES
from marg_ray.grounding.terms import stem

_COPY = 0.7  # share of common words in order from which two sentences are versions of one
_PASSIVE = frozenset(("by", "was", "were", "is", "are", "been", "von", "wurde", "par", "por"))

_Swap = tuple[tuple[str, ...], tuple[str, ...]]  # words of the sentence, words of the passage in their place


def turned(sentence: Unit, unit: Unit) -> tuple[str, str, str] | None:
    """What turns the statement round: ("negation" | "direction" | "roles", word here, word there), or None.

    Only where both are versions of one sentence: there a single word decides, which word counts would not see.
    """
    mine, theirs = sentence.words, unit.words
    if not mine or not theirs or len(mine) > 120 or len(theirs) > 200:
        return None
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    swaps = [(mine[a:b], theirs[c:d]) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
    same = len(mine) - sum(len(a) for a, _ in swaps)
    if same < _COPY * len(mine):
        return None
    return _negated(swaps, mine) or _opposed(swaps) or _exchanged(swaps)


def _negated(swaps: Sequence[_Swap], mine: Sequence[str]) -> tuple[str, str, str] | None:
    here = [w for a, _ in swaps for w in a if _is_negation(w)]
    there = [w for _, b in swaps for w in b if _is_negation(w)]
    dropped_elsewhere = any(len(b) > len(a) + 3 and any(map(_is_negation, b)) for a, b in swaps)
    if len(here) > len(there):
        return "negation", here[0], ""
    if len(there) > len(here) and not dropped_elsewhere and not any(map(_is_negation, mine)):
        return "negation", "", there[0]
    return None


def _is_negation(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")


def _opposed(swaps: Sequence[_Swap]) -> tuple[str, str, str] | None:
    for a, b in swaps:
        if not (a and b and len(a) <= 4 and len(b) <= 4):
            continue
        for word in a:
            for pair, side in SIDES.get(stem(word), ()):
                for other in b:
                    if word not in b and other not in a and (pair, 1 - side) in SIDES.get(stem(other), ()):
                        return "direction", word, other
    return None


def _exchanged(swaps: Sequence[_Swap]) -> tuple[str, str, str] | None:
    for (a, b), (c, d) in combinations(swaps, 2):
        if a and b and a == d and b == c and not _PASSIVE & {*a, *b}:
            return "roles", " ".join(a), " ".join(b)
    return None
