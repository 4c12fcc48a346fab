"""A sentence that copies one of a passage, but for a name, a figure or a "not": what was changed in the copy.

Whoever says a thing in other words changes many of them. Where all but a few are the same, in the same order, the few
are no paraphrase.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from marg_ray.grounding.alignment import Unit
from marg_ray.grounding.places import TITLES, Misplaced, is_same_run, written
from marg_ray.grounding.slots import Token

_LEAST = 8  # words of a copy
_COPIED = 0.75  # of them are those of the passage, in its order
_ASKING = frozenset({"when", "how", "what", "why", "where", "who", "which"})  # with a capital they begin a title
_WIDEST = 5  # words that may stand for others
_DIGITS = re.compile(r"[0-9]+")
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_NEGATIVE = frozenset({"not", "never", "no", "nor", "neither", "without", "cannot", "hardly", "nobody", "none"})


def edited(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit]) -> Misplaced | None:
    """A change in a copy of one of these sentences, where none of them has the words as they stand."""
    mine = sentence.tokens
    if len(mine) < _LEAST:
        return None
    words = {t.word for t in mine}
    found: list[Misplaced] = []
    for unit in dict.fromkeys([*units, *near]):
        if len(words.intersection(unit.words)) < _COPIED * len(words) - 1:
            continue
        changes = _changes(mine, unit.tokens)
        if changes == []:
            return None
        found += changes or []
    return found[0] if found else None


def _changes(mine: Sequence[Token], theirs: Sequence[Token]) -> list[Misplaced] | None:
    """None: it is no copy of these words."""
    matcher = SequenceMatcher(None, [t.word for t in mine], [t.word for t in theirs], autojunk=False)
    if sum(b.size for b in matcher.get_matching_blocks()) < _COPIED * len(mine):
        return None
    return list(_read(mine, theirs, matcher.get_opcodes()))


def _read(
    mine: Sequence[Token], theirs: Sequence[Token], codes: Sequence[tuple[str, int, int, int, int]]
) -> Iterator[Misplaced]:
    for what, first, after, start, end in codes:
        here, there = mine[first:after], theirs[start:end]
        if what == "equal" or max(len(here), len(there)) > _WIDEST:
            continue
        if what == "replace":
            if _other_name(here, there, first):
                yield Misplaced("name", written(here), written(there))
            elif _other_figures(here, there):
                yield Misplaced("number", written(here), written(there))
        inner = what == "insert" or after < len(mine)  # what follows the copy is no part of it
        if inner and start and _negates(here) != _negates(there) and not _negates(mine, here) and first:
            yield Misplaced("negation", written(here) or "nothing", written(there) or "nothing")


def _other_name(here: Sequence[Token], there: Sequence[Token], first: int) -> bool:
    """Both are names, and not two of one thing. Any word may begin a sentence.

    Of one word for one, in a copy, either may be no name by itself: "the Binary file" for "the This file".
    """
    if len(here) == len(there) == 1 and first and here[0].capital and there[0].capital:
        return (here[0].content or there[0].content) and not is_same_run(here, there)
    mine = [t for t in here if t.capital and t.content]
    theirs = [t for t in there if t.capital and (t.content or t.word in _ASKING)]
    if not mine or not theirs or not first or not here[-1].capital:
        return False
    if {t.word for t in (*mine, *theirs)} & TITLES or any(t.word[0].isdigit() for t in (*mine, *theirs)):
        return False
    return not is_same_run(mine, theirs)


def _other_figures(here: Sequence[Token], there: Sequence[Token]) -> bool:
    """Figures alone, or names that differ in theirs ("gcc3"): as many as there, and none of them rounded."""
    pairs = list(zip(here, there, strict=False))
    if len(here) != len(there) or not all(_alike(a, b) for a, b in pairs):
        return False
    changed = [(_bare(a), _bare(b)) for a, b in pairs if _bare(a) != _bare(b)]
    return any(not a.isdecimal() or abs(int(a) - int(b)) > 0.05 * int(b) for a, b in changed)


def _alike(a: Token, b: Token) -> bool:
    """The same but for the digits, of which both have some."""
    return _DIGITS.sub("0", _bare(a)) == _DIGITS.sub("0", _bare(b)) and bool(_DIGITS.search(a.word))


def _bare(token: Token) -> str:
    """Without the marks between thousands."""
    return _THOUSANDS.sub("", token.word)


def _negates(part: Sequence[Token], but: Sequence[Token] = ()) -> bool:
    if any(t.word == "only" for t in part):  # "not only long but also"
        return False
    return any(t.word in _NEGATIVE or t.word.endswith(("n't", "n’t")) for t in part if t not in but)
