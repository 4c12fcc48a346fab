"""Cuts passages out of a source that speak to a model instead of to a reader.

Text from a source is data. A sentence that orders "the assistant" about ("ignore all previous instructions") is taken
out before any model sees it and kept in the record, also where it is disguised: in odd letters, in a code, pulled apart
over letters, cells, lines or sentences. Pages that describe such attacks, manuals and recipes stay whole: an order
counts only where it stands as an order. One that is quoted, or shown as code, stays in the text that readers see and
check against, and is blanked out where a model reads it (`veil`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from marg_ray.grounding.cutting import without
from marg_ray.grounding.disguise import disguised, joined_cells, readings
from marg_ray.grounding.injection_needs import Hints, Rule, hints, likely, low
from marg_ray.grounding.injection_signs import (
    AIMED,
    DESCRIPTIVE,
    MANUAL,
    NEXT_AIMED,
    OPENING,
    OPENINGS,
    PRIOR,
    QUOTED,
    SQUEEZED,
    TOKEN_TALK,
)
from marg_ray.grounding.sentences import sentence_spans
from marg_ray.grounding.snapshots import Document
from marg_ray.records import Hit, Injection
from marg_ray.text import one_line

_LONGEST = 3000  # characters of a sentence that are looked at
_SPLIT = 3  # sentences, lines or paragraphs that one order may be spread over
_SHORT = 300  # characters of a paragraph that may be a piece of an order
_PARAGRAPH = re.compile(r"(?:[^\n]+\n?)+")
_CELLS = re.compile(r"(?:; | \| )(?=[^:;|\n]{1,40}: )")
_CLOSED = re.compile(r"(?<![.…])[.!?。！？][\"”’»)\]]*\s*\Z")
_BEFORE = 250  # characters before a quotation in which it is introduced
_BLANK = "[left out]"


@dataclass(frozen=True, slots=True)
class Found:
    """An instruction-like stretch `text[start:end]`, and the rule that told."""

    start: int
    end: int
    rule: str


def scan(text: str) -> list[Found]:
    """The instruction-like stretches of `text`, whole sentences, in order and without overlap.

    Sentences after one that give a model further orders belong to it. What is quoted is not among them.
    """
    return _scan(text, quoted=False)


def _scan(text: str, *, quoted: bool) -> list[Found]:
    found: list[Found] = []
    odd, told = disguised(text), hints(low(text))
    before: list[tuple[int, int]] = []  # short paragraphs that may be the beginning of an order
    for match in _PARAGRAPH.finditer(text):
        start, end = match.span()
        more: list[Found] = []
        if told.within(start, end):
            more = _scan_paragraph(text, start, end, told, quoted=quoted)
        if not more and _any(odd, start, end):
            more = _disguised(text, start, end, quoted=quoted)
        if not more and before and end - start < _SHORT:
            more = _spread(text, [*before, (start, end)], quoted=quoted)
        if not more and found and not text[found[-1].end : start].strip() and NEXT_AIMED.match(match[0]):
            stop = _end_of_first(text, start, end)
            more = [Found(start, stop, found[-1].rule)]
        found += more
        open_ended = not more and end - start < _SHORT and not _CLOSED.search(match[0])
        opens = open_ended and (before or _opens(match[0]))
        before = [*before, (start, end)][-(_SPLIT - 1) :] if opens else []
    return found


def _any(places: Sequence[int], start: int, end: int) -> bool:
    at = bisect_left(places, start)
    return at < len(places) and places[at] < end


def _end_of_first(text: str, start: int, end: int) -> int:
    """Where the orders at the beginning of a paragraph end."""
    stop = start
    for first, last in sentence_spans(text[start:end]):
        if stop > start and not AIMED.match(text[start + first : start + last]):
            break
        stop = start + last
    return stop


def _scan_paragraph(text: str, offset: int, end: int, told: Hints, *, quoted: bool) -> list[Found]:
    found: list[Found] = []
    rule = ""
    paragraph = text[offset:end]
    spans = sentence_spans(paragraph)
    for start, stop in spans:
        rules = told.within(start + offset, stop + offset)
        hit = _broken(paragraph, start, stop, quoted=quoted, rules=rules) if rules else ""
        if hit or (rule and AIMED.match(paragraph[start:stop])):
            rule = hit or rule
            start, stop = _cell(paragraph, start, stop) if hit else (start, stop)
            _add(
                found,
                Found(start + offset, stop + offset, rule),
                text,
                joins=hit in ("", found[-1].rule if found else ""),
            )
        else:
            rule = ""
    if not found and (rule := _split_rule(paragraph, quoted=quoted)):
        first, last = _window(paragraph, spans, quoted=quoted)
        found = [Found(first + offset, last + offset, rule)]
    return found


def _cell(paragraph: str, start: int, stop: int) -> tuple[int, int]:
    """The one cell of a table's row that breaks a rule, its name included; all of it where it is no such row."""
    edges = [start, *(start + m.start() for m in _CELLS.finditer(paragraph[start:stop])), stop]
    cells = [(a, b) for a, b in pairwise(edges) if _rule(_CELLS.sub("", paragraph[a:b], 1))]
    return cells[0] if len(edges) > 2 and len(cells) == 1 else (start, stop)


def _add(found: list[Found], one: Found, text: str, *, joins: bool) -> None:
    if found and joins and not text[found[-1].end : one.start].strip(" \t"):
        found[-1] = Found(found[-1].start, one.end, found[-1].rule)
    else:
        found.append(one)


# ---- spread over sentences, cells and lines


def _split_rule(text: str, *, quoted: bool) -> str:
    """The rule that a whole paragraph breaks once its separators are left out."""
    if len(text) > _LONGEST or not _opens(text):
        return ""
    joined = re.sub(r"(?<=\w)[.!…]+(?=\s+[a-z])", "", joined_cells(text))
    return _broken(joined, 0, len(joined), quoted=quoted)


def _opens(text: str) -> bool:
    small = low(text)
    return any(word in small for word in OPENINGS) and bool(OPENING.search(text))


def _window(paragraph: str, spans: Sequence[tuple[int, int]], *, quoted: bool) -> tuple[int, int]:
    """The fewest neighbouring sentences that break a rule together, with the orders after them; else all of it."""
    for size in range(1, _SPLIT + 1):
        for i in range(len(spans) - size + 1):
            start, end = spans[i][0], spans[i + size - 1][1]
            if _split_rule(paragraph[start:end], quoted=quoted):
                for first, last in spans[i + size :]:
                    if not AIMED.match(paragraph[first:last]):
                        break
                    end = last
                return start, end
    return spans[0][0], spans[-1][1]


def _spread(text: str, paragraphs: Sequence[tuple[int, int]], *, quoted: bool) -> list[Found]:
    """An order that begins in one short paragraph and ends in a later one."""
    for first in range(len(paragraphs) - 1, 0, -1):
        start, end = paragraphs[first - 1][0], paragraphs[-1][1]
        if rule := _split_rule(re.sub(r"\s+", " ", text[start:end]), quoted=quoted):
            return [Found(start, end - (text[end - 1] == "\n"), rule)]
    return []


# ---- disguised


def _disguised(text: str, offset: int, end: int, *, quoted: bool) -> list[Found]:
    """Sentences of a paragraph that break a rule in another reading of them."""
    paragraph = text[offset:end]
    if not (rule := _disguised_rule(paragraph, quoted=quoted)):
        return []
    found: list[Found] = []
    spans = sentence_spans(paragraph)
    on = False
    for start, stop in spans:
        hit = _disguised_rule(paragraph[start:stop], quoted=quoted)
        if hit or (on and any(AIMED.match(t) for _, t in readings(paragraph[start:stop]))):
            _add(found, Found(start + offset, stop + offset, hit or rule), text, joins=True)
        on = bool(hit) or on
    return found or [Found(offset + spans[0][0], offset + spans[-1][1], rule)]


def _disguised_rule(text: str, *, quoted: bool) -> str:
    for name, other in readings(text):
        other = other[:_LONGEST]
        for start, stop in sentence_spans(other):
            if rule := _broken(other, start, stop, quoted=quoted):
                return f"{name}: {rule}"
        if name in ("spaced", "reversed") and SQUEEZED.search(re.sub(r"\W+", "", other)):
            return f"{name}: override"
    return ""


# ---- rules


def _rule(sentence: str, rules: Sequence[Rule] | None = None) -> str:
    """The name of the rule, one of `rules`, that this sentence breaks, or ""."""
    sentence = sentence[:_LONGEST]
    small = low(sentence)
    for rule in likely(small) if rules is None else rules:
        match = rule.pattern.search(sentence) if rule.may_apply(small) else None
        if match and not _is_mention(sentence, rule.name, match[0]):
            return rule.name
    return ""


def _broken(text: str, start: int, stop: int, *, quoted: bool, rules: Sequence[Rule] | None = None) -> str:
    """The rule that the sentence breaks, quotations left out unless `quoted`."""
    rule = _rule(text[start:stop], rules)
    return "" if rule and not quoted and _is_quoted_in(text, start, stop) else rule


def _is_mention(sentence: str, name: str, match: str) -> bool:
    """Whether a mark of a transcript is spoken of ("the token <|endoftext|> ends a text"), or a manual speaks."""
    if name == "override":
        return bool(MANUAL.search(sentence)) and not PRIOR.search(match)
    return name == "token" and len(match) < 40 and bool(TOKEN_TALK.search(sentence.replace(match, " ")))


def _is_quoted_in(paragraph: str, start: int, stop: int) -> bool:
    """Whether all that breaks a rule in the sentence stands between quotation marks that the words around introduce."""
    quotes = [m.span() for m in QUOTED.finditer(paragraph) if m.start() < stop and m.end() > start]
    if not quotes:
        return False
    outside, at = [], start
    for first, last in quotes:
        outside.append(paragraph[at : max(at, first)])
        at = max(at, last)
    outside.append(paragraph[at:stop])
    rest = " … ".join(outside)
    if _rule(rest):
        return False
    before = paragraph[max(0, quotes[0][0] - _BEFORE) : quotes[0][0]]
    return bool(DESCRIPTIVE.search(f"{before} {rest}"))


# ---- what is quoted


def orders(text: str) -> list[Found]:
    """All instruction-like stretches of `text`, also those that are quoted or shown as code."""
    return _scan(text, quoted=True)


@lru_cache(maxsize=1024)  # the same passages are numbered, shown and shown again
def veil(text: str) -> str:
    """The same text, as long as before, with every order to a model blanked out, quoted or not."""
    found = orders(text)
    if not found:
        return text
    pieces, at = [], 0
    for one in found:
        pieces += [text[at : one.start], _BLANK[: one.end - one.start].ljust(one.end - one.start)]
        at = one.end
    return "".join([*pieces, text[at:]])


# ---- cutting

_JOINED = re.compile(r"\w[_+%-]\w+[_+%-]\w")


def cut_injections(document: Document) -> Document:
    """The document without instruction-like passages, its parts' offsets fitted; each cut is in `injections`.

    Code is left as it is. A document without such passages comes back as it was.
    """
    code = [(p.start, p.end) for p in document.parts if p.kind == "code"]
    cuts = [f for f in scan(document.text) if not any(s < f.end and f.start < e for s, e in code)]
    title, title_cuts = clean_line(document.title)
    if not cuts and not title_cuts:
        return document
    rest = without(document.text, document.parts, [(f.start, f.end) for f in cuts])
    taken = [
        Injection(text=document.text[f.start : f.end], rule=f.rule, at=rest.place(f.start), where="text") for f in cuts
    ]
    return document.model_copy(
        update={
            "title": title,
            "text": rest.text,
            "parts": rest.parts,
            "injections": (*document.injections, *taken, *_put(title_cuts, "title")),
        }
    )


def cut_text(text: str) -> tuple[str, tuple[Injection, ...]]:
    """A text without instruction-like sentences, and what was taken out."""
    found = scan(text)
    if not found:
        return text, ()
    taken = tuple(Injection(text=text[f.start : f.end], rule=f.rule) for f in found)
    return without(text, (), [(f.start, f.end) for f in found]).text, taken


@lru_cache(maxsize=4096)  # the same pages are found for several queries
def clean_line(line: str) -> tuple[str, tuple[Injection, ...]]:
    """A title, a name of a file or a snippet without what speaks to a model. Words may be joined by other signs."""
    rest, taken = cut_text(line)
    if not taken and (rule := _named(line)):
        return "", (Injection(text=line, rule=rule),)
    return (rest if taken else line), taken


def _named(line: str) -> str:
    """The rule that a name made of words in a row breaks: "ignore-all-previous-instructions.pdf"."""
    if " " in line.strip() and not _JOINED.search(line):
        return ""
    for step in re.split(r"[/\\?&=#]", line):
        words = re.sub(r"%20|[_+.-]+", " ", step)
        if found := scan(words):
            return found[0].rule
    return ""


def clean_hit(hit: Hit) -> tuple[Hit, tuple[Injection, ...]]:
    """A search result whose title and snippet order no model about, and what was taken out of them."""
    title, first = clean_line(hit.title)
    snippet, second = clean_line(hit.snippet)
    if not first and not second:
        return hit, ()
    title = title or next(iter(_clean_names(hit.location)), "") or "Untitled"
    cleaned = hit.model_copy(update={"title": title, "snippet": snippet})
    return cleaned, (*_put(first, "title"), *_put(second, "snippet"))


def _clean_names(location: str) -> Iterator[str]:
    """Names that a place gives to what is there: the file's, then the host's."""
    steps = location.replace("\\", "/").rstrip("/").split("/")
    for name in map(one_line, (steps[-1], *steps[2:3])):
        if name and not clean_line(name)[1]:
            yield name


def named(*titles: str, location: str) -> str:
    """The first title that is there and speaks to no model; else a name from the place."""
    for title in (*titles, location):
        if (kept := clean_line(title)[0]).strip():
            return kept
    return next(_clean_names(location), "Untitled")


def hidden(texts: Iterable[str]) -> tuple[Injection, ...]:
    """Orders to a model in texts that a page carries and does not show."""
    found: list[Injection] = []
    for text in dict.fromkeys(one_line(t) for t in texts):
        found += [Injection(text=text[f.start : f.end], rule=f.rule, where="hidden") for f in scan(text)]
    return tuple(found)


def _put(taken: Sequence[Injection], where: str) -> tuple[Injection, ...]:
    return tuple(i.model_copy(update={"where": where}) for i in taken)
