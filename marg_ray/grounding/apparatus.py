"""What a model adds around its text and code adds itself: title, contents, reference list, chatter. All of it goes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from marg_ray.grounding.markdown import RawBlock

_REFERENCES = frozenset(
    """references|reference list|list of references|references cited|references and notes|sources|source|sources cited|
    sources used|source list|list of sources|bibliography|works cited|citations|cited sources|literature|
    literature cited|further reading|footnotes|notes and references|endnotes|evidence cited|
    quellen|quelle|quellenverzeichnis|literatur|literaturverzeichnis|einzelnachweise|fußnoten|
    références|sources citées|bibliographie|notes et références|bibliografía|fuentes|referencias|bibliografia|
    riferimenti|fonti|referências|fontes|bronnen|literatuur|referencje|źródła|bibliografia|kaynaklar|kaynakça|
    источники|список литературы|литература|список источников|примечания|джерела|
    参考文献|参考资料|参考來源|参考来源|參考文獻|參考資料|来源|來源|资料来源|引用来源|引用文献|出典|参照|
    참고문헌|출처|المراجع|المصادر|संदर्भ|स्रोत""".replace("\n", "")
    .replace("    ", "")
    .split("|")
)
_CONTENTS = frozenset(
    """table of contents|contents|toc|inhaltsverzeichnis|inhalt|table des matières|sommaire|índice|
    tabla de contenido|tabla de contenidos|indice|sumário|inhoudsopgave|содержание|оглавление|目录|目錄|目次|
    목차|جدول المحتويات|المحتويات|فهرس""".replace("\n", "")
    .replace("    ", "")
    .split("|")
)
_URL = re.compile(r"(?:https?://|www\.|\bdoi:|\b10\.\d{4,9}/)\S+", re.IGNORECASE)
_LEAD_MARK = re.compile(r"\s*(?:[-*+]\s+)?(?:\\?[\[［【]\^?\d{1,4}\\?[\]］】]|\^\d+|[¹²³⁴-⁹]+)")
_DEFINITION = re.compile(r"\s*\[\^?(?:\d{1,4}|[\w-]{1,20})\]:\s*\S")
_ENTRY = re.compile(r"\s*(?:[-*+]\s+)?(?:\(?\d{1,4}[.)]\s+|\\?[\[［【(]\^?\d{1,4}\\?[\]］】)])")
_ONLY_MARKS = re.compile(
    r"(?:\\?[\[［【(]+\s*[^\W\d_]{0,12}[\s:#^]*[\d٠-٩０-９][\d٠-٩０-９\s,;&–†a-z-]*\\?[\]］】)]+(?:\(\S+\))?[\s,;.、，和]*(?:and\s+)?)+"
)
_RUN_IN = re.compile(r"\s*[*_]*([^\W\d_][\w \-]{1,30}?)[*_]*\s*[:：][*_]*\s*(.*)\Z", re.DOTALL)
_ANCHORS = re.compile(r"(?:\s*(?:[-*+]|\d+[.)])?\s*\[[^\[\]]*\]\(#[^()]*\)\s*)+")
_OPENING = re.compile(
    r"(?:(?:sure|certainly|of course|absolutely|okay|great)\b[^\n]{0,160}|"
    r"(?:here(?:'s| is| are)|below (?:is|are))\b[^\n]{0,60}\b(?:section|draft|text|report|summary|version|revision)\b"
    r"[^\n]{0,80})[:!.]\s*",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"[*_(]*(?:let me know (?:if|whether)|i hope this|feel free to|(?:approximate )?word count\s*:|"
    r"\[?end of (?:section|report)|would you like me to|if you(?:'d| would) like,? i can)[^\n]{0,300}",
    re.IGNORECASE,
)


def without_apparatus(blocks: Sequence[RawBlock], section_title: str) -> list[RawBlock]:
    """The blocks that are the section's text.

    "Sources: [1], [2]" under a paragraph is kept as a paragraph of marks only: it says what that paragraph cites.
    """
    blocks = [b for block in blocks if (b := _without_definitions(block))]
    kept: list[RawBlock] = []
    at = 0
    while at < len(blocks):
        block = blocks[at]
        at += 1
        if not kept and (_name(block.source) == _name(section_title) or _is_chatter(block, _OPENING)):
            continue
        if _is_named(block, _CONTENTS):
            while at < len(blocks) and (
                blocks[at].kind in ("bullet", "ordered") or _ANCHORS.fullmatch(blocks[at].source)
            ):
                at += 1
        elif _is_named(block, _REFERENCES):
            end = _entries_end(blocks, at)
            if end == at and end < len(blocks) and blocks[at].kind != "heading":
                kept.append(block)  # "Sources" above prose is a title like any other
            at = end
        elif (line := _run_in_references(block)) is not None:
            kept += [line] if line.source else []
        elif not _is_reference_paragraph(block):
            kept.append(block)
    while kept and _is_chatter(kept[-1], _CLOSING):
        kept.pop()
    return kept


def _name(text: str) -> str:
    """A title without numbering, emphasis and punctuation, for comparison."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(
        r"^\W*(?:(?:section|chapter|part|abschnitt|kapitel)\s+\d+\s*[:.\-–—]*|\d+(?:\.\d+)*[.):]?)\s+", "", text
    )
    return " ".join(re.sub(r"[\W_]+", " ", text).split())


def _is_named(block: RawBlock, names: frozenset[str]) -> bool:
    if block.kind not in ("heading", "paragraph", "quote") or len(block.source) > 60:
        return False
    source = _ONLY_MARKS.sub("", block.source) if block.kind == "heading" else block.source
    return " ".join(re.sub(r"[\s*_:：#]+", " ", source.casefold()).split()) in names


def _entries_end(blocks: Sequence[RawBlock], at: int) -> int:
    while at < len(blocks) and _is_entry(blocks[at]):
        at += 1
    return at


def _is_entry(block: RawBlock) -> bool:
    if block.kind in ("bullet", "ordered", "table"):
        return True
    lines = block.source.splitlines()
    return block.kind in ("paragraph", "quote") and all(
        _ENTRY.match(x) or _URL.search(x) or _LEAD_MARK.match(x) for x in lines
    )


def _run_in_references(block: RawBlock) -> RawBlock | None:
    """ "Sources: ..." in one paragraph: an empty block, or one with the marks alone; None where it is prose."""
    if block.kind not in ("paragraph", "quote", "bullet"):
        return None
    head, _, tail = block.source.rpartition("\n")
    for before, text in (("", block.source), (head, tail)):
        found = _RUN_IN.match(text)
        if not found or found[1].casefold().strip() not in _REFERENCES:
            continue
        rest = found[2].strip()
        if before and _ONLY_MARKS.fullmatch(rest):
            return replace(block, source=f"{before} {rest}")
        if _ONLY_MARKS.fullmatch(rest):
            return replace(block, kind="paragraph", source=rest)
        if not rest or all(_ENTRY.match(x) or _URL.search(x) or _LEAD_MARK.match(x) for x in rest.splitlines()):
            return replace(block, source=before)
    return None


def _is_reference_paragraph(block: RawBlock) -> bool:
    """Lines such as "[1] Basin report, https://..." without a heading above them."""
    if block.kind not in ("paragraph", "bullet", "ordered"):
        return False
    lines = block.source.splitlines()
    return all(_LEAD_MARK.match(x) and (u := _URL.search(x)) and len(x) - u.end() < 25 for x in lines)


def _without_definitions(block: RawBlock) -> RawBlock | None:
    """The block without its lines of the form "[1]: https://..." or "[^1]: text"."""
    if block.kind not in ("paragraph", "bullet", "ordered", "quote") or "]:" not in block.source:
        return block
    lines = [x for x in block.source.splitlines() if not _DEFINITION.match(x)]
    return replace(block, source="\n".join(lines)) if lines else None


def _is_chatter(block: RawBlock, pattern: re.Pattern[str]) -> bool:
    return block.kind in ("paragraph", "quote") and bool(pattern.fullmatch(block.source.strip()))
