"""Whether what a search found can answer its query: answer, show the nearest material, or say that there is nothing.

One threshold refuses three quarters of the re-worded questions that a library does answer, so there are three zones.
The signals: the best cosine (meaning); the share of the query's terms, weighted by rarity, that the best passage holds
(a question wrong in one detail shows there, not in the cosine); and for a question that asks for a figure, the same
share in the best sentence that has one ("How old must a member be?" is near every passage about members). Thresholds
belong to MiniLM and to passages of about 120 words with title and headings in front; `benchmarks/refusal.py` measures
them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from marg_ray.grounding.sentences import split_sentences
from marg_ray.grounding.terms import STOP_WORDS, stem, stems, words
from marg_ray.records import Answerability, Hit, Zone

BEST = 6  # passages that are looked at at most

_GENERIC = """
    happen happened happening cause caused causes find found information explain describe tell give show say said
    know known mean means meaning way ways kind kinds type types thing things detail details reason reasons
    important main major many much difference different use used using make made become get got go went take took
    work works working need needed needs want list overview summary compare comparison please question answer
    exactly actually really people
    """
_GENERIC_STEMS = frozenset(stem(word) for word in _GENERIC.split())
# Chinese and Japanese words of grammar and asking: a pair of characters with one of them says nothing.
_PARTICLES = frozenset("的了是在和与吗呢什么怎哪为為何如多少几幾谁誰请也及或被把对從从有這这那个些其のはがをにでとも")
_ASKS_FIGURE = re.compile(
    r"\b(?:how (?:many|much|old|tall|long|far|fast|big|large|heavy|often|high|deep|wide)|percentage|salary|price"
    r"|cost|costs|weight|height|population|rate|average|number|capitalisation|capitalization)\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy"
    r"|eighty|ninety|hundreds?|thousands?|millions?|billions?|dozens?|half|twice|once)\b",
    re.IGNORECASE,
)
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class Candidate:
    """One of the best passages, with what stands above it."""

    text: str
    title: str = ""
    heading: str = ""
    cosine: float = 0.0


@dataclass(frozen=True)
class Thresholds:
    answer_cosine: float = 0.45
    answer_coverage: float = 0.65
    answer_figure: float = 0.5  # where a figure is asked for
    nearest_cosine: float = 0.3
    nearest_sum: float = 0.52  # cosine + `coverage_weight` x coverage
    coverage_weight: float = 0.3
    words_answer: float = 0.7  # coverage alone, where the encoder does not know the query's script
    words_nearest: float = 0.35


DEFAULT = Thresholds()


def query_terms(query: str) -> dict[str, str]:
    """The terms a passage should hold, each with the query's own word for it."""
    found: dict[str, str] = {}
    for word in words(query):
        term = stem(word)
        if word in STOP_WORDS or term in _GENERIC_STEMS or not _PARTICLES.isdisjoint(word):
            continue
        found.setdefault(term, word)
    return found


def assess(
    query: str,
    candidates: Sequence[Candidate],
    df: Callable[[str], int],
    passages: int,
    thresholds: Thresholds = DEFAULT,
) -> Answerability:
    """Judge the best passages (best first). `df` says in how many of the library's `passages` a stem occurs."""
    if not candidates:
        return Answerability(zone=Zone.NOTHING, missing_terms=tuple(query_terms(query).values()))
    terms = query_terms(query)
    holding = {term: df(term) for term in terms}
    weights = {term: math.log1p((passages - n + 0.5) / (n + 0.5)) for term, n in holding.items()}
    best = candidates[:BEST]
    covered = coverage(weights, [_terms(f"{c.title}\n{c.heading}\n{c.text}") for c in best])
    figure = coverage(weights, _with_figures(best)) if _ASKS_FIGURE.search(query) else 1.0
    cosine = max(c.cosine for c in best)
    return Answerability(
        zone=_zone(query, cosine, covered, figure, thresholds),
        missing_terms=tuple(word for term, word in terms.items() if holding[term] == 0),
        nearest=tuple(dict.fromkeys(c.title for c in candidates if c.title))[:3],
        cosine=cosine,
        coverage=covered,
    )


def coverage(weights: dict[str, float], held: Sequence[frozenset[str]]) -> float:
    """The largest weighted share of the terms that one of the texts holds; 1 where nothing specific is asked."""
    total = sum(weights.values())
    if not total:
        return 1.0
    return max((sum(w for term, w in weights.items() if term in some) for some in held), default=0.0) / total


@lru_cache(maxsize=2048)  # the same few passages answer most of a session's queries
def _terms(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text))


def _with_figures(candidates: Sequence[Candidate]) -> list[frozenset[str]]:
    """The terms of each sentence that has a figure in it, with those of its title and heading."""
    return [terms for c in candidates for terms in _figures_of(f"{c.title}\n{c.heading}", c.text)]


@lru_cache(maxsize=2048)
def _figures_of(above: str, text: str) -> tuple[frozenset[str], ...]:
    return tuple(_terms(above) | _terms(s) for s in split_sentences(text) if _FIGURE.search(s))


def _zone(query: str, cosine: float, covered: float, figure: float, t: Thresholds) -> Zone:
    if not knows_script(query):
        return (
            Zone.ANSWER if covered >= t.words_answer else Zone.NEAREST if covered >= t.words_nearest else Zone.NOTHING
        )
    if cosine >= t.answer_cosine and covered >= t.answer_coverage and figure >= t.answer_figure:
        return Zone.ANSWER
    if cosine >= t.nearest_cosine and cosine + t.coverage_weight * covered >= t.nearest_sum:
        return Zone.NEAREST
    return Zone.NOTHING


def knows_script(text: str) -> bool:
    """Whether most letters are Latin: the encoder has seen little else."""
    letters = len(_LETTER.findall(text))
    return letters == 0 or len(_LATIN.findall(text)) >= letters / 2


def assess_snippets(query: str, hits: Sequence[Hit], cosines: Sequence[float] = ()) -> Answerability:
    """The same for web results, leniently: snippets are short, and the pages may say more.

    `cosines` are those of the hits (title and snippet) with the query; without them the hits' relevance stands in.
    Every term weighs the same, numbers and names twice. Nothing is refused that shares a third of the terms or is
    near in meaning.
    """
    terms = query_terms(query)
    if not hits:
        return Answerability(zone=Zone.NOTHING, missing_terms=tuple(terms.values()))
    held = [stems(hit.title) | stems(hit.snippet) for hit in hits]
    weights = {term: 2.0 if _is_specific(word, query) else 1.0 for term, word in terms.items()}
    covered = coverage(weights, held)
    cosine = max(list(cosines) or [hit.relevance for hit in hits])
    near = max(cosine / 0.5, covered / 0.6) if knows_script(query) else covered / 0.5
    return Answerability(
        zone=Zone.ANSWER if near >= 1 else Zone.NEAREST if near >= 0.6 else Zone.NOTHING,
        missing_terms=tuple(word for term, word in terms.items() if not any(term in some for some in held)),
        nearest=tuple(dict.fromkeys(hit.title for hit in hits if hit.title))[:3],
        cosine=cosine,
        coverage=covered,
    )


def _is_specific(word: str, query: str) -> bool:
    return word[0].isdigit() or re.search(rf"(?<!^)\b{re.escape(word.capitalize())}", query) is not None
