"""From whatever engines return to hits: addresses that exist, texts that can be shown, each page once."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from marg_ray.records import Hit, SourceKind
from marg_ray.sources.urls import normalise_url, page_name, web_url
from marg_ray.text import one_line

_LINK = ("href", "url", "link")
_SNIPPET = ("body", "content", "snippet", "description")
_DATE = ("publishedDate", "published", "date")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_WORD = re.compile(r"\w+")
_NEARLY_ALL = 0.9
_FEWEST_SHINGLES = 8
_LONGEST_TITLE = 300
_LONGEST_SNIPPET = 2_000


@dataclass(frozen=True)
class Normalised:
    hits: tuple[Hit, ...]
    dropped: int  # entries without a usable address


def normalise(entries: Sequence[object], engine: str) -> Normalised:
    """Hits in the engine's order; relevance falls with the rank, from 1."""
    found: list[Hit] = []
    for entry in entries:
        if (hit := _hit(entry, engine, rank=len(found))) is not None:
            found.append(hit)
    return Normalised(tuple(found), len(entries) - len(found))


def dedupe(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Each page once, the first stays: by normalised address, then by near-identical title and snippet.

    Near-identical is a Jaccard similarity of 0.9 and more over sets of three consecutive words (A. Broder, "On the
    resemblance and containment of documents", 1997); texts of fewer than ten words are never compared.
    """
    kept: list[Hit] = []
    seen: set[str] = set()
    shingles: list[frozenset[tuple[str, ...]]] = []
    for hit in hits:
        key = normalise_url(hit.location)
        if key in seen:
            continue
        mine = _shingles(f"{hit.title} {hit.snippet}")
        if any(_alike(mine, other) for other in shingles):
            continue
        seen.add(key)
        if len(mine) >= _FEWEST_SHINGLES:
            shingles.append(mine)
        kept.append(hit)
    return tuple(kept)


def _hit(entry: object, engine: str, rank: int) -> Hit | None:
    if not isinstance(entry, Mapping):
        return None
    location = next((url for key in _LINK if (url := web_url(entry.get(key)))), "")
    if not location:
        return None
    published = _ISO_DATE.match(_text(entry, _DATE, 40))
    return Hit(
        location=location,
        title=_text(entry, ("title", "name"), _LONGEST_TITLE) or page_name(location),
        kind=SourceKind.WEB,
        snippet=_text(entry, _SNIPPET, _LONGEST_SNIPPET),
        engine=engine,
        relevance=round(1 / (1 + 0.1 * rank), 3),
        published=published[0] if published else "",
    )


def _text(entry: Mapping[object, object], keys: tuple[str, ...], longest: int) -> str:
    """The first of these values that is a text, as one clean line without markup."""
    for key in keys:
        value = entry.get(key)
        if isinstance(value, str) and (line := one_line(html.unescape(_without_tags(value)))):
            return line[:longest]
    return ""


def _without_tags(text: str) -> str:
    return _TAG.sub("", text) if "<" in text else text


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def _alike(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> bool:
    a, b = len(one), len(other)
    if a < _FEWEST_SHINGLES or a < _NEARLY_ALL * b or b < _NEARLY_ALL * a:
        return False
    shared = len(one & other)
    return shared >= _NEARLY_ALL * (a + b - shared)
