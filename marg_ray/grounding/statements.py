"""What a sentence or table row states with a figure: of what, when, where, with which qualities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from marg_ray.grounding.alignment import VAGUE
from marg_ray.grounding.dates import Date, find_dates
from marg_ray.grounding.names import names
from marg_ray.grounding.opposites import HEDGES
from marg_ray.grounding.quantities import RANGE, Quantity, find_quantities
from marg_ray.grounding.sentences import split_sentences
from marg_ray.grounding.terms import content_terms, stem, words
from marg_ray.grounding.units import TIMES
from marg_ray.records import Evidence

_LONGEST = 500  # characters; a longer sentence says too much at once
_ROW = re.compile(r"[^:;\n]{1,80}: [^;\n]+(?:; [^:;\n]{1,80}: [^;\n]*)+\Z")
_FUTURE = HEDGES | frozenset(
    """
    will would shall forecasts forecasted estimate estimated estimates target targets goal aims aim future prognose
    soll sollen wird werden budgeted anticipated predicted predicts
    """.split()  # noqa: SIM905
)
_QUALITIES = frozenset(
    map(
        stem,
        """
        total average mean median maximum minimum max min peak each per annual annually yearly monthly weekly daily
        hourly net gross initial final first second third new old extra additional remaining other another part half
        third quarter share combined overall installed capacity actual nominal real cumulative increase decrease growth
        rise fall drop change difference more less fewer up down by
        """.split(),  # noqa: SIM905
    )
)
_ONCE = frozenset(
    map(
        stem,
        """
        born died founded established opened built completed constructed launched invented discovered signed destroyed
        abolished adopted published released created inaugurated commissioned patented demolished incorporated enacted
        ratified assassinated married gegründet geboren gestorben eröffnet fondé né mort fundado nacido inaugurado
        """.split(),  # noqa: SIM905
    )
)
_BOUND = re.compile(
    r"\b(?:over|more than|at least|less than|under|up to|at most|no more than|fewer than|exceed\w*|above|below|"
    r"almost|nearly|über|mehr als|mindestens|weniger als|bis zu|plus de|moins de|más de|menos de)"
    r"\s*(?:[€$£¥]|US\$)?\s*\Z|[<>≤≥]\s*\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One figure or date with all that says what it is a figure of."""

    evidence: str
    source: str
    value: str  # as written
    figure: Quantity | Date
    unit: str  # "date" of a date
    terms: frozenset[str]
    said: str  # the sentence with "…" for the figure; empty for a table's cell
    order: tuple[str, ...]  # the words of `terms` as they stand, for the subject shown to a reader
    names: frozenset[str]
    years: frozenset[int]
    qualities: frozenset[str]
    is_future: bool
    is_bound: bool  # "more than"
    is_cell: bool  # of a table, whose row is named by `names`
    before: Mapping[str, str]  # term to the term in front of it


def statements(evidence: Evidence, title: str) -> Iterable[Statement]:
    """Every figure of a passage that stands alone in its sentence, or in its cell of a table."""
    context = f"{evidence.heading.rpartition(' > ')[2]} {title}"
    for sentence in split_sentences(evidence.quote):
        if _ROW.match(sentence):
            first, *cells = sentence.split("; ")
            key = first.partition(":")[2].strip()
            for cell in cells:
                yield from _read(f"{key} | {cell.replace(':', ' ')}", evidence, context, key)
        elif len(sentence) < _LONGEST:
            yield from _read(sentence, evidence, context, "")


def _read(text: str, evidence: Evidence, context: str, key: str) -> Iterable[Statement]:
    dates = find_dates(text)
    quantities = [q for q in find_quantities(text, dates) if not q.spelled and not q.ordinal]
    make = partial(_statement, text, evidence=evidence, context=context, key=key)
    if not quantities and len({(d.start, d.end) for d in dates}) == 1 and _ONCE & set(map(stem, words(text))):
        yield make(dates[0], "date", years=frozenset())
    years = frozenset(d.year for d in dates if d.year)
    for at, one in enumerate(quantities):
        unit = _unit(text, one, key)
        alone = sum(_unit(text, q, key) == unit for q in quantities) == 1 and not _in_range(text, quantities, at)
        if unit and alone and (unit not in TIMES or key):
            yield make(one, unit, years=years)


def _in_range(text: str, quantities: Sequence[Quantity], at: int) -> bool:
    near = quantities[max(0, at - 1) : at + 2]
    return any(RANGE.fullmatch(text[a.end : b.start].strip("$€£¥ ")) for a, b in pairwise(near))


def _unit(text: str, one: Quantity, key: str) -> str:
    """The unit, or for a bare number the noun that it counts, as a stem: "24 turbines"."""
    if one.unit:
        return one.unit
    following = re.match(r"\s+(?:[a-zà-ÿ]+\s+)?([a-zà-ÿ]{3,}s)\b", text[one.end :])
    if following:
        return f"#{stem(following[1])}"
    return "#cell" if key else ""


def _statement(
    text: str,
    figure: Quantity | Date,
    unit: str,
    *,
    evidence: Evidence,
    context: str,
    key: str,
    years: frozenset[int],
) -> Statement:
    before, after = text[: figure.start], text[figure.end :]
    named = [key] if key else names(f"{before} {after}") or names(f"The {context}")
    kept = [w for w in words(f"{before} {after}") if not w[0].isdigit() and content_terms(w) and stem(w) not in VAGUE]
    stems = [stem(w) for w in kept]
    tokens = words(text)
    return Statement(
        evidence=evidence.id,
        source=evidence.source,
        value=f"{_sign(before)}{figure.text.strip()}",
        said="" if key else " ".join(f"{before.rstrip(' $€£¥₹')} … {after}".split()).rstrip(" .;,"),
        figure=figure,
        unit=unit,
        terms=frozenset(stems),
        order=tuple(kept),
        names=frozenset(w for name in named for w in words(name)),
        years=years,
        qualities=frozenset(map(stem, tokens)) & _QUALITIES,
        is_future=any(w in _FUTURE for w in tokens),
        is_bound=bool(_BOUND.search(before[-24:])),
        is_cell=bool(key),
        before=dict(zip(stems[1:], stems, strict=False)),
    )


def _sign(before: str) -> str:
    found = re.search(r"(?:US)?[$€£¥₹]\s?\Z", before)
    return found.group() if found else ""
