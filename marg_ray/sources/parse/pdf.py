"""PDF files to blocks: reading order, headings, paragraphs put together over lines, columns and pages."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Sequence
from typing import Any

from marg_ray.errors import Unreadable
from marg_ray.sources.parse.blocks import Parsed
from marg_ray.sources.parse.pdf_layout import Grid, Item, Line, reading_order, ruled_tables, segments, without_furniture
from marg_ray.sources.parse.pdf_page import Page, read_page
from marg_ray.sources.parse.pdf_text import Body, to_blocks
from marg_ray.text import one_line

MAX_PAGES = 3000
_PDFIUM = threading.Lock()  # pdfium keeps global state: one call at a time in a process
_PASSWORD, _SECURITY = 4, 5
_DATE = re.compile(r"D:(\d{4})(\d\d)(\d\d)")


def read_pdf(body: bytes, name: str) -> Parsed:
    """Blocks of a PDF file, each with its page.

    Raises:
        Unreadable: encrypted, damaged, or without text (a scan).
    """
    with _PDFIUM:
        pages, toc, info = _load(body, name)
    return _parsed(pages, toc, info, name)


def _load(body: bytes, name: str) -> tuple[list[Page], dict[str, int], dict[str, str]]:
    import pypdfium2 as pdfium

    try:
        pdf = pdfium.PdfDocument(body)
    except pdfium.PdfiumError as error:
        code = getattr(error, "err_code", None)
        if code in (_PASSWORD, _SECURITY) or "assword" in str(error):
            raise Unreadable(name, "encrypted: it needs a password") from None
        raise Unreadable(name, "a damaged or truncated PDF file") from None
    try:
        pages = []
        for index in range(min(len(pdf), MAX_PAGES)):
            try:
                pages.append(read_page(pdf, index))
            except pdfium.PdfiumError:
                continue  # one damaged page does not spoil the others
        if not pages:
            raise Unreadable(name, "a damaged or truncated PDF file")
        info = {k: str(v) for k, v in pdf.get_metadata_dict(skip_empty=True).items()}
        info["pages"] = str(len(pdf))
        return pages, _bookmarks(pdf), info
    finally:
        pdf.close()


def _bookmarks(pdf: Any) -> dict[str, int]:
    """Titles of the outline, as they are compared, to their level from 1."""
    titles: dict[str, int] = {}
    for n, item in enumerate(pdf.get_toc(max_depth=8)):
        if n > 5000:
            break
        key = comparable(item.get_title() or "")
        if len(key) > 2:
            titles.setdefault(key, item.level + 1)
    return titles


def comparable(title: str) -> str:
    """Letters and digits only, without a leading number."""
    text = unicodedata.normalize("NFKC", title).lower()
    text = re.sub(r"^\s*(?:chapter|appendix|section)?\s*[\dA-Za-z]?[\d.]*\.?\s+(?=\S)", "", text) or text
    return "".join(c for c in text if c.isalnum())


def _parsed(pages: Sequence[Page], toc: dict[str, int], info: dict[str, str], name: str) -> Parsed:
    letters = sum(len(w.text) for page in pages for line in page.lines for w in line)
    if letters == 0:
        if any(page.has_images for page in pages):
            raise Unreadable(name, "no text: its pages are pictures (a scan)")
        raise Unreadable(name, "no text in its pages")
    warnings = []
    if letters < 20 * len(pages) and sum(p.has_images for p in pages) * 2 > len(pages):
        warnings.append("most pages are pictures; only their few words of text were read")
    if int(info["pages"]) > len(pages):
        warnings.append(f"only {len(pages):,} of {info['pages']} pages could be read")
    lines, grids = _lines_and_grids(pages)
    lines = without_furniture(pages, lines)
    ordered: list[list[Item]] = []
    for page, on_page, tables in zip(pages, lines, grids, strict=True):
        ordered.extend(reading_order([*on_page, *tables], page.width))
    body = Body.of([line for on_page in lines for line in on_page], toc, comparable)
    blocks = to_blocks(ordered, body)
    if not blocks:
        raise Unreadable(name, "no text in its pages")
    return Parsed(
        blocks,
        title=_title(info, blocks, body),
        published=_date(info),
        warnings=tuple(warnings),
    )


def _lines_and_grids(pages: Sequence[Page]) -> tuple[list[list[Line]], list[list[Grid]]]:
    lines, grids = [], []
    for page in pages:
        tables, used = ruled_tables(page)
        if used:
            rest = tuple(tuple(w for w in line if id(w) not in used) for line in page.lines)
            page = Page(page.number, page.width, page.height, tuple(r for r in rest if r), (), page.has_images)
        lines.append(segments(page))
        grids.append(tables)
    return lines, grids


def _title(info: dict[str, str], blocks: Sequence[Any], body: Body) -> str:
    """The first page's largest heading, else what the file's own properties say."""
    said = one_line(info.get("Title", ""))
    heading = next((b.text for b in blocks[:12] if b.kind == "heading" and b.level == 1), "")
    if re.search(r"(?i)untitled|^microsoft word|\.(?:docx?|tex|indd|pdf|dvi)$|^(?:none|title)$", said):
        said = ""
    if said and (not heading or comparable(said) in comparable(heading) or len(said) > 8):
        return said
    return one_line(heading) or said


def _date(info: dict[str, str]) -> str:
    m = _DATE.match(info.get("CreationDate", ""))
    if not m or not ("1990" <= m[1] <= "2100" and "01" <= m[2] <= "12" and "01" <= m[3] <= "31"):
        return ""
    return "-".join(m.groups())
