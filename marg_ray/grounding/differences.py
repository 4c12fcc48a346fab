"""Where a sentence is nearly a copy of a passage's sentence: the small changes that turn its meaning round."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import combinations

from marg_ray.grounding.alignment import Unit
from marg_ray.grounding.negation import is_negation, negated_stems
from marg_ray.grounding.opposites import foreign_sides, opposed
from marg_ray.grounding.terms import STOP_WORDS, stem

_COPY = 0.7  # share of common words in order from which two sentences are versions of one
_FEW = 2  # words by which the two sides of a change may differ where it is one of a negation alone
_PASSIVE = frozenset(("by", "was", "were", "is", "are", "been", "von", "wurde", "par", "por"))

_Swap = tuple[tuple[str, ...], tuple[str, ...]]  # words of the sentence, words of the passage in their place


def turned(sentence: Unit, unit: Unit, english: bool = True) -> tuple[str, str, str] | None:
    """What turns the statement round: ("negation" | "direction" | "roles", word here, word there), or None.

    Only where both are versions of one sentence: there a single word decides, which word counts would not see. The
    negations of English sentences are left to `polarity`, which knows more forms.
    """
    swaps = _swaps(sentence, unit)
    if swaps is None:
        return None
    negated = None if english else _negated(swaps, sentence.words)
    return negated or _opposed(swaps, sentence, unit, english) or _exchanged(swaps)


def is_version(sentence: Unit, unit: Unit) -> bool:
    """Whether both have nearly all words in common and in order."""
    return _swaps(sentence, unit) is not None


def _swaps(sentence: Unit, unit: Unit) -> list[_Swap] | None:
    """What differs between two versions of one sentence, or None where they are none."""
    mine, theirs = sentence.words, unit.words
    if not mine or not theirs or len(mine) > 120 or len(theirs) > 200:
        return None
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    swaps = [(mine[a:b], theirs[c:d]) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
    same = len(mine) - sum(len(a) for a, _ in swaps)
    return swaps if same >= _COPY * len(mine) else None


def _negated(swaps: Sequence[_Swap], mine: Sequence[str]) -> tuple[str, str, str] | None:
    small = [(a, b) for a, b in swaps if abs(len(a) - len(b)) <= _FEW]  # a clause that was left out may negate anything
    here = [w for a, _ in small for w in a if _is_negation(w)]
    there = [w for _, b in small for w in b if _is_negation(w)]
    if len(here) > len(there):
        return "negation", here[0], ""
    if len(there) > len(here) and not any(map(_is_negation, mine)):
        return "negation", "", there[0]
    return None


def _is_negation(word: str) -> bool:
    return is_negation(word, english=False)


def _opposed(swaps: Sequence[_Swap], sentence: Unit, unit: Unit, english: bool) -> tuple[str, str, str] | None:
    for a, b in swaps:
        if not (a and b and len(a) <= 4 and len(b) <= 4):
            continue
        for word in a:
            if word in b or word in STOP_WORDS or (not english and stem(word) not in foreign_sides()):
                continue
            for other in b:
                moved = word in unit.words and other in sentence.words
                negated = (stem(word) in negated_stems(sentence.scopes)) != (stem(other) in negated_stems(unit.scopes))
                if other not in a and not moved and not negated and other not in STOP_WORDS and opposed(word, other):
                    return "direction", word, other
    return None


def _exchanged(swaps: Sequence[_Swap]) -> tuple[str, str, str] | None:
    for (a, b), (c, d) in combinations(swaps, 2):
        if a and b and a == d and b == c and not _PASSIVE & {*a, *b}:
            return "roles", " ".join(a), " ".join(b)
    return None
