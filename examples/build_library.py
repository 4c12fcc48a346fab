"""Builds the PDF and Word files of examples/library from the plain texts in examples/source.

    python examples/build_library.py [OUTPUT_FOLDER]

The same texts give the same bytes: dates come from the texts, and archives carry a fixed time.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).resolve().parent
SOURCE, LIBRARY = HERE / "source", HERE / "library"
DOCUMENTS = {
    "tidal-range-review.pdf": 2,
    "offshore-wind-history.pdf": 1,
    "costs-and-support.docx": 1,
    "annapolis-royal.docx": 1,
}
"""File name to the number of columns."""


@dataclass(frozen=True)
class Piece:
    kind: Literal["heading", "paragraph", "bullet", "table"]
    text: str = ""
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Text:
    title: str
    author: str
    date: datetime
    pieces: tuple[Piece, ...]


def read(path: Path) -> Text:
    """Read a source: `# title`, `@ key: value`, `## heading`, `- item`, `| cell |`, else one paragraph a line."""
    lines = [line.rstrip() for line in path.read_text(encoding="utf-8").splitlines()]
    meta = dict(line[2:].split(": ", 1) for line in lines if line.startswith("@ "))
    return Text(
        title=lines[0].removeprefix("# "),
        author=meta["author"],
        date=datetime.fromisoformat(meta["date"] + "T12:00:00+00:00"),
        pieces=tuple(_pieces(line for line in lines[1:] if line and not line.startswith("@"))),
    )


def _pieces(lines: Iterator[str]) -> Iterator[Piece]:
    rows: list[tuple[str, ...]] = []
    for line in lines:
        if line.startswith("|"):
            rows.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
            continue
        if rows:
            yield Piece("table", rows=tuple(rows))
            rows = []
        if heading := re.match(r"(#{2,})\s+(.+)", line):
            yield Piece("heading", heading[2], level=len(heading[1]) - 1)
        elif line.startswith("- "):
            yield Piece("bullet", line[2:])
        else:
            yield Piece("paragraph", line)
    if rows:
        yield Piece("table", rows=tuple(rows))


def pdf(text: Text, columns: int) -> bytes:
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.units import mm
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate

    out = io.BytesIO()
    document = BaseDocTemplate(
        out,
        pagesize=A4,
        title=text.title,
        author=text.author,
        subject=f"{text.date:%Y-%m-%d}",
        invariant=1,
        lang="en",
    )
    margin, gap = 20 * mm, 8 * mm
    width = (A4[0] - 2 * margin - (columns - 1) * gap) / columns
    frames = [Frame(margin + n * (width + gap), margin, width, A4[1] - 2 * margin, 0, 0, 0, 0) for n in range(columns)]

    def footer(canvas: Any, _: Any) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(margin, 12 * mm, text.title)
        canvas.drawRightString(A4[0] - margin, 12 * mm, f"{canvas.getPageNumber()}")

    document.addPageTemplates(PageTemplate(frames=frames, onPage=footer))
    document.build([_flowable(piece) for piece in _titled(text)])
    return out.getvalue().replace(b"D:20000101000000", f"D:{text.date:%Y%m%d%H%M%S}".encode())  # as long as before


def _titled(text: Text) -> list[Piece]:
    byline = Piece("paragraph", f"{text.author}. {text.date.day} {text.date:%B %Y}.")
    return [Piece("heading", text.title, level=0), byline, *text.pieces]


def _flowable(piece: Piece) -> Any:
    from reportlab.lib import colors
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Paragraph, Table

    body = ParagraphStyle("body", fontName="Times-Roman", fontSize=11, leading=14.5, spaceAfter=7)
    sizes = {0: 17, 1: 12.5, 2: 10.5}
    match piece.kind:
        case "heading":
            size = sizes[piece.level]
            style = ParagraphStyle(
                "h",
                fontName="Helvetica-Bold",
                fontSize=size,
                leading=size * 1.25,
                spaceBefore=8,
                spaceAfter=5,
                keepWithNext=1,
            )
            return Paragraph(piece.text, style)
        case "table":
            table = Table(piece.rows)
            table.setStyle(
                [
                    ("FONT", (0, 0), (-1, -1), "Times-Roman", 9),
                    ("FONT", (0, 0), (-1, 0), "Times-Bold", 9),
                    ("GRID", (0, 0), (-1, -1), 0.5, colors.black),
                    ("LEFTPADDING", (0, 0), (-1, -1), 3),
                    ("RIGHTPADDING", (0, 0), (-1, -1), 2),
                ]
            )
            table.spaceAfter = 8
            return table
        case "bullet":
            return Paragraph(piece.text, ParagraphStyle("b", body, leftIndent=10, bulletIndent=0), bulletText="•")
        case "paragraph":
            return Paragraph(piece.text, body)


def docx(text: Text) -> bytes:
    import docx

    document = docx.Document()
    properties = document.core_properties
    properties.title, properties.author = text.title, text.author
    properties.created = properties.modified = text.date.replace(tzinfo=None)
    for piece in _titled(text):
        match piece.kind:
            case "heading":
                document.add_heading(piece.text, level=piece.level)
            case "bullet":
                document.add_paragraph(piece.text, style="List Bullet")
            case "table":
                table = document.add_table(rows=0, cols=len(piece.rows[0]), style="Table Grid")
                for row in piece.rows:
                    for cell, value in zip(table.add_row().cells, row, strict=True):
                        cell.text = value
            case "paragraph":
                document.add_paragraph(piece.text)
    out = io.BytesIO()
    document.save(out)
    return _fixed_time(out.getvalue())


def _fixed_time(archive: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            entry = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, old.read(name))
    return out.getvalue()


def build(folder: Path) -> list[Path]:
    """Write every document of `DOCUMENTS` into `folder`."""
    written = []
    for name, columns in DOCUMENTS.items():
        path = folder / name
        text = read(SOURCE / f"{path.stem}.txt")
        path.write_bytes(pdf(text, columns) if path.suffix == ".pdf" else docx(text))
        written.append(path)
    return written


if __name__ == "__main__":
    for written in build(Path(sys.argv[1]) if len(sys.argv) > 1 else LIBRARY):
        print(f"{written} {written.stat().st_size:,} bytes")
