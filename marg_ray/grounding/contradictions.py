"""Where sources disagree: the same quantity with another value, or the same event with another date.

Made for few false alarms: two figures are compared only when their sentences speak of the same names, years and
qualities and have nearly all their words in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from marg_ray.grounding.dates import Date
from marg_ray.grounding.opposites import opposites
from marg_ray.grounding.quantities import Quantity
from marg_ray.grounding.statements import Statement, statements
from marg_ray.grounding.terms import stem
from marg_ray.records import Contradiction, ContradictionSide, Evidence, Source

_SHARED_WORDS = 2  # at least, besides names
_OVERLAP = 0.75  # of the words of the shorter statement
_LONGEST_SUBJECT = 160  # characters
_ROUNDED = 0.06  # relative difference that rounding and "about" explain; 500 for 540 is another figure


def find_contradictions(evidence: Sequence[Evidence], sources: Mapping[str, Source]) -> tuple[Contradiction, ...]:
    """The quantities and dates on which different sources disagree.

    Different years, places, subjects, parts of a whole, overlapping ranges, rounded values and forecasts beside actual
    values are not contradictions.
    """
    buckets: dict[str, list[Statement]] = {}
    for one in evidence:
        title = sources[one.source].title if one.source in sources else ""
        for statement in statements(one, title):
            buckets.setdefault(statement.unit, []).append(statement)
    pairs = [
        (one, other)
        for bucket in buckets.values()
        for one, other in combinations(bucket, 2)
        if one.source != other.source and _same_matter(one, other) and _differ(one.figure, other.figure)
    ]
    return tuple(_contradiction(group, sources) for group in _groups(pairs))


# ---- comparison


def _same_matter(one: Statement, other: Statement) -> bool:
    if one.years != other.years or one.qualities != other.qualities or one.is_bound or other.is_bound:
        return False
    if one.is_future != other.is_future or not _same_names(one, other):
        return False
    if one.is_cell and other.is_cell:
        return one.names == other.names and one.terms == other.terms
    return _same_words(one, other)


def _same_names(one: Statement, other: Statement) -> bool:
    shared = one.names & other.names
    return shared in (one.names, other.names) if shared else not (one.names or other.names)


def _same_words(one: Statement, other: Statement) -> bool:
    shared = one.terms & other.terms
    only_one, only_other = one.terms - shared, other.terms - shared
    plain = shared - {stem(n) for n in one.names | other.names}
    smaller = min(len(one.terms), len(other.terms))
    if len(plain) < _SHARED_WORDS or len(shared) < _OVERLAP * smaller or min(len(only_one), len(only_other)) > 1:
        return False
    if any(opposites(term) & only_other for term in only_one):
        return False
    # "inner gate" and "outer gate": each has a word of its own in front of the same word
    return not any(one.before.get(t) in only_one and other.before.get(t) in only_other for t in shared)


def _differ(one: Quantity | Date, other: Quantity | Date) -> bool:
    if isinstance(one, Date) or isinstance(other, Date):
        return isinstance(one, Date) and isinstance(other, Date) and one.clashes(other)
    a, b = one.values[-1], other.values[-1]
    apart = abs(a - b) / (max(abs(a), abs(b)) or 1.0)
    if one.same_value(other) or ((one.rounds(other) or other.rounds(one)) and apart <= _ROUNDED):
        return False
    return apart > (_ROUNDED if one.approximate or other.approximate else 0.0)


# ---- groups


def _groups(pairs: Sequence[tuple[Statement, Statement]]) -> list[list[Statement]]:
    """Statements that are linked by disagreement, each group in the order of appearance."""
    groups: list[list[Statement]] = []
    for pair in pairs:
        linked = [g for g in groups if any(s in g for s in pair)]
        merged = [s for g in linked for s in g]
        merged += [s for s in pair if s not in merged]
        groups = [g for g in groups if g not in linked] + [merged]
    return groups


def _contradiction(group: Sequence[Statement], sources: Mapping[str, Source]) -> Contradiction:
    shared = frozenset.intersection(*(s.terms for s in group))
    shortest = min(group, key=lambda s: (not s.said, len(s.order)))
    words_shared = " ".join(dict.fromkeys(w for w in shortest.order if stem(w) in shared))
    subject = shortest.said if 0 < len(shortest.said) <= _LONGEST_SUBJECT else words_shared
    sides: dict[tuple[str, str], ContradictionSide] = {}
    for one in group:
        published = sources[one.source].published if one.source in sources else ""
        sides.setdefault(
            (one.source, one.value), ContradictionSide(value=one.value, evidence=one.evidence, date=published)
        )
    dated = {side.date[:4] for side in sides.values() if side.date}
    note = f"the sources are of different years ({', '.join(sorted(dated))})" if len(dated) > 1 else ""
    return Contradiction(subject=subject, sides=tuple(sides.values()), note=note)
