"""Stretches of text whose sentences a model names by number: fewer words than copying takes, and never misquoted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, groupby

from marg_ray.grounding.injection import veil
from marg_ray.grounding.sentences import sentence_spans
from marg_ray.records import Record

MOST_SENTENCES = 6  # of one quote


class Passage(Record):
    """A stretch of the document being read: `document.text[start:end] == text`.

    Its sentences are numbered from `first` on, through all passages of a task.
    """

    text: str
    start: int
    end: int
    heading: str = ""
    score: float = 0.0
    first: int = 0  # 0: not numbered yet

    @property
    def numbered(self) -> list[tuple[int, str]]:
        """The sentences, as a model sees them: orders that somebody is quoted with are blank."""
        shown = veil(self.text)
        return [(n, shown[start:end]) for n, (start, end) in enumerate(_spans(self.text), self.first)]

    def place(self, number: int) -> tuple[int, int] | None:
        """Where a sentence stands in the text that the passage was cut from; None where it is not one of these."""
        spans = _spans(self.text)
        if not 0 <= number - self.first < len(spans):
            return None
        start, end = spans[number - self.first]
        return self.start + start, self.start + end

    def quote(self, numbers: Sequence[int]) -> str:
        """The longest run of these sentences that stand next to each other here, verbatim; empty where none is here."""
        spans = _spans(self.text)
        here = sorted({n - self.first for n in numbers if 0 <= n - self.first < len(spans)})
        runs = [[k for _, k in run] for _, run in groupby(enumerate(here), key=lambda pair: pair[1] - pair[0])]
        best = max(runs, key=len, default=[])[:MOST_SENTENCES]
        return self.text[spans[best[0]][0] : spans[best[-1]][1]] if best else ""


@lru_cache(maxsize=512)  # a passage is numbered, shown, and looked up again
def _spans(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(sentence_spans(text))


def numbered(passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
    """The passages, their sentences numbered from 1 on through all of them; as they are where they come numbered."""
    if any(p.first for p in passages):
        return passages
    counts = accumulate((len(_spans(p.text)) for p in passages), initial=1)
    return tuple(p.model_copy(update={"first": first}) for p, first in zip(passages, counts, strict=False))
