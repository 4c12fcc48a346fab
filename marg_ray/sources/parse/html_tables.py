"""HTML tables: which relate figures and which only place things on a page; spans and column names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

ADMONITION = re.compile(r"(?i)^\[?(?:note|warning|caution|tip|important|danger|hint)\]?$")


def cell_rows(table: Any) -> list[list[Any]]:
    """A table's own cells, row by row; those of tables inside it are not among them."""
    return list(_rows(table))


def _rows(table: Any) -> Iterator[list[Any]]:
    for section in table:
        if section.tag == "tr":
            yield [c for c in section if c.tag in ("td", "th")]
        elif section.tag in ("thead", "tbody", "tfoot"):
            for tr in section:
                if tr.tag == "tr":
                    yield [c for c in tr if c.tag in ("td", "th")]


def is_layout(table: Any, rows: list[list[Any]]) -> bool:
    """Whether a table places things on the page rather than relating figures."""
    cells = [c for row in rows for c in row]
    if table.get("role") in ("presentation", "none") or not cells:
        return True
    if table.find(".//table") is not None:
        return True
    width = max(len(row) for row in rows)
    if width < 2 or (len(rows) == 1 and not any(c.tag == "th" for c in cells)):
        return True
    if len(cells) <= 4 and any(c.tag == "th" and ADMONITION.match(c.text_content().strip()) for c in cells):
        return True
    texts = [len(c.text_content()) for c in cells]
    if sum(texts) > 500 * len(cells) or table.find(".//h2") is not None:
        return True
    # Line numbers beside code.
    return len(cells) == 2 and table.find(".//pre") is not None


def named_grid(table: Any, rows: list[list[Any]], read: Callable[[Any], str]) -> tuple[list[list[str]], bool]:
    """Cell texts, and whether the first row names the columns; stacked column names are put into one row."""
    grid = _grid(rows, read)
    depth = _header_depth(table, rows)
    if depth > 1:
        grid = [_merged(grid[:depth]), *grid[depth:]]
    return grid, depth > 0


def _grid(rows: list[list[Any]], read: Callable[[Any], str]) -> list[list[str]]:
    """Cell texts with spans filled in: a cell that spans rows is repeated in each."""
    grid: list[list[str]] = []
    hanging: dict[int, tuple[int, str]] = {}
    for row in rows:
        out: list[str] = []
        for cell in row:
            while len(out) in hanging:
                out.append(_hang(hanging, len(out)))
            text = read(cell)
            columns, down = _span(cell, "colspan"), _span(cell, "rowspan")
            for i in range(columns):
                if down > 1:
                    hanging[len(out)] = (down - 1, text if i == 0 else "")
                out.append(text if i == 0 else "")
        while len(out) in hanging:
            out.append(_hang(hanging, len(out)))
        grid.append(out)
    return grid


def _hang(hanging: dict[int, tuple[int, str]], column: int) -> str:
    left, text = hanging[column]
    if left <= 1:
        del hanging[column]
    else:
        hanging[column] = (left - 1, text)
    return text


def _span(cell: Any, name: str) -> int:
    value = (cell.get(name) or "1").strip()
    return max(1, min(int(value), 60)) if value.isascii() and value.isdigit() else 1


def _header_depth(table: Any, rows: list[list[Any]]) -> int:
    """How many of the first rows name the columns."""
    head = table.find("thead")
    if head is not None:
        return min(sum(1 for tr in head if tr.tag == "tr"), len(rows) - 1, 3)
    depth = 0
    for row in rows[:3]:
        if row and all(c.tag == "th" for c in row):
            depth += 1
        else:
            break
    return min(depth, len(rows) - 1)


def _merged(rows: list[list[str]]) -> list[str]:
    """Stacked column names as one: "Output" above "2021" becomes "Output 2021"."""
    width = max(len(r) for r in rows)
    names = []
    for i in range(width):
        seen = [r[i] for r in rows if i < len(r) and r[i]]
        names.append(" ".join(dict.fromkeys(seen)))
    return names
