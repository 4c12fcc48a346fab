"""Citation marks as models write them, and the numbers of a report's references.

A mark names evidence by the number a writer was shown. Models write it as [1], [1, 2], [1-3], 【2†source】,
[^1], [Source 2], [cite: 1, 3], [[5]], [5](https://...), ［4］, [٣], <sup>1</sup> and more. What only looks like one
(a year, an array index, a link, an interval, code) stays text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from marg_ray.records import Evidence, Sentence

_MAX_RANGE = 60  # "[100-300]" is a range of pages, not of sources
_YEAR = 1000  # a bare number from here on is a year or a quantity

_WORD = (
    r"(?:sources?|cit(?:e|es|ed|ations?)|refs?\.?|references?|evidence|docs?|documents?|passages?|cards?|notes?|see|"
    r"quellen?|belege?|fuentes?|références?|réf\.?|来源|來源|出典|资料|引用|источники?|المصدر|مصدر)"
)
_CLEAR_WORD = r"(?:source|cit|ref|evidence|quelle|beleg|fuente|réf|来源|來源|出典|资料|引用|источник|المصدر|مصدر)"
_S = r"\s{0,4}"
_NUMBER = rf"(?:[#^]|[eEsSdD](?=\d))?{_S}(?:\d{{1,3}}:(?=\d+†))?\d{{1,4}}\^?(?:{_S}†[^,;\]】］]{{0,60}})?"
_DASH = rf"{_S}(?:[-‐‑‒–—−~～]|\bto\b|\bbis\b){_S}"
_AND = rf"{_S}(?:(?:[,;，、；&+|/]|\b(?:and|und|et|y|or)\b|和|与|及){_S}){{1,3}}"
_LOCATOR = rf"(?:{_S}[,:，]{_S}(?:pp?|S|§|l|ll|sec|para|ch)\.?{_S}\d+(?:{_S}[-–]{_S}\d+)?)?"
_LEAD = rf"(?:{_WORD}{_S}[:：#_-]?{_S})?"
_LIST = rf"{_LEAD}{_NUMBER}(?:(?:{_DASH}|{_AND}){_LEAD}{_NUMBER}){{0,40}}{_LOCATOR}"
_TARGET = r"\((?:[^()\s]|\([^()\s]*\)){1,2000}(?:\s+\"[^\"]*\")?\)"
_MARK = re.compile(
    rf"""
      (?P<open>\\?\[{{1,2}}|[【［〔])\s*(?P<list>{_LIST})\s*(?P<shut>\\?\]{{1,2}}|[】］〕])(?P<target>{_TARGET})?
    | [(（]\s*(?P<worded>(?={_CLEAR_WORD}){_LIST})\s*[)）]
    | <(?P<tag>sup|cite|ref|citation|source)\b[^<>]{{0,80}}>\s*(?P<tagged>{_LIST})\s*</(?P=tag)>
    | (?<=[^\W\d_][.,;:!?。”"')\]])(?P<raised>[⁰¹²³⁴-⁹]+(?:[ʼ˒,⁻][⁰¹²³⁴-⁹]+)*)
    | \^(?P<caret>\d{{1,3}}(?:,\s?\d{{1,3}})*)\^
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SUP_AROUND = re.compile(
    r"<sup>\s*((?:\\?[\[【［][^<>\[\]]{1,80}[\]】］](?:\([^()\s<>]*\))?[\s,;]*)+)</sup>", re.IGNORECASE
)
_NAMED_LINK = re.compile(r"(?<!\!)\[([^\[\]\n]*[^\W\d_]{2}[^\[\]\n]*)\](?=\[[\d٠-٩０-９, -]+\])")
_BRACKETED_RANGE = re.compile(r"\[(\d{1,3})\]\s?[-‐‑‒–—−]\s?\[(\d{1,3})\]")
_NESTED = re.compile(r"\[((?:\[\^?\d{1,3}\][,;，、\s]{0,3}){1,40})\](?!\()")
_BETWEEN = re.compile(r"\s*(?:[,;，、；&]|\b(?:and|und|et|y)\b|和)?\s*")
_RANGE = re.compile(rf"(\d+)\^?(?:\s*†[^,;]*?)?{_DASH}[#^eEsSdD]?\s*(\d+)")
_INDEXED = re.compile(
    r"(?:\A|(?<=[\s(\[{=+*/,;:<>-]))(?:[A-Za-z]|[A-Za-z][\w.]*_[\w.]*|\w+\(\)|arr|array|argv|args|lst|buf|vec|ptr|idx|tmp|str)\Z",
    re.ASCII,
)
_INTERVAL = re.compile(r"(?:\b(?:in|interval|range|within|from|between|into|onto|to)|[∈=×,(])\s*\Z", re.IGNORECASE)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


@dataclass(frozen=True, slots=True)
class Mark:
    """A citation mark at `text[start:end]` and the evidence numbers it names, without repeats."""

    start: int
    end: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Normalised:
    """Text whose every citation reads [n], and the numbers that were taken out because they name nothing."""

    text: str
    unknown: tuple[int, ...]


def find_marks(text: str, known: Collection[int]) -> list[Mark]:
    """The citation marks of `text` in order. Code and ordinary links have to be masked before.

    A number that is not `known` makes a mark all the same: the writer cited something that does not exist.
    """
    return [mark for match in _MARK.finditer(text) if (mark := _mark(text, match, known))]


def normalise(text: str, known: Collection[int]) -> Normalised:
    """Write every citation of `text` (Markdown) as [n], one bracket each; remove those that name no evidence."""
    masked, spans = mask(unfold(text))
    unknown: list[int] = []
    out: list[str] = []
    at = 0
    for mark in find_marks(masked, known):
        good = [n for n in mark.numbers if n in known]
        unknown += [n for n in mark.numbers if n not in known]
        before = masked[at : mark.start]
        if out and _BETWEEN.fullmatch(before):
            before = ""
        if not good and not masked[mark.end : mark.end + 1].strip(" .,;:!?)。，；！？\n"):
            before = before.rstrip(" ")
        out += [before, "".join(f"[{n}]" for n in good)]
        at = mark.end
    out.append(masked[at:])
    return Normalised(unmask("".join(out), spans), tuple(unknown))


def unfold(text: str) -> str:
    """Take away what wraps marks (`<sup>[1]</sup>`, `[[1], [2]]`, `[name][1]`); write `[1]-[3]` as `[1-3]`."""
    text = _NESTED.sub(r"\1", _SUP_AROUND.sub(r"\1", text))
    return _NAMED_LINK.sub(r"\1 ", _BRACKETED_RANGE.sub(r"[\1-\2]", text))


# ---- masks: stretches that hold no citations


_MASKED = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`)(?:.|\n){0,3000}?(?<!`)(?P=ticks)(?!`)"  # code
    r"|\$\$(?:.|\n){1,1000}?\$\$|\\\((?:.|\n){1,400}?\\\)|\\\[(?=[^\]]*[^\d\s,;\-\]\\])(?:.|\n){1,400}?\\\]"
    r"|(?<![\\$\w])\$(?![\s$])(?:\\.|[^$\n\\]){0,200}?(?<![\s\\])\$(?![\d$\w])"  # a formula, not two prices
    r"|!\[[^\[\]\n]{0,300}\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)"  # image
    r"|\[(?:[^\[\]\n]|\[[^\[\]\n]*\]){1,300}\]\((?:[^()\s]|\([^()\s]*\)){1,2000}(?:\s+\"[^\"]*\")?\)"  # link
    r"|<https?://[^<>\s]+>|(?:https?://|www\.)[^\s<>\"'）】」]*[^\s<>\"'.,;:!?()\[\]（）【】」。，]"
)
_FIRST_MASK = 0xF0000  # a private plane: `clean_text` leaves it alone and nobody writes it


def mask(text: str) -> tuple[str, tuple[str, ...]]:
    """Replace code, formulas, links and addresses by one private letter each. `unmask` puts them back.

    A link whose label is a citation number stays: it is a citation.
    """
    spans: list[str] = []

    def hide(match: re.Match[str]) -> str:
        found = match.group()
        if found[0] == "[" and _MARK.fullmatch(found):
            return found
        spans.append(found)
        return chr(_FIRST_MASK + len(spans) - 1)

    text = "".join(c for c in text if not _is_mask(c))
    return _MASKED.sub(hide, text), tuple(spans)


def unmask(text: str, spans: tuple[str, ...]) -> str:
    if not spans:
        return text
    return "".join(spans[ord(c) - _FIRST_MASK] if _is_mask(c) else c for c in text)


def _is_mask(char: str) -> bool:
    return _FIRST_MASK <= ord(char) < 0xFFFFE


# ---- one mark


def _mark(text: str, match: re.Match[str], known: Collection[int]) -> Mark | None:
    content = match["list"] or match["worded"] or match["tagged"] or match["caret"] or ""
    if match["raised"]:
        content = match["raised"].translate(_SUPERSCRIPTS).replace("⁻", "-")
    numbers = tuple(dict.fromkeys(_numbers(content)))
    bare = not re.search(r"[^\W\d_]{2}|[†^#]", content)
    if not numbers or (bare and any(n >= _YEAR and n not in known for n in numbers)):
        return None
    if match["raised"] or match["caret"] or (match["tag"] or "").lower() == "sup":
        return Mark(*match.span(), numbers) if set(numbers) <= set(known) else None
    if match["open"] and not _balanced(match):
        return None
    if bare and not set(numbers) & set(known) and _is_page_range(content, numbers):
        return None
    if bare and match["open"] in ("[", "\\[") and not match["target"] and _is_index(text, match, numbers):
        return None
    return Mark(*match.span(), numbers)


def _balanced(match: re.Match[str]) -> bool:
    opened, shut = match["open"].lstrip("\\"), match["shut"].lstrip("\\")
    return opened[0] not in "[［【〔" or len(opened) == len(shut) or opened == "["


def _is_page_range(content: str, numbers: tuple[int, ...]) -> bool:
    return len(numbers) == 2 and numbers[1] - numbers[0] > _MAX_RANGE and bool(_RANGE.search(content))


def _is_index(text: str, match: re.Match[str], numbers: tuple[int, ...]) -> bool:
    before = text[max(0, match.start() - 40) : match.start()]
    after = text[match.end() : match.end() + 4]
    if before and _INDEXED.search(before) and not before[-1].isspace():
        return True
    if re.match(r"\s?(?:=[^=]|==|\+=)", after) or after[:1] == "=":
        return True
    pair = len(numbers) == 2 and numbers[0] == 0 and re.search(r"[,;]", match["list"])
    return bool(pair and _INTERVAL.search(before))


def _numbers(content: str) -> Iterator[int]:
    content = re.sub(_LOCATOR[:-1] + r"\Z", "", content) if re.search(r"[,:，]\s*[A-Za-z§]", content) else content
    content = re.sub(r"\d+:(?=\d+†)|†[^,;，；、]*", "", content)
    at = 0
    for match in _RANGE.finditer(content):
        yield from (int(n) for n in re.findall(r"\d+", content[at : match.start()]))
        low, high = int(match[1]), int(match[2])
        yield from range(low, high + 1) if low <= high <= low + _MAX_RANGE else (low, high)
        at = match.end()
    yield from (int(n) for n in re.findall(r"\d+", content[at:]))


# ---- numbering


def number_sources(sentences: Iterable[Sentence], evidence: Mapping[str, Evidence]) -> dict[str, int]:
    """Source ids to reference numbers: 1, 2, 3, ... in the order of first citation, without holes."""
    numbers: dict[str, int] = {}
    for sentence in sentences:
        for cited in sentence.citations:
            if cited in evidence:
                numbers.setdefault(evidence[cited].source, len(numbers) + 1)
    return numbers
