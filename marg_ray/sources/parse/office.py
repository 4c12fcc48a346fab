"""Spreadsheets, slides and books: the other ZIP documents, read from their XML."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

from marg_ray.errors import Unreadable
from marg_ray.sources.parse.archive import Archive
from marg_ray.sources.parse.blocks import Block, Parsed, table_rows

MAX_ROWS = 20_000  # of all sheets together
_CELL = re.compile(r"([A-Z]{1,3})\d+$")


def _tag(element: Any) -> str:
    return element.tag.rsplit("}", 1)[-1] if isinstance(element.tag, str) else ""


def _all(root: Any, *names: str) -> Iterator[Any]:
    return (e for e in root.iter() if _tag(e) in names)


def _number(name: str) -> int:
    found = re.search(r"(\d+)\.xml$", name)
    return int(found[1]) if found else 0


# -- spreadsheets ----------------------------------------------------------------------------------------------


def read_xlsx(body: bytes, name: str) -> Parsed:
    """One heading per sheet, one part per row; dates in ISO form.

    Raises:
        Unreadable: not an Excel file, truncated, encrypted or too large unpacked.
    """
    archive = Archive(body, name, "an Excel file")
    book = _Book(_shared_strings(archive), _date_styles(archive))
    sheets = [e.get("name") or "" for e in _all(archive.tree("xl/workbook.xml"), "sheet")]
    members = sorted((m for m in archive.names() if re.match(r"xl/worksheets/sheet\d+\.xml$", m)), key=_number)
    blocks: list[Block] = []
    left_out = read = 0
    for i, member in enumerate(members):
        rows = [row for row in _sheet_rows(archive.tree(member), book) if any(c.strip() for c in row)]
        room = max(0, MAX_ROWS - read)
        left_out += max(0, len(rows) - room)
        rows, read = rows[:room], read + min(len(rows), room)
        if rows and len(members) > 1 and i < len(sheets):
            blocks.append(Block("heading", sheets[i], level=1))
        first = [c for c in rows[0] if c.strip()] if rows else []
        named = (
            len(first) > 1 and len(set(first)) == len(first) and not any(re.fullmatch(r"[\d.,-]+", c) for c in first)
        )
        blocks.extend(table_rows(rows, header=named))
    warnings = (f"{left_out:,} rows beyond the first {MAX_ROWS:,} were left out",) if left_out else ()
    return Parsed(blocks, warnings=warnings)


@dataclass(frozen=True, slots=True)
class _Book:
    """What cells point to."""

    strings: list[str]
    date_styles: frozenset[int]


def _date_styles(archive: Archive) -> frozenset[int]:
    """Indices of the cell styles that show a number as a date."""
    if "xl/styles.xml" not in archive:
        return frozenset()
    root = archive.tree("xl/styles.xml")
    formats = {e.get("numFmtId"): e.get("formatCode") or "" for e in _all(root, "numFmt")}
    dates = {str(n) for n in (*range(14, 18), 22, *range(27, 37), *range(50, 59))}
    dates |= {
        n or "" for n, code in formats.items() if re.search(r"[yd]", re.sub(r'"[^"]*"|\[[^\]]*\]', "", code.lower()))
    }
    cells: Any = next(_all(root, "cellXfs"), ())
    return frozenset(i for i, xf in enumerate(cells) if xf.get("numFmtId") in dates)


def _date(serial: float) -> str:
    """A day number, counted from the end of 1899, as Excel counts it."""
    moment = datetime(1899, 12, 30, tzinfo=UTC) + timedelta(days=serial)
    return moment.strftime("%Y-%m-%d" if serial == int(serial) else "%Y-%m-%d %H:%M")


def _shared_strings(archive: Archive) -> list[str]:
    if "xl/sharedStrings.xml" not in archive:
        return []
    items = _all(archive.tree("xl/sharedStrings.xml"), "si")
    return ["".join(t.text or "" for t in _all(si, "t")) for si in items]


def _sheet_rows(root: Any, book: _Book) -> Iterator[list[str]]:
    for row in _all(root, "row"):
        cells: list[str] = []
        for cell in _all(row, "c"):
            place = _CELL.match(cell.get("r") or "")
            column = _column(place[1]) if place else len(cells)
            cells += [""] * min(column - len(cells), 500)
            cells.append(_cell_text(cell, book))
        yield cells


def _column(letters: str) -> int:
    n = 0
    for c in letters:
        n = n * 26 + ord(c) - 64
    return n - 1


def _cell_text(cell: Any, book: _Book) -> str:
    kind = cell.get("t")
    if kind == "inlineStr":
        return "".join(t.text or "" for t in _all(cell, "t"))
    value = next((e.text or "" for e in cell if _tag(e) == "v"), "")
    if kind == "s":
        return book.strings[int(value)] if value.isdigit() and int(value) < len(book.strings) else ""
    if kind == "b":
        return {"1": "TRUE", "0": "FALSE"}.get(value, value)
    style = cell.get("s") or ""
    if style.isdigit() and int(style) in book.date_styles and re.fullmatch(r"\d{1,6}(?:\.\d+)?", value):
        return _date(float(value))
    # What arithmetic leaves of 0.1 + 0.2 is not what the sheet shows.
    return f"{float(value):.12g}" if re.fullmatch(r"-?\d+\.\d{12,}(?:E-?\d+)?", value) else value


# -- slides ----------------------------------------------------------------------------------------------------


def read_pptx(body: bytes, name: str) -> Parsed:
    """One heading per slide (its title), its texts, tables and notes; a part's page is its slide.

    Raises:
        Unreadable: not a PowerPoint file, truncated, encrypted or too large unpacked.
    """
    archive = Archive(body, name, "a PowerPoint file")
    blocks: list[Block] = []
    members = sorted((m for m in archive.names() if re.match(r"ppt/slides/slide\d+\.xml$", m)), key=_number)
    for page, member in enumerate(members, 1):
        blocks.extend(_slide(archive.tree(member), page))
        notes = f"ppt/notesSlides/notesSlide{_number(member)}.xml"
        if notes in archive:
            shapes = [s for s in _all(archive.tree(notes), "sp") if _placeholder(s) == "body"]
            blocks.extend(Block("paragraph", text, page=page) for s in shapes for text, _ in _paragraphs(s))
    title = next((b.text for b in blocks if b.kind == "heading"), "")
    return Parsed(blocks, title=title)


def _slide(root: Any, page: int) -> Iterator[Block]:
    shapes = list(_all(root, "sp", "graphicFrame"))
    shapes.sort(key=lambda s: _placeholder(s) not in ("title", "ctrTitle"))
    for shape in shapes:
        if _tag(shape) == "graphicFrame":
            rows = [[" ".join(t for t, _ in _paragraphs(tc)) for tc in _all(tr, "tc")] for tr in _all(shape, "tr")]
            yield from table_rows(rows, header=True, page=page)
            continue
        place = _placeholder(shape)
        if place in ("sldNum", "ftr", "dt"):
            continue
        for text, level in _paragraphs(shape):
            if place in ("title", "ctrTitle"):
                yield Block("heading", text, level=1, page=page)
            else:
                yield Block("list_item" if place in ("body", "obj") else "paragraph", text, level=level, page=page)


def _placeholder(shape: Any) -> str:
    """What a shape is for, "" for a free one; a placeholder without a type is the slide's body."""
    place = next(_all(shape, "ph"), None)
    return "" if place is None else place.get("type") or "body"


def _paragraphs(shape: Any) -> Iterator[tuple[str, int]]:
    for p in _all(shape, "p"):
        text = "".join("\n" if _tag(e) == "br" else e.text or "" for e in _all(p, "t", "br"))
        level = next((e.get("lvl") or "0" for e in p if _tag(e) == "pPr"), "0")
        if text.strip():
            yield text, int(level) if level.isdigit() else 0


# -- books -----------------------------------------------------------------------------------------------------


def read_epub(body: bytes, name: str) -> Parsed:
    """A book's chapters in reading order, as web pages without navigation.

    Raises:
        Unreadable: not a book, truncated, protected or too large unpacked.
    """
    from marg_ray.sources.parse.charset import decode
    from marg_ray.sources.parse.html import chapter_blocks

    archive = Archive(body, name, "an EPUB book")
    if "META-INF/rights.xml" in archive or ("META-INF/encryption.xml" in archive and _locks_text(archive)):
        raise Unreadable(name, "encrypted: the book is protected")
    package_name = (
        next((e.get("full-path") for e in _all(archive.tree("META-INF/container.xml"), "rootfile")), "") or ""
    )
    package = archive.tree(package_name)
    folder = posixpath.dirname(package_name)
    items = {e.get("id"): e for e in _all(package, "item")}
    blocks: list[Block] = []
    for reference in _all(package, "itemref"):
        item = items.get(reference.get("idref"))
        if item is None or "nav" in (item.get("properties") or "") or reference.get("linear") == "no":
            continue
        member = posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or "")))
        if member in archive:
            blocks.extend(chapter_blocks(decode(archive.read(member), html=True).text, name))
    said = {_tag(e): (e.text or "").strip() for e in reversed(list(_all(package, "title", "language", "date")))}
    date = said.get("date", "")[:10]
    return Parsed(
        blocks,
        title=said.get("title", ""),
        language=said.get("language", "")[:2].lower(),
        published=date if re.fullmatch(r"\d{4}-\d\d-\d\d", date) else "",
    )


def _locks_text(archive: Archive) -> bool:
    """Whether more than fonts is encrypted."""
    names = [e.get("URI") or "" for e in _all(archive.tree("META-INF/encryption.xml"), "CipherReference")]
    return any(n.lower().endswith((".xhtml", ".html", ".htm", ".xml")) for n in names)
