"""What one section is to answer, and how well a sentence or a heading fits it, by words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from marg_ray.grounding.terms import stem, words
from marg_ray.models.extractive.clauses import (
    CUES,
    FACTOIDS,
    HEADINGS,
    SIDE_OF,
    SYNONYMS,
    Kind,
    clauses,
    kind_of,
    topic_of,
)
from marg_ray.models.extractive.enumerations import items, with_item
from marg_ray.models.extractive.words import (
    FUNCTION_WORDS,
    asked_terms,
    contained,
    figures,
    is_english,
    names,
    squeeze,
    term_set,
    unnumbered,
)  # fmt: skip

_PARENTHESIS = re.compile(r"\s*\(([^()]*)\)\s*$")
_LOSS = re.compile(
    r"\b(?:killed|deaths?|dead|died|injur\w+|missing|fatalit\w+|casualt\w+|damages?|damaged|destroyed|losses|homeless|"
    r"displaced|cost)\b",
    re.I,
)
_CAUSES = re.compile(
    r"\b(?:causes? (?:of|for|was|were)|caused by|cause was|attributed to|factors?|blamed|reasons?|stem(?:s|med) from|"
    r"driven by|responsible for|purpose|aims? (?:was|were|is)|in order to)\b",
    re.I,
)
_BECAUSE = re.compile(
    r"\b(?:causes? (?:of|for|was|were)|caused by|cause was|because|due to|led to|attributed to|as a result of|factors?|"
    r"triggered|blamed|owing to|reasons?|stems? from|stemmed from|contribut\w+ to|driven by|responsible for)\b",
    re.I,
)
_DATE = re.compile(
    r"\b(?:1[5-9]|20)\d\d\b|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\s+\d"
)
_PLACE = re.compile(r"\b(?:in|at|near|from|of|to)\s+(?:the\s+)?[A-Z]\w+")

_NAMED_KINDS = frozenset({Kind.CONSEQUENCE, Kind.RISK, Kind.RESPONSE, Kind.PREPARE})


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
    foreign: frozenset[str] = frozenset()  # cue words of what else the question asks
    defined: str = ""  # the name whose definition is asked for
    topic: str = ""  # what the query is about, apart from what it asks; "" where they are the same
    subject: frozenset[str] = frozenset()  # stems of the names in the query
    named: tuple[frozenset[str], ...] = ()  # words of each name that has several: Taylor Swift is not Taylor Hawkins
    heading: str = ""  # the section is named after this heading of a source
    document: str = ""  # ... of this source
    item: str = ""  # the section is about one thing of an enumeration, matched letter by letter
    siblings: tuple[str, ...] = ()  # the other things of the enumeration
    compared: tuple[str, ...] = ()  # the section holds several things of the enumeration against each other

    @property
    def strict(self) -> bool:
        """Whether the words of an answer are known well enough to leave out what has none of them."""
        return bool(self.own) and (self.kind in _NAMED_KINDS or bool(akin(self.own)))

    @property
    def factoid(self) -> bool:
        return self.kind in FACTOIDS and not self.defined


OVERVIEW = "Overview"  # the section that says what the subject is
COMPARISON = "Comparison"  # the section that speaks of several things of an enumeration at once


def facet(question: str, title: str, queries: Iterable[str], source_titles: Sequence[str] = ()) -> Facet:
    """The facet of a section, from its title and queries and from the question they were made of."""
    asked = [q for q in queries if q.strip()] or [title]
    english = is_english(f"{question} {title}")
    bare, document = _split_title(title)
    if whole := _document_of(asked[0], squeeze(title)):  # the heading itself may end in a parenthesis
        bare, document = squeeze(title), whole
    document = _document_of(asked[0], bare) or document
    found = items(question, (*source_titles, title)) if english else None
    item = next((n for n in (found.names if found else ()) if n.casefold() == bare.casefold()), "")
    if item and found and asked == [title]:
        asked = [with_item(found.pattern, item, found.compared)]
    compared = found.names if found and bare == COMPARISON else ()
    if compared and asked == [title]:
        asked = [question]
    is_question = not document and (
        bare in {OVERVIEW, COMPARISON}
        or title.rstrip().endswith("?")
        or title.casefold().rstrip("?. ") in question.casefold()
    )
    kind = (kind_of(asked[0]) if (is_question or item) else kind_of(bare)) if english else Kind.WHAT
    if kind is Kind.COMPARE and item:
        kind = Kind.WHAT
    text = asked[0] if (item or is_question) else f"{bare} {document}".strip()
    about = document or (topic_of(text, source_titles) if english else "")
    topic = term_set(" ".join((*names(question), *compared))) | term_set(about)
    cues = _stems(CUES.get(kind, ()))
    own = frozenset(asked_terms(f"{bare} {asked[0] if is_question else ''}")) - topic
    cues = (cues | akin(own) if english else cues) - topic - own
    apart = bool(own) or kind not in {Kind.WHAT, Kind.WHO}
    return Facet(
        title=title,
        query=squeeze(f"{text.rstrip('?')}? {' '.join(CUES[kind][:5])}" if kind in CUES and english else text),
        kind=kind,
        english=english,
        own=own or (frozenset() if cues else asked_terms(title)),
        everything=asked_terms(" ".join([title, *asked])),
        cues=cues,
        foreign=_foreign(question, kind) - cues - topic if english and not item else frozenset(),
        defined=(item if found and found.compared else "" if item else _defined(text, about)) if english else "",
        topic=about if apart else "",
        subject=(term_set(" ".join(names(text))) - term_set(item)) if english else frozenset(),
        named=tuple(_name_words(names(text))) if english and is_question and not item else (),
        heading="" if is_question or item else bare,
        document=document,
        item=item,
        compared=compared,
        siblings=tuple(n for n in (found.names if found else ()) if n != item) if item else (),
    )


def _name_words(found: Iterable[str]) -> Iterable[frozenset[str]]:
    for name in found:
        parts = frozenset(re.findall(r"\w+", name.casefold())) - FUNCTION_WORDS
        if len(parts) > 1:
            yield parts


def akin(own: frozenset[str]) -> frozenset[str]:
    """Stems that say the same as one of `own`."""
    groups = (_stems(g) for g in SYNONYMS)
    return frozenset[str]().union(*(g for g in groups if g & own))


def _stems(cues: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(w) for w in cues)


def _foreign(question: str, kind: Kind) -> frozenset[str]:
    kinds = {c.kind for c in clauses(question)} - {kind}
    return frozenset[str]().union(*(_stems(CUES.get(k, ())) for k in kinds))


def _defined(query: str, about: str) -> str:
    """The X of "what is X", "who was X", or of a bare "X"."""
    match = re.match(r"(?:what|who)\s+(?:is|are|was|were)\s+(?:an?\s+|the\s+)?(.{2,60}?)\s*\??$", query.strip(), re.I)
    if match:
        return "" if SIDE_OF.match(match.group(1)) else squeeze(match.group(1))
    bare = about.removeprefix("the ").removeprefix("a ").removeprefix("an ")
    return (
        bare
        if bare
        and squeeze(query).casefold().removeprefix("the ").removeprefix("a ").removeprefix("an ").rstrip("?. ")
        == bare.casefold()
        else ""
    )


def defines(facet_: Facet, text: str) -> bool:
    """Whether `text` opens with what the facet wants defined and says what it is."""
    if not facet_.defined:
        return False
    name = re.escape(facet_.defined.removesuffix("s"))
    before = r"(?:(?!(?:for|of|by|with|to|in|on|from|and|or|is|are|was)\b)[\w.-]+\s+){0,3}"
    between = r"(?-i:\s+[A-Z][\w.-]*){0,3}(?:\s*\([^)]*\)|,[^,]{2,90},|\s+(?:Inc|Ltd|Corp|Co)\.)*"
    verb = r"\s+(?:is|are|was|were|means|refers\s+to|denotes)"
    said = r"\s+(?:an?|the|one|any|when|where|those|that|used|known|defined)\b"
    return bool(re.match(rf"{before}{name}(?:s|es)?(?![\w'’]){between}{verb}{said}", text, re.I))


_ROLES = re.compile(
    r"\b(?:maintainers?|developers?|packagers?|uploaders?|sponsors?|administrators?|operators?|translators?|authors?|"
    r"publishers?|manufacturers?|physicians?|teachers?|employers?|regulators?|vendors?)\b",
    re.I,
)


def addresses_others(facet_: Facet, text: str) -> bool:
    """Whether `text` tells somebody else what to do: "upload to stable" is for packagers, "upgrade" for all."""
    if facet_.kind is not Kind.HOW_TO:
        return False
    named = {stem(w.casefold()) for w in _ROLES.findall(text)}
    return bool(named) and not named & facet_.everything


def is_on_topic(facet_: Facet, document_text: str) -> bool:
    """Whether a document speaks of what the question names at all."""
    if not facet_.subject:
        return True
    folded = document_text.casefold()
    if facet_.named and not any(all(s in folded for s in name) for name in facet_.named):
        return False
    return sum(s in folded for s in facet_.subject) >= 0.5 * len(facet_.subject)


def speaks_of(facet_: Facet, text: str, fit: float) -> bool:
    """Whether words or heading show that `text` answers what is asked, and is not only about its subject."""
    apart = bool(facet_.item and facet_.own)  # a heading that names the thing says nothing of what is asked of it
    if not apart and (fit >= 0.6 or not (facet_.own or facet_.cues) or facet_.defined):
        return True
    if apart and defines(facet_, text):
        return True
    found = {stem(w) for w in words(text)}
    return bool(found & (facet_.own | facet_.cues))


def _document_of(query: str, heading: str) -> str:
    """The document in the query of a section that planning named after a heading: "document: heading"."""
    bare = _plain(heading)
    folded = _plain(query)
    if bare and folded.endswith(" " + bare) and len(folded) > len(bare) + 2:
        return squeeze(query)[: len(squeeze(query)) - len(squeeze(heading).rstrip("?. "))].strip(" :?")
    return ""


def _plain(text: str) -> str:
    return squeeze(text).casefold().rstrip("?. ")


def _split_title(title: str) -> tuple[str, str]:
    match = _PARENTHESIS.search(title)
    return (squeeze(title[: match.start()]), squeeze(match.group(1))) if match else (squeeze(title), "")


def heading_fit(facet_: Facet, heading: str) -> float:
    """0 to 1: whether what stands under `heading` answers the facet, by the heading's words alone."""
    if not heading:
        return 0.0
    if facet_.heading:
        return 1.0 if same_heading(heading, facet_.heading) else _cover(facet_.own, heading) * 0.8
    if facet_.item and names_item(heading, facet_.item):
        return 0.4 if any(names_item(heading, n) for n in facet_.siblings) else 1.0
    fit = _cover(facet_.own, heading) if facet_.english else 0.8 * contained(term_set(heading), facet_.own)
    pattern = HEADINGS.get(facet_.kind)
    if facet_.english and pattern and pattern.search(heading):
        least = 0.8 if len(heading.split()) <= 4 else 0.6
        fit = max(fit, 0.5 * least if akin(facet_.own) else least)  # "Results" says nothing of the environment
    return fit


def title_fit(facet_: Facet, title: str) -> float:
    """0.6, which is enough to speak of the facet, where a document's very title says what is asked; else 0."""
    return 0.6 if facet_.own and contained(facet_.own, term_set(title)) >= 0.99 else 0.0


def same_heading(a: str, b: str) -> bool:
    """Whether a source's heading is the one a section is named after; numbering does not count."""
    return unnumbered(a).casefold() == unnumbered(b).casefold()


def path_fit(facet_: Facet, path: tuple[str, ...], title: str) -> float:
    """The fit of the nearest heading, or most of that of a heading above it. The document's title is none."""
    fits = [heading_fit(facet_, h) for h in path if h.casefold() != title.casefold()]
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
    return math.sqrt(contained(own, terms) * contained(terms, own))


def names_item(text: str, item: str) -> bool:
    """Whether `text` names the item exactly: `Depends` is not "depends", and not "Pre-Depends"."""
    if item[:1].isupper() or item.isupper():
        return bool(re.search(rf"(?<![\w-]){re.escape(item)}(?![\w]|-\w)", text))
    return bool(re.search(rf"(?<![\w-]){any_number(item)}(?![\w]|-\w)", text, re.I))


def any_number(item: str) -> str:
    """A pattern for a thing's name in the singular and in the plural; "tidal power" is also tidal stream power."""
    if " " in item:
        first, rest = item.split(" ", 1)
        return rf"{re.escape(first)}(?:\s+[\w-]+)?\s+{any_number(rest)}"
    if item.endswith(("ies", "y")) and len(item) > 4:
        return re.escape(item.removesuffix("ies").removesuffix("y")) + "(?:y|ies)"
    return re.escape(item[:-1] if re.search(r"[^su]s$", item) else item) + "(?:s|es)?"


def word_fit(facet_: Facet, text: str, rarity: Mapping[str, float]) -> tuple[float, float, float]:
    """(share of the facet's own terms, of all its terms, of its cue words, saturating at two) in `text`."""
    found = {stem(w) for w in words(text)}
    return (
        _weighted(facet_.own, found, rarity),
        _weighted(facet_.everything, found, rarity),
        _cue_fit(facet_, found),
    )


def _cue_fit(facet_: Facet, found: set[str]) -> float:
    mine, theirs = len(facet_.cues & found), len(facet_.foreign & found)
    return min(1.0, mine / 2) - (min(1.0, theirs / 2) if theirs > mine else 0.0)


def _weighted(wanted: frozenset[str], found: set[str], rarity: Mapping[str, float]) -> float:
    total = sum(rarity.get(t, 1.0) for t in wanted)
    return sum(rarity.get(t, 1.0) for t in wanted & found) / total if total else 0.0


def rivals(question: str, wanted: Facet, titles: Sequence[str] = ()) -> tuple[str, ...]:
    """What else the question asks: a sentence that answers this better belongs to another section.

    "What is X" is no rival: whatever is said of X is near it.
    """
    if not wanted.english or wanted.item:
        return ()
    mine = {wanted.title.casefold(), wanted.query.casefold()}
    return tuple(
        c.query
        for c in clauses(question, titles)
        if c.text.casefold() not in mine and c.query.casefold() not in mine and not _defined(c.query, "")
    )


def contrast(own: float, topic: float, others: Iterable[float] = ()) -> float:
    """A sentence's cosine to the facet, corrected for what is not the facet.

    A sentence near the bare topic is near every question about it; one nearer to another section belongs there.

    Args:
        own: cosine to the facet's query.
        topic: cosine to the topic alone (`own` where there is none).
        others: cosines to what else is asked.
    """
    lift = min(0.15, max(-0.20, 0.6 * (own - topic)))
    return own + lift - 0.8 * max(0.0, max(others, default=-1.0) - own)


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
        case Kind.CAUSE:
            return 1.0 if _CAUSES.search(text) else 0.4 if _BECAUSE.search(text) else 0.0
        case _:
            return 0.0
