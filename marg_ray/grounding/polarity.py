"""Whether a sentence and a passage that speak of the same thing say opposite things.

Each function gets the sentence, the sentences of the passages that say what it says (`units`, best first) and those
that say nearly as much (`near`): what one of these says as the sentence does is no difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from marg_ray.grounding.alignment import Unit
from marg_ray.grounding.negation import affixed, is_negation, is_negative, negated_stems
from marg_ray.grounding.opposites import (
    DENIALS,
    WIDE_NEGATIONS,
    foreign_sides,
    opposed,
    opposites,
    placed_sides,
    sides,
)
from marg_ray.grounding.slots import common, fillers
from marg_ray.grounding.terms import STOP_WORDS, stem

_INSTEAD = 2  # words that may stand where the sentence has one
_NEIGHBOURS = 3  # content words on each side that tell whether two words stand in the same place


# ---- negation


def added_negation(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit]) -> str:
    """The word that the sentence negates and the passages state, or ""."""
    around = list(dict.fromkeys([*units, *near]))
    silent = not any(is_negative(u.words) for u in around)
    for scope in sentence.scopes:
        if not scope.stems or any(set(scope.stems[:2]) & negated_stems(u.scopes) for u in around):
            continue
        head, word = scope.stems[0], scope.words[0]
        if any(opposites(head) & u.terms or affixed(word, u.words) for u in around):
            continue
        stating = [u for u in units if head in u.terms]
        if stating and (silent or (not scope.implied and not all(is_negative(u.words) for u in stating))):
            return word
        if silent and not scope.implied:
            return word
    return inserted(sentence, units, near)


_DO = frozenset(("do", "does", "did"))
_AFTER_IMPLIED = frozenset(("to", "from", "of"))
_PLAIN = frozenset("a an the some several many any all every each other".split())  # noqa: SIM905


def inserted(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit]) -> str:
    """A negation of the sentence that stands between two words which the best sentence has side by side, or ""."""
    around = list(dict.fromkeys([*units[:1], *near]))
    if not around or _negations(around[0]) >= _negations(sentence):
        return ""  # perhaps the same in other words
    for at, token in enumerate(sentence.tokens):
        following = sentence.tokens[at + 1].word if at + 1 < len(sentence.tokens) else ""
        implied = stem(token.word) in DENIALS and following in _AFTER_IMPLIED
        if not (is_negation(token.word) or implied) or following == "only":
            continue
        after = at + 2 if implied or following == "longer" else end_of(sentence, at)
        firsts = (at, at - 1) if at and sentence.tokens[at - 1].word in _DO else (at,)
        for first in firsts:
            if any(_are_joined(sentence, first, after, u) for u in around) and not any(
                _has_negation(u, fillers(sentence.tokens, first, after, u.tokens, u.index)) for u in around
            ):
                return f"{token.word} {following}"
    return ""


def _negations(unit: Unit) -> int:
    return sum(is_negation(w) or stem(w) in DENIALS for w in unit.words)


def end_of(sentence: Unit, at: int) -> int:
    """Where the words after `tokens[at]` go on: "of the" belongs to a "none" or "some"."""
    following = [t.word for t in sentence.tokens[at + 1 : at + 3]]
    return at + 3 if following == ["of", "the"] else at + 1


def _has_negation(unit: Unit, stretches: Sequence[tuple[int, int]]) -> bool:
    return any(is_negation(unit.tokens[n].word) for start, end in stretches for n in range(start, end))


def _are_joined(mine: Unit, first: int, after: int, theirs: Unit) -> bool:
    """Whether the words before `first` and from `after` on stand side by side there, but for an article."""
    befores = theirs.index.get(mine.tokens[first - 1].term, ()) if first else (-1,)
    for before in befores:
        left, _ = common(mine.tokens, first - 1, theirs.tokens, before, -1)
        start = before + 1
        while start < min(len(theirs.tokens), before + 3):
            right, content = common(mine.tokens, after, theirs.tokens, start, 1)
            if right and left + right + content >= 3:
                return True
            if theirs.tokens[start].word not in _PLAIN:
                break
            start += 1
    return False


def lost_negation(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit]) -> str:
    """The word that the best sentence of the passages negates and the sentence states, or ""."""
    if not units or not units[0].scopes:
        return ""
    best = units[0]
    theirs = negated_stems(best.scopes)
    if any(not set(scope.stems) & theirs for scope in sentence.scopes):
        return ""  # it negates something, in other words perhaps the same
    mine = negated_stems(sentence.scopes)
    for scope in best.scopes:
        head = scope.stems[0] if scope.stems else ""
        if (
            not head
            or head not in sentence.terms
            or head in mine
            or (scope.implied and stem(scope.cue) in sentence.terms)
        ):
            continue
        outside = {stem(w) for n, w in enumerate(best.words) if not scope.at < n <= scope.at + 8}
        stated = any(head in u.terms and head not in negated_stems(u.scopes) for u in near if u is not best)
        if head not in outside and not stated and not _negative_near(sentence, head):
            return scope.words[0]
    if any(not u.scopes and len(sentence.terms & u.terms) * 4 >= 3 * len(sentence.terms) for u in near):
        return ""
    return inserted(best, [sentence], ())


def _negative_near(sentence: Unit, head: str) -> bool:
    """Whether "little", "unable" or the like stands within a few words before a stem."""
    return any(
        is_negative(sentence.words[max(0, at - 5) : at + 1]) for at, w in enumerate(sentence.words) if stem(w) == head
    )


def wide_negation_differs(sentence: str, unit: str) -> bool:
    """The same for scripts without spaces: one side has a negating letter and the other none."""
    letters = WIDE_NEGATIONS.split()[0]
    return any(c in sentence for c in letters) != any(c in unit for c in letters)


_DENIAL = re.compile(
    r"\b(?:not true|untrue|false(?:ly)?|incorrect|no (?:evidence|proof|sign)|den(?:y|ies|ied)|refuted?|disproved|"
    r"debunked|myth|unproven|rumou?r|hoax|allegation)s?\b.{0,20}\bthat\b|"
    r"\b(?:is|are|was|were) (?:a myth|false|untrue|not true)\b",
    re.IGNORECASE,
)


def denial(sentence: Unit, units: Sequence[Unit]) -> str:
    """The words by which the passage says that something is not so, where the sentence has none such, or ""."""
    if _DENIAL.search(sentence.text) or any(not scope.implied for scope in sentence.scopes):
        return ""
    for unit in units[:1]:
        match = _DENIAL.search(unit.text)
        if match and stem(match.group().split()[0].lower()) not in sentence.terms:
            return match.group()
    return ""


# ---- direction


def opposite(
    sentence: Unit, units: Sequence[Unit], near: Sequence[Unit], english: bool = True
) -> tuple[str, str] | None:
    """A word of the sentence and its opposite in the passage that stands in its place, or None."""
    for number, unit in enumerate(units[:2]):
        for at, word in enumerate(sentence.words):
            if word in STOP_WORDS or len(word) < 3 or stem(word) in unit.terms:
                continue
            if not english and stem(word) not in foreign_sides():
                continue
            for other in _opposites_in(unit, word):
                if stem(other) in sentence.terms or _said_alike(word, unit):
                    continue
                if any(stem(word) in u.terms and stem(other) not in u.terms for u in near):
                    continue
                if _negation_explains(sentence, word, unit, other):
                    continue
                if _same_place(sentence, at, unit, other, both=number > 0):
                    return word, other
    return None


def _opposites_in(unit: Unit, word: str) -> list[str]:
    there = opposites(stem(word)) & unit.terms
    if there:
        return [w for w in unit.words if len(w) > 2 and stem(w) in there]
    return [other] if (other := affixed(word, unit.words)) else []


def _said_alike(word: str, unit: Unit) -> bool:
    """Whether the passage has another word of the same side: "rose" beside its "increased"."""
    entries = set(sides().get(stem(word), ()))
    return bool(entries) and any(entries & set(sides().get(term, ())) for term in unit.terms)


def _same_place(sentence: Unit, at: int, unit: Unit, other: str, both: bool) -> bool:
    before, after = _around(sentence.words, at)
    for place, word in enumerate(unit.words):
        if word == other:
            other_before, other_after = _around(unit.words, place)
            sides_alike = bool(before & other_before) + bool(after & other_after)
            if sides_alike > both:
                return True
    return False


def _around(words: Sequence[str], at: int) -> tuple[set[str], set[str]]:
    """The stems of the nearest content words before and after `words[at]`."""
    before = [w for w in words[:at] if w not in STOP_WORDS][-_NEIGHBOURS:]
    after = [w for w in words[at + 1 :] if w not in STOP_WORDS][:_NEIGHBOURS]
    return {stem(w) for w in before}, {stem(w) for w in after}


_CONVERSE_WORDS = """
    buy bought purchase acquire sell sold lend lent borrow give gave given receive teach taught learn beat beaten defeat
    win won lose lost precede follow employ more less fewer larger smaller bigger greater higher lower older younger
    longer shorter faster slower better worse earlier later stronger weaker richer poorer heavier lighter above below
    export import host guest before after parent child predecessor successor
"""
_CONVERSE = frozenset(map(stem, _CONVERSE_WORDS.split()))


def converse(sentence: Unit, unit: Unit) -> bool:
    """Whether a word is turned round and its sides as well, so that both say the same."""
    return any(
        _is_converse(sentence, at, unit, other)
        for at, word in enumerate(sentence.words)
        if stem(word) in _CONVERSE and word not in unit.words
        for other in unit.words
        if stem(other) in opposites(stem(word))
    )


def _is_converse(sentence: Unit, at: int, unit: Unit, other: str) -> bool:
    """ "A sold it to B" and "B bought it from A": what stood before the word stands after its opposite, and back."""
    if stem(other) not in _CONVERSE:
        return False
    place = unit.words.index(other)
    left, right = _contents(unit.words[:place]), _contents(unit.words[place + 1 :])
    before, after = _contents(sentence.words[max(0, at - 3) : at]), _contents(sentence.words[at + 1 : at + 6])
    return bool((before & right) - left) and (not left or bool((after & left) - right))


def _contents(words: Sequence[str]) -> set[str]:
    return {stem(w) for w in words if w not in STOP_WORDS}


def _negation_explains(sentence: Unit, word: str, unit: Unit, other: str) -> bool:
    """ "did not rise" and "fell": one of the two is negated."""
    return (stem(word) in negated_stems(sentence.scopes)) != (stem(other) in negated_stems(unit.scopes))


def misplaced(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit]) -> tuple[str, str] | None:
    """A small word ("to") or direction that stands where the best sentence has its opposite ("from"), or None."""
    for at, token in enumerate(sentence.tokens):
        placed = placed_sides().get(token.word, ())

        def turns(other: str, word: str = token.word, placed: Sequence[tuple[int, int]] = placed) -> bool:
            if any((pair, 1 - side) in placed_sides().get(other, ()) for pair, side in placed):
                return True
            if word in STOP_WORDS or other in STOP_WORDS or not opposed(word, other):
                return False
            return not (units and _negation_explains(sentence, word, units[0], other))

        if (placed or token.term in sides()) and (other := instead(sentence, at, units, near, turns)):
            return token.word, other
    return None


def instead(
    sentence: Unit, at: int, units: Sequence[Unit], near: Sequence[Unit], differs: Callable[[str], bool]
) -> str:
    """The word that differs and stands in the passages where `sentence.tokens[at]` does; "" where one agrees there."""
    found = ""
    for unit in dict.fromkeys([*units[:1], *near]):
        ends = dict.fromkeys((at + 1, end_of(sentence, at)))
        stretches = [s for end in ends for s in fillers(sentence.tokens, at, end, unit.tokens, unit.index)]
        there = [unit.tokens[n].word for s, e in stretches if e - s <= _INSTEAD for n in range(s, e)]
        if sentence.tokens[at].word in there:
            return ""
        if unit is units[0]:
            found = next(filter(differs, there), "")
    return found
