"""Word files, read from their XML in body order: text boxes, content controls and insertions included.

The tree is walked directly because python-docx's `paragraphs` and `tables` leave out everything that does not lie
directly under the body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marg_ray.grounding.injection import hidden
from marg_ray.sources.parse.archive import Archive
from marg_ray.sources.parse.blocks import Block, Kind, Parsed, table_rows

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT_W = "{http://purl.oclc.org/ooxml/wordprocessingml/main}"
_HEADING = re.compile(r"^heading (\d)$", re.I)
_GONE = {"del", "moveFrom", "instrText", "delText", "rPr", "pPr", "sdtPr", "sdtEndPr", "tblPr", "tblGrid", "sectPr"}
MAX_DEPTH = 40
LAYOUT_CELL_CHARS = 400  # cells that hold more on average are a page layout, not a table


@dataclass(frozen=True, slots=True)
class _Style:
    kind: Kind = "paragraph"
    level: int = 0
    hidden: bool = False  # the entry of a table of contents


def read_docx(body: bytes, name: str) -> Parsed:
    """Blocks of a Word file.

    Raises:
        Unreadable: not a Word file, truncated, encrypted, too large unpacked, or with declared entities.
    """
    archive = Archive(body, name, "a Word file")
    document = archive.tree("word/document.xml")
    styles = _styles(archive.tree("word/styles.xml")) if "word/styles.xml" in archive else {}
    reader = _Reader(styles)
    content = next((e for e in document if _tag(e) == "body"), document)
    unseen = hidden(_drop_hidden(content))
    reader.walk(content, 0)
    for part in ("word/footnotes.xml", "word/endnotes.xml"):
        if part in archive:
            reader.notes(archive.tree(part))
    title, published = _properties(archive)
    if reader.title:
        title = reader.title
    return Parsed(reader.blocks, title=title, published=published, injections=unseen)


class _Reader:
    def __init__(self, styles: dict[str, _Style]) -> None:
        self._styles = styles
        self.blocks: list[Block] = []
        self.title = ""

    def walk(self, element: Any, depth: int) -> None:
        """Blocks of a container's children, in order."""
        if depth > MAX_DEPTH:
            return
        for child in element:
            tag = _tag(child)
            if tag == "p":
                self._paragraph(child, depth)
            elif tag == "tbl":
                self._table(child, depth)
            elif tag == "AlternateContent":
                self.walk(_choice(child), depth + 1)
            elif tag and tag not in _GONE:
                self.walk(child, depth + 1)

    def notes(self, root: Any) -> None:
        for note in root:
            if _attr(note, "type") in ("", "normal"):
                self.walk(note, 1)

    def _paragraph(self, p: Any, depth: int) -> None:
        text, boxes = _text_and_boxes(p)
        style = self._style(p)
        if text.strip() and not style.hidden:
            if style.kind == "heading" and style.level == 0:  # the title style
                self.title = self.title or " ".join(text.split())
                style = _Style("heading", 1)
            previous = self.blocks[-1] if self.blocks else None
            if style.kind == "code" and previous is not None and previous.kind == "code":
                self.blocks[-1] = Block("code", previous.text + "\n" + text)
            else:
                self.blocks.append(Block(style.kind, text, level=style.level))
        for box in boxes:
            self.walk(box, depth + 1)

    def _style(self, p: Any) -> _Style:
        properties = _child(p, "pPr")
        if properties is None:
            return _Style()
        style = self._styles.get(_val(properties, "pStyle"), _Style())
        outline = _val(properties, "outlineLvl")
        if outline.isdigit() and int(outline) < 9:
            return _Style("heading", int(outline) + 1)
        numbering = _child(properties, "numPr")
        if numbering is not None and style.kind != "heading" and _val(numbering, "numId") != "0":
            level = _val(numbering, "ilvl")
            return _Style("list_item", int(level) if level.isdigit() else 0)
        return style

    def _table(self, table: Any, depth: int) -> None:
        rows = list(_rows(table))
        cells = [cell for row in rows for cell in row if cell]
        if not cells:
            return
        if len(cells) == 1 or sum(map(len, cells)) > LAYOUT_CELL_CHARS * len(cells):
            for cell in table.iter(table.tag[: table.tag.index("}") + 1] + "tc"):
                if _nearest(cell, "tbl") is table:
                    self.walk(cell, depth + 1)
            return
        self.blocks.extend(table_rows(rows, header=_has_header(table, rows)))


def _drop_hidden(content: Any) -> list[str]:
    """Take out what Word does not show; returns the texts, neighbours as one."""
    texts: list[str] = []
    last = None
    for run in [r for r in content.iter() if _tag(r) == "r" and _is_hidden(r)]:
        text = "".join(t.text or "" for t in run.iter() if _tag(t) == "t")
        paragraph = run.getparent()
        if texts and paragraph is last:
            texts[-1] += text
        else:
            texts.append(text)
        last = paragraph
        paragraph.remove(run)
    return texts


def _is_hidden(run: Any) -> bool:
    properties = _child(run, "rPr")
    mark = _child(properties, "vanish") if properties is not None else None
    return mark is not None and _attr(mark, "val").lower() not in ("0", "false", "off")


def _styles(root: Any) -> dict[str, _Style]:
    """Style id to what it makes of a paragraph, inheritance followed."""
    raw = {_attr(s, "styleId"): s for s in root if _tag(s) == "style"}

    def resolve(style_id: str, seen: int) -> _Style:
        element = raw.get(style_id)
        if element is None or seen > 12:
            return _Style()
        if own := _own_style(element):
            return own
        return resolve(_val(element, "basedOn"), seen + 1)

    return {style_id: resolve(style_id, 0) for style_id in raw}


def _own_style(element: Any) -> _Style | None:
    name = _val(element, "name").lower()
    if m := _HEADING.match(name):
        return _Style("heading", int(m[1]))
    if name == "title":
        return _Style("heading", 0)
    if name.startswith("toc ") or name == "table of figures":
        return _Style(hidden=True)
    if name == "caption":
        return _Style("caption")
    if name in ("quote", "intense quote", "block text"):
        return _Style("quote")
    if name in ("html preformatted", "preformatted text", "source code", "code", "macro text"):
        return _Style("code")
    properties = _child(element, "pPr")
    if properties is None:
        return None
    outline = _val(properties, "outlineLvl")
    if outline.isdigit() and int(outline) < 9:
        return _Style("heading", int(outline) + 1)
    if _child(properties, "numPr") is not None:
        level = re.search(r"(\d)$", name)
        return _Style("list_item", int(level[1]) - 1 if level else 0)
    return None


def _rows(table: Any) -> Iterator[list[str]]:
    """Cell texts; a spanned column is filled up with "", a cell merged downwards repeats its text."""
    above: list[str] = []
    for tr in _own(table, "tr"):
        row: list[str] = []
        for tc in _own(tr, "tc"):
            properties = _child(tc, "tcPr")
            span, merge = 1, None
            if properties is not None:
                value = _val(properties, "gridSpan")
                span = min(int(value), 100) if value.isdigit() else 1
                merge = _child(properties, "vMerge")
            text = " ".join(_cell_texts(tc))
            if merge is not None and _attr(merge, "val") != "restart" and len(row) < len(above):
                text = above[len(row)]
            row += [text] + [""] * (span - 1)
        above = row
        yield row


def _cell_texts(tc: Any) -> Iterator[str]:
    for p in tc.iter(tc.tag[: tc.tag.index("}") + 1] + "p"):
        text, _ = _text_and_boxes(p)
        if text.strip():
            yield " ".join(text.split())


def _has_header(table: Any, rows: list[list[str]]) -> bool:
    properties = _child(table, "tblPr")
    look = _child(properties, "tblLook") if properties is not None else None
    if look is not None and _attr(look, "firstRow") == "0":
        return False
    first = [c for c in rows[0] if c]
    return len(rows) > 1 and len(set(first)) == len(first) and all(len(c) < 100 for c in first)


def _text_and_boxes(p: Any) -> tuple[str, list[Any]]:
    """A paragraph's text as it reads with all changes accepted, and the text boxes anchored in it."""
    out: list[str] = []
    boxes: list[Any] = []

    def visit(element: Any, depth: int) -> None:
        for child in element:
            tag = _tag(child)
            if tag == "t":
                out.append(child.text or "")
            elif tag in ("tab", "ptab"):
                out.append("\t")
            elif tag in ("br", "cr"):
                out.append("\n")
            elif tag == "noBreakHyphen":
                out.append("-")
            elif tag == "txbxContent":
                boxes.append(child)
            elif tag == "AlternateContent":
                visit(_choice(child), depth + 1)
            elif tag and tag not in _GONE and tag not in ("p", "tbl") and depth < MAX_DEPTH:
                visit(child, depth + 1)

    visit(p, 0)
    return "".join(out), boxes


def _properties(archive: Archive) -> tuple[str, str]:
    """Title and date of the last change, as the file says."""
    if "docProps/core.xml" not in archive:
        return "", ""
    found = {_tag(e): (e.text or "").strip() for e in archive.tree("docProps/core.xml")}
    date = found.get("modified") or found.get("created") or ""
    if date.startswith("2013-12-23"):  # the birthday of a template that one library ships
        date = ""
    title = found.get("title", "")
    return ("" if title.lower() in ("word document", "document") else title), date[:10]


def _tag(element: Any) -> str:
    """The local name of a Word, maths or compatibility element; of others too, "" for comments."""
    tag = element.tag
    return tag.rsplit("}", 1)[-1] if isinstance(tag, str) else ""


def _choice(element: Any) -> Any:
    """One of the alternatives that Word writes for old and new readers, so that no text comes twice."""
    return next((c for c in element if _tag(c) == "Choice"), next(iter(element), element))


def _child(element: Any, name: str) -> Any | None:
    return next((c for c in element if _tag(c) == name), None)


def _own(element: Any, name: str) -> Iterator[Any]:
    """Children of a name, also inside content controls and insertions."""
    for child in element:
        tag = _tag(child)
        if tag == name:
            yield child
        elif tag in ("sdt", "sdtContent", "customXml", "ins", "smartTag"):
            yield from _own(child, name)


def _nearest(element: Any, name: str) -> Any | None:
    return next((a for a in element.iterancestors() if _tag(a) == name), None)


def _attr(element: Any, name: str) -> str:
    value = element.get(_W + name) or element.get(_STRICT_W + name) or element.get(name)
    return str(value or "")


def _val(element: Any, name: str) -> str:
    child = _child(element, name)
    return _attr(child, "val") if child is not None else ""
