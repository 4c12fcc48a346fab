"""What every format is read into, and how blocks become a `Document` with exact offsets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from marg_ray.errors import Unreadable
from marg_ray.grounding.snapshots import Document, Part
from marg_ray.records import Injection
from marg_ray.sources.parse.language import language_of
from marg_ray.text import clean_text, one_line

Kind = Literal["heading", "paragraph", "list_item", "table_row", "quote", "code", "caption"]

MAX_CHARS = 20_000_000  # of a document's text; beyond it nobody can be shown where a passage stands
TITLE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Block:
    """One part before it has its place. `level` and `term` as in `Part`."""

    kind: Kind
    text: str
    level: int = 0
    page: int | None = None
    term: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a format's reader returns."""

    blocks: list[Block]
    title: str = ""
    language: str = ""
    published: str = ""
    warnings: tuple[str, ...] = ()
    injections: tuple[Injection, ...] = ()  # orders to a model in what a document carries and does not show


def assemble(parsed: Parsed, *, name: str, media_type: str) -> Document:
    """Clean the blocks and lay them out: a blank line between parts, a newline between the rows of a table.

    Raises:
        Unreadable: no text is left.
    """
    pieces: list[str] = []
    parts: list[Part] = []
    offset = 0
    for block in parsed.blocks:
        text = _tidy(block)
        if not text:
            continue
        if parts:
            glue = "\n" if block.kind == "table_row" and parts[-1].kind == "table_row" else "\n\n"
            pieces.append(glue)
            offset += len(glue)
        end = offset + len(text)
        if end > MAX_CHARS:
            raise Unreadable(name, "too large: more than 20 million letters of text")
        parts.append(
            Part(
                kind=block.kind,
                start=offset,
                end=end,
                level=block.level,
                page=block.page,
                term=one_line(block.term),
            )
        )
        pieces.append(text)
        offset = end
    if not parts:
        raise Unreadable(name, "empty: it has no text")
    text = "".join(pieces)
    return Document(
        title=one_line(parsed.title)[:TITLE_CHARS] or _first_heading(text, parts) or _stem(name),
        text=text,
        parts=tuple(parts),
        media_type=media_type,
        language=parsed.language or language_of(text),
        published=parsed.published,
        warnings=tuple(dict.fromkeys(parsed.warnings)),
        injections=parsed.injections,
    )


def table_rows(rows: Iterable[list[str]], *, header: bool, page: int | None = None) -> list[Block]:
    """A table's rows as blocks that each stand on their own.

    With `header`, the first row names the columns and every other reads "Name: value; Name: value"; empty cells
    are left out. A table of one column, or of a header alone, is read cell by cell.
    """
    grid = [[one_line(cell) for cell in row] for row in rows]
    grid = [row for row in grid if any(row)]
    if not grid:
        return []
    if not header or len(grid) == 1 or len(grid[0]) < 2:
        return [Block("table_row", " | ".join(c for c in row if c), page=page) for row in grid]
    names = grid[0]
    blocks = []
    for row in grid[1:]:
        if row == names:  # a header repeated on the next page
            continue
        cells = [f"{n}: {v}" if n else v for n, v in _pairs(names, row) if v]
        blocks.append(Block("table_row", "; ".join(cells), page=page))
    return blocks


def _pairs(names: list[str], row: list[str]) -> Iterable[tuple[str, str]]:
    for i, value in enumerate(row):
        yield (names[i].rstrip(": ") if i < len(names) else "", value)


def _tidy(block: Block) -> str:
    if block.kind != "code":
        return one_line(block.text)
    lines = [line.rstrip() for line in clean_text(block.text).split("\n")]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines)


def _first_heading(text: str, parts: list[Part]) -> str:
    headings = [p for p in parts[:40] if p.kind == "heading"]
    if not headings:
        return ""
    top = min(headings, key=lambda p: (p.level, p.start))
    return text[top.start : top.end][:TITLE_CHARS]


def _stem(name: str) -> str:
    last = name.split("?")[0].split("#")[0].rstrip("/").replace("\\", "/").rsplit("/", 1)[-1]
    return one_line(last)[:TITLE_CHARS] or one_line(name)[:TITLE_CHARS] or "untitled"
