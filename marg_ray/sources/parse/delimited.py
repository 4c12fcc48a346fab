"""CSV and its kin: one row, one part that names its columns."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter

from marg_ray.sources.parse.blocks import Block, Parsed, table_rows
from marg_ray.text import clean_text

MAX_ROWS = 20_000
_NUMBER = re.compile(r"^[\s\-+(]*[$€£¥]?\s*\d[\d\s.,'’]*\s*(?:%|[A-Za-z€£$°]{0,4})\)?\s*$|^\d{4}-\d\d-\d\d")


def read_delimited(raw: str, *, tabs: bool = False) -> Parsed:
    """Blocks of a table file. At most `MAX_ROWS` rows are read; a warning says how many were left out."""
    text = clean_text(raw)
    delimiter = "\t" if tabs else _delimiter(text)
    csv.field_size_limit(10_000_000)
    rows: list[list[str]] = []
    left_out = 0
    try:
        for row in csv.reader(io.StringIO(text), delimiter=delimiter):
            if not any(cell.strip() for cell in row):
                continue
            if len(rows) <= MAX_ROWS:
                rows.append(row)
            else:
                left_out += 1
    except csv.Error:
        rows = [line.split(delimiter) for line in text.split("\n")[: MAX_ROWS + 1] if line.strip()]
    preamble, rows = _preamble(rows)
    blocks = [Block("paragraph", " ".join(c for c in row if c.strip())) for row in preamble]
    blocks += table_rows(rows, header=_has_header(rows))
    warnings = (f"{left_out:,} rows beyond the first {MAX_ROWS:,} were left out",) if left_out else ()
    return Parsed(blocks, warnings=warnings)


def _delimiter(text: str) -> str:
    """The one that cuts most lines of the head into the same number of cells, more than one."""
    lines = [line for line in text[:50_000].split("\n")[:100] if line.strip()]
    best, best_score = ",", 0.0
    for candidate in (",", ";", "\t", "|"):
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=candidate)]
        except csv.Error:
            continue
        width, count = max(Counter(widths).items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        score = count / max(len(widths), 1) + min(width, 20) / 1000 if width > 1 else 0.0
        if score > best_score:
            best, best_score = candidate, score
    return best


def _preamble(rows: list[list[str]]) -> tuple[list[list[str]], list[list[str]]]:
    """Lines of remarks above the table, told by their single cell."""
    width = max(Counter(len(r) for r in rows[:200]).items(), key=lambda i: (i[1], i[0]), default=(0, 0))[0]
    if width < 2:
        return [], rows
    start = next((i for i, r in enumerate(rows[:10]) if sum(1 for c in r if c.strip()) > 1), 0)
    return rows[:start], rows[start:]


def _has_header(rows: list[list[str]]) -> bool:
    """The first row names columns: distinct words, no figures, where the rows below have other content."""
    if len(rows) < 2 or len(rows[0]) < 2:
        return False
    first = [c.strip() for c in rows[0]]
    named = [c for c in first if c]
    if len(named) * 2 < len(first) or len(set(named)) < len(named):
        return False
    if any(_NUMBER.match(c) and not re.fullmatch(r"(?:19|20)\d\d", c) for c in named):
        return False
    return all(len(c) <= 120 for c in named)
