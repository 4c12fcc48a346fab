"""The checks of one sentence against passages. Each complaint names its words; none is averaged away."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from marg_ray.grounding.alignment import Alignment, Passage, Unit
from marg_ray.grounding.dates import Date, find_dates
from marg_ray.grounding.differences import turned
from marg_ray.grounding.names import has_name, names
from marg_ray.grounding.polarity import (
    added_quantifier,
    denial,
    lost_hedge,
    negation_differs,
    opposite,
    wide_negation_differs,
)
from marg_ray.grounding.quantities import Quantity, figures, find_quantities
from marg_ray.grounding.terms import content_terms
from marg_ray.records import Verdict

_SAME_MATTER = 0.7  # recall from which another value is a contradiction, not another subject


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong, in words, and the best verdict a sentence with it can get."""

    kind: str
    reason: str
    ceiling: Verdict


def complaints(text: str, passages: Sequence[Passage], alignment: Alignment, context: Passage) -> list[Complaint]:
    """Everything in `text` that `passages` do not say, worst first. `context` holds titles and headings."""
    if not passages:
        return []
    dates = find_dates(text)
    found = [
        *_dates(dates, passages, alignment),
        *_quantities(find_quantities(text, dates), passages, alignment),
        *_names(text, passages, alignment, context),
        *_polarity(text, alignment),
    ]
    if not any(c.kind in ("number", "date") for c in found):
        found += _figures(text, passages)
    order = [Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIAL]
    return sorted(found, key=lambda c: order.index(c.ceiling))


def settled_terms(text: str, passages: Sequence[Passage]) -> frozenset[str]:
    """The terms of figures and dates that a passage has with the same value, in whatever notation."""
    dates = find_dates(text)
    there = [d for p in passages for d in p.dates]
    found = [d.text for d in dates if any(d.fits(t) for t in there)]
    theirs = [q for p in passages for q in p.quantities]
    for one in find_quantities(text, dates):
        if any(one.same_unit(t) and (one.same_value(t) or one.rounds(t)) for t in theirs):
            found.append(one.text)
    return frozenset(content_terms(" ".join(found)))


# ---- dates and figures


def _dates(dates: Sequence[Date], passages: Sequence[Passage], alignment: Alignment) -> list[Complaint]:
    theirs = [d for p in passages for d in p.dates]
    found: list[Complaint] = []
    for span in dict.fromkeys((d.start, d.end) for d in dates):
        readings = [d for d in dates if (d.start, d.end) == span]
        if any(d.fits(t) for d in readings for t in theirs):
            continue
        one = readings[0]
        if not one.month and re.search(rf"(?<!\d){one.year}(?!\d)", _joined(passages).replace(",", "")):
            continue
        rivals = _rivals(one, alignment.units, dates)
        if one.month and not rivals and _parts_are_there(one, passages, theirs):
            continue
        if rivals and alignment.recall >= _SAME_MATTER:
            reason = f"the cited passage says {rivals[0].text.strip()}, not {one.text.strip()}"
            found.append(Complaint("date", reason, Verdict.CONTRADICTED))
        else:
            found.append(
                Complaint("date", f"the date {one.text.strip()} is in none of the cited passages", Verdict.UNSUPPORTED)
            )
    return found


def _rivals(date: Date, units: Sequence[Unit], mine: Sequence[Date]) -> list[Date]:
    """Dates of the aligned sentence that stand where `date` should: as exact, different, not in the sentence too."""
    theirs = find_dates(units[0].text) if units else []
    return [
        t
        for t in theirs
        if t.clashes(date) and bool(t.month) == bool(date.month) and not any(m is not date and m.fits(t) for m in mine)
    ]


def _parts_are_there(date: Date, passages: Sequence[Passage], theirs: Sequence[Date]) -> bool:
    """ "3 May" here and "2019" there."""
    years = {t.year for t in theirs}
    days = {(t.month, t.day) for t in theirs}
    months = {t.month for t in theirs}
    return (not date.year or date.year in years) and (
        (date.month, date.day) in days if date.day else date.month in months
    )


def _quantities(mine: Sequence[Quantity], passages: Sequence[Passage], alignment: Alignment) -> list[Complaint]:
    theirs = [q for p in passages for q in p.quantities]
    years = {float(d.year) for p in passages for d in p.dates if d.year}
    found: list[Complaint] = []
    for one in mine:
        same = [t for t in theirs if one.same_value(t)]
        if any(one.same_unit(t) for t in same) or (not same and one.values[0] in years):
            continue
        other = same or [t for t in theirs if _digits(t) and _digits(t) == _digits(one)]
        if other:
            reason = f"the cited passage says {other[0].text}, not {one.text}"
            found.append(Complaint("unit", reason, Verdict.UNSUPPORTED))
        elif one.spelled or one.ordinal:
            if not _written(one, passages):
                reason = f"“{one.text}” is in none of the cited passages"
                found.append(Complaint("number word", reason, Verdict.PARTIAL))
        elif near := next((t for t in theirs if one.rounds(t) and one.same_unit(t)), None):
            found.append(
                Complaint("rounding", f"{one.text} stands for {near.text} in the cited passage", Verdict.PARTIAL)
            )
        elif not _written(one, passages):
            found.append(_missing_number(one, mine, alignment))
    return found


def _missing_number(one: Quantity, mine: Sequence[Quantity], alignment: Alignment) -> Complaint:
    rivals = [
        t
        for t in (find_quantities(alignment.units[0].text) if alignment.units else ())
        if t.unit == one.unit and t.unit and not t.ordinal and not any(t.same_value(m) for m in mine)
    ]
    if len(rivals) == 1 and alignment.recall >= _SAME_MATTER:
        return Complaint("number", f"the cited passage says {rivals[0].text}, not {one.text}", Verdict.CONTRADICTED)
    return Complaint("number", f"the number {one.text} is in none of the cited passages", Verdict.UNSUPPORTED)


def _digits(one: Quantity) -> str:
    found = re.match(r"\d[\d.,]*\d|\d", one.text)
    return found.group().replace(",", "") if found else ""


def _written(one: Quantity, passages: Sequence[Passage]) -> bool:
    digits = re.match(r"\d[\d.,]*\d|\d", one.text)
    shown = digits.group() if digits else one.text
    return bool(re.search(rf"(?<![\d.,]){re.escape(shown)}(?![\d]|[.,]\d)", _joined(passages), re.IGNORECASE))


def _figures(text: str, passages: Sequence[Passage]) -> list[Complaint]:
    """Every figure of a supported sentence has to stand in a cited passage as it is written."""
    there = _joined(passages).replace(",", "")
    for figure in figures(text):
        if figure not in there:
            return [
                Complaint("figure", f"the figure {figure} is not written so in the cited passages", Verdict.PARTIAL)
            ]
    return []


def _joined(passages: Sequence[Passage]) -> str:
    return "\n".join(p.text for p in passages)


# ---- names


def _names(text: str, passages: Sequence[Passage], alignment: Alignment, context: Passage) -> list[Complaint]:
    mine = names(text)
    if not mine:
        return []
    known = context.words | context.terms
    initials = set(context.acronyms)
    for one in passages:
        known |= one.words | one.terms
        initials |= one.acronyms
    missing = [n for n in mine if not has_name(n, known, initials)]
    if not missing:
        return []
    listed = ", ".join(missing[:4])
    plural = "the names {} are" if len(missing) > 1 else "the name {} is"
    weak = alignment.recall < 0.6 or len(missing) * 2 > len(mine)
    ceiling = Verdict.UNSUPPORTED if weak else Verdict.PARTIAL
    return [Complaint("name", f"{plural.format(listed)} in none of the cited passages", ceiling)]


# ---- direction


_TURNED = {
    "negation": "sentence and cited passage say opposite things: one has “{}{}”",
    "direction": "“{}” stands where the cited passage says “{}”",
    "roles": "“{}” and “{}” have changed places",
}


def _polarity(text: str, alignment: Alignment) -> list[Complaint]:
    units = alignment.units[:2]
    if not units or alignment.recall < 0.5:
        return []
    sentence = Unit(text)
    found: list[Complaint] = []
    sure = alignment.recall >= _SAME_MATTER
    against = Verdict.CONTRADICTED if sure else Verdict.PARTIAL
    if change := turned(sentence, units[0]):
        return [Complaint(change[0], _TURNED[change[0]].format(*change[1:]), Verdict.CONTRADICTED)]
    if word := negation_differs(sentence, units[:1]):
        found.append(Complaint("negation", f"only one of sentence and passage negates “{word}”", against))
    elif sure and wide_negation_differs(text, units[0].text):
        found.append(Complaint("negation", "only one of sentence and passage is negated", Verdict.PARTIAL))
    if word := denial(sentence, units):
        found.append(Complaint("denial", f"the cited passage says “{word}”", against))
    if pair := opposite(sentence, units[:1]):
        found.append(Complaint("direction", f"“{pair[0]}” stands where the cited passage says “{pair[1]}”", against))
    if word := lost_hedge(sentence, units):
        found.append(
            Complaint("hedge", f"the cited passage says “{word}”, the sentence states it as a fact", Verdict.PARTIAL)
        )
    if word := added_quantifier(sentence, alignment.units):
        found.append(Complaint("quantifier", f"“{word}” is not in the cited passages", Verdict.PARTIAL))
    return found
