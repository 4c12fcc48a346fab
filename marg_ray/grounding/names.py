"""Names in a sentence: what is written with a capital or with digits in it, and whether a passage has it too."""

from __future__ import annotations

import re
from collections.abc import Set
from functools import lru_cache

from marg_ray.grounding.dates import MONTHS
from marg_ray.grounding.terms import STOP_WORDS, stem, words

_TOKEN = re.compile(r"[^\W_\u2e80-\U0003ffff]+(?:[-‐.&'’][^\W_\u2e80-\U0003ffff]+)*")
# Names of other scripts that can be told without capitals: loanwords in katakana, "Х·Х", titles in angle quotes.
_WIDE_NAME = re.compile(
    r"[\u30a1-\u30fa\u30fc]{3,}|[\u4e00-\u9fff]{1,6}[·・][\u4e00-\u9fff]{1,6}|(?<=《)[^《》]{2,30}(?=》)"
)
_START = re.compile(r"(?:\A|[.!?:;•|]\s+|[\"“„(\[]\s*)\W*\Z")
_SAME_PEOPLE = (
    "france french|netherlands dutch holland|switzerland swiss|greece greek|spain spanish|denmark danish danes|"
    "turkey turkish|britain british uk kingdom|america american us usa states|"
    "ireland irish|norway norwegian|"
    "finland finnish|poland polish|sweden swedish|scotland scottish|china chinese|germany german|deutschland|"
    "thailand thai|iraq iraqi|peru peruvian|europe european eu|wales welsh|israel israeli"
)
_PEOPLE = {name: set(group.split()) for group in _SAME_PEOPLE.split("|") for name in group.split()}
_NOBODY: Set[str] = frozenset()
# Words that stand before a name at the beginning of a sentence, and are no part of any.
_BEFORE_A_NAME = frozenset("former ex then current author actor actress singer striker officials residents".split())  # noqa: SIM905


def names(text: str) -> list[str]:
    """The words of `text` that look like names, in order, without repeats.

    A capital at the start of a sentence says nothing; words in other scripts than Latin, Greek or Cyrillic have none.
    """
    return list(_names(text))


@lru_cache(maxsize=4096)
def _names(text: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for match in _TOKEN.finditer(text):
        word = match.group()
        has_digit = any(c.isdigit() for c in word)
        if has_digit and (word[0].isdigit() or not any(c.isalpha() for c in word)):
            continue
        inner = any(c.isupper() for c in word[1:])
        if not (word[0].isupper() or inner or has_digit) or len(word) < 2:
            continue
        low = word.lower()
        if low in MONTHS or low in STOP_WORDS:
            continue
        if low in _BEFORE_A_NAME and not inner and _START.search(text[max(0, match.start() - 8) : match.start()]):
            continue
        if not inner and not has_digit and _START.search(text[max(0, match.start() - 8) : match.start()]):
            following = _TOKEN.match(text, match.end() + 1)
            if not (following and following.group()[0].isupper()):
                continue
        found[word] = None
    if not text.isascii():
        found |= dict.fromkeys(_WIDE_NAME.findall(text))
    return tuple(found)


def has_name(name: str, known: Set[str], initials: Set[str]) -> bool:
    """Whether a passage with the `known` words (folded) and `initials` (acronyms of its names) has this name."""
    parts = words(name)
    if not parts:
        return True
    whole = "".join(parts)
    if whole in known or (name.isupper() and whole in initials) or _PEOPLE.get(whole, _NOBODY) & known:
        return True
    if {"u", "s"} <= known and parts[0] in ("united", "states"):
        return True
    ordinary = _ordinary_end(name)
    return all(_has_word(part, known) for part in parts[: len(parts) - ordinary])


def _ordinary_end(name: str) -> int:
    """How many words at the end are none of the name: of "HIV-positive" and "NF-kB-dependent" one."""
    pieces = re.split(r"[-‐]", name)
    if len(pieces) < 2 or not (pieces[-1].isalpha() and pieces[-1].islower() and len(pieces[-1]) > 2):
        return 0
    return int(any(not c.islower() for piece in pieces[:-1] for c in piece))


def _has_word(word: str, known: Set[str]) -> bool:
    if word in known or word in STOP_WORDS or stem(word) in known:
        return True
    if word in _PEOPLE and _PEOPLE[word] & known:
        return True
    if len(word) < 5:
        return f"{word}s" in known or word.removesuffix("s") in known
    head = word[: max(4, len(word) - 4)]
    return any(other.startswith(head) and _is_form_of(word, other) for other in known)


def is_same_name(one: str, other: str) -> bool:
    """Whether two folded words are forms of one name: "Peru" and "Peruvian", "Merkel" and "Merkels"."""
    if one == other or stem(one) == stem(other) or other in _PEOPLE.get(one, ()):
        return True
    return min(len(one), len(other)) > 3 and one[:4] == other[:4] and _is_form_of(one, other)


# What an English name ends in, by itself or of its people.
_ENDINGS = frozenset("s es n an ian ean ese nese ish ic i er ers ans ians ite ites esque".split())  # noqa: SIM905
_TURNED_ENDINGS = frozenset(
    (("y", "ian"), ("y", "ians"), ("y", "ies"), ("e", "ian"), ("e", "an"), ("e", "ans"), ("e", "ic"), ("a", "ese"),
     ("a", "ish"), ("a", "ic"), ("o", "an"), ("o", "ans"), ("us", "an"), ("us", "ian"), ("um", "an"), ("ia", "ish"),
     ("ia", "ic"), ("ium", "ian"), ("a", "o"), ("ia", "s"), ("al", "uese"), ("e", "i"), ("um", "a"))
)  # fmt: skip
_STRETCH = 3  # letters that may follow in other languages, which decline names


def _is_form_of(one: str, other: str) -> bool:
    at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    rest, other_rest = sorted((one[at:], other[at:]), key=len)
    if not (one.isascii() and other.isascii()):
        return at >= 4 and len(other_rest) <= _STRETCH and len(rest) <= 2
    if not rest:
        return other_rest in _ENDINGS
    return (rest, other_rest) in _TURNED_ENDINGS or (other_rest, rest) in _TURNED_ENDINGS


def acronyms(text: str) -> set[str]:
    """The initials of every run of capitalised words: "World Health Organization" gives "who"."""
    found: set[str] = set()
    for run in re.findall(r"\b[A-ZÀ-Þ]\w+(?:[\s-]+(?:of|for|the|and|de|der|und|des)?\s*[A-ZÀ-Þ]\w+){1,7}", text):
        initials = "".join(w[0] for w in re.findall(r"\b[A-ZÀ-Þ]\w+", run)).lower()
        found.update(initials[i:j] for i in range(len(initials)) for j in range(i + 2, len(initials) + 1))
        every = "".join(w[0] for w in run.split()).lower()
        found.add(every)
    return found
