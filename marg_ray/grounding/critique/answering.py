"""Whether a section answers its sub-questions, and says as much as its weight in the outline asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from marg_ray.grounding.alignment import VAGUE
from marg_ray.grounding.critique.prose import Line, Part
from marg_ray.grounding.terms import content_terms
from marg_ray.records import Verdict

Clean = Callable[[Line], bool]

_ANSWERED = 0.5  # of the words that set a sub-question apart from its section and the question
_SPREAD = 0.75  # of these words, where they are spread over the section
_APART = 0.34  # of its words that do so: where they are fewer, it asks what its section and the question ask
_ASKING = frozenset(
    content_terms(
        "what which who whose why how many much when where does explain describe list compare comparison overview "
        "summary information details facts report question answer main key kinds types reasons causes effects impact "
        "happened latest recent current today history definition meaning example examples difference differences"
    )
)
_THIN, _THIN_HEAVY, _HEAVY = 15, 40, 0.3  # words of a section, and of one that weighs this much
_SPOKEN = (Verdict.SUPPORTED, Verdict.PARTIAL, Verdict.NOT_CHECKED, None)


def unanswered(part: Part, question: str, clean: Clean) -> list[str]:
    """The sub-questions of which no sound sentence says anything."""
    sound = [line for line in part.lines if line.verdict in _SPOKEN and clean(line)]
    said = [line.terms | _asked(line.headings) for line in sound]  # a passage is about what stands over it, too
    given = _asked(part.title) | _asked(question)
    return [q for q in part.queries if not _is_answered(_asked(q), given, said)]


def _is_answered(asked: frozenset[str], given: frozenset[str], said: Sequence[frozenset[str]]) -> bool:
    own, whole = asked - given, frozenset[str]().union(*said)
    if 0 < len(own) < _APART * len(asked):
        return len(asked & whole) >= 2
    if own:
        return any(len(terms & own) >= _ANSWERED * len(own) for terms in said) or len(own & whole) >= _SPREAD * len(own)
    return bool(asked & whole) or (bool(said) and not asked)


def _asked(text: str) -> frozenset[str]:
    return frozenset(t for t in content_terms(text) if t not in _ASKING and t not in VAGUE)


def is_thin(part: Part, clean: Clean) -> bool:
    """Whether there are too few sound words for what the section weighs."""
    lines = [line for line in part.lines if line.verdict in _SPOKEN and clean(line)]
    return word_count(line.text for line in lines) < (_THIN_HEAVY if part.weight >= _HEAVY else _THIN)


def word_count(texts: Iterable[str]) -> int:
    """Words; of scripts without spaces every other letter counts as one."""
    return sum(max(len(t.split()), sum(ord(c) >= 0x2E80 for c in t) // 2) for t in texts)
