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
    fonts = _Fonts(raw, textpage)
    place = _places(raw, textpage)
    lines: list[tuple[Word, ...]] = []
    line: list[Word] = []
    start = -1  # of the current word

    def end_word(stop: int, *, glued: bool = False) -> None:
        nonlocal start
        if start >= 0:
            # The first and the last letter say where a word lies; asking for all takes most of the time.
            a, b = place(start), place(stop - 1)
            box = turn(min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]))
            size, bold, mono = fonts.at(start)
            line.append(Word("".join(chars[start:stop]), *box, size or box[3] - box[1], bold, mono, glued))
        start = -1

    for i, c in enumerate(chars):
        if c in "\r\n" or c == _LINE_HYPHEN:
            end_word(i, glued=c == _LINE_HYPHEN)
            if c == "\n" and line:
                lines.append(tuple(line))
                line = []
        elif c.isspace() or c == "\x00":
            end_word(i)
        elif start < 0:
            start = i
    end_word(count)
    if line:
        lines.append(tuple(line))
    return lines


def _places(raw: Any, textpage: Any) -> Callable[[int], tuple[float, float, float, float]]:
    """A function from a letter's index to its box in the page's own space."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))

    def place(index: int) -> tuple[float, float, float, float]:
        raw.FPDFText_GetCharBox(textpage, index, left, right, bottom, top)
        return left.value, bottom.value, right.value, top.value

    return place


def _char(raw: Any, textpage: Any, index: int) -> str:
    code = raw.FPDFText_GetUnicode(textpage, index)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code <= 0xDFFF else " "


class _Fonts:
    """Size in points, weight and pitch of letters; what follows from a font's name is worked out once."""

    def __init__(self, raw: Any, textpage: Any) -> None:
        self._raw, self._textpage = raw, textpage
        self._flags, self._name, self._matrix = ctypes.c_int(), ctypes.create_string_buffer(128), raw.FS_MATRIX()
        self._known: dict[tuple[bytes, int], tuple[bool, bool]] = {}

    def at(self, index: int) -> tuple[float, bool, bool]:
        """Size, bold, type-writer letters."""
        raw, page = self._raw, self._textpage
        raw.FPDFText_GetFontInfo(page, index, self._name, 128, self._flags)
        key = self._name.value, self._flags.value
        if key not in self._known:
            font = key[0].decode("utf-8", "replace").lower()
            bold = bool(key[1] & _FORCE_BOLD) or "bold" in font or "black" in font
            self._known[key] = bold, bool(key[1] & _FIXED_PITCH) or _MONO.search(font) is not None
        bold, mono = self._known[key]
        bold = bold or raw.FPDFText_GetFontWeight(page, index) >= 600
        size = raw.FPDFText_GetFontSize(page, index)
        if raw.FPDFText_GetMatrix(page, index, self._matrix):
            scaled = size * (self._matrix.c**2 + self._matrix.d**2) ** 0.5
            size = scaled if scaled > 1 else size
        return round(size, 1), bold, mono


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
