"""Cuts a document into the passages that are searched."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby

from marg_ray.grounding.sentences import sentence_spans
from marg_ray.grounding.snapshots import Document
from marg_ray.grounding.terms import STOP_WORDS, content_terms

CUT_VERSION = 1  # raise it when passages, terms or names come out differently: indexes are cut anew

UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_CAPITAL = r"[A-ZÀ-ÖØ-ÞĀ-ŽΑ-ΩА-Я][\w'’.&-]*\w"
_NAME = re.compile(rf"{_CAPITAL}(?:[ \u00a0](?:(?:of|the|de|la|van|von|and|for)[ \u00a0])*{_CAPITAL}){{0,5}}")
_PREFIX_WORDS = 25


@dataclass(frozen=True)
class Piece:
    """`document.text[start:end]`, with what stands above it."""

    start: int
    end: int
    heading: str = ""
    label: str = ""  # the defined terms it explains
    top: str = ""  # the main heading it stands under
    words: int = 0


@dataclass(frozen=True)
class Row:
    """A passage as the index keeps it. `terms`, `counts` (stems, how often) and `names` are hashed to 64 bits."""

    start: int
    end: int
    heading: str
    label: str
    text: str
    embedded: str  # title, headings and labels in front of the text
    terms: tuple[int, ...]
    counts: tuple[int, ...]
    names: tuple[int, ...]


def rows_of(document: Document, passage_words: int) -> list[Row]:
    """The rows of a document. Pure CPU."""
    return [row_of(document.title, document.text[p.start : p.end], p) for p in cut(document, passage_words)]


def row_of(title: str, text: str, piece: Piece) -> Row:
    embedded = embedding_text(title, piece.heading, piece.label, text)
    counts = Counter(hashed(term) for term in content_terms(embedded))
    return Row(
        start=piece.start,
        end=piece.end,
        heading=piece.heading,
        label=piece.label,
        text=text,
        embedded=embedded,
        terms=tuple(counts),
        counts=tuple(counts.values()),
        names=tuple(sorted({hashed(name_key(name)) for name in names(f"{piece.label}\n{text}")})),
    )


def embedding_text(title: str, heading: str, label: str, text: str) -> str:
    above = [part for part in heading.split(" > ") if part and part != title]
    prefix = " ".join(". ".join([title, *above]).split()[:_PREFIX_WORDS])
    body = f"{label}: {text}" if label and not text.startswith(label) else text
    return f"{prefix}\n{body}" if prefix else body


@lru_cache(maxsize=200_000)
def hashed(term: str) -> int:
    """64 bits, signed, that name a term in every process."""
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), signed=True)


def names(text: str) -> list[str]:
    """Capitalised names in order of appearance, each once."""
    found: dict[str, None] = {}
    for match in _NAME.finditer(text):
        name = match.group()
        first, _, rest = name.partition(" ")
        if first.casefold() in STOP_WORDS:
            name = rest if rest[:1].isupper() else ""
        if len(name) > 2 and name.casefold() not in STOP_WORDS:
            found.setdefault(name)
    return list(found)


def name_key(name: str) -> str:
    """Equal for spellings of one name: lower case, no possessive, the brackets of an article's title off."""
    bare = re.sub(r"\s*\([^)]*\)$", "", name)
    return " ".join(_bare(word) for word in bare.casefold().split())


def called(text: str, longest: int = 8) -> set[str]:
    """Every run of up to `longest` words of `text`, as `name_key` writes them."""
    words = [_bare(word) for word in text.casefold().split()]
    runs = set(words)
    for n in range(2, longest + 1):
        runs.update(map(" ".join, zip(*(words[i:] for i in range(n)), strict=False)))
    return runs


@lru_cache(maxsize=100_000)
def _bare(word: str) -> str:
    bare = word.strip("\"'“”‘’«»()[].,;:!?…")
    return bare.removesuffix("'s").removesuffix("’s")


# ---- cutting


def count_words(text: str) -> int:
    """Words; two characters of a script without spaces count as one, ten of anything without a space."""
    return max(len(text.split()) + len(UNSPACED.findall(text)) // 2, len(text) // 10)


def cut(document: Document, passage_words: int) -> list[Piece]:
    """Passages of about `passage_words` words, title and headings counted, in order and without overlap.

    They begin and end where paragraphs do; a paragraph that is too long is split at sentences, small neighbours
    under one main heading are joined.
    """
    result: list[Piece] = []
    for _, group in groupby(_units(document), key=lambda p: (p.top, p.heading)):
        units = list(group)
        prefix = min(_PREFIX_WORDS, count_words(f"{document.title} {units[0].heading}"))
        budget = max(passage_words // 2, passage_words - prefix)
        result.extend(_pack(document.text, units, budget))
    return _join_small(result, passage_words)


def _units(document: Document) -> list[Piece]:
    """One piece per part that is no heading, with the headings above it."""
    text, parts = document.text, document.parts
    levels = Counter(part.level for part in parts if part.kind == "heading")
    main = min((level for level, n in levels.items() if n > 1), default=0)
    path: list[tuple[int, str]] = []
    units: list[Piece] = []
    for part in parts:
        if part.kind == "heading":
            path = [p for p in path if p[0] < part.level]
            path.append((part.level, " ".join(text[part.start : part.end].split())))
        elif text[part.start : part.end].strip():
            heading = " > ".join(title for _, title in path)
            top = " > ".join(title for level, title in path if level <= main)
            size = count_words(text[part.start : part.end])
            units.append(Piece(part.start, part.end, heading, part.term, top, size))
    if units or not text.strip():
        return units
    whole = [(p.start, p.end) for p in parts] or [m.span() for m in re.finditer(r"\S(?:.|\n(?!\s*\n))*", text)]
    return [Piece(start, end, words=count_words(text[start:end])) for start, end in whole]


def _pack(text: str, units: list[Piece], budget: int) -> Iterator[Piece]:
    """Fill passages with the units of one section."""
    held: Piece | None = None
    for unit in (part for whole in units for part in _split(text, whole, budget)):
        if held is not None and held.words + unit.words <= budget * 1.15:
            held = _joined(held, unit)
            continue
        if held is not None:
            yield held
        held = unit
    if held is not None:
        yield held


def _split(text: str, unit: Piece, budget: int) -> Iterator[Piece]:
    """A unit that is too long, in parts of nearly equal length that end where sentences do."""
    if unit.words <= budget * 1.3:
        yield unit
        return
    target = unit.words / -(-unit.words // budget)
    held: Piece | None = None
    for start, end in _sentences(text, unit, budget):
        size = count_words(text[start:end])
        if held is not None and held.words + size / 2 <= target:
            held = replace(held, end=end, words=held.words + size)
            continue
        if held is not None:
            yield held
        held = replace(unit, start=start, end=end, words=size)
    if held is not None:
        yield held


def _sentences(text: str, unit: Piece, budget: int) -> Iterator[tuple[int, int]]:
    """The unit's sentences; one that is longer than a passage (code, a list without stops) by lines, then by length."""
    for s, e in sentence_spans(text[unit.start : unit.end]):
        start, end = unit.start + s, unit.start + e
        if count_words(text[start:end]) <= budget:
            yield start, end
            continue
        for line in re.finditer(r"[^\n]*\S", text[start:end]):
            a, b = start + line.start(), start + line.end()
            while b - a > (limit := budget * (3 if UNSPACED.search(text, a, b) else 8)):
                space = max(text.rfind(" ", a + limit // 2, a + limit), text.rfind("\t", a + limit // 2, a + limit))
                stop = space if space > 0 else a + limit
                yield a, stop
                a = stop + 1 if space > 0 else stop
            yield a, b


def _joined(a: Piece, b: Piece) -> Piece:
    labels = dict.fromkeys(label for label in (a.label, b.label) if label)
    return replace(a, end=b.end, label=", ".join(labels), words=a.words + b.words)


def _join_small(pieces: list[Piece], passage_words: int) -> list[Piece]:
    result: list[Piece] = []
    for piece in pieces:
        last = result[-1] if result else None
        if (
            last is not None
            and last.top == piece.top
            and min(last.words, piece.words) < passage_words / 3
            and last.words + piece.words <= passage_words * 1.1
        ):
            result[-1] = _joined(last, piece)
        else:
            result.append(piece)
    return result


def sketch(text: str, scale: int = 8) -> list[int]:
    """A sample of the text's runs of five words, the same runs for every text that has them (FracMinHash, Irber et
    al. 2022): how much of one document stands in another shows in the samples."""
    tokens = re.findall(r"[^\W_]+", UNSPACED.sub(r" \g<0> ", text.casefold()))
    runs = {hashed_run(" ".join(tokens[i : i + 5])) for i in range(max(0, len(tokens) - 4))}
    return sorted(run for run in runs if run % scale == 0)


def hashed_run(run: str) -> int:
    return int.from_bytes(hashlib.blake2b(run.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)
