"""Takes stretches out of a text and fits its parts' places to what is left."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from marg_ray.grounding.snapshots import Part


class Rest(NamedTuple):
    """What a text is without what was taken out of it."""

    text: str
    parts: tuple[Part, ...]
    place: Callable[[int], int]  # from an offset in the whole text to the one in what is left


def without(text: str, parts: Sequence[Part], cuts: Sequence[tuple[int, int]]) -> Rest:
    """The text without `cuts` and the gaps they leave, and its parts in their new places."""
    spans = _joined([_widened(text, parts, start, end) for start, end in _joined(cuts, text)])
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces.append(text[at:start])
        at = end
    pieces.append(text[at:])
    raw = "".join(pieces)
    new = raw.strip() if spans else raw
    lead = len(raw) - len(raw.lstrip()) if spans else 0
    place = _places(new, spans, lead)
    return Rest(new, tuple(_moved(new, parts, place)), place)


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


def _moved(text: str, parts: Sequence[Part], place: Callable[[int], int]) -> list[Part]:
    kept: list[Part] = []
    for part in parts:
        start, end = place(part.start), place(part.end)
        inner = text[start:end]
        start += len(inner) - len(inner.lstrip())
        end -= len(inner) - len(inner.rstrip())
        if start < end:
            kept.append(part.model_copy(update={"start": start, "end": end}))
    return kept


def _places(text: str, spans: Sequence[tuple[int, int]], lead: int) -> Callable[[int], int]:
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

    return place
