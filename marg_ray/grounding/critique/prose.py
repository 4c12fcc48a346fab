"""A draft as the signals see it: the sections' sentences, and what is at fault with one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from marg_ray.grounding.alignment import VAGUE
from marg_ray.grounding.quantities import figures
from marg_ray.grounding.terms import content_terms, words
from marg_ray.grounding.verify import plain_text
from marg_ray.records import Evidence, IssueKind, Verdict
from marg_ray.tasks import Judged

Severity = Literal["low", "medium", "high"]
FAULTY = (Verdict.UNSUPPORTED, Verdict.CONTRADICTED)


@dataclass(frozen=True)
class Line:
    """One sentence. `run` counts the stretches under one heading; `is_prose`: no row of a table."""

    section: str
    at: int  # place in the draft
    run: int
    text: str  # without Markdown
    is_prose: bool = True
    verdict: Verdict | None = None
    sources: frozenset[str] = frozenset()
    headings: str = ""  # over the passages that it cites

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(content_terms(self.text))

    @cached_property
    def telling(self) -> frozenset[str]:
        """The terms that say what it is about."""
        return frozenset(t for t in self.terms if t not in VAGUE and not t[0].isdigit())

    @cached_property
    def figures(self) -> tuple[str, ...]:
        return tuple(figures(self.text))

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(words(self.text))


@dataclass(frozen=True)
class Part:
    """A section of the draft."""

    id: str
    title: str
    weight: float
    queries: tuple[str, ...]
    lines: tuple[Line, ...]
    gap: str = ""


@dataclass(frozen=True)
class Flag:
    """What is at fault with a sentence: the words concerned, and what to do about it; `twin` said the same before."""

    signal: str
    line: Line
    kind: IssueKind
    words: str
    detail: str
    instruction: str
    severity: Severity = "low"
    twin: Line | None = None


def read(sections: Sequence[Judged], evidence: Mapping[str, Evidence]) -> tuple[Part, ...]:
    return tuple(
        Part(
            id=j.section.id,
            title=j.section.title,
            weight=j.section.weight,
            queries=j.section.queries,
            lines=tuple(_lines(j, evidence)),
            gap=j.gap,
        )
        for j in sections
    )


def _lines(judged: Judged, evidence: Mapping[str, Evidence]) -> Iterator[Line]:
    if judged.draft is None:
        return
    verdicts = judged.grounding.verdicts if judged.grounding else ()
    at = run = 0
    for block in judged.draft.blocks:
        run += block.kind == "heading"
        for sentence in block.sentences:
            cited = [evidence[c] for c in sentence.citations if c in evidence]
            yield Line(
                section=judged.section.id,
                at=at,
                run=run,
                text=plain_text(sentence.text),
                is_prose=block.kind != "table",
                verdict=verdicts[at].verdict if at < len(verdicts) else None,
                sources=frozenset(e.source for e in cited),
                headings=" ".join(dict.fromkeys(e.heading for e in cited)),
            )
            at += 1


def shortened(text: str, limit: int = 160) -> str:
    return text if len(text) <= limit else text[: limit - 1].rsplit(" ", 1)[0] + "…"
