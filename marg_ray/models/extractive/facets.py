"""What one section is to answer, and how well a sentence or a heading fits it, by words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from marg_ray.models.extractive.clauses import CUES, FACTOIDS, HEADINGS, Kind, clauses, items, kind_of
from marg_ray.models.extractive.words import (
    asked_terms, contained, figures, is_english, names, squeeze, stem, term_set, words,
)  # fmt: skip

_PARENTHESIS = re.compile(r"\s*\(([^()]*)\)\s*$")
_LOSS = re.compile(
    r"\b(?:killed|deaths?|dead|died|injur\w+|missing|fatalit\w+|casualt\w+|damages?|damaged|destroyed|losses|homeless|displaced|cost)\b",
    re.I,
)
_DATE = re.compile(
    r"\b(?:1[5-9]|20)\d\d\b|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\s+\d"
)
_PLACE = re.compile(r"\b(?:in|at|near|from|of|to)\s+(?:the\s+)?[A-Z]\w+")


@dataclass(frozen=True)
class Facet:
    """A section's question in the forms that matching needs."""

    title: str
    query: str  # embedded
    kind: Kind
    english: bool
    own: frozenset[str]  # stems it asks for, its topic's left out
    everything: frozenset[str]  # stems of title and queries
    cues: frozenset[str]
    subject: frozenset[str] = frozenset()  # stems of the names in the query
    heading: str = ""  # the section is named after this heading of a source
    document: str = ""  # ... of this source
    item: str = ""  # the section is about one thing of an enumeration, matched letter by letter
    siblings: tuple[str, ...] = ()  # the other things of the enumeration

    @property
    def factoid(self) -> bool:
        return self.kind in FACTOIDS


_OF_DOCUMENT = re.compile(r"^(?P<document>.{2,200}?): (?P<heading>.+)$")


def facet(question: str, title: str, queries: Iterable[str], source_titles: Iterable[str] = ()) -> Facet:
    """The facet of a section, from its title and queries and from the question they were made of."""
    asked = [q for q in queries if q.strip()] or [title]
    english = is_english(f"{question} {title}")
    bare, document = _split_title(title)
    if (named := _OF_DOCUMENT.match(asked[0])) and named["heading"].casefold() == bare.casefold():
        document = squeeze(named["document"])  # as planning writes the query of a section named after a heading
    found = items(question, (*source_titles, title)) if english else None
    item = next((n for n in (found.names if found else ()) if n.casefold() == bare.casefold()), "")
    is_question = not document and (title.rstrip().endswith("?") or title.casefold().rstrip("?. ") in question.casefold())
    kind = (kind_of(asked[0]) if (is_question or item) else kind_of(bare)) if english else Kind.WHAT
    if kind is Kind.COMPARE and item:
        kind = Kind.WHAT
    topic = term_set(" ".join(names(question))) | term_set(document)
    text = asked[0] if (item or is_question) else f"{bare} {document}".strip()
    own = frozenset(asked_terms(f"{bare} {asked[0] if is_question else ''}")) - topic
    return Facet(
        title=title,
        query=squeeze(text),
        kind=kind,
        english=english,
        own=own or asked_terms(title),
        everything=asked_terms(" ".join([title, *asked])),
        cues=frozenset(stem(w) for w in CUES.get(kind, ())),
        subject=(term_set(" ".join(names(text))) - term_set(item)) if english else frozenset(),
        heading="" if is_question or item else bare,
        document=document,
        item=item,
        siblings=tuple(n for n in (found.names if found else ()) if n != item) if item else (),
    )


def _split_title(title: str) -> tuple[str, str]:
    match = _PARENTHESIS.search(title)
    return (squeeze(title[: match.start()]), squeeze(match.group(1))) if match else (squeeze(title), "")


def heading_fit(facet_: Facet, heading: str) -> float:
    """0 to 1: whether what stands under `heading` answers the facet, by the heading's words alone."""
    if not heading:
        return 0.0
    if facet_.heading:
        return 1.0 if heading.casefold() == facet_.heading.casefold() else _cover(facet_.own, heading) * 0.8
    if facet_.item and names_item(heading, facet_.item):
        return 1.0
    fit = _cover(facet_.own, heading)
    pattern = HEADINGS.get(facet_.kind)
    if facet_.english and pattern and pattern.search(heading):
        fit = max(fit, 0.8 if len(heading.split()) <= 4 else 0.6)
    return fit


def path_fit(facet_: Facet, path: tuple[str, ...]) -> float:
    """The fit of the nearest heading, or most of that of a heading above it. The topmost is the document's title."""
    fits = [heading_fit(facet_, h) for h in (path[1:] or path)]
    return max([*(fits[-1:]), *(0.85 * f for f in fits[:-1])], default=0.0)


def subject_fit(facet_: Facet, text: str) -> float:
    """The share of the names in the question that `text` has: other floods are not these floods."""
    if not facet_.subject:
        return 1.0
    return contained(facet_.subject, {stem(w) for w in words(text)})


def _cover(own: frozenset[str], heading: str) -> float:
    terms = term_set(heading)
    if not terms or not own:
        return 0.0
    return (contained(own, terms) * contained(terms, own)) ** 0.5


def names_item(text: str, item: str) -> bool:
    """Whether `text` names the item exactly: `Depends` is not "depends", and not "Pre-Depends"."""
    flags = 0 if item[:1].isupper() or item.isupper() else re.I
    ending = "" if item[:1].isupper() else "(?:s|es)?"
    return bool(re.search(rf"(?<![\w-]){re.escape(item)}{ending}(?![\w]|-\w)", text, flags))


def word_fit(facet_: Facet, text: str, rarity: Mapping[str, float]) -> tuple[float, float, float]:
    """(share of the facet's own terms, of all its terms, of its cue words, saturating at two) in `text`."""
    found = {stem(w) for w in words(text)}
    return (
        _weighted(facet_.own, found, rarity),
        _weighted(facet_.everything, found, rarity),
        min(1.0, len(facet_.cues & found) / 2) if facet_.cues else 0.0,
    )


def _weighted(wanted: frozenset[str], found: set[str], rarity: Mapping[str, float]) -> float:
    total = sum(rarity.get(t, 1.0) for t in wanted)
    return sum(rarity.get(t, 1.0) for t in wanted & found) / total if total else 0.0


def rivals(question: str, wanted: Facet, titles: Iterable[str] = ()) -> tuple[str, ...]:
    """What else the question asks: a sentence that answers this better belongs to another section."""
    if not wanted.english or wanted.item:
        return ()
    mine = {wanted.title.casefold(), wanted.query.casefold()}
    return tuple(c.query for c in clauses(question, tuple(titles)) if c.text.casefold() not in mine and c.query.casefold() not in mine)


def answer_fit(facet_: Facet, text: str) -> float:
    """Whether `text` has the shape of the answer: a date for "when", a figure for "how many", losses for damage."""
    match facet_.kind:
        case Kind.WHEN:
            return 1.0 if _DATE.search(text) else -0.5
        case Kind.NUMBER:
            return 1.0 if figures(text) else -0.5
        case Kind.WHO:
            return 0.5 if names(text) else -0.5
        case Kind.WHERE:
            return 0.5 if _PLACE.search(text) else -0.5
        case Kind.CONSEQUENCE:
            loss = bool(_LOSS.search(text))
            return 1.0 if loss and figures(text) else 0.5 if loss else 0.0
        case _:
            return 0.0
