"""How much of a sentence a passage says: weighted recall of its content words in the best stretch of the passage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from marg_ray.grounding.dates import Date, find_dates
from marg_ray.grounding.names import acronyms
from marg_ray.grounding.negation import Scope, scopes
from marg_ray.grounding.quantities import Quantity, find_quantities, written_out
from marg_ray.grounding.sentences import split_sentences
from marg_ray.grounding.slots import Token, places, tokens
from marg_ray.grounding.terms import STOP_WORDS, content_terms, stem, words

_WINDOW = 3  # sentences
_COVER = 4  # sentences from anywhere
_HEAD = 5  # letters
_NEARLY = 0.8  # of what the best sentence says
VAGUE = frozenset(
    map(
        stem,
        """
        say said report reported state stated note show include including become make made use used take give go come
        see many several various often also well known new important significant different number part way thing type
        kind time year people example case fact result according provide describe mention call called overall
        generally typically usually further additional particularly especially specifically however major key main
        large high
        """.split(),  # noqa: SIM905
    )
)


@dataclass(frozen=True)
class _Text:
    """A text and the figures in it, each looked for once."""

    text: str

    @cached_property
    def dates(self) -> tuple[Date, ...]:
        return tuple(find_dates(self.text))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        return tuple(find_quantities(self.text, list(self.dates)))


@dataclass(frozen=True)
class Unit(_Text):
    """One sentence of a passage."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(words(self.text))

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset([stem(word) for word in self.words if word not in STOP_WORDS])

    @cached_property
    def heads(self) -> frozenset[str]:
        """The first letters of its longer terms: inflections and derivations of a word share them."""
        return frozenset([t[:_HEAD] for t in self.terms if len(t) > _HEAD])

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(tokens(self.text))

    @cached_property
    def index(self) -> dict[str, list[int]]:
        return places(self.tokens)

    @cached_property
    def runs(self) -> frozenset[tuple[str, ...]]:
        """Every three words in a row."""
        said = [t.word for t in self.tokens]
        return frozenset(zip(said, said[1:], said[2:], strict=False))

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        return tuple(scopes(self.words))


@dataclass(frozen=True)
class Passage(_Text):
    """A text with what is compared. `passage` keeps the latest ones."""

    @cached_property
    def dates(self) -> tuple[Date, ...]:
        return (*find_dates(self.text), *(find_dates(self.written_out) if self.written_out != self.text else ()))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Also those of figures that a converter has torn; these have no place in the text."""
        whole = find_quantities(self.written_out) if self.written_out != self.text else []
        return (*find_quantities(self.text), *whole)

    @cached_property
    def written_out(self) -> str:
        return written_out(self.text)

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        return tuple(Unit(s) for s in split_sentences(self.text)) or (Unit(self.text),)

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(w for u in self.units for w in u.words)

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(t for u in self.units for t in u.terms)

    @cached_property
    def acronyms(self) -> frozenset[str]:
        return frozenset(acronyms(self.text))


@lru_cache(maxsize=4096)
def passage(text: str) -> Passage:
    return Passage(text)


@dataclass(frozen=True)
class Alignment:
    """The best match of a sentence in some passages.

    `recall` is the weighted share of its content words found there (0 to 1), `units` the sentences they are in, best
    first, `source` the index of the passage that holds most, `missing` the words (as written) that are nowhere.
    `near` are the sentences of all passages that say nearly as much as the best one: what one of them says counts.
    """

    recall: float
    units: tuple[Unit, ...]
    source: int
    missing: tuple[str, ...]
    near: tuple[Unit, ...] = ()


def align(
    text: str,
    passages: Sequence[Passage],
    context: frozenset[str] = frozenset(),
    settled: frozenset[str] = frozenset(),
) -> Alignment:
    """Align a sentence with passages.

    Args:
        context: stems of titles and headings; they count as said, but less.
        settled: stems of figures that were found in another notation; they count in full.
    """
    weights = _weights(text)
    total = sum(weights.values())
    if not total:
        return Alignment(1.0, (), 0, ())
    hits = [(number, unit, _hits(weights, unit)) for number, one in enumerate(passages) for unit in one.units]
    best, chosen = _window(hits)
    cover, spread = _cover(hits)
    if cover > best + 0.12 * total:
        best, chosen = best + 0.85 * (cover - best), spread
    said = _merged([found for _, _, found in spread])
    for term, weight in weights.items():
        if term in context | settled and said.get(term, 0.0) < weight:
            best += (1.0 if term in settled else 0.6) * (weight - said.get(term, 0.0))
            said[term] = weight
    lost = [w for w in dict.fromkeys(words(text)) if (t := stem(w)) in weights and not said.get(t)]
    units = tuple(unit for _, unit, _ in chosen)
    source = chosen[0][0] if chosen else 0
    return Alignment(min(1.0, best / total), units, source, tuple(lost), _near(hits, chosen, total))


def _near(hits: Sequence[_Hit], chosen: Sequence[_Hit], total: float) -> tuple[Unit, ...]:
    most = sum(chosen[0][2].values()) if chosen else 0.0
    least = max(_NEARLY * most, 0.4 * total)
    return tuple(u for _, u, found in hits if len(found) > 1 and sum(found.values()) >= least)


_Hit = tuple[int, Unit, dict[str, float]]  # passage number, its sentence, what that says of each term


def _window(hits: Sequence[_Hit]) -> tuple[float, list[_Hit]]:
    """The consecutive sentences of one passage that say most, the best sentence first."""
    best, chosen = 0.0, list(hits[:1])
    for start in range(len(hits)):
        window = [h for h in hits[start : start + _WINDOW] if h[0] == hits[start][0]]
        value = sum(_merged([found for _, _, found in window]).values())
        if value > best + 1e-9:
            best, chosen = value, window
    return best, sorted(chosen, key=lambda h: -sum(h[2].values()))


def _cover(hits: Sequence[_Hit]) -> tuple[float, list[_Hit]]:
    """Greedy choice of the sentences, from anywhere, that together say most."""
    have: dict[str, float] = {}
    chosen: list[_Hit] = []
    while len(chosen) < _COVER:
        gain, best = 1e-9, None
        for hit in hits:
            value = sum(max(0.0, v - have.get(t, 0.0)) for t, v in hit[2].items())
            if value > gain:
                gain, best = value, hit
        if best is None:
            break
        chosen.append(best)
        have = _merged([have, best[2]])
    return sum(have.values()), chosen


def _weights(text: str) -> dict[str, float]:
    return {t: 0.3 if t in VAGUE else 1.5 if t[0].isdigit() else 1.0 for t in content_terms(text)}


def _hits(weights: dict[str, float], unit: Unit) -> dict[str, float]:
    hits = {t: w for t, w in weights.items() if t in unit.terms}
    if len(hits) < len(weights):
        for term, weight in weights.items():
            if term not in hits and len(term) > _HEAD and term[:_HEAD] in unit.heads:
                hits[term] = 0.7 * weight
    return hits


def _merged(hits: Iterable[dict[str, float]]) -> dict[str, float]:
    merged: dict[str, float] = {}
    for one in hits:
        for term, value in one.items():
            merged[term] = max(value, merged.get(term, 0.0))
    return merged
