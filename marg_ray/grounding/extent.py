"""How sure and how far a statement is: hedges, quantifiers, bounds and words of one kind in steps."""

from __future__ import annotations

import re
from collections.abc import Sequence

from marg_ray.grounding.alignment import Unit
from marg_ray.grounding.opposites import HEDGES, QUANTIFIERS
from marg_ray.grounding.polarity import instead
from marg_ray.grounding.quantities import Quantity
from marg_ray.grounding.terms import STOP_WORDS, stem

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


def added_quantifier(sentence: Unit, units: Sequence[Unit]) -> str:
    """An "all" or "only" that the passage does not say, or ""."""
    theirs = {w for u in units for w in u.words}
    for at, word in enumerate(sentence.words):
        if word == "every" and sentence.words[at + 1 : at + 2] and _STEPS.get(sentence.words[at + 1], (-1,))[0] == 0:
            continue  # "every day" is "a day"
        if _counts_nothing(sentence.words, at):
            continue
        if any(word in group and not group & theirs for group in QUANTIFIERS):
            return word
    return ""


_DENYING = frozenset(("not", "no", "never", "without", "cannot", "nor", "unlike", "than", "if", "whether"))


def _counts_nothing(words: Sequence[str], at: int) -> bool:
    """ "both A and B", "each other", "not in any", "just three": words that say nothing of how far a statement goes."""
    word, after = words[at], words[at + 1 : at + 7]
    match word:
        case "both":
            return "and" in after
        case "each":
            return "other" in after[:1]
        case "any":
            return any(w in _DENYING or w.endswith(("n't", "n’t")) for w in words[:at])
        case "just" | "full" | "total":
            return True
        case _:
            return False


# Words of one kind, in steps: another step in the same place is another statement.
_SCALES = (
    "second seconds | minute minutes | hour hours hourly | day days daily | week weeks weekly | month months monthly |"
    " year years yearly annually | decade decades | century centuries",
    "morning mornings | noon midday | afternoon afternoons | evening evenings | night nights midnight",
    "dozens | hundreds | thousands | millions | billions | trillions",
    "red | blue | green | yellow | black | white | brown | orange | purple | pink | grey gray",
    "mother | father | son | daughter | brother | sister | wife | husband | uncle | aunt | grandfather | grandmother",
    "first | second | third | fourth | fifth | sixth | seventh | eighth | ninth | tenth | last",
    "spring | summer | autumn fall | winter",
    "once | twice | thrice",
    "all every each entire whole both | most majority mostly | many numerous several | some certain partly partially |"
    " few little handful | none no neither nobody",
    "always invariably constantly | usually generally normally typically | often frequently regularly |"
    " sometimes occasionally | rarely seldom | never",
    "only solely exclusively | also including mainly mostly primarily partly",
    "exactly precisely | about approximately roughly nearly almost around",
    "certainly definitely undoubtedly | probably likely presumably | possibly perhaps maybe",
    "must required | can may could might optional",
)
_STEPS: dict[str, tuple[int, int]] = {
    word: (scale, step)
    for scale, text in enumerate(_SCALES)
    for step, words in enumerate(text.split("|"))
    for word in words.split()
}


def other_extent(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit]) -> tuple[str, str] | None:
    """A word of extent ("most") that stands where the best sentence has another one ("some"), or None."""
    for at, token in enumerate(sentence.tokens):
        if token.word in _STEPS:
            scale, step = _STEPS[token.word]

            def differs(other: str, scale: int = scale, step: int = step) -> bool:
                return _STEPS.get(other, (-1, 0))[0] == scale and _STEPS[other][1] != step

            if other := instead(sentence, at, units, near, differs):
                return token.word, other
    return None


_LEAST = re.compile(
    r"\b(?:at least|no (?:fewer|less) than|more than|over|above|exceed\w*|(?:a )?minimum of|upwards? of|from)"
    r"\s*[$€£]?\Z",
    re.IGNORECASE,
)
_MOST = re.compile(
    r"\b(?:at most|up to|no more than|(?:less|fewer) than|under|below|(?:a )?maximum of|as (?:many|much) as|within)"
    r"\s*[$€£]?\Z",
    re.IGNORECASE,
)


def other_bound(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit]) -> tuple[str, str] | None:
    """ "at least 5" where the passages say "up to 5": both as written, or None."""
    for one in sentence.quantities:
        mine = _bound(sentence, one)
        if not mine[0]:
            continue
        theirs = [_bound(u, t) for u in dict.fromkeys([*units[:1], *near]) for t in u.quantities if one.same_value(t)]
        if theirs and all(sign == -mine[0] for sign, _ in theirs):
            return mine[1], theirs[0][1]
    return None


def _bound(unit: Unit, figure: Quantity) -> tuple[int, str]:
    """1 and the words where a figure is a lower bound, -1 for an upper one, else 0."""
    before = unit.text[max(0, figure.start - 20) : figure.start]
    for sign, pattern in ((1, _LEAST), (-1, _MOST)):
        if match := pattern.search(before):
            return sign, f"{match.group().strip()} {figure.text}"
    return 0, ""
