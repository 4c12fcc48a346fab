"""Cuts passages out of a source that speak to a model instead of to a reader.

Text from a source is data. A sentence that orders "the assistant" about ("ignore all previous instructions") is taken
out before any model sees it and kept in the record. Pages that describe such attacks, manuals and recipes stay whole:
an order counts only where it stands as an order, not where it is quoted or reported.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from marg_ray.grounding.injection_rules import AIMED, DESCRIPTIVE, QUOTED, RULES, TOKENS, TRIGGER
from marg_ray.grounding.sentences import sentence_spans
from marg_ray.grounding.snapshots import Document, Part
from marg_ray.records import Injection


@dataclass(frozen=True, slots=True)
class Found:
    """An instruction-like stretch `text[start:end]`, and the rule that told."""

    start: int
    end: int
    rule: str


def scan(text: str) -> list[Found]:
    """The instruction-like stretches of `text`, whole sentences, in order and without overlap.

    Sentences after one that give a model further orders belong to it.
    """
    found: list[Found] = []
    for paragraph in _PARAGRAPH.finditer(text):
        if TRIGGER.search(paragraph.group()):
            found += _scan_paragraph(text, paragraph.start(), paragraph.end())
    return found


_PARAGRAPH = re.compile(r"(?:[^\n]+\n?)+")


def _scan_paragraph(text: str, offset: int, end: int) -> list[Found]:
    found: list[Found] = []
    rule = ""
    for start, stop in sentence_spans(text[offset:end]):
        start, stop = start + offset, stop + offset
        sentence = text[start:stop]
        hit = _rule(sentence) if TRIGGER.search(sentence) else ""
        if hit or (rule and AIMED.match(sentence)):
            rule = hit or rule
            if found and hit in ("", found[-1].rule) and not text[found[-1].end : start].strip(" \t"):
                found[-1] = Found(found[-1].start, stop, found[-1].rule)
            else:
                found.append(Found(start, stop, rule))
        else:
            rule = ""
    return found


def cut_injections(document: Document) -> Document:
    """The document without instruction-like passages, its parts' offsets fitted; each cut is in `injections`.

    Code is left as it is. A document without such passages comes back as it was.
    """
    code = [(p.start, p.end) for p in document.parts if p.kind == "code"]
    cuts = [f for f in scan(document.text) if not any(s < f.end and f.start < e for s, e in code)]
    title_cuts = scan(document.title)
    if not cuts and not title_cuts:
        return document
    text, parts = _without(document.text, document.parts, cuts)
    title, _ = _without(document.title, (), title_cuts)
    taken = [Injection(text=document.text[f.start : f.end], rule=f.rule) for f in cuts]
    taken += [Injection(text=document.title[f.start : f.end], rule=f.rule) for f in title_cuts]
    return document.model_copy(
        update={"title": title, "text": text, "parts": parts, "injections": (*document.injections, *taken)}
    )


# ---- rules

_LONGEST = 3000  # characters of a sentence that are looked at


def _rule(sentence: str) -> str:
    """The name of the rule that this sentence breaks, or ""."""
    for name, pattern in (*TOKENS, *RULES):
        if pattern.search(sentence[:_LONGEST]) and not _is_reported(sentence[:_LONGEST], pattern):
            return name
    return ""


def _is_reported(sentence: str, pattern: re.Pattern[str]) -> bool:
    """Whether the order stands only inside quotation marks or code, and the rest describes it."""
    outside = QUOTED.sub(" ", sentence)
    if outside == sentence or pattern.search(outside):
        return False
    return bool(DESCRIPTIVE.search(outside))


# ---- cutting


def _without(text: str, parts: Sequence[Part], cuts: Sequence[Found]) -> tuple[str, tuple[Part, ...]]:
    spans = _joined(
        [_widened(text, parts, start, end) for start, end in _joined([(c.start, c.end) for c in cuts], text)]
    )
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces.append(text[at:start])
        at = end
    pieces.append(text[at:])
    raw = "".join(pieces)
    new = raw.strip() if spans else raw
    lead = len(raw) - len(raw.lstrip()) if spans else 0
    return new, tuple(_moved(new, parts, spans, lead))


def _joined(spans: Sequence[tuple[int, int]], text: str = "") -> list[tuple[int, int]]:
    """Spans in order; those that touch, or have nothing but blanks of `text` between them, are one."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and (start <= joined[-1][1] or (text and not text[joined[-1][1] : start].strip(" \t"))):
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _widened(text: str, parts: Sequence[Part], start: int, end: int) -> tuple[int, int]:
    """A cut with the space after it; where nothing of a part is left, with the gap to the next part."""
    whole = [p for p in parts if p.start < end and start < p.end]
    if whole and not text[whole[0].start : start].strip() and not text[end : whole[-1].end].strip():
        start, end = min(start, whole[0].start), max(end, whole[-1].end)
        while end < len(text) and text[end].isspace():
            end += 1
        return start, end
    while end < len(text) and text[end] in " \t":
        end += 1
    if end >= len(text) or text[end] == "\n":
        while start > 0 and text[start - 1] in " \t":
            start -= 1
    return start, end


def _moved(text: str, parts: Sequence[Part], spans: Sequence[tuple[int, int]], lead: int) -> list[Part]:
    starts = [s for s, _ in spans]
    removed = [0]
    for start, end in spans:
        removed.append(removed[-1] + end - start)

    def place(offset: int) -> int:
        before = bisect_right(starts, offset)
        gone = removed[before]
        if before and offset < spans[before - 1][1]:
            gone -= spans[before - 1][1] - offset
        return min(len(text), max(0, offset - gone - lead))

    kept: list[Part] = []
    for part in parts:
        start, end = place(part.start), place(part.end)
        inner = text[start:end]
        start += len(inner) - len(inner.lstrip())
        end -= len(inner) - len(inner.rstrip())
        if start < end:
            kept.append(part.model_copy(update={"start": start, "end": end}))
    return kept
