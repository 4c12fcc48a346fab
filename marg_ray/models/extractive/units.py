"""A document as groups of sentences: what stands under one heading, with terms, lists and tables kept in sight."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

from marg_ray.grounding.sentences import sentence_spans
from marg_ray.grounding.snapshots import Document, Part
from marg_ray.models.extractive.words import squeeze

LONGEST = 3000  # characters of a sentence that are looked at; longer ones are no sentences


@dataclass(frozen=True)
class Unit:
    """A sentence, or a whole table row or list item, and where it stands."""

    start: int
    end: int
    text: str  # white space as single spaces
    kind: str  # of its part
    part: int  # index of its part in the document
    order: int  # place in its group
    term: str = ""  # the definition term or short list lead before it
    term_start: int = -1  # where the term's own line starts in the document, if it has one
    opens: bool = False  # first of its part


@dataclass(frozen=True)
class Group:
    """What stands under one heading."""

    path: tuple[str, ...]  # headings above, outermost first
    levels: tuple[int, ...]
    start: int
    end: int
    parts: tuple[int, int]  # half-open range of part indices
    units: tuple[Unit, ...] = field(default=(), compare=False)

    @property
    def heading(self) -> str:
        return self.path[-1] if self.path else ""


def outline(document: Document) -> list[Group]:
    """The groups of a document, without their sentences."""
    groups: list[Group] = []
    path: list[tuple[int, str]] = []
    first = 0

    def close(until: int) -> None:
        if until > first:
            groups.append(
                Group(
                    tuple(t for _, t in path), tuple(level for level, _ in path),
                    document.parts[first].start, document.parts[until - 1].end, (first, until),
                )
            )  # fmt: skip

    for i, part in enumerate(document.parts):
        if part.kind == "heading":
            close(i)
            path = [p for p in path if p[0] < part.level]
            path.append((part.level, squeeze(document.text[part.start : part.end])))
            first = i + 1
    close(len(document.parts))
    if not document.parts and document.text.strip():
        groups.append(Group((), (), 0, len(document.text), (0, 0)))
    return groups


def with_units(document: Document, group: Group, budget: int = 400) -> Group:
    """The group with its sentences, at most `budget` of them."""
    units: list[Unit] = []
    parts = document.parts[slice(*group.parts)] or (Part(kind="paragraph", start=group.start, end=group.end),)
    for offset, part in enumerate(parts):
        index = group.parts[0] + offset
        raw = document.text[part.start : part.end]
        spans = [(0, len(raw))] if part.kind in {"table_row", "code", "caption"} else sentence_spans(raw)
        term, term_start = _term_of(document, parts, offset)
        for n, (a, b) in enumerate(spans):
            units.append(
                Unit(
                    part.start + a, part.start + b, squeeze(raw[a : min(b, a + LONGEST)]), part.kind, index, len(units),
                    term, term_start if n == 0 else -1, n == 0,
                )
            )  # fmt: skip
        if len(units) >= budget:
            break
    return Group(group.path, group.levels, group.start, group.end, group.parts, tuple(units))


def _term_of(document: Document, parts: tuple[Part, ...], offset: int) -> tuple[str, int]:
    """A part's term, and where the line of the term itself starts, if it stands just before."""
    part = parts[offset]
    term = squeeze(part.term)
    if not term:
        return "", -1
    text = squeeze(document.text[part.start : part.start + len(part.term) + 40])
    if text.startswith(term):
        return term, part.start
    if offset and squeeze(document.text[parts[offset - 1].start : parts[offset - 1].end]).rstrip(":") == term.rstrip(
        ":"
    ):
        return term, parts[offset - 1].start
    return term, -1


def groups_at(groups: list[Group], spans: list[tuple[int, int]]) -> list[int]:
    """Indices of the groups that the spans overlap."""
    starts = [g.start for g in groups]
    found: list[int] = []
    for start, end in spans:
        i = max(0, bisect.bisect_right(starts, start) - 1)
        while i < len(groups) and groups[i].start < end:
            if groups[i].end > start and i not in found:
                found.append(i)
            i += 1
    return found


def subtrees(groups: list[Group]) -> dict[tuple[str, ...], list[int]]:
    """For each heading with headings below it: one group per child, the child's own text or the first below it."""
    found: dict[tuple[str, ...], list[int]] = {}
    seen: set[tuple[str, ...]] = set()
    for i, group in enumerate(groups):
        for depth in range(1, len(group.path)):
            child = group.path[: depth + 1]
            if child not in seen:
                seen.add(child)
                found.setdefault(group.path[:depth], []).append(i)
    return found
