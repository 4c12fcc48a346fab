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
from marg_ray.sources.parse import sniff
from marg_ray.sources.parse.blocks import Block, Kind, Parsed
from marg_ray.sources.parse.html_blocks import BlockWalk, Placed
from marg_ray.sources.parse.html_head import Head, read_head
from marg_ray.sources.parse.html_walls import wall
from marg_ray.text import clean_text, one_line

_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_WORD = re.compile(r"\w+")
_C1 = {b: bytes([b]).decode("cp1252") for b in range(0x80, 0xA0) if b not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}
_MANUAL = re.compile(
    r"(?i)docbook|sphinx|docutils|mkdocs|doxygen|texinfo|asciidoc|pandoc|docusaurus|gitbook|hugo-docs|antora|javadoc"
    r"|rustdoc|latex2html|yelp|mdbook|vuepress|dblatex|tex4ht"
)
TRAFILATURA_LIMIT = 3_000_000  # letters of markup; larger pages are read by our own walk alone
NGRAM = 4
MATCHED = 0.6  # share of a block's word runs that trafilatura's text has


def read_html(markup: str, name: str, media_type: str = "") -> Parsed:
    """Blocks of a web page.

    Raises:
        Unreadable: the page is a wall, a shell or empty, or it stands in a PDF's place.
    """
    markup = _XML_DECLARATION.sub("", clean_text(markup.translate(_C1)))
    tree = _tree(markup, name)
    head = read_head(tree, name)
    body = tree.find("body") if tree.find("body") is not None else tree
    placed = BlockWalk().walk(_main_container(body))
    if not _enough(placed):
        whole = BlockWalk().walk(body)
        placed = whole if _enough(whole) else BlockWalk(furniture=False).walk(body)
    blocks = _readable([p.block for p in placed])
    promised_pdf = sniff.PDF in (sniff.media_type_of(name), media_type.partition(";")[0].strip().lower())
    if reason := wall(body, head.title, blocks, promised_pdf=promised_pdf):
        raise Unreadable(name, reason)
    if not _is_manual(tree, body) and len(markup) <= TRAFILATURA_LIMIT:
        blocks = _article(markup, placed) or blocks
    return Parsed(
        _without_repeats(blocks),
        title=_title(head, blocks),
        language=head.language,
        published=head.published,
    )


def _tree(markup: str, name: str) -> Any:
    from lxml import etree
    from lxml import html as lxml_html

    try:
        parser = lxml_html.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
        tree = lxml_html.document_fromstring(markup.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError, AssertionError):
        raise Unreadable(name, "empty: it has no text") from None
    for element in tree.iter():  # XHTML may come with a prefix in its names
        if isinstance(element.tag, str) and ":" in element.tag:
            element.tag = element.tag.rsplit(":", 1)[-1]
    return tree


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


def _is_manual(tree: Any, body: Any) -> bool:
    """Documentation: its generator says so, or it has many headings, code blocks and definition lists."""
    for meta in tree.iter("meta"):
        if (meta.get("name") or "").lower() == "generator" and _MANUAL.search(meta.get("content") or ""):
            return True
    marks = " ".join(e.get("class") or "" for e in body.iter("div", "section", "pre", "body"))[:20_000]
    if re.search(
        r"sphinxsidebar|rst-content|docutils|literallayout|programlisting|titlepage|md-content|theme-doc", marks
    ):
        return True
    headings = sum(1 for e in body.iter("h1", "h2", "h3", "h4", "h5"))
    structure = sum(1 for e in body.iter("pre", "dl", "code", "table"))
    return headings >= 6 and structure >= 8 and body.find(".//article") is None


# -- which blocks are the main text --------------------------------------------------------------------------


def _article(markup: str, placed: Sequence[Placed]) -> list[Block]:
    """The blocks that trafilatura takes for the main text; [] where it finds none."""
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    document = trafilatura.bare_extraction(markup, include_comments=False, include_tables=True)
    text = (getattr(document, "text", None) or "") if document is not None else ""
    wanted = _WORD.findall(text.lower())
    if len(wanted) < 5:
        return []
    runs = _runs(wanted)
    matched = [_match(p.block, runs, text) for p in placed]
    keep = _fill(placed, matched)
    blocks = _readable([p.block for p, k in zip(placed, keep, strict=True) if k])
    have = _runs(_WORD.findall(" ".join(b.text for b in blocks).lower()))
    if len(runs & have) < 0.7 * len(runs):
        return _converted(document)  # the text lies where no walk finds it, such as in the page's data
    return blocks


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    if len(words) < NGRAM:
        return {tuple(words)}
    return {tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1)}


def _match(block: Block, runs: set[tuple[str, ...]], text: str) -> bool:
    words = _WORD.findall(block.text.lower())
    if not words:
        return False
    if len(words) < NGRAM:
        return re.search(rf"(?m)^\W*{re.escape(one_line(block.text))}\W*$", text) is not None
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
