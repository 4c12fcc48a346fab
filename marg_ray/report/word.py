"""A Word file that grows at its end, over python-docx: text in two directions, links, bookmarks, fields, tables."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marg_ray.report.inline import Inline
from marg_ray.report.word_parts import (
    LEVELS,
    PLAIN,
    WIDTH_CM,
    Look,
    element_of,
    list_kind_of,
    paragraph_of,
    qname,
    row_of,
    run_of,
    stretches,
    table_of,
)
from marg_ray.text import clean_text

if TYPE_CHECKING:
    from docx.document import Document

_STYLES = Path(__file__).parent / "templates" / "word-styles.xml"
_LONGEST_LINK = 2000  # letters; Word calls a file with a longer one damaged
_EAST_ASIAN = {"ja": ("ja-JP", "Yu Gothic"), "ko": ("ko-KR", "Malgun Gothic"), "zh": ("zh-CN", "Microsoft YaHei")}
_REGIONS = {"en": "en-US", "de": "de-DE", "fr": "fr-FR", "es": "es-ES", "ar": "ar-SA", "he": "he-IL", "fa": "fa-IR"}


class Paragraph:
    """A paragraph that is being written; what comes in another direction than its own gets runs of its own."""

    def __init__(self, word: Word, element: Any, way: str) -> None:
        self._word, self._element, self._way = word, element, way

    def text(self, text: str, look: Look = PLAIN) -> Paragraph:
        self._extend(self._element, text, look)
        return self

    def nodes(self, nodes: Iterable[Inline], look: Look = PLAIN) -> Paragraph:
        for node in nodes:
            match node.kind:
                case "text":
                    self.text(node.text, look)
                case "code":
                    self.text(node.text, replace(look, style="CodeText"))
                case "formula":
                    self.text(node.text, replace(look, style="Formula"))
                case "emphasis":
                    self.nodes(node.children, replace(look, italic=True))
                case "strong":
                    self.nodes(node.children, replace(look, bold=True))
                case "link":
                    self.link(node.href, node.children, look)
        return self

    def link(self, href: str, shown: Iterable[Inline], look: Look = PLAIN) -> Paragraph:
        """A link to a web address; only its words where the address is too long for Word."""
        if not href or len(href) > _LONGEST_LINK:
            return self.nodes(shown, look)
        link = element_of("w:hyperlink", {"r:id": self._word.relation(href), "w:history": "1"})
        inside = Paragraph(self._word, link, self._way)
        inside.nodes([Inline("text", "".join(_words(shown)))], replace(look, style="Hyperlink"))
        self._element.append(link)
        return self

    def leap(self, bookmark: str, shown: str, look: Look = PLAIN) -> Paragraph:
        """A link to a place in the document."""
        link = element_of("w:hyperlink", {"w:anchor": bookmark, "w:history": "1"})
        self._extend(link, shown, look)
        self._element.append(link)
        return self

    def bookmarked(self, bookmark: str, write: Callable[[Paragraph], object]) -> Paragraph:
        """What `write` writes is the place that links to `bookmark` lead to."""
        number = self._word.next_bookmark()
        self._element.append(element_of("w:bookmarkStart", {"w:id": str(number), "w:name": bookmark}))
        write(self)
        self._element.append(element_of("w:bookmarkEnd", {"w:id": str(number)}))
        return self

    def field(self, instruction: str, shown: str = "1") -> Paragraph:
        """A value that Word works out, such as PAGE; `shown` until it has."""
        self.field_start(instruction)
        self.text(shown)
        return self.field_end()

    def field_start(self, instruction: str) -> Paragraph:
        self._char("begin")
        run = element_of("w:r")
        told = element_of("w:instrText", {"xml:space": "preserve"})
        told.text = f" {instruction} "
        run.append(told)
        self._element.append(run)
        return self._char("separate")

    def field_end(self) -> Paragraph:
        return self._char("end")

    def _char(self, kind: str) -> Paragraph:
        run = element_of("w:r")
        run.append(element_of("w:fldChar", {"w:fldCharType": kind}))
        self._element.append(run)
        return self

    def _extend(self, parent: Any, text: str, look: Look) -> None:
        for part, turned in stretches(clean_text(text), self._way):
            parent.append(run_of(part, look, rtl=(self._way == "rtl") != turned))


class Word:
    """A document that grows at its end."""

    def __init__(self, language: str, way: str) -> None:
        import docx
        from docx.oxml import parse_xml
        from docx.shared import Cm

        self.document: Document = docx.Document()
        self.way = way
        self._marks = 0
        section = self.document.sections[0]
        section.page_width, section.page_height = Cm(21), Cm(29.7)
        section.left_margin = section.right_margin = Cm((21 - WIDTH_CM) / 2)
        section.top_margin = section.bottom_margin = Cm(2.4)
        self._dress(parse_xml(_STYLES.read_bytes()), language)
        self._end = self.document.element.body.sectPr
        if way == "rtl":
            self._end.find(qname("w:docGrid")).addprevious(element_of("w:bidi"))

    def _dress(self, styles: Any, language: str) -> None:
        """Our styles in place of the template's of the same name, and the language the text is in."""
        there = self.document.styles.element
        known = {s.get(qname("w:styleId")): s for s in there.findall(qname("w:style"))}
        for style in styles.findall(qname("w:style")):
            if (old := known.get(style.get(qname("w:styleId")))) is not None:
                there.remove(old)
            there.append(style)
        defaults = deepcopy(styles.find(qname("w:docDefaults")))
        code = language.split("-")[0].lower()
        east, font = _EAST_ASIAN.get(code, _EAST_ASIAN["zh"])
        main = _REGIONS.get(code, language) if code not in _EAST_ASIAN else "en-US"
        tongue = defaults.find(f".//{qname('w:lang')}")
        tongue.set(qname("w:val"), main)
        tongue.set(qname("w:eastAsia"), east)
        if self.way == "rtl":
            tongue.set(qname("w:bidi"), main)
        defaults.find(f".//{qname('w:rFonts')}").set(qname("w:eastAsia"), font)
        there.replace(there.find(qname("w:docDefaults")), defaults)
        theme = self.document.settings.element.find(qname("w:themeFontLang"))
        if theme is not None:
            theme.set(qname("w:val"), main)
            theme.set(qname("w:eastAsia"), east)

    # ---- paragraphs

    def paragraph(self, style: str = "", way: str = "") -> Paragraph:
        element = paragraph_of(style, way or self.way)
        self._end.addprevious(element)
        return Paragraph(self, element, way or self.way)

    def page_break_before(self) -> None:
        """What follows starts a page."""
        element = paragraph_of("", self.way)
        run = element_of("w:r")
        run.append(element_of("w:br", {"w:type": "page"}))
        element.append(run)
        self._end.addprevious(element)

    def item(self, number: int, level: int, way: str = "") -> Paragraph:
        """A list's item; `number` is from `new_list`."""
        element = paragraph_of("ListParagraph", way or self.way)
        numbered = element_of("w:numPr")
        numbered.append(element_of("w:ilvl", {"w:val": str(min(level, LEVELS - 1))}))
        numbered.append(element_of("w:numId", {"w:val": str(number)}))
        element.pPr.insert(1, numbered)
        self._end.addprevious(element)
        return Paragraph(self, element, way or self.way)

    def new_list(self, ordered: bool) -> int:
        """A list that starts anew."""
        bullets, decimals = self._list_kinds
        num = self._numbering.add_num(decimals if ordered else bullets)
        if ordered:
            for level in range(LEVELS):
                num.add_lvlOverride(ilvl=level).add_startOverride(1)
        return int(num.numId)

    @property
    def _numbering(self) -> Any:
        return self.document.part.numbering_part.element

    @cached_property
    def _list_kinds(self) -> tuple[int, int]:
        """The ids of our two kinds of lists; the template has none with nine levels."""
        known = [int(e.get(qname("w:abstractNumId"))) for e in self._numbering.findall(qname("w:abstractNum"))]
        first = max(known, default=0) + 1
        before = self._numbering.find(qname("w:num"))
        for at, ordered in enumerate((False, True)):
            kind = list_kind_of(first + at, ordered)
            if before is None:
                self._numbering.append(kind)
            else:
                before.addprevious(kind)
        return first, first + 1

    # ---- tables, pictures

    def table(
        self,
        header: Sequence[Callable[[Paragraph], object]],
        rows: Sequence[Sequence[Callable[[Paragraph], object]]],
        way: Callable[[int, int], str],
        across: str,
    ) -> None:
        """Cells are what writes them; `way` is a cell's direction by row (the header is -1) and column, `across` that
        of the columns."""
        columns = max([len(header), *map(len, rows)])
        if not columns:
            return
        table = table_of(columns, rtl=across == "rtl")
        for at, cells in enumerate([header, *rows] if header else rows):
            at -= bool(header)
            line = row_of(is_header=at < 0)
            for column, write in enumerate(cells):
                cell, element = element_of("w:tc"), paragraph_of("Cell", way(at, column))
                cell.append(element)
                write(Paragraph(self, element, way(at, column)))
                line.append(cell)
            table.append(line)
        self._end.addprevious(table)
        self._end.addprevious(paragraph_of("Detail", self.way))

    def picture(self, png: bytes, alt: str) -> None:
        from docx.shared import Cm

        shape = self.document.add_picture(io.BytesIO(png), width=Cm(WIDTH_CM))
        shape._inline.docPr.set("descr", clean_text(alt))
        self.document.paragraphs[-1].paragraph_format.keep_with_next = True

    # ---- what belongs to the whole

    def above_and_below(self, above: str, page_of: str) -> None:
        """The title above every page but the first, the page's number below each."""
        section = self.document.sections[0]
        section.different_first_page_header_footer = True
        self._turned(section.header.paragraphs[0]._p).text(above)
        before, rest = page_of.split("{page}")
        between, after = rest.split("{pages}")
        for footer in (section.footer, section.first_page_footer):
            line = self._turned(footer.paragraphs[0]._p)
            line.text(before).field("PAGE").text(between).field("NUMPAGES").text(after)

    def _turned(self, element: Any) -> Paragraph:
        """A paragraph of python-docx's, in our direction."""
        if self.way == "rtl":
            element.get_or_add_pPr().append(element_of("w:bidi"))
        return Paragraph(self, element, self.way)

    def relation(self, href: str) -> str:
        from docx.opc.constants import RELATIONSHIP_TYPE

        return str(self.document.part.relate_to(href, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))

    def next_bookmark(self) -> int:
        self._marks += 1
        return self._marks

    def content(self) -> bytes:
        out = io.BytesIO()
        self.document.save(out)
        return out.getvalue()


def _words(nodes: Iterable[Inline]) -> Iterator[str]:
    for node in nodes:
        yield node.text or "".join(_words(node.children))
