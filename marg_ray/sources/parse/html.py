"""Web pages: main text with its structure.

Our own walk over the tree gives the blocks; trafilatura decides which of them are the page's main text. Pages of
manuals are taken whole, for trafilatura was made for articles and drops their short parts.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

from marg_ray.errors import Unreadable
from marg_ray.grounding.injection import hidden
from marg_ray.sources.parse import sniff
from marg_ray.sources.parse.blocks import Block, Kind, Parsed
from marg_ray.sources.parse.html_blocks import BlockWalk, Placed, drop_marks
from marg_ray.sources.parse.html_head import Head, read_head
from marg_ray.sources.parse.html_unseen import unseen_texts
from marg_ray.sources.parse.html_walls import wall
from marg_ray.text import clean_text, one_line

_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_WORD = re.compile(r"\w+")
_C1 = re.compile("[\x80-\x9f]")
_MANUAL = re.compile(
    r"(?i)docbook|sphinx|docutils|mkdocs|doxygen|texinfo|asciidoc|pandoc|docusaurus|gitbook|hugo-docs|antora|javadoc"
    r"|rustdoc|latex2html|yelp|mdbook|vuepress|dblatex|tex4ht"
)
_CONTENTS = re.compile(r"(?i)\s*(?:(?:table of )?contents|list of (?:tables|figures|examples)|on this page)\s*$")
CONTENTS = 8  # links in a row that make a table of contents
_RIGHTS = re.compile(r"(?i)\s*(?:copyright\b|©|all rights reserved)")
FULL_ELEMENTS = 8_000  # of a page that trafilatura compares by all its methods
MAX_ELEMENTS = 25_000  # beyond it trafilatura takes many seconds, and a page is a whole document anyway
NGRAM = 4
CONVERTED = 50  # words that trafilatura must find for its own tree to be taken
MATCHED = 0.6  # share of a block's word runs that trafilatura's text has


def read_html(markup: str, name: str, media_type: str = "") -> Parsed:
    """Blocks of a web page.

    Raises:
        Unreadable: the page is a wall, a shell or empty, or it stands in a PDF's place.
    """
    markup = _XML_DECLARATION.sub("", clean_text(_windows_letters(markup)))
    tree, deep = _tree(markup, name)
    head = read_head(tree, name)
    unseen = hidden(unseen_texts(tree, markup))
    drop_marks(tree)
    body = _body_of(tree)
    placed = BlockWalk().walk(_main_container(body))
    if not _enough(placed):
        whole = BlockWalk().walk(body)
        placed = whole if _enough(whole) else BlockWalk(furniture=False).walk(body)
    placed = _without_contents(placed)
    blocks = _readable([p.block for p in placed])
    manual = _is_manual(tree, body, placed)
    elements = sum(1 for _ in body.iter())
    if not manual and not deep and elements <= MAX_ELEMENTS:
        blocks = _article(tree, placed, fast=elements > FULL_ELEMENTS) or blocks
    elif not manual:
        blocks = _readable([p.block for p in placed if p.links < 0.5]) or blocks
    promised_pdf = sniff.PDF in (sniff.media_type_of(name), media_type.partition(";")[0].strip().lower())
    if reason := wall(body, head.title, blocks, promised_pdf=promised_pdf):
        raise Unreadable(name, reason)
    return Parsed(
        _without_repeats(blocks),
        title=head.title if manual and head.title else _title(head, blocks),
        language=head.language,
        published=head.published,
        injections=unseen,
    )


def _windows_letters(markup: str) -> str:
    """Numeric C1 controls as the Windows letters that every browser shows for them."""
    return _C1.sub(lambda m: bytes([ord(m[0])]).decode("cp1252", "ignore"), markup)


def chapter_blocks(markup: str, name: str) -> list[Block]:
    """Blocks of a page that is text from end to end, such as a chapter of a book; [] where it has none."""
    try:
        tree, _ = _tree(_XML_DECLARATION.sub("", clean_text(_windows_letters(markup))), name)
    except Unreadable:
        return []
    drop_marks(tree)
    return _readable([p.block for p in _without_contents(BlockWalk().walk(_body_of(tree)))])


def _body_of(tree: Any) -> Any:
    body = tree.find("body")
    return tree if body is None else body


def _tree(markup: str, name: str) -> tuple[Any, bool]:
    """The page's tree, and whether it is nested deeper than any honest page."""
    from lxml import etree
    from lxml import html as lxml_html

    body = markup.encode("utf-8", "replace")
    for huge in (False, True):  # "huge" lifts the limit of 255 levels, behind which everything would be lost
        parser = lxml_html.HTMLParser(encoding="utf-8", huge_tree=huge, remove_comments=True, remove_pis=True)
        try:
            tree = lxml_html.document_fromstring(body, parser=parser)
        except (etree.ParserError, etree.XMLSyntaxError, ValueError, AssertionError):
            raise Unreadable(name, "empty: it has no text") from None
        deep = any("Excessive depth" in (e.message or "") for e in parser.error_log)
        if not deep:
            break
    for element in tree.iter():  # XHTML may come with a prefix in its names
        if isinstance(element.tag, str) and ":" in element.tag:
            element.tag = element.tag.rsplit(":", 1)[-1]
    return tree, huge


def _main_container(body: Any) -> Any:
    """The element that says it holds the main text, if it holds enough."""
    total = len(body.text_content())
    for path in (".//main", ".//*[@role='main']", ".//*[@id='mw-content-text']", ".//article"):
        found = body.findall(path)
        if len(found) == 1 and len(found[0].text_content()) > 0.3 * total:
            return found[0]
    return body


def _enough(placed: Sequence[Placed]) -> bool:
    return sum(len(p.block.text.split()) for p in placed) >= 5


def _readable(blocks: Sequence[Block]) -> list[Block]:
    """Blocks with anything to read in them, without headings that nothing follows."""
    kept = [b for b in blocks if any(c.isalnum() for c in b.text)]
    while kept and kept[-1].kind == "heading" and len(kept) > 1:
        kept.pop()
    return kept


def _without_contents(placed: Sequence[Placed]) -> list[Placed]:
    """Leave out tables of contents: long runs of items that are nothing but links, where there is other text."""
    listed = [p.links > 0.7 and p.block.kind in ("list_item", "paragraph", "table_row") for p in placed]
    for i in range(1, len(placed) - 1):  # an entry whose link is only part of it
        listed[i] = listed[i] or (listed[i - 1] and listed[i + 1] and placed[i].block.kind == "list_item")
    gone = [False] * len(placed)
    start = 0
    for i in range(len(placed) + 1):
        if i < len(placed) and listed[i]:
            continue
        if i - start >= CONTENTS:
            gone[start:i] = [True] * (i - start)
        start = i + 1
    rest = [p for p, drop in zip(placed, gone, strict=True) if not drop and not _CONTENTS.match(p.block.text)]
    return rest if sum(len(p.block.text.split()) for p in rest) >= 40 else list(placed)


def _is_manual(tree: Any, body: Any, placed: Sequence[Placed]) -> bool:
    """Documentation: its generator says so, or it has many headings, code blocks and definition lists."""
    for meta in tree.iter("meta"):
        if (meta.get("name") or "").lower() == "generator" and _MANUAL.search(meta.get("content") or ""):
            return True
    marks = " ".join(e.get("class") or "" for e in body.iter("div", "section", "pre", "body"))[:20_000]
    if re.search(
        r"sphinxsidebar|rst-content|docutils|literallayout|programlisting|titlepage|md-content|theme-doc", marks
    ):
        return True
    headings = sum(1 for p in placed if p.block.kind == "heading" and p.links < 0.5)
    structure = sum(1 for p in placed if p.block.kind == "code" or p.block.term)
    linked = sum(len(p.block.text) for p in placed if p.links > 0.5)
    return headings >= 4 and structure >= 6 and linked * 5 < sum(len(p.block.text) for p in placed)


# -- which blocks are the main text --------------------------------------------------------------------------


def _article(tree: Any, placed: Sequence[Placed], *, fast: bool) -> list[Block]:
    """The blocks that trafilatura takes for the main text; [] where it finds none."""
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    document = trafilatura.bare_extraction(tree, include_comments=False, fast=fast)
    text = (getattr(document, "text", None) or "") if document is not None else ""
    wanted = _WORD.findall(text.lower())
    if len(wanted) < 5:
        return []
    runs = _runs(wanted)
    matched = [_match(p.shown or p.block.text, runs, text) for p in placed]
    keep = _fill(placed, matched)
    blocks = _readable([p.block for p, k in zip(placed, keep, strict=True) if k])
    prose = [p for p in placed if p.links < 0.3]
    letters = sum(len(p.block.text) for p in prose)
    if letters > 2000 and sum(len(b.text) for b in blocks) < 0.15 * letters:
        return _readable([p.block for p in prose])  # tables and lists that no article is made of
    have = _runs(
        _WORD.findall(" ".join(p.shown or p.block.text for p, k in zip(placed, keep, strict=True) if k).lower())
    )
    if len(runs & have) < 0.7 * len(runs) and len(wanted) > CONVERTED:
        return _converted(document)  # the text lies where no walk finds it, such as in the page's data
    return blocks


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    if len(words) < NGRAM:
        return {tuple(words)}
    return {tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1)}


def _match(shown: str, runs: set[tuple[str, ...]], text: str) -> bool:
    words = _WORD.findall(shown.lower())
    if not words:
        return False
    if len(words) < NGRAM:
        return re.search(rf"(?m)^\W*{re.escape(one_line(shown))}\W*$", text) is not None
    own = _runs(words)
    return len(own & runs) >= MATCHED * len(own)


def _fill(placed: Sequence[Placed], matched: Sequence[bool]) -> list[bool]:
    """Add what trafilatura drops inside the main text: headings, code, rows, terms and short paragraphs."""
    keep = list(matched)
    for i, p in enumerate(placed):
        if keep[i] or p.links > 0.5:
            continue
        before, after = any(matched[max(0, i - 2) : i]), any(matched[i + 1 : i + 3])
        if before and after and p.block.kind in ("code", "table_row", "quote", "list_item"):
            keep[i] = True
    for i in range(len(placed) - 1, -1, -1):
        if not keep[i] and placed[i].block.kind == "heading" and any(keep[i + 1 : i + 2]) and i > 0:
            keep[i] = any(matched[:i]) or placed[i].block.level == 1
    for i, p in enumerate(placed):
        teaser = (
            p.block.kind == "heading"
            and p.links > 0.5
            and not any(keep[j] for j in range(i + 1, min(i + 2, len(placed))) if placed[j].block.kind != "heading")
        )
        if teaser or (p.block.kind == "paragraph" and len(p.block.text) < 120 and _RIGHTS.match(p.block.text)):
            keep[i] = False
    return keep


_KINDS: dict[str, Kind] = {
    "head": "heading", "p": "paragraph", "item": "list_item", "quote": "quote", "code": "code", "row": "table_row",
}  # fmt: skip


def _converted(document: Any) -> list[Block]:
    """Trafilatura's own tree as blocks, where it is all there is."""
    blocks: list[Block] = []
    for element in document.body.iter("head", "p", "item", "quote", "code", "row", "ab", "fw"):
        if any(a.tag in ("item", "quote", "row", "p") for a in element.iterancestors()):
            continue
        text = "\n".join(t for t in element.itertext()) if element.tag == "code" else " ".join(element.itertext())
        level = 0
        if element.tag == "head":
            rend = element.get("rend") or "h2"
            level = int(rend[1]) if len(rend) == 2 and rend[1].isdigit() else 2
        blocks.append(Block(_KINDS.get(element.tag, "paragraph"), text, level=level))
    if not blocks:
        blocks = [Block("paragraph", line) for line in (document.text or "").split("\n") if line.strip()]
    return _readable(blocks)


def _without_repeats(blocks: Sequence[Block]) -> list[Block]:
    """Drop a long block that was there word for word already, as responsive pages print it twice."""
    seen: set[str] = set()
    out = []
    for block in blocks:
        key = one_line(block.text)
        if len(key) > 120 and block.kind in ("paragraph", "quote", "list_item"):
            if key in seen:
                continue
            seen.add(key)
        out.append(block)
    return out


def _title(head: Head, blocks: Sequence[Block]) -> str:
    """The page's own heading where it is part of the title tag (which often adds the site's name)."""
    first = next((one_line(b.text) for b in blocks[:8] if b.kind == "heading" and b.level == 1), "")
    if first and (not head.title or first.lower() in head.title.lower()):
        return first
    return head.title or first
