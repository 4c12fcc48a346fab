"""Negations in a sentence and what they negate, whatever their form: "not", "without", "failed to", "no longer"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from marg_ray.grounding.opposites import DENIALS, FOREIGN_NEGATIONS, NEGATIONS, denies, has_denying_prefix, may_deny
from marg_ray.grounding.terms import STOP_WORDS, stem

_SCOPE = 3  # content words after a negation that it may negate
_REACH = 8  # words after a negation in which they are looked for
_WITH_TO = frozenset(map(stem, "decline fail failure refuse refusal neglect inability unable unwilling forget".split()))  # noqa: SIM905
_WITH_FROM = frozenset(map(stem, "prevent refrain abstain".split()))  # noqa: SIM905
_BREAKS = frozenset("but however although though while whereas instead".split())  # noqa: SIM905
_SKIPPED = frozenset("yet still ever even actually really only also been longer always necessarily".split())  # noqa: SIM905
# After "no" and "not" these make another thing than a negation: "not only", "no fewer than".
_NO_NEGATION = frozenset(
    "only just merely simply solely least fewer less later more matter doubt surprisingly unlike".split()  # noqa: SIM905
)
_PAIRS = frozenset((("rather", "than"), ("instead", "of"), ("far", "from"), ("free", "of"), ("free", "from")))
# Words by which something may be said not to be so, besides negations.
_NEGATIVE = frozenset(
    """
    few little except unlike unless until lost hardly fewer zero nil missing empty unlikely rarely seldom abandoned
    cancelled canceled ended stopped ruled otherwise
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Scope:
    """A negation at `words[at]` (as written: `cue`) and the content words that follow, with their stems."""

    at: int
    cue: str
    words: tuple[str, ...]
    stems: tuple[str, ...]
    implied: bool = False  # "failed to", "lack of": no negating word of its own


def is_negation(word: str, english: bool = True) -> bool:
    return word in NEGATIONS or word.endswith("n't") or (not english and word in FOREIGN_NEGATIONS)


def scopes(tokens: Sequence[str], english: bool = True) -> list[Scope]:
    """The negations among the lower-case words of a sentence, in order."""
    found: list[Scope] = []
    for at, token in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else ""
        plain = is_negation(token, english)
        if not plain and not (english and _implies(token, following)):
            continue
        if token in ("no", "not", "none") and (following in _NO_NEGATION or following[:1].isdigit()):
            continue
        after = tokens[at + 1 : at + 1 + _REACH]
        if "until" in after[:6] or "till" in after[:6]:
            continue
        content: list[str] = []
        for word in after:
            if word in _BREAKS or len(content) == _SCOPE:
                break
            if word not in STOP_WORDS and word not in NEGATIONS and word not in _SKIPPED:
                content.append(word)
        found.append(Scope(at, token, tuple(content), tuple(map(stem, content)), not plain))
    return found


def _implies(token: str, following: str) -> bool:
    if (token, following) in _PAIRS:
        return True
    term = stem(token)
    if term not in DENIALS:
        return False
    if term in _WITH_TO:
        return following in ("to", "of") or term in ("failur",)
    return following == "from" if term in _WITH_FROM else True


def is_negative(words: Sequence[str]) -> bool:
    """Whether anything in an English sentence could be what another one expresses by a negation."""
    return any(is_negation(w) or w in _NEGATIVE or stem(w) in DENIALS or has_denying_prefix(w) for w in words)


def negated_stems(found: Sequence[Scope]) -> frozenset[str]:
    return frozenset(t for scope in found for t in scope.stems)


def affixed(word: str, others: Iterable[str]) -> str:
    """The word among `others` that is `word` with a denying prefix, or the other way round, or ""."""
    if may_deny(word) or word.endswith("ful"):
        return next((o for o in others if denies(word, o) or denies(o, word)), "")
    return next((o for o in others if may_deny(o) and denies(o, word)), "")
