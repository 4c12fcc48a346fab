"""The elements of a Word file, and text cut where its direction turns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_DATE = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)")
LEVELS = 9  # of a list
WIDTH_CM = 16.5  # of the text


@dataclass(frozen=True)
class Look:
    """How letters look. `style` is a character style, `underline` one of Word's."""

    bold: bool = False
    italic: bool = False
    underline: str = ""
    style: str = ""


PLAIN, BOLD, MARK = Look(), Look(bold=True), Look(style="Mark")


def stretches(text: str, way: str) -> Iterator[tuple[str, bool]]:
    """The text in parts, each with whether it runs against `way`. What has no direction stays with the main one.

    An ISO date keeps its order between letters from right to left: a mark on either side says so.
    """
    at = 0
    for date in _DATE.finditer(text) if way == "rtl" else ():
        yield from _stretches(text[at : date.start()], way)
        yield f"\u200e{date.group()}\u200e", True
        at = date.end()
    yield from _stretches(text[at:], way)


def _stretches(text: str, way: str) -> Iterator[tuple[str, bool]]:
    against = {"L"} if way == "rtl" else {"R", "AL"}
    along = {"R", "AL"} if way == "rtl" else {"L"}
    start, turned, last = 0, -1, -1  # `turned`: where a part that runs against `way` begins; `last`: where it may end
    for at, letter in enumerate(text):
        kind = unicodedata.bidirectional(letter)
        if kind in against:
            if turned < 0:
                if at > start:
                    yield text[start:at], False
                turned = at
            last = at + 1
        elif kind in along and turned >= 0:
            yield text[turned:last], True
            start, turned = last, -1
    if turned >= 0:
        yield text[turned:last], True
        start = last
    if start < len(text):
        yield text[start:], False


# ---- elements


def qname(name: str) -> str:
    from docx.oxml.ns import qn

    return str(qn(name))


def element_of(name: str, attributes: dict[str, str] | None = None) -> Any:
    from docx.oxml import OxmlElement

    element = OxmlElement(name)
    for key, value in (attributes or {}).items():
        element.set("{http://www.w3.org/XML/1998/namespace}space" if key == "xml:space" else qname(key), value)
    return element


def paragraph_of(style: str, way: str) -> Any:
    element, about = element_of("w:p"), element_of("w:pPr")
    if style:
        about.append(element_of("w:pStyle", {"w:val": style}))
    if way == "rtl":
        about.append(element_of("w:bidi"))
    element.append(about)
    return element


def run_of(text: str, look: Look, *, rtl: bool) -> Any:
    run, about = element_of("w:r"), element_of("w:rPr")
    if look.style:
        about.append(element_of("w:rStyle", {"w:val": look.style}))
    for on, names in ((look.bold, ("w:b", "w:bCs")), (look.italic, ("w:i", "w:iCs"))):
        if on:
            about.extend(element_of(name) for name in names)
    if look.underline:
        about.append(element_of("w:u", {"w:val": look.underline}))
    if rtl:
        about.append(element_of("w:rtl"))
    run.append(about)
    for at, line in enumerate(text.split("\n")):
        if at:
            run.append(element_of("w:br"))
        for number, part in enumerate(line.split("\t")):
            if number:
                run.append(element_of("w:tab"))
            if part:
                words = element_of("w:t", {"xml:space": "preserve"})
                words.text = part
                run.append(words)
    return run


def table_of(columns: int, *, rtl: bool) -> Any:
    table, about, grid = element_of("w:tbl"), element_of("w:tblPr"), element_of("w:tblGrid")
    if rtl:
        about.append(element_of("w:bidiVisual"))
    about.append(element_of("w:tblW", {"w:w": "5000", "w:type": "pct"}))
    borders = element_of("w:tblBorders")
    for side in ("top", "bottom", "insideH"):
        borders.append(element_of(f"w:{side}", {"w:val": "single", "w:sz": "4", "w:space": "0", "w:color": "CFCABD"}))
    about.append(borders)
    about.append(element_of("w:tblLayout", {"w:type": "autofit"}))
    width = int(WIDTH_CM / 2.54 * 1440 / columns)
    grid.extend(element_of("w:gridCol", {"w:w": str(width)}) for _ in range(columns))
    table.extend((about, grid))
    return table


def row_of(*, is_header: bool) -> Any:
    row, about = element_of("w:tr"), element_of("w:trPr")
    about.append(element_of("w:cantSplit"))
    if is_header:
        about.append(element_of("w:tblHeader"))
    row.append(about)
    return row


def list_kind_of(number: int, ordered: bool) -> Any:
    kind = element_of("w:abstractNum", {"w:abstractNumId": str(number)})
    kind.append(element_of("w:multiLevelType", {"w:val": "hybridMultilevel"}))
    for level in range(LEVELS):
        one = element_of("w:lvl", {"w:ilvl": str(level)})
        one.append(element_of("w:start", {"w:val": "1"}))
        one.append(element_of("w:numFmt", {"w:val": "decimal" if ordered else "bullet"}))
        one.append(element_of("w:lvlText", {"w:val": f"%{level + 1}." if ordered else "•–"[level % 2]}))
        one.append(element_of("w:lvlJc", {"w:val": "left"}))
        about = element_of("w:pPr")
        about.append(element_of("w:ind", {"w:left": str(360 * (level + 1)), "w:hanging": "300"}))
        one.append(about)
        kind.append(one)
    return kind
