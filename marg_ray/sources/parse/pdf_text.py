"""Lines in reading order to headings, paragraphs, list items, code and table rows."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from marg_ray.sources.parse.blocks import Block, table_rows
from marg_ray.sources.parse.pdf_layout import Grid, Line, merged, rows_of

_CONTENTS = re.compile(r"(?i)^(?:table of )?contents$|^inhalt(?:sverzeichnis)?$|^sommaire$|^índice$|^目录$|^目次$")
# Set above a chapter's own heading, one line each: "CHAPTER", "ONE".
_ORNAMENT = re.compile(
    r"(?i)^(?:chapter|appendix|part|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen"
    r"|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|[a-z]|\d{1,2})$"
)
_DOT_LEADER = re.compile(r"(?:\. ?){4,}\s*[\divxlc]*\s*$|^\s*(?:\. ?){6,}")
_BULLET = re.compile(r"^(?:[•‣◦▪●○■□\u2013\u2014*·\uf0b7\uf0a7-]|\(?\d{1,2}[.)]|\(?[a-z][.)])$")
_NUMBERED = re.compile(r"^(?:(?:Chapter|Appendix|Section|Part)\s+)?(?:\d{1,2}|[A-Z])(?:\.\d{1,3}){0,4}\.?\s+\S")
_ENDS = re.compile(r"[.!?:;。！？…][\"'”’)\]]*$")
_PRESENTATION = re.compile("[\ufb00-\ufdff\ufe70-\ufeff]+")
_PRIVATE = re.compile("[\ue000-\uf8ff]+")
_AROUND = ".,;:!?()[]\"'“”‘’"
MAX_HEADING = 160


@dataclass(frozen=True, slots=True)
class Body:
    """What the running text of a document looks like, so that headings stand out from it."""

    size: float
    bold: bool  # then bold letters mean nothing
    leading: float  # from one line's top to the next
    levels: dict[float, int]  # size of a heading to its level
    toc: dict[str, int]
    key: Callable[[str], str]
    compounds: frozenset[str]  # words that are written with a hyphen inside a line

    @classmethod
    def of(cls, lines: Sequence[Line], toc: dict[str, int], key: Callable[[str], str]) -> Body:
        sizes: Counter[float] = Counter()
        for line in lines:
            sizes[round(line.size * 2) / 2] += len(line.text)
        size = sizes.most_common(1)[0][0] if sizes else 10.0
        larger = {
            s for s in {round(line.size * 2) / 2 for line in lines if len(line.text) < MAX_HEADING} if s >= size * 1.12
        }
        levels = {s: min(i + 1, 6) for i, s in enumerate(sorted(larger, reverse=True))}
        gaps = Counter(
            round(b.y0 - a.y0)
            for a, b in pairwise(lines)
            if a.page == b.page and 0 < b.y0 - a.y0 < 4 * size and abs(a.size - size) < 1 and abs(b.size - size) < 1
        )
        leading = gaps.most_common(1)[0][0] if gaps else 1.3 * size
        letters = sum(len(line.text) for line in lines)
        bold = sum(len(line.text) for line in lines if line.bold) * 2 > letters
        compounds = {w.strip(_AROUND).lower() for line in lines for w in line.text.split() if "-" in w[1:-1]}
        return cls(size, bold, max(leading, 0.9 * size), levels, toc, key, frozenset(compounds))

    def heading_level(self, text: str, size: float, *, bold: bool) -> int:
        """0 for what is no heading."""
        if len(text) > MAX_HEADING or not any(c.isalpha() for c in text):
            return 0
        if level := self.toc.get(self.key(text), 0):
            return min(level, 6)
        rounded = round(size * 2) / 2
        if rounded in self.levels and not (text.endswith((".", ",", ";")) and len(text) > 60):
            return self.levels[rounded]
        if bold and not self.bold and not _ENDS.search(text) and len(text) < 100 and size >= self.size - 0.5:
            deepest = max(self.levels.values(), default=0)
            return min(deepest + 1, 6)
        return 0


def to_blocks(runs: Sequence[Sequence[Line | Grid]], body: Body) -> list[Block]:
    blocks: list[Block] = []
    open_end: bool = False  # whether the last block may go on in the next column
    for run in runs:
        stretch: list[Line] = []
        for item in run:
            if isinstance(item, Grid):
                open_end = _emit(blocks, stretch, body, open_end)
                stretch = []
                blocks.extend(table_rows([list(r) for r in item.rows], header=item.header, page=item.page))
                open_end = False
            else:
                stretch.append(item)
        open_end = _emit(blocks, stretch, body, open_end)
    blocks = _without_contents(blocks)
    return [Block(b.kind, _letters(b.text), b.level, b.page, b.term) for b in blocks if b.text.strip()]


def _without_contents(blocks: Sequence[Block]) -> list[Block]:
    """Leave out a table of contents: its heading and the entries, which end in page numbers."""
    out: list[Block] = []
    inside = False
    for block in blocks:
        if block.kind == "heading" and _ORNAMENT.match(block.text):
            continue
        if _CONTENTS.match(block.text.strip()):
            inside = True
        elif not inside:
            out.append(block)
        elif len(block.text) > 300 or not re.search(r"(?:\d|\b[ivxlc]+)\s*$", block.text):
            inside = False
            out.append(block)
    return out


def _emit(blocks: list[Block], lines: Sequence[Line], body: Body, open_end: bool) -> bool:
    """Add a column's lines; the first may go on with the last block. Returns whether the last one is open."""
    if not lines:
        return open_end
    group: list[Line] = []
    groups: list[list[Line]] = []
    left = min(line.x0 for line in lines)
    right = max(line.x1 for line in lines)
    rows = _table_free(rows_of(lines))
    for line in rows:
        if isinstance(line, list):
            if group:
                groups.append(group)
                group = []
            groups.append(line)
            continue
        if group and _breaks(group[-1], line, body, left, right):
            groups.append(group)
            group = []
        group.append(line)
    if group:
        groups.append(group)
    term, margin = "", 0.0
    for n, own in enumerate(groups):
        if _is_term(own, groups[n + 1] if n + 1 < len(groups) else [], body):
            term, margin = own[0].text.rstrip(":"), own[0].x0
            blocks.append(Block("list_item", own[0].text, page=own[0].page))
            continue
        if term and own[0].x0 < margin + 8:
            term = ""
        for block in _blocks_of(own, body):
            last = blocks[-1] if blocks else None
            if n == 0 and open_end and last is not None and _goes_on(last, block):
                text = _glue(last.text, block.text, body.compounds)
                blocks[-1] = replace(last, text=text)
            else:
                blocks.append(replace(block, term=term))
    return bool(blocks) and blocks[-1].kind in ("paragraph", "list_item")


def _table_free(rows: Sequence[list[Line]]) -> list[Line | list[Line]]:
    """One line per height; rows of several aligned pieces that follow each other stay together as a table."""
    out: list[Line | list[Line]] = []
    i = 0
    while i < len(rows):
        j = i
        while j < len(rows) and len(rows[j]) >= 2 and _aligned(rows[i], rows[j]):
            j += 1
        if j - i >= 3:
            out.append([piece for row in rows[i:j] for piece in row])
            i = j
            continue
        out.append(merged(rows[i]))
        i += 1
    return out


def _aligned(a: Sequence[Line], b: Sequence[Line]) -> bool:
    """Columns of two rows start or end at the same places."""
    if len(a) != len(b):
        return False
    return all(abs(x.x0 - y.x0) < 6 or abs(x.x1 - y.x1) < 6 for x, y in zip(a, b, strict=True))


def _breaks(a: Line, b: Line, body: Body, left: float, right: float) -> bool:
    """Whether a new paragraph starts with line `b`."""
    if a.page != b.page:
        return True
    if a.mono != b.mono:
        # A name in type-writer letters may fill the last line of a paragraph.
        tail = b.mono and len(b.text.split()) <= 3 and _is_wrapped(a, right) and abs(a.x0 - b.x0) < 2
        return not tail or bool(_ENDS.search(a.text)) or b.y0 - a.y0 > 1.45 * body.leading
    if abs(a.size - b.size) > 0.8 or (
        a.bold != b.bold and min(len(a.text), len(b.text)) > 3 and not _is_wrapped(a, right)
    ):
        return True
    step = b.y0 - a.y0
    if step < -2 or step > 1.45 * max(body.leading, 1.1 * b.size):
        return True
    if a.mono:
        return False
    if _BULLET.match(b.text.split(" ", 1)[0]) and len(b.text.split()) > 1:
        return not (b.text[0].isdigit() and _is_wrapped(a, right) and not _ENDS.search(a.text))
    if body.heading_level(a.text, a.size, bold=a.bold) and not body.heading_level(b.text, b.size, bold=b.bold):
        return True
    indented = b.x0 - left > 0.8 * b.size and abs(a.x0 - left) < 2
    if indented and _ENDS.search(a.text) and not _BULLET.match(a.text.split(" ", 1)[0]):
        return True
    return bool(_ENDS.search(a.text)) and right - a.x1 > 0.3 * (right - left) and b.text[:1].isupper()


def _is_term(own: Sequence[Line], following: Sequence[Line], body: Body) -> bool:
    """A short line in bold or type-writer letters above a deeper paragraph, as a manual sets its terms."""
    if len(own) != 1 or not following or following[0].page != own[0].page:
        return False
    line, after = own[0], following[0]
    if body.key(line.text) in body.toc or _NUMBERED.match(line.text):
        return False
    marked = line.mono or (line.bold and not body.bold)
    if not marked or after.mono or len(line.text) > 60 or re.search(r"[$={};]|[.!?]$", line.text):
        return False
    deeper = 8 < after.x0 - line.x0 < 60 and all(a.x0 > line.x0 + 8 for a in following)
    return deeper and abs(line.size - after.size) < 1.5 and 0 < after.y0 - line.y0 < 2.5 * body.leading


def _is_wrapped(line: Line, right: float) -> bool:
    """Whether the line ends because the column does."""
    return right - line.x1 < 5 * line.size


def _blocks_of(lines: list[Line], body: Body) -> list[Block]:
    lines = [line for line in lines if not _DOT_LEADER.search(line.text)]
    if not lines:
        return []
    page = lines[0].page
    rows = rows_of(lines)
    if any(len(row) > 1 for row in rows):
        return _loose_table(rows, page)
    if all(line.mono for line in lines) and (len(lines) > 1 or len(lines[0].text) > 3):
        return [Block("code", "\n".join(_indented(line, lines) for line in lines), page=page)]
    text, cut = "", False
    for line in lines:
        text, cut = _glue(text, line.text, body.compounds, cut=cut), line.glued
    if cut:  # the word goes on in the next column or on the next page
        text += "-"
    first = text.split(" ", 1)[0]
    level = body.heading_level(text, lines[0].size, bold=all(line.bold for line in lines))
    if level and len(lines) <= 3:
        return [Block("heading", text, level=level, page=page)]
    if re.match(r"(?:Table|Figure|Fig\.|Tabelle|Abbildung|Tableau|表|图|図)\s*\d+", text) and len(text) < 300:
        return [Block("caption", text, page=page)]
    if _BULLET.match(first) and " " in text:
        return [Block("list_item", text.split(" ", 1)[1] if not first[0].isalnum() else text, page=page)]
    return [Block("paragraph", text, page=page)]


def _loose_table(rows: Sequence[Sequence[Line]], page: int) -> list[Block]:
    """Rows that only their alignment shows."""
    cells = [[piece.text for piece in row] for row in rows]
    bold = all(piece.bold for piece in rows[0]) and not all(p.bold for row in rows for p in row)
    words = not any(re.search(r"\d", c) for c in cells[0])
    figures = any(re.search(r"\d", c) for row in cells[1:] for c in row[1:])
    return table_rows(cells, header=bold or (words and figures), page=page)


def _indented(line: Line, lines: Sequence[Line]) -> str:
    """Code keeps its indentation, counted in letters."""
    left = min(a.x0 for a in lines)
    width = max((line.x1 - line.x0) / max(len(line.text), 1), 2.0)
    return " " * min(round((line.x0 - left) / width), 40) + line.text


def _glue(text: str, more: str, compounds: frozenset[str], *, cut: bool = False) -> str:
    """Two lines as one text: a word cut by a hyphen is put together, East Asian text gets no space.

    `cut` says that pdfium took a hyphen away at the end of `text`.
    """
    if not text:
        return more
    if cut or re.search(r"[^\W\d_]{2}[-\u00ad\u2010]$", text):
        stem = text if cut else text[:-1]
        start, rest = stem.rsplit(" ", 1)[-1].strip(_AROUND), more.split(" ", 1)[0].strip(_AROUND)
        if "-" in start or f"{start}-{rest}".lower() in compounds or not rest[:1].islower():
            return f"{stem}-{more}"
        return stem + more
    if text[-1] > "\u2e7f" and more[0] > "\u2e7f" and unicodedata.east_asian_width(more[0]) in "WF":
        return text + more
    return f"{text} {more}"


def _goes_on(last: Block, block: Block) -> bool:
    """Whether a paragraph was cut by the end of a column or page."""
    if last.kind not in ("paragraph", "list_item") or block.kind != "paragraph":
        return False
    if _ENDS.search(last.text):
        return False
    start = block.text.lstrip("(\"'“")[:1]
    return (
        start.islower() or last.text.endswith(("-", ",")) or (len(last.text) > 60 and not _NUMBERED.match(block.text))
    )


def _letters(text: str) -> str:
    """Arabic shaped letters as the letters they stand for; symbols of private fonts left out."""
    text = _PRESENTATION.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text)
    return _PRIVATE.sub(" ", text)
