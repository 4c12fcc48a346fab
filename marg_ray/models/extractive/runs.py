"""Runs: the stretches of a document that may be quoted, with what reading knows of each sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass

from marg_ray.models.extractive import rules
from marg_ray.models.extractive.clauses import Kind
from marg_ray.models.extractive.facets import Facet, names_item, speaks_of
from marg_ray.models.extractive.units import Group, Unit
from marg_ray.models.extractive.words import word_count

RUN_SENTENCES = 4
RUN_WORDS = 110
LIST_WORDS = 170
LONGER = 0.06  # that each further sentence of a run is worth, up to two
STEPS_WORDS = 240  # of a list that answers how something is done
STEPWISE = frozenset({Kind.HOW_TO, Kind.HOW, Kind.MAKE})  # answered by steps


@dataclass(frozen=True)
class Candidate:
    """A sentence that may be quoted, with what its words say about it."""

    unit: Unit
    group: int
    passage: float
    heading: float
    words: float
    rest: float  # bonuses and penalties that need no embedding
    junk: bool
    alone: bool
    long: bool = False  # too long to be quoted by itself; what leans on it may follow

    @property
    def before(self) -> float:
        """The rank by words, which decides what is embedded."""
        return self.words + 0.3 * self.passage + 0.3 * self.heading + self.rest


@dataclass(frozen=True)
class Reading:
    """What reading prepared for the embedder: the facet's query and topic, its `rivals`, then the chosen sentences."""

    facet: Facet
    groups: tuple[Group, ...]
    candidates: tuple[Candidate, ...]
    chosen: tuple[int, ...]
    texts: tuple[str, ...]
    rivals: int
    walked: frozenset[int]  # groups that are children of a heading which names the facet
    max_claims: int
    texts_of: tuple[tuple[int, str], ...]  # where each group starts, and its text

    def text_at(self, start: int, end: int) -> str:
        """The document's own text between two offsets of one group."""
        base, text = max((t for t in self.texts_of if t[0] <= start), key=lambda t: t[0])
        return text[start - base : end - base]


@dataclass(frozen=True)
class Run:
    """Consecutive sentences of one group."""

    first: int  # index of a candidate
    last: int
    score: float
    words: int
    group: int


def is_about(candidate: Candidate, groups: tuple[Group, ...], wanted: Facet) -> bool:
    """Whether a sentence is about the item: it, its term or its heading names it. A comparison names two."""
    if wanted.compared:
        text = f"{candidate.unit.term} {candidate.unit.text}"
        named = sum(names_item(text, n) for n in wanted.compared)
        return named >= (1 if candidate.unit.kind == "table_row" else 2)
    if not wanted.item:
        return True
    path = groups[candidate.group].path
    if any(names_item(h, wanted.item) for h in path) and re.search(
        rf"(?<![\w-]){re.escape(wanted.item)}(?![\w-])", candidate.unit.text, re.I
    ):
        return True  # "Package A depends on B" under a heading that names `Depends`
    return (
        names_item(candidate.unit.text, wanted.item)
        or names_item(candidate.unit.term, wanted.item)
        or any(names_item(h, wanted.item) and not any(names_item(h, n) for n in wanted.siblings) for h in path)
    )


def runs_of(reading: Reading, scores: list[float]) -> list[Run]:
    """Every admissible run: starts alone, goes on without a gap, holds nothing that is no prose."""
    wanted, candidates = reading.facet, reading.candidates
    out: list[Run] = []
    for first, c in enumerate(candidates):
        if not c.alone or (c.junk and not _carries(candidates, first)) or not is_about(c, reading.groups, wanted):
            continue
        row = c.unit.kind == "table_row"
        total: list[float] = []
        count = 0
        for last in range(first, min(first + RUN_SENTENCES, len(candidates))):
            n = candidates[last]
            if last > first and not _continues(candidates[last - 1], n, wanted):
                break
            if last > first and (_strays(n.unit.text, wanted) or (row and not is_about(n, reading.groups, wanted))):
                break
            count += word_count(n.unit.text)
            if last > first and count > RUN_WORDS:
                break
            total.append(scores[last])
            if last > first and not c.unit.term and scores[last] < 0.7 * max(total):
                continue
            if last == first + 1 and n.alone and scores[first] < 0.9 * scores[last]:
                break  # the next sentence is the better start
            if _ends_badly(candidates, last, wanted) or (last == first and c.junk):
                continue
            top = sorted(total, reverse=True)
            best = sum(top[:2]) / len(top[:2])
            score = 0.55 * best + 0.45 * sum(total) / len(total) + LONGER * min(2, len(total) - 1)
            out.append(Run(first, last, score, count, c.group))
    return out + _lists(reading, scores)


def _carries(candidates: tuple[Candidate, ...], first: int) -> bool:
    """Whether a sentence is only too long, and the next one needs it."""
    after = candidates[first + 1] if first + 1 < len(candidates) else None
    return candidates[first].long and after is not None and not after.alone


def _lists(reading: Reading, scores: list[float]) -> list[Run]:
    """Whole lists with the sentence that announces them: steps, conditions, options."""
    candidates = reading.candidates
    out: list[Run] = []
    for first, c in enumerate(candidates):
        text = c.unit.text
        if not text.endswith((":", "：")) or not c.alone or c.unit.kind == "table_row" or word_count(text) < 4:
            continue
        if not is_about(c, reading.groups, reading.facet):
            continue
        last, count, items, steps = first, word_count(text), 0, reading.facet.kind in STEPWISE
        for i in range(first + 1, len(candidates)):
            n = candidates[i]
            if n.group != c.group or n.unit.kind != "list_item" or n.unit.order != c.unit.order + i - first:
                break
            count += word_count(n.unit.text)
            last, items = i, items + n.unit.opens
        if (
            not 2 <= items <= (12 if steps else 9)
            or count > (STEPS_WORDS if steps else LIST_WORDS)
            or any(
                rules.is_code(x.unit.text) or not rules.balanced(x.unit.text) or rules.is_pointer(x.unit.text)
                for x in candidates[first : last + 1]
            )
        ):
            continue
        best = sorted(scores[first : last + 1], reverse=True)[:2]
        bonus = 0.10 if reading.facet.kind in STEPWISE else 0.03
        bonus += 0.12 * (steps and (c.heading >= 0.5 or speaks_of(reading.facet, text, 0.0)))
        mean = sum(scores[first : last + 1]) / (last + 1 - first)
        out.append(Run(first, last, 0.55 * sum(best) / len(best) + 0.45 * mean + bonus, count, c.group))
    return out


def _strays(text: str, wanted: Facet) -> bool:
    """Whether a sentence goes over to another thing of the enumeration; in a comparison, to one of them alone."""
    if wanted.compared:
        return sum(names_item(text, n) for n in wanted.compared) == 1  # stands in that thing's own section
    return bool(wanted.item and not names_item(text, wanted.item) and any(names_item(text, n) for n in wanted.siblings))


def _continues(a: Candidate, b: Candidate, wanted: Facet) -> bool:
    if a.group != b.group or b.unit.order != a.unit.order + 1:
        return False
    if a.unit.kind == "table_row" or b.unit.kind == "table_row":
        return a.unit.kind == b.unit.kind and b.words >= 0.9 * a.words
    if rules.is_junk(b.unit.text, english=wanted.english, inside=True) or b.unit.kind in {"code", "caption"}:
        return False
    if b.unit.part == a.unit.part:
        return True
    plain = a.unit.kind == b.unit.kind == "paragraph"
    return plain and b.unit.part == a.unit.part + 1 and b.unit.term == a.unit.term and not b.unit.term_start >= 0


def _ends_badly(candidates: tuple[Candidate, ...], last: int, wanted: Facet) -> bool:
    """A pointer at the end of a run only sends the reader away."""
    text = candidates[last].unit.text
    return wanted.english and (rules.is_pointer(text) or rules.is_deictic(text)) and candidates[last].unit.order > 0
