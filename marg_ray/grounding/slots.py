"""What stands in the same place in two versions of a sentence, although the order of their clauses may differ."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marg_ray.grounding.dates import MONTHS
from marg_ray.grounding.terms import STOP_WORDS, stem, words

_TOKEN = re.compile(r"[^\W_]+(?:[.,٫٬]\d+)*(?:['’][^\W\d_]+)?|[,;:()–—]")
_LONGEST = 40  # letters of what is still a word
_WIDEST = 5  # tokens that may stand where the sentence has one name or word


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a sentence: lower case in `word`, its stem in `term`, `clause` counts the marks before it."""

    word: str
    term: str
    start: int
    capital: bool
    clause: int
    owner: bool = False  # "Germany's": the name ends here

    @property
    def content(self) -> bool:
        return self.word not in STOP_WORDS


def tokens(text: str) -> list[Token]:
    """The words of a text with their places, in order."""
    found: list[Token] = []
    clause = 0
    for match in _TOKEN.finditer(text):
        raw = match.group()
        if not raw[0].isalnum():
            clause += 1
            continue
        if raw.isascii() and raw.isalpha():
            word = raw.lower()
        else:
            folded = words(raw) if len(raw) < _LONGEST else []
            word = folded[0] if len(folded) == 1 else unicodedata.normalize("NFKC", raw).casefold()
        found.append(Token(word, stem(word), match.start(), raw[0].isupper(), clause, raw.endswith(("'s", "’s"))))
    return found


def name_runs(sentence: Sequence[Token]) -> list[tuple[int, int]]:
    """The runs of capitalised words, as (first, after the last) indices. A stop word at the start is none."""
    runs: list[tuple[int, int]] = []
    at = 0
    while at < len(sentence):
        one = sentence[at]
        if not one.capital or (one.word in STOP_WORDS or one.word == "no") or len(one.word) < 2 or one.word in MONTHS:
            at += 1
            continue
        end = at + 1
        while end < len(sentence) and _goes_on(sentence[end - 1], sentence[end]):
            end += 1
        runs.append((at, end))
        at = end
    return runs


def _goes_on(last: Token, one: Token) -> bool:
    return one.capital and one.clause == last.clause and not last.owner


def common(a: Sequence[Token], at: int, b: Sequence[Token], other: int, step: int) -> tuple[int, bool]:
    """How many tokens agree from `a[at]` and `b[other]` on, at most 3, and whether one of them has content."""
    count, content = 0, False
    while count < 3 and 0 <= at < len(a) and 0 <= other < len(b) and a[at].term == b[other].term:
        content = content or a[at].content
        count, at, other = count + 1, at + step, other + step
    if count < 3 and not 0 <= at < len(a) and not 0 <= other < len(b):
        count += 1  # both begin or end here
    return count, content


Index = Mapping[str, Sequence[int]]  # stem to the places where it stands


def places(sentence: Sequence[Token]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for at, token in enumerate(sentence):
        found.setdefault(token.term, []).append(at)
    return found


def fillers(
    mine: Sequence[Token], first: int, after: int, theirs: Sequence[Token], index: Index
) -> list[tuple[int, int]]:
    """The stretches of `theirs` that stand where `mine[first:after]` does: the words around them are the same.

    One word on each side has to agree at least, and more where these have no content. `index`: `places(theirs)`.
    """
    found: list[tuple[int, int]] = []
    befores = index.get(mine[first - 1].term, ()) if first else (-1,)
    for before in befores:
        left, left_content = common(mine, first - 1, theirs, before, -1)
        for end in range(before + 2, min(len(theirs), before + 1 + _WIDEST) + 1):
            right, right_content = common(mine, after, theirs, end, 1)
            content = left_content + right_content
            if right and left + right + content >= 4:
                found.append((before + 1, end))
    return found
