"""The summary: from every section one sentence that stands alone, with its mark."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from marg_ray.models.extractive import rules
from marg_ray.models.extractive.clauses import TOLD_BY_WORDS, Kind
from marg_ray.models.extractive.facets import (
    COMPARISON,
    OVERVIEW,
    Facet,
    answer_fit,
    contrast,
    defines,
    facet,
    names_item,
    speaks_of,
    subject_fit,
    word_fit,
)
from marg_ray.models.extractive.printing import ONLY
from marg_ray.models.extractive.words import (
    contained,
    figures,
    is_english,
    same_statement,
    squeeze,
    term_set,
    word_count,
)
from marg_ray.models.tasks import FreeText, SummariseReport
from marg_ray.seams import Vectors

PER_SECTION = 8  # sentences of a section that are worth an embedding
_PIECE = re.compile(r"(?P<text>.+?)\s*(?P<marks>(?:\[\d+\]\s*)+)(?P<stop>[.!?。！？]*)(?=\s|$)", re.S)
_SECOND = re.compile(
    r"\b(?:also|another|other|further(?:more)?|moreover|too|additional(?:ly)?|in addition)\b", re.I
)  # comes after something more important
_MEASURED = frozenset({Kind.NUMBER, Kind.CONSEQUENCE})
SHARE = 1.6  # of a section's equal part of the words that are left, at most
FIRST = 4  # sentences: a section's first run
_LABEL = re.compile(r"^\*\*(?P<label>[^*]+)\*\*\s*")


@dataclass(frozen=True)
class Line:
    """A sentence of the report as it stands there."""

    section: int
    text: str
    marks: str
    order: int
    label: str = ""
    about: str = ""  # the label before it, or before the paragraph it stands in


@dataclass(frozen=True)
class Summarising:
    """What the summary prepared for the embedder: query and topic of each section, then one text per line."""

    lines: tuple[Line, ...]
    sections: int
    rank: tuple[float, ...]  # of each line, by words
    words: int
    texts: tuple[str, ...]


def marked_lines(section: int, text: str) -> list[Line]:
    """The cited sentences of a section's Markdown, with the label before each."""
    found: list[Line] = []
    label = about = ""
    for block in re.split(r"\n+", text):
        block = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "", block.strip())
        if match := _LABEL.match(block):
            label, block = match.group("label").strip(" .:"), block[match.end() :]
            label = "" if label == ONLY else label
            about = label
        for piece in _PIECE.finditer(block):
            marks = "".join(dict.fromkeys(re.findall(r"\[\d+\]", piece.group("marks"))))
            text = squeeze(piece.group("text")) + piece.group("stop")
            found.append(Line(section, text, marks, len(found), label, about))
            label = ""
    return found


def prepare(task: SummariseReport) -> Summarising:
    """Each section's usable sentences, the most telling by their words first. Pure CPU."""
    lines: list[Line] = []
    rank: list[float] = []
    facets = [
        facet(task.question, s.title, (task.question if s.title in {OVERVIEW, COMPARISON} else s.title,))
        for s in task.sections
    ]
    for s, (section, wanted) in enumerate(zip(task.sections, facets, strict=True)):
        found = marked_lines(s, section.text)
        fitting = [x for x in found if _usable(x)] or [x for x in found if _usable(x, at_need=True)]
        usable = [_titled(x, section.title, wanted) for x in fitting]
        scored = [(_by_words(x, wanted), x) for x in usable]
        scored.sort(key=lambda p: -p[0])
        lines += [x for _, x in scored[:PER_SECTION]]
        rank += [r for r, _ in scored[:PER_SECTION]]
    asked = [text for f in facets for text in (f.query, f.topic or f.query)]
    return Summarising(tuple(lines), len(task.sections), tuple(rank), task.words, (*asked, *(x.text for x in lines)))


def _titled(line: Line, title: str, wanted: Facet) -> Line:
    """A line of a section on one thing, with the thing's name before it where it leaves that out."""
    if not wanted.item and wanted.subject and rules.stands_alone(line.text) and subject_fit(wanted, line.text) > 0.99:
        return replace(line, about="")  # it names the question's own subject
    if wanted.item and names_item(line.text, wanted.item) and rules.stands_alone(line.text):
        return replace(line, about="")  # it names its own thing
    if not wanted.item or names_item(line.text, wanted.item):
        return line
    return replace(line, about=title)


def _usable(line: Line, at_need: bool = False) -> bool:
    """Whether a line can stand in the summary; `at_need`: where its section has none that reads well there."""
    english = is_english(line.text)
    if not (5 if line.label else 7) <= word_count(line.text) <= (60 if at_need else 45):
        return False
    if rules.is_junk(line.text, english=english, labelled=bool(line.label)):
        return False
    if not line.label and not rules.stands_alone(line.text, english):
        return False
    if not english:
        return True
    away = rules.is_pointer(line.text) or rules.is_deictic(line.text)
    aside = rules.is_personal(line.text) or rules.has_cross_reference(line.text)
    return not (away or (aside and not at_need))


def _by_words(line: Line, wanted: Facet) -> float:
    own, everything, cues = word_fit(wanted, line.text, {})
    return (
        0.20 * own
        + 0.10 * everything
        + 0.08 * cues
        + 0.10 * answer_fit(wanted, line.text)
        + 0.15 * (defines(wanted, line.text) and wanted.own <= term_set(wanted.defined))
        + 0.05 * (bool(figures(line.text)) and (bool(wanted.item) or wanted.kind in _MEASURED))
        + (0.10 if line.order == 0 else 0.04 if line.order < FIRST else 0.0)
        - 0.12 * (bool(wanted.item) and not speaks_of(replace(wanted, defined=""), line.text, 0.0))
        - 0.12
        * (
            not wanted.item
            and (wanted.strict or wanted.kind in TOLD_BY_WORDS)
            and not speaks_of(wanted, line.text, 0.0)
        )
        - 0.20 * bool(_SECOND.search(line.text))
    )


def compose(work: Summarising, vectors: Vectors) -> FreeText:
    """A bullet for every section, from that section, in the sections' order; shorter ones where words run out."""
    chosen: list[Line] = []
    room = max(work.words, 60) * 1.2
    for s in range(work.sections):
        found: list[tuple[float, Line]] = []
        for i, line in enumerate(work.lines):
            if line.section != s or any(same_statement(line.text, c.text) for c in chosen):
                continue
            own, topic = (float(vectors[2 * work.sections + i] @ vectors[2 * s + k]) for k in (0, 1))
            found.append((0.60 * contrast(own, topic) + work.rank[i], line))
        if not found:
            continue
        share = SHARE * room / (work.sections - s)
        brief = [f for f in found if word_count(f[1].text) <= share] or [
            min(found, key=lambda f: word_count(f[1].text))
        ]
        best = max(brief, key=lambda f: f[0])[1]
        chosen.append(best)
        room -= word_count(best.text)
    return FreeText(markdown="\n".join(f"- {_bold(x)}{x.text} {x.marks}" for x in chosen))


def _bold(line: Line) -> str:
    """A line keeps the label that says of what it speaks, where it does not say so itself."""
    if not line.about or word_count(line.about) > 8:
        return ""
    said = contained(term_set(line.about), term_set(line.text)) >= 0.99
    return "" if said and rules.stands_alone(line.text) else f"**{line.about}:** "
