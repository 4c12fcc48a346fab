"""A PDF page's words and rulings with their places, through pdfium (an order of magnitude faster than pdfminer).

Coordinates are in points as the page is seen: x to the right, y downwards from the top.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MAX_PATHS = 4000  # per page; more is a drawing, not a table
_MONO = re.compile(r"mono|nimbusmon|courier|cmtt|typewriter|consol|menlo|inconsolata|sourcecode")
_FIXED_PITCH, _FORCE_BOLD = 1, 1 << 18
_LINE_HYPHEN = "\ufffe"  # pdfium's mark for a hyphen at a line's end that is no part of the word


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    size: float  # of the letters, in points
    bold: bool
    mono: bool
    glued: bool = False  # cut by a hyphen at the line's end


@dataclass(frozen=True, slots=True)
class Edge:
    """A straight ruling, horizontal (y0 == y1) or vertical (x0 == x1)."""

    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, slots=True)
class Page:
    number: int  # from 1
    width: float
    height: float
    lines: tuple[tuple[Word, ...], ...]  # as pdfium groups them, in the order in which they were drawn
    edges: tuple[Edge, ...]
    has_images: bool


def read_page(pdf: Any, index: int) -> Page:
    page = pdf[index]
    try:
        rotation = page.get_rotation()
        width, height = page.get_size()  # as it is seen
        own = (height, width) if rotation in (90, 270) else (width, height)
        left, bottom = _corner(page)
        turn = _turned(left, bottom, *own, rotation)
        textpage = page.get_textpage()
        try:
            lines = _lines(textpage, turn)
        finally:
            textpage.close()
        edges, has_images = _edges(page, turn)
        return Page(index + 1, width, height, tuple(lines), tuple(edges), has_images)
    finally:
        page.close()


def _corner(page: Any) -> tuple[float, float]:
    """Lower left corner of what is shown."""
    box = page.get_cropbox(fallback_ok=False) or page.get_mediabox(fallback_ok=False) or (0.0, 0.0)
    return box[0], box[1]


_Turn = Callable[[float, float, float, float], tuple[float, float, float, float]]


def _turned(left: float, bottom: float, width: float, height: float, rotation: int) -> _Turn:
    """From a page's own space (y upwards) to the page as it is seen."""

    def turn(x0: float, y0: float, x1: float, y1: float) -> tuple[float, float, float, float]:
        a0, b0, a1, b1 = x0 - left, y0 - bottom, x1 - left, y1 - bottom
        if rotation == 90:
            box = (b0, a0, b1, a1)
        elif rotation == 180:
            box = (width - a1, b0, width - a0, b1)
        elif rotation == 270:
            box = (height - b1, width - a1, height - b0, width - a0)
        else:
            box = (a0, height - b1, a1, height - b0)
        return min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])

    return turn


def _lines(textpage: Any, turn: _Turn) -> list[tuple[Word, ...]]:
    import pypdfium2.raw as raw

    count = textpage.count_chars()
    if count <= 0:
        return []
    text = textpage.get_text_range()
    chars = list(text) if len(text) == count else [_char(raw, textpage, i) for i in range(count)]
    box = [ctypes.c_double() for _ in range(4)]
    lines: list[tuple[Word, ...]] = []
    line: list[Word] = []
    start = -1  # of the current word
    x0 = y0 = x1 = y1 = 0.0

    def end_word(stop: int, *, glued: bool = False) -> None:
        nonlocal start
        if start >= 0:
            size, bold, mono = _font(raw, textpage, start)
            place = turn(x0, y0, x1, y1)
            line.append(Word("".join(chars[start:stop]), *place, size or place[3] - place[1], bold, mono, glued))
        start = -1

    for i, c in enumerate(chars):
        if c in "\r\n" or c == _LINE_HYPHEN:
            end_word(i, glued=c == _LINE_HYPHEN)
            if c == "\n" and line:
                lines.append(tuple(line))
                line = []
            continue
        if c.isspace() or c == "\x00":
            end_word(i)
            continue
        if not raw.FPDFText_GetCharBox(textpage, i, box[0], box[1], box[2], box[3]):
            continue
        l, r, b, t = (v.value for v in box)  # noqa: E741 - pdfium's names
        if start < 0:
            start, x0, y0, x1, y1 = i, l, b, r, t
        else:
            x0, y0, x1, y1 = min(x0, l), min(y0, b), max(x1, r), max(y1, t)
    end_word(count)
    if line:
        lines.append(tuple(line))
    return lines


def _char(raw: Any, textpage: Any, index: int) -> str:
    code = raw.FPDFText_GetUnicode(textpage, index)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code <= 0xDFFF else " "


def _font(raw: Any, textpage: Any, index: int) -> tuple[float, bool, bool]:
    """Size in points, bold, type-writer letters."""
    flags = ctypes.c_int()
    name = ctypes.create_string_buffer(128)
    raw.FPDFText_GetFontInfo(textpage, index, name, 128, flags)
    weight = raw.FPDFText_GetFontWeight(textpage, index)
    font = name.value.decode("utf-8", "replace").lower()
    bold = weight >= 600 or bool(flags.value & _FORCE_BOLD) or "bold" in font or "black" in font
    mono = bool(flags.value & _FIXED_PITCH) or _MONO.search(font) is not None
    matrix = raw.FS_MATRIX()
    scale = 1.0
    if raw.FPDFText_GetMatrix(textpage, index, matrix):
        scale = (matrix.c**2 + matrix.d**2) ** 0.5 or 1.0
    size = raw.FPDFText_GetFontSize(textpage, index)
    return round(size * scale if size * scale > 1 else size, 1), bold, mono


def _edges(page: Any, turn: _Turn) -> tuple[list[Edge], bool]:
    """Rulings, and whether there are pictures."""
    import pypdfium2.raw as raw

    edges: list[Edge] = []
    has_images = False
    for n, item in enumerate(page.get_objects(max_depth=1)):
        if n > MAX_PATHS * 5 or len(edges) > MAX_PATHS:
            return [], has_images
        if item.type == raw.FPDF_PAGEOBJ_IMAGE:
            has_images = True
        elif item.type == raw.FPDF_PAGEOBJ_PATH:
            edges.extend(_path_edges(raw, item, turn))
    return edges, has_images


def _path_edges(raw: Any, item: Any, turn: _Turn) -> list[Edge]:
    """Horizontal and vertical strokes of a path; a filled sliver is a stroke, a box is four."""
    count = raw.FPDFPath_CountSegments(item)
    if count > 400:
        return []
    left, bottom, right, top = item.get_bounds()
    x0, y0, x1, y1 = turn(left, bottom, right, top)
    if x1 - x0 <= 2.5 or y1 - y0 <= 2.5:
        return _sliver(x0, y0, x1, y1)
    points = _points(raw, item, count, turn)
    edges = []
    for (ax, ay), (bx, by) in points:
        if abs(ax - bx) <= 0.5 or abs(ay - by) <= 0.5:
            edges += _sliver(min(ax, bx), min(ay, by), max(ax, bx), max(ay, by))
    return edges


def _sliver(x0: float, y0: float, x1: float, y1: float) -> list[Edge]:
    if x1 - x0 >= y1 - y0:
        y = (y0 + y1) / 2
        return [Edge(x0, y, x1, y)] if x1 - x0 > 3 else []
    x = (x0 + x1) / 2
    return [Edge(x, y0, x, y1)] if y1 - y0 > 3 else []


_Point = tuple[float, float]


def _points(raw: Any, item: Any, count: int, turn: _Turn) -> list[tuple[_Point, _Point]]:
    """The path's straight pieces, in page space."""
    matrix = item.get_matrix()
    x, y = ctypes.c_float(), ctypes.c_float()
    pieces: list[tuple[_Point, _Point]] = []
    first: _Point | None = None
    last: _Point | None = None
    for i in range(count):
        segment = raw.FPDFPath_GetPathSegment(item, i)
        if not segment or not raw.FPDFPathSegment_GetPoint(segment, x, y):
            continue
        px, py = matrix.on_point(x.value, y.value)
        place = turn(px, py, px, py)[:2]
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            first = place
        elif kind == raw.FPDF_SEGMENT_LINETO and last is not None:
            pieces.append((last, place))
        last = place
        if raw.FPDFPathSegment_GetClose(segment) and first is not None:
            pieces.append((last, first))
    return pieces
