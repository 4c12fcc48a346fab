"""What a model may decide about a sentence: only what words leave open, and only with a sentence it can name.

A complaint (a changed figure, date, unit or name, a negation, a turned direction) is never put to the judge and never
taken back by one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from marg_ray.grounding.alignment import align, passage
from marg_ray.grounding.sentences import sentence_spans
from marg_ray.records import Evidence, Verdict

Opinion: TypeAlias = Literal["supported", "partly", "not_shown", "contradicted"]
SHOWN = 5  # sentences of a passage that are shown, at most
STRETCHES = 3  # passages shown for one sentence, at most


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a passage that is shown: `quote[start:end] == text` of the evidence with this id."""

    evidence: str
    text: str
    start: int
    end: int
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A sentence of a draft, by its place in it, and what it is to be held against."""

    number: int
    text: str
    stretches: tuple[Stretch, ...]
    doubt: float  # how far from decided: 0 to 1, larger first


@dataclass(frozen=True, slots=True)
class Ruling:
    """The judge's answer on one sentence: `span` is the deciding stretch of the quote of `evidence`."""

    opinion: Opinion
    evidence: str = ""
    span: tuple[int, int] | None = None


Judge: TypeAlias = Callable[[Sequence[Asked]], Awaitable[Mapping[int, Ruling]]]
"""Asked all at once; answers by `Asked.number`. What it does not answer stays as the words have it. Never raises."""

RULED: Mapping[Opinion, tuple[Verdict, str]] = {
    "supported": (Verdict.SUPPORTED, "read by a model: the cited passages say this"),
    "partly": (Verdict.PARTIAL, "read by a model: the cited passages say only part of this"),
    "not_shown": (Verdict.UNSUPPORTED, "read by a model: the cited passages do not say this"),
    "contradicted": (Verdict.CONTRADICTED, "read by a model: the cited passage says otherwise"),
}


def asked(number: int, text: str, evidence: Sequence[Evidence], doubt: float) -> Asked:
    """What the judge is shown for a sentence: of each passage the few sentences that are nearest to it."""
    found = []
    for one in evidence:
        alignment = align(text, [passage(one.quote)])
        found.append((alignment.recall, _stretch(one, [unit.text for unit in alignment.units])))
    best = sorted(range(len(found)), key=lambda n: -found[n][0])[:STRETCHES]
    return Asked(number, text, tuple(found[n][1] for n in sorted(best)), doubt)


def _stretch(evidence: Evidence, nearest: Sequence[str]) -> Stretch:
    """`SHOWN` sentences in a row around the nearest ones; the whole passage where it has no more."""
    quote, spans = evidence.quote, sentence_spans(evidence.quote)
    first, last = 0, len(spans)
    if last > SHOWN:
        places = [n for n, (start, end) in enumerate(spans) if quote[start:end] in nearest[:1]]
        middle = places[0] if places else 0
        first = max(0, min(middle - SHOWN // 2, last - SHOWN))
        last = first + SHOWN
    start, end = (spans[first][0], spans[last - 1][1]) if spans else (0, len(quote))
    return Stretch(evidence.id, quote[start:end], start, end, evidence.heading)
