"""An HTML tree to blocks in reading order: what is navigation by its markup is left out, structure is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from marg_ray.sources.parse.blocks import Block, Kind, table_rows
from marg_ray.sources.parse.html_tables import ADMONITION, cell_rows, is_layout, named_grid
from marg_ray.sources.parse.plain import read_plain


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SKIPPED = _names(
    "script style noscript template svg head nav iframe object embed applet canvas audio video button input select "
    "textarea map area dialog menu link meta rp rt datalist"
)
_BLOCKS = _names(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hr html legend li listing main ol option optgroup p plaintext pre search section "
    "summary table tbody td tfoot th thead tr ul xmp"
)
_SKIPPED_ROLES = _names("navigation search contentinfo menu menubar dialog alertdialog doc-toc doc-index tablist")
# Class and id words of what surrounds a text on its page. Whole words between separators.
_FURNITURE = re.compile(
    r"(?i)(?:^|[\s_-])(?:nav(?:bar|header|footer|igation|links?|box|_?menu)?|menu|breadcrumbs?|side-?bar|sphinxsidebar"
    r"|toc|toctree-wrapper|table-of-contents|headerlink|headeranchor|anchor-link|site-?(?:header|footer)"
    r"|page-?footer|global-?footer|cookies?|consent|gdpr|share|sharing|social|addthis|related(?:-?(?:posts?|articles?"
    r"|links|content|stories))?|comments?|disqus|newsletter|subscribe|promo|adverts?|advertisement|sponsored|banner"
    r"|pop-?up|modal|overlay|mw-editsection|editsection|mw-jump-link|noprint|skip-?(?:link|nav|to-content)|pagination"
    r"|pager|prev-?next|navheader|navfooter|reflist|mw-references-wrap|catlinks|printfooter|vertical-navbox"
    r"|page-?num(?:ber)?|pagebreak|fn-backref|footnote-back(?:ref)?|reference-backlink|visually-?hidden|sr-only|screen-reader-text"
    r"|ads?)(?=$|[\s_-])"
)
_NEVER_FURNITURE = _names("html body main article h1 h2 h3 h4 h5 h6 pre code")
_HIDDEN = re.compile(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden")
_MARK = re.compile(
    r"^\s*[\[(]?\s*(?:\d{1,4}|[a-z]|[*†‡§]|note \d+|update|edit|citation needed|when\?|who\?|which\?)\s*[\])]?\s*$",
    re.I,
)
_NOTE_TARGET = re.compile(r"(?i)#(?:cite|fn|ftn|foot|note|ref|id|end|_ftn|r)[-_]?")
_CAPTION = re.compile(r"\s*(?:Table|Figure|Tabelle|Abbildung|Tableau) \d[\d.]*[.:] \S")
MAX_DEPTH = 200
MAX_BLOCKS = 200_000


@dataclass(frozen=True, slots=True)
class Placed:
    """A block, the share of its letters that are links, and what the page itself shows in its place."""

    block: Block
    links: float = 0.0
    shown: str = ""  # of a table row: its cells without the column names


class BlockWalk:
    """Walks a tree once. `furniture` off keeps everything that is text."""

    def __init__(self, *, furniture: bool = True) -> None:
        self._furniture = furniture
        self._out: list[Placed] = []
        self._text: list[str] = []
        self._linked = 0
        self._kind: Kind = "paragraph"
        self._level = 0
        self._lists = 0
        self._term = ""

    def walk(self, root: Any) -> list[Placed]:
        self._total = max(1, _length(root))
        self._block(root, 0)
        self._flush()
        return self._out

    # -- collecting inline text ------------------------------------------------------------------------------

    def _add(self, text: str | None, *, linked: bool = False) -> None:
        if text:
            self._text.append(text)
            if linked:
                self._linked += len(text.strip())

    def _flush(self) -> None:
        text = "".join(self._text)
        if text.strip() and len(self._out) < MAX_BLOCKS:
            kind = self._kind
            if kind == "paragraph" and _CAPTION.match(text) and len(text) < 200:
                kind = "caption"
            block = Block(kind, text, level=self._level, term=self._term)
            share = self._linked / max(1, len(text.strip()))
            self._out.append(Placed(block, share))
        self._text, self._linked = [], 0

    def _inline(self, element: Any, depth: int, *, linked: bool = False) -> None:
        """An element's text and children; its tail belongs to the parent."""
        self._add(element.text, linked=linked)
        for child in element:
            self._child(child, depth, linked=linked)
            self._add(child.tail, linked=linked)

    def _child(self, child: Any, depth: int, *, linked: bool) -> None:
        tag = child.tag
        if not isinstance(tag, str) or self._is_skipped(child, tag):
            return
        if depth > MAX_DEPTH:
            self._add(child.text_content())
            return
        if tag == "br":
            self._add("\n")
        elif tag == "img":
            return
        elif tag == "q":
            self._add("“")
            self._inline(child, depth + 1, linked=linked)
            self._add("”")
        elif tag in _BLOCKS:
            self._flush()
            self._block(child, depth + 1)
            self._flush()
        elif tag == "math":
            self._add(child.get("alttext") or child.text_content())
        else:
            self._inline(child, depth + 1, linked=linked or tag == "a")

    # -- blocks ----------------------------------------------------------------------------------------------

    def _block(self, element: Any, depth: int) -> None:
        tag = element.tag
        saved = self._kind, self._level, self._lists
        if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self._kind, self._level = "heading", int(tag[1])
            self._inline(element, depth)
        elif tag in ("pre", "listing", "xmp", "plaintext"):
            self._code(element)
        elif tag == "table":
            self._table(element, depth)
        elif tag == "dl":
            self._definitions(element, depth)
        elif tag in ("ul", "ol"):
            self._lists += 1
            self._inline(element, depth)
            self._flush()
            self._lists -= 1
        else:
            self._set_kind(tag)
            self._inline(element, depth)
        self._flush()
        self._kind, self._level, self._lists = saved

    def _set_kind(self, tag: str) -> None:
        if tag == "li":
            self._kind, self._level = "list_item", max(0, self._lists - 1)
        elif tag == "blockquote":
            self._kind, self._level = "quote", 0
        elif tag in ("figcaption", "caption"):
            self._kind, self._level = "caption", 0

    def _code(self, element: Any) -> None:
        text = _with_breaks(element)
        if len(text) > 3000 and len(text) * 2 > self._total:  # a whole text set in type-writer letters
            blocks = read_plain(text).blocks
        else:
            blocks = [Block("code", text, term=self._term)] if text.strip() else []
        self._out.extend(Placed(block) for block in blocks)

    def _definitions(self, dl: Any, depth: int) -> None:
        """Terms as parts of their own; what explains them carries them."""
        outer, fresh = self._term, True
        terms: list[str] = []
        for child in _flat(dl):
            if child.tag == "dt":
                if not fresh:
                    terms, fresh = [], True
                self._term = outer
                before = len(self._out)
                self._kind, self._level = "list_item", self._lists
                self._inline(child, depth + 1)
                self._flush()
                text = " ".join(" ".join(p.block.text.split()) for p in self._out[before:])
                if text and _is_note_number(text):
                    del self._out[before:]
                elif text:
                    terms.append(text)
            elif child.tag == "dd":
                fresh = False
                self._term = ", ".join(terms)[:200]
                self._kind, self._level = "paragraph", 0
                self._block(child, depth + 1)
        self._term = outer

    def _table(self, table: Any, depth: int) -> None:
        caption = table.find("caption")
        if caption is not None:
            self._child(caption, depth + 1, linked=False)
            self._flush()
        rows = cell_rows(table)
        if is_layout(table, rows):
            self._layout(rows, depth)
            return
        grid, header = named_grid(table, rows, _cell_text)
        links = _link_share(table)
        for block in table_rows(grid, header=header):
            shown = re.sub(r"(?:^|; )[^:;]{1,80}: ", " ", block.text) if header else block.text
            self._out.append(Placed(replace(block, term=self._term), links, shown))

    def _layout(self, rows: list[list[Any]], depth: int) -> None:
        """A table used to place things: its cells are read one after the other."""
        cells = [c for row in rows for c in row]
        lead = next((c for c in cells if c.tag == "th" and ADMONITION.match(c.text_content().strip())), None)
        for cell in cells:
            if cell is lead:
                continue
            self._kind, self._level = "paragraph", 0
            self._inline(cell, depth + 1)
            self._flush()

    def _is_skipped(self, element: Any, tag: str) -> bool:
        if tag in _SKIPPED:
            return True
        if element.get("hidden") is not None or _HIDDEN.search(element.get("style") or ""):
            return tag not in ("body", "main", "article")
        if element.get("role", "").lower() in _SKIPPED_ROLES:
            return True
        if not self._furniture:
            return False
        if tag in ("footer", "aside"):
            return not _has_own_heading_and_prose(element) if tag == "aside" else True
        if tag in _NEVER_FURNITURE:
            return False
        marks = f"{element.get('class') or ''} {element.get('id') or ''}"
        if marks == " " or not _FURNITURE.search(marks):
            return False
        # A page may hang such a word on the element that holds the text itself.
        return tag not in ("div", "section", "table", "form") or _length(element) * 2 < self._total


def drop_marks(root: Any) -> None:
    """Take footnote marks, heading anchors and editing links out of the tree; the text around them stays."""
    for element in list(root.iter("sup", "a", "span")):
        if element.getparent() is not None and _is_mark(element, element.tag):
            element.drop_tree()


def _is_mark(element: Any, tag: str) -> bool:
    """A footnote or reference mark, or a wiki's editing mark: artefacts of the page, not of the text."""
    classes = (element.get("class") or "").lower()
    if "footnote-ref" in classes or "footnote-reference" in classes or "noteref" in classes or classes == "reference":
        return len(element.text_content()) < 40 and (tag != "a" or _MARK.match(element.text_content()) is not None)
    if "editsection" in classes or "headerlink" in classes:
        return True
    if tag == "sup":
        text = element.text_content()
        link = element.find(".//a")
        if "noprint" in classes or "plainlinks" in classes or "reference" in classes:
            return True
        return link is not None and "#" in (link.get("href") or "") and _MARK.match(text) is not None
    if tag == "a" and element.get("href", "").startswith("#"):
        text = element.text_content().strip()
        return text in ("¶", "#", "§", "↩", "^", "🔗", "") or (
            bool(_NOTE_TARGET.match(element.get("href"))) and bool(re.fullmatch(r"[\[(]\d{1,4}[\])]", text))
        )
    return False


def _is_note_number(text: str) -> bool:
    return re.fullmatch(r"[\[(]?\d{1,4}[\])]?", text.strip()) is not None


def _with_breaks(element: Any) -> str:
    out = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str):
            out.append("\n" if child.tag == "br" else _with_breaks(child))
        out.append(child.tail or "")
    return "".join(out)


def _flat(dl: Any) -> Iterator[Any]:
    """A definition list's terms and explanations, which may be grouped in divs."""
    for child in dl:
        if child.tag in ("dt", "dd"):
            yield child
        elif child.tag in ("div", "dl"):
            yield from _flat(child)


def _cell_text(cell: Any) -> str:
    return " ".join(p.block.text for p in BlockWalk(furniture=False).walk(cell))


def _length(element: Any) -> int:
    return len(element.text_content())


def _link_share(element: Any) -> float:
    total = _length(element)
    return sum(_length(a) for a in element.iter("a")) / total if total else 0.0


def _has_own_heading_and_prose(element: Any) -> bool:
    """An aside that is part of the text (a note, a box), not a list of links."""
    return _length(element) > 60 and _link_share(element) < 0.3 and element.find(".//p") is not None
