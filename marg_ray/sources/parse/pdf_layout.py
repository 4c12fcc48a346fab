"""From a page's words to lines in reading order: columns, tables, headers and footers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from marg_ray.sources.parse.pdf_page import Edge, Page, Word

_DIGITS = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"^[-–— ]*(?:page |seite |p\. ?)?(?:\d{1,4}|[ivxlc]{1,7})(?: ?(?:of|/|von) ?\d{1,4})?[-–— ]*$", re.I
)
BAND = 30.0  # points of empty height that end a pair of columns
MARGIN = 0.12  # of the page's height, where headers and footers stand


@dataclass(frozen=True, slots=True)
class Line:
    """Words of one line of one column, left to right as they read."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    size: float
    bold: bool
    mono: bool
    page: int
    words: tuple[Word, ...] = ()

    @property
    def glued(self) -> bool:
        return bool(self.words) and self.words[-1].glued


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: rows of cell texts, header row first if `header`."""

    rows: tuple[tuple[str, ...], ...]
    header: bool
    page: int
    x0: float
    y0: float
    x1: float
    y1: float


Item: TypeAlias = Line | Grid


def make_line(words: Sequence[Word], page: int) -> Line:
    letters = sum(len(w.text) for w in words) or 1
    sizes: Counter[float] = Counter()
    for w in words:
        sizes[w.size] += len(w.text)
    return Line(
        text=" ".join(w.text for w in words),
        x0=min(w.x0 for w in words),
        y0=min(w.y0 for w in words),
        x1=max(w.x1 for w in words),
        y1=max(w.y1 for w in words),
        size=sizes.most_common(1)[0][0],
        bold=sum(len(w.text) for w in words if w.bold) * 2 > letters,
        mono=sum(len(w.text) for w in words if w.mono) * 10 > letters * 9,
        page=page,
        words=tuple(words),
    )


def segments(page: Page) -> list[Line]:
    """The page's lines, cut where a gap is too wide for a space between words."""
    out: list[Line] = []
    for words in page.lines:
        current: list[Word] = []
        for word in words:
            if current and _is_apart(current[-1], word):
                out.append(make_line(current, page.number))
                current = []
            current.append(word)
        if current:
            out.append(make_line(current, page.number))
    return out


def _is_apart(a: Word, b: Word) -> bool:
    gap = max(b.x0 - a.x1, a.x0 - b.x1)
    height = max(a.y1 - a.y0, b.y1 - b.y0, 1.0)
    overlap = min(a.y1, b.y1) - max(a.y0, b.y0)
    return gap > 1.6 * max(a.size, b.size, 4.0) or overlap < -0.8 * height


# -- what repeats from page to page ---------------------------------------------------------------------------


def without_furniture(pages: Sequence[Page], lines: Sequence[list[Line]]) -> list[list[Line]]:
    """Lines without headers, footers and page numbers: what stands at the same place on many pages."""
    seen: dict[tuple[str, int], set[int]] = defaultdict(set)
    slots: Counter[int] = Counter()
    for page, on_page in zip(pages, lines, strict=True):
        for line in on_page:
            if _in_margin(line, page):
                seen[_signature(line, page)].add(page.number)
        slots.update({round(line.y1) for line in on_page if _stands_off(line, page, on_page)})
    needed = 2 if len(pages) < 6 else max(3, len(pages) // 20)
    out = []
    for page, on_page in zip(pages, lines, strict=True):
        kept = []
        for line in on_page:
            repeats = len(pages) > 1 and len(seen.get(_signature(line, page), ())) >= needed
            lone = _PAGE_NUMBER.match(line.text) and _is_outermost(line, on_page)
            # A running title changes with the chapter, but not its place.
            running = len(pages) > 5 and slots[round(line.y1)] * 3 > len(pages) and _stands_off(line, page, on_page)
            if not (_in_margin(line, page) and (repeats or lone or running)):
                kept.append(line)
        out.append(kept)
    return out


def _stands_off(line: Line, page: Page, on_page: Sequence[Line]) -> bool:
    """A short outermost line in the margin, with more space to the text than lines have between them."""
    if not _in_margin(line, page) or len(line.text) > 120 or not _is_outermost(line, on_page):
        return False
    others = [o for o in on_page if abs(o.y1 - line.y1) > 3]
    gap = min((max(o.y0 - line.y1, line.y0 - o.y1) for o in others), default=0.0)
    return gap > 1.3 * line.size


def _in_margin(line: Line, page: Page) -> bool:
    return line.y1 < MARGIN * page.height or line.y0 > (1 - MARGIN) * page.height


def _is_outermost(line: Line, on_page: Sequence[Line]) -> bool:
    """Nothing stands further up, or further down; neighbours on the same height do not count."""
    middle = (line.y0 + line.y1) / 2
    above = any(other.y1 < middle - 2 for other in on_page)
    below = any(other.y0 > middle + 2 for other in on_page)
    return not (above and below)


def _signature(line: Line, page: Page) -> tuple[str, int]:
    return _DIGITS.sub("#", line.text.lower()), round(line.y0 / page.height * 50)


# -- tables with rulings --------------------------------------------------------------------------------------


def ruled_tables(page: Page) -> tuple[list[Grid], set[int]]:
    """Tables whose cells are ruled off, and the ids of the words in them."""
    horizontal = sum(1 for e in page.edges if e.y0 == e.y1)
    if horizontal < 2 or len(page.edges) - horizontal < 2:
        return [], set()
    words = [w for line in page.lines for w in line]
    grids: list[Grid] = []
    used: set[int] = set()
    for cells in _cell_tables(page.edges):
        tops = sorted({round(c[1]) for c in cells})
        lefts = sorted({round(c[0]) for c in cells})
        if len(tops) < 2 or len(lefts) < 2:
            continue
        x0, y0 = min(c[0] for c in cells), min(c[1] for c in cells)
        x1, y1 = max(c[2] for c in cells), max(c[3] for c in cells)
        inside = [w for w in words if x0 - 1 <= (w.x0 + w.x1) / 2 <= x1 + 1 and y0 - 1 <= (w.y0 + w.y1) / 2 <= y1 + 1]
        if not inside:
            continue
        rows: list[tuple[str, ...]] = []
        bold: list[bool] = []
        for top in tops:
            row = [""] * len(lefts)
            heavy = []
            for cell in cells:
                if round(cell[1]) != top:
                    continue
                held = [w for w in inside if _holds(cell, w)]
                row[lefts.index(round(cell[0]))] = _flow(held)
                heavy += [w.bold for w in held]
            rows.append(tuple(row))
            bold.append(bool(heavy) and all(heavy))
        used |= {id(w) for w in inside}
        grids.append(Grid(tuple(rows), _is_header(rows, bold), page.number, x0, y0, x1, y1))
    return grids, used


def _cell_tables(edges: Sequence[Edge]) -> list[list[tuple[float, float, float, float]]]:
    """Cells grouped to tables, as boxes; pdfplumber's geometry on pdfium's rulings."""
    from pdfplumber import table as geometry

    lines = [
        {
            "x0": e.x0, "x1": e.x1, "top": e.y0, "bottom": e.y1, "width": e.x1 - e.x0, "height": e.y1 - e.y0,
            "orientation": "h" if e.y0 == e.y1 else "v", "object_type": "line",
        }
        for e in edges
    ]  # fmt: skip
    merged = geometry.merge_edges(lines, snap_x_tolerance=3, snap_y_tolerance=3, join_x_tolerance=3, join_y_tolerance=3)
    if len(merged) > 600:
        return []
    cells = geometry.intersections_to_cells(geometry.edges_to_intersections(merged, 3, 3))
    return [list(t) for t in geometry.cells_to_tables(cells)]


def _holds(cell: tuple[float, float, float, float], w: Word) -> bool:
    x, y = (w.x0 + w.x1) / 2, (w.y0 + w.y1) / 2
    return cell[0] <= x < cell[2] and cell[1] <= y < cell[3]


def _flow(words: Sequence[Word]) -> str:
    """Words of a cell, in the order in which they were drawn."""
    return "".join(w.text + ("" if w.glued else " ") for w in words).strip()


def _is_header(rows: Sequence[tuple[str, ...]], bold: Sequence[bool]) -> bool:
    first = [c for c in rows[0] if c]
    if len(rows) < 2 or len(first) < 2 or len(set(first)) < len(first):
        return False
    if bold[0] and not all(bold):
        return True
    return not any(_is_figure(c) for c in first) and all(len(c) < 60 for c in first)


def _is_figure(text: str) -> bool:
    return bool(re.fullmatch(r"[^A-Za-z]*\d[\d.,\s%]*[A-Za-z%]{0,3}", text))


# -- reading order --------------------------------------------------------------------------------------------


def reading_order(items: Sequence[Item], width: float) -> list[list[Item]]:
    """Lines and tables in reading order, in runs that belong to one column each.

    What lies across the gutter, and a wide empty band, ends the columns above it.
    """
    ordered = sorted(items, key=lambda a: (round(a.y0, 1), a.x0))
    gutter = _gutter([a for a in ordered if isinstance(a, Line)], width)
    if gutter is None:
        return [_by_rows(ordered)] if ordered else []
    runs: list[list[Item]] = []
    left: list[Item] = []
    right: list[Item] = []
    lowest = ordered[0].y1
    for item in ordered:
        across = item.x0 < gutter - 2 and item.x1 > gutter + 2
        if across or item.y0 - lowest > BAND:
            for side in (left, right):
                runs.extend(reading_order(side, width))
            left, right = [], []
        if across:
            runs.append([item])
        else:
            (left if item.x1 <= gutter + 2 else right).append(item)
        lowest = max(lowest, item.y1)
    for side in (left, right):
        runs.extend(reading_order(side, width))
    return _joined_runs(runs)


def _joined_runs(runs: list[list[Item]]) -> list[list[Item]]:
    """Lines across the whole page that follow each other are one run."""
    out: list[list[Item]] = []
    for run in runs:
        if out and len(run) == 1 and abs(out[-1][0].x0 - run[0].x0) < 40 and run[0].y0 >= out[-1][-1].y0:
            out[-1].extend(run)
        else:
            out.append(list(run))
    return out


def _gutter(lines: Sequence[Line], width: float) -> float | None:
    """The x of an empty strip between two columns of prose, None if there is one column."""
    if len(lines) < 6:
        return None
    best: tuple[int, float] | None = None
    starts = sorted({round(line.x0) for line in lines})
    for start in starts:
        x = start - 3.0
        left = [a for a in lines if a.x1 <= x + 2]
        right = [a for a in lines if a.x0 >= x]
        across = len(lines) - len(left) - len(right)
        if min(len(left), len(right)) < 3 or across > 0.4 * len(lines):
            continue
        if not (_is_prose(left) and _is_prose(right)):
            continue
        if _side_by_side(left, right) < 3:
            continue
        balance = min(len(left), len(right)) - across
        if best is None or balance > best[0]:
            best = (balance, (max(a.x1 for a in left) + x + 3) / 2)
    return best[1] if best else None


def _is_prose(lines: Sequence[Line]) -> bool:
    """Lines that fill a column, not the short cells of a table."""
    column = max(a.x1 for a in lines) - min(a.x0 for a in lines)
    widths = sorted(a.x1 - a.x0 for a in lines)
    words = sum(len(a.text.split()) for a in lines)
    return widths[len(widths) // 2] > 0.55 * column and words >= 2.5 * len(lines)


def _side_by_side(left: Sequence[Line], right: Sequence[Line]) -> int:
    """How many lines of one side have a neighbour at the same height, or lie beside the other's extent."""
    top, bottom = min(a.y0 for a in right), max(a.y1 for a in right)
    return sum(1 for a in left if top - 2 <= (a.y0 + a.y1) / 2 <= bottom + 2)


def _by_rows(items: Sequence[Item]) -> list[Item]:
    """Top to bottom; pieces on one height from left to right."""
    rows: list[list[Item]] = []
    for item in sorted(items, key=lambda a: ((a.y0 + a.y1) / 2 if isinstance(a, Line) else a.y0, a.x0)):
        first = rows[-1][0] if rows else None
        if isinstance(item, Line) and isinstance(first, Line) and _same_height(first, item):
            rows[-1].append(item)
        else:
            rows.append([item])
    return [item for row in rows for item in sorted(row, key=lambda a: a.x0)]


def _same_height(first: Line, line: Line) -> bool:
    middle = (line.y0 + line.y1) / 2
    reach = min(max(first.y1 - first.y0, 4.0), max(line.y1 - line.y0, 4.0))
    return abs((first.y0 + first.y1) / 2 - middle) < 0.45 * reach or (
        abs(first.y1 - line.y1) < 1.5 and abs(first.size - line.size) < 1
    )


def rows_of(lines: Sequence[Line]) -> list[list[Line]]:
    """Neighbouring lines grouped by height."""
    rows: list[list[Line]] = []
    for line in lines:
        if rows and rows[-1][0].page == line.page and _same_height(rows[-1][0], line):
            rows[-1].append(line)
        else:
            rows.append([line])
    return rows


def merged(row: Sequence[Line]) -> Line:
    """A row's pieces as one line."""
    if len(row) == 1:
        return row[0]
    words = [w for line in row for w in line.words]
    return make_line(words, row[0].page)
