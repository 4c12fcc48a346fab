"""A sentence that runs out of one statement of a passage into another: every word is there, and nobody said it.

"Emanuel had about 56 per cent of four other candidates", out of a poll and of an election. Who joins two statements in
good faith puts a word or a sign between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from marg_ray.grounding.alignment import Unit
from marg_ray.grounding.slots import Token

_RUN = 3  # words in the order of the passage, as in `Unit.runs`
_LEAST = 6  # words of a sentence
_ONE, _OTHER, _BOTH = (
    0.8,
    0.1,
    0.7,
)  # shares of the sentence: at most from one statement, at least from the other, in all
_APART = 2  # statements that follow each other may be joined
_JOIN = frozenset(
    """
    and but while who which or as because when where that after before since until although though if so whereas with
    then by at in on from during of for to over under into
    """.split()  # noqa: SIM905
)
_SIGN = re.compile(r"[,;:()\"“”'’‘—–`]")


def spliced(sentence: Unit, units: Sequence[Unit]) -> tuple[str, str] | None:
    """The words on both sides of the one place where the sentence goes from one of `units` to another, or None.

    Args:
        units: the statements of the passages, in their order.
    """
    mine = sentence.tokens
    if len(mine) < _LEAST:
        return None
    runs = [tuple(t.word for t in mine[n : n + _RUN]) for n in range(len(mine) - _RUN + 1)]
    covered = [_covered(runs, unit) for unit in units]
    first = max(range(len(units)), key=lambda n: len(covered[n]), default=0)
    if not covered or not covered[first] or len(covered[first]) > _ONE * len(mine):
        return None
    second = max(range(len(units)), key=lambda n: len(covered[n] - covered[first]))
    rest = covered[second] - covered[first]
    enough = len(rest) >= max(_RUN, _OTHER * len(mine)) and len(covered[first] | rest) >= _BOTH * len(mine)
    if not enough or abs(first - second) < _APART:
        return None
    seams = list(_seams(mine, covered[first], rest))
    if len(seams) != 1 or _is_joined(sentence.text, mine, *seams[0]):
        return None
    before, after = seams[0]
    return _words(mine[max(0, before - 2) : before + 1]), _words(mine[after : after + 3])


def _covered(runs: Sequence[tuple[str, ...]], unit: Unit) -> set[int]:
    """The places of the words that stand in `unit` in the same order, at least `_RUN` together."""
    there = unit.runs
    return {at + n for at, run in enumerate(runs) if run in there for n in range(_RUN)}


def _seams(mine: Sequence[Token], one: set[int], other: set[int]) -> Iterator[tuple[int, int]]:
    """The last word from one statement and the first from the other, at each change."""
    last: tuple[bool, int] | None = None
    for at in range(len(mine)):
        if at in one or at in other:
            if last is not None and last[0] != (at in one):
                yield last[1], at
            last = (at in one, at)


def _is_joined(text: str, mine: Sequence[Token], before: int, after: int) -> bool:
    end = mine[before].start + len(mine[before].word)
    between = text[end : mine[after].start]
    return bool(_SIGN.search(between)) or any(t.word in _JOIN for t in mine[before : after + 1])


def _words(part: Sequence[Token]) -> str:
    return " ".join(t.word for t in part)
