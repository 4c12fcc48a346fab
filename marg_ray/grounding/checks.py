"""The checks of one sentence against passages. Each complaint names its words; none is averaged away."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from marg_ray.grounding.alignment import Alignment, Passage, Unit
from marg_ray.grounding.copies import edited
from marg_ray.grounding.dates import MONTHS, Date, find_dates
from marg_ray.grounding.differences import is_version, turned
from marg_ray.grounding.extent import added_quantifier, lost_hedge, other_bound, other_extent
from marg_ray.grounding.languages import language_checked
from marg_ray.grounding.names import has_name, names
from marg_ray.grounding.places import Misplaced, misplaced_date, misplaced_name, misplaced_number
from marg_ray.grounding.polarity import (
    added_negation,
    converse,
    denial,
    lost_negation,
    misplaced,
    opposite,
    wide_negation_differs,
)
from marg_ray.grounding.quantities import Quantity, figures, find_quantities
from marg_ray.grounding.roles import exchanged, turned_course
from marg_ray.grounding.splices import spliced
from marg_ray.grounding.terms import content_terms
from marg_ray.grounding.voices import lone_denial, misquoted, own_voice
from marg_ray.records import Verdict

_VERSION = 0.6  # of the content words of a sentence that another version of it shares
_PART = 0.8  # of the content words of a passage's sentence that stand in one made of two
_NEAR = 5  # sentences of nearly as many words
_SAYS_ALL = 0.85  # recall from which a word of extent that is not there is an addition, not another way to say it
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
    sentence = Unit(text)
    quantities = find_quantities(text, dates)
    found = [
        *_dates(dates, [*passages, context], alignment),
        *_times(sentence, dates, [*passages, context]),
        *_quantities(text, quantities, [*passages, context], alignment),
        *_names(text, passages, alignment, context),
    ]
    if _is_version(sentence, alignment.units, context):
        found += _misplaced(sentence, alignment, found, passages)
        found += _polarity(text, sentence, alignment)
    if not any(c.kind in ("number", "date", "unit") for c in found):
        found += _figures(text, [*passages, context], settled_text(dates, quantities, [*passages, context]))
    found += _voices(text, sentence, passages, context, found)
    if not found and language_checked(text) and (ends := spliced(sentence, [u for p in passages for u in p.units])):
        reason = "“{}” and “{}” stand in different statements of the cited passages".format(*ends)
        found.append(Complaint("splice", reason, Verdict.PARTIAL))
    order = [Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIAL]
    return sorted(found, key=lambda c: order.index(c.ceiling))


def settled_terms(text: str, passages: Sequence[Passage]) -> frozenset[str]:
    """The terms of figures and dates that a passage has with the same value, in whatever notation or unit."""
    dates = find_dates(text)
    return frozenset(content_terms(settled_text(dates, find_quantities(text, dates), passages, rounded=True)))


def settled_text(
    dates: Sequence[Date], quantities: Sequence[Quantity], passages: Sequence[Passage], rounded: bool = False
) -> str:
    """The figures and dates that the passages have too, as the sentence writes them."""
    there = [d for p in passages for d in p.dates]
    found = [d.text for d in dates if any(d.fits(t) for t in there)]
    theirs = [q for p in passages for q in p.quantities]
    for one in quantities:
        if any(
            (one.same_unit(t) and (one.same_value(t) or (rounded and one.rounds(t)))) or one.converts(t) for t in theirs
        ):
            found.append(one.text)
    return " ".join(found)


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


_WEEKDAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())  # noqa: SIM905


_CLOCK = re.compile(r"(?<![\d:.])\d{1,2}:\d{2}(?![\d:])")


def _times(sentence: Unit, dates: Sequence[Date], passages: Sequence[Passage]) -> list[Complaint]:
    """Months without a year and days of the week that no passage has."""
    known = frozenset[str]().union(*(p.words for p in passages))
    months = {MONTHS[w] for w in known if w in MONTHS} | {d.month for p in passages for d in p.dates}
    missing = [c for c in _CLOCK.findall(sentence.text) if not any(c in p.text for p in passages)]
    if missing:
        return [Complaint("date", f"the time {missing[0]} is in none of the cited passages", Verdict.UNSUPPORTED)]
    for token in sentence.tokens:
        if not token.capital or any(d.start <= token.start < d.end for d in dates):
            continue
        month = MONTHS.get(token.word, 0)
        if (month and len(token.word) > 3 and month not in months) or (token.word in _WEEKDAYS - known):
            reason = f"“{token.word.title()}” is in none of the cited passages"
            return [Complaint("date", reason, Verdict.UNSUPPORTED)]
    return []


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


def _quantities(
    text: str, mine: Sequence[Quantity], passages: Sequence[Passage], alignment: Alignment
) -> list[Complaint]:
    theirs = [q for p in passages for q in p.quantities]
    years = {float(d.year) for p in passages for d in p.dates if d.year}
    found: list[Complaint] = []
    for one in mine:
        same = [t for t in theirs if one.same_value(t)]
        if any(one.same_unit(t) for t in same) or (not same and one.values[0] in years):
            continue
        if any(one.converts(t) for t in theirs):
            continue
        other = same or [t for t in theirs if _digits(t) and _digits(t) == _digits(one)]
        if other:
            reason = f"the cited passage says {other[0].text}, not {one.text}"
            found.append(Complaint("unit", reason, Verdict.UNSUPPORTED))
        elif one.spelled or one.ordinal:
            if not _written(one, passages) and not _shown(one, text):
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


_STEP = re.compile(
    r"\W*(?:(?:and|but) )?(?:(?:the |an? )?(?:first|second|third|fourth|fifth|sixth)(?:ly)?,|"
    r"an? (?:second|third|fourth|fifth|sixth) (?!of\b)[a-z]+)",
    re.IGNORECASE,
)
_LISTED = re.compile(r"(?:, and |, or |; and |[,;] | and | or )")


def _shown(one: Quantity, text: str) -> bool:
    """Whether the sentence itself shows what it counts: "Third, ...", or "two bands: A and B"."""
    step = _STEP.match(text)
    if step and step.start() <= one.start < step.end():
        return True
    colon = text.find(":", one.end)
    return colon > 0 and 1 < one.values[0] <= len(_LISTED.split(text[colon + 1 :]))


def _digits(one: Quantity) -> str:
    found = re.match(r"\d[\d.,]*\d|\d", one.text)
    return found.group().replace(",", "") if found else ""


def _written(one: Quantity, passages: Sequence[Passage]) -> bool:
    digits = re.match(r"\d[\d.,]*\d|\d", one.text)
    shown = digits.group() if digits else one.text
    return bool(re.search(rf"(?<![\d.,]){re.escape(shown)}(?![\d]|[.,]\d)", _joined(passages), re.IGNORECASE))


def _figures(text: str, passages: Sequence[Passage], settled: str) -> list[Complaint]:
    """Every figure of a supported sentence has to stand in a cited passage, or its value in another notation."""
    there = _joined(passages).replace(",", "")
    known = figures(settled)
    for figure in figures(text):
        if figure not in there and figure not in known:
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
    missing = [n for n in mine if not has_name(n, known, initials) and not _spelled_out(n, text)]
    if not missing:
        return []
    listed = ", ".join(missing[:4])
    plural = "the names {} are" if len(missing) > 1 else "the name {} is"
    weak = alignment.recall < 0.6 or len(missing) * 2 > len(mine)
    ceiling = Verdict.UNSUPPORTED if weak else Verdict.PARTIAL
    return [Complaint("name", f"{plural.format(listed)} in none of the cited passages", ceiling)]


def _spelled_out(name: str, text: str) -> bool:
    """Whether the sentence gives it as the short form of words before it: "tumour necrosis factor (TNF)"."""
    short = [c for c in name.removesuffix("s") if c.isalnum()]
    at = text.find(f"({name})")
    if at < 0 or not 2 <= len(short) <= 8 or not any(c.isupper() for c in short):
        return False
    before = re.findall(r"[^\W_]+", text[:at])[-len(short) - 2 :]
    return _begin_with(short, before)


def _begin_with(letters: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the letters are beginnings of the words in their order; the last word has one, few have none."""
    left = [c.casefold() for c in letters]
    for number, word in enumerate(reversed(words)):
        if left and word[0].casefold() == left[-1]:
            left.pop()
        elif not number:
            return False
    return not left


# ---- places


def _near(alignment: Alignment) -> list[Unit]:
    """The sentences besides the best one that are asked whether they say the same."""
    return list(dict.fromkeys([*alignment.near[:_NEAR], *alignment.units]))


def _misplaced(
    sentence: Unit, alignment: Alignment, found: Sequence[Complaint], passages: Sequence[Passage]
) -> list[Complaint]:
    """What the passages do have, but elsewhere: one complaint of each kind that there is none of yet."""
    units, near = alignment.units, _near(alignment)
    kinds = {c.kind for c in found}
    wrong = [
        None if "name" in kinds else misplaced_name(sentence, units, near),
        None if {"number", "number word", "unit"} & kinds else misplaced_number(sentence, units, near),
        None if "date" in kinds else misplaced_date(sentence, units, near),
    ]
    ceiling = Verdict.CONTRADICTED if alignment.recall >= _SAME_MATTER else Verdict.PARTIAL
    if not kinds and not any(wrong):
        wrong = [edited(sentence, units, near)]
    told = [one for one in wrong if one and not _is_written_otherwise(one, passages)]
    if told and told[0].kind == "negation":
        return [Complaint("negation", "only one of sentence and passage is negated", ceiling)]
    return [
        Complaint(one.kind, f"“{one.here}” stands where the cited passage says “{one.there}”", ceiling) for one in told
    ]


def _is_written_otherwise(one: Misplaced, passages: Sequence[Passage]) -> bool:
    """ "U.S." for "United States", "26,000" for "26, 000"."""
    short, long = sorted((one.here.split(), one.there.split()), key=lambda words: len("".join(words)))
    if len(short) in (1, len(long)) and "".join(short).casefold() == "".join(w[0] for w in long).casefold():
        return True
    return any(one.here in p.written_out and one.here not in p.text for p in passages)


# ---- who speaks, what is quoted, and what is denied


def _voices(
    text: str, sentence: Unit, passages: Sequence[Passage], context: Passage, found: Sequence[Complaint]
) -> list[Complaint]:
    wrong = {"quotation": misquoted(text, [*passages, context])}
    if language_checked(text):
        wrong["speaker"] = own_voice(text, passages)
        if not any(c.kind in ("negation", "denial", "direction") for c in found):
            wrong["negation"] = lone_denial(sentence, passages)
    return [Complaint(kind, reason, Verdict.PARTIAL) for kind, reason in wrong.items() if reason]


# ---- direction


def _polarity(text: str, sentence: Unit, alignment: Alignment) -> list[Complaint]:
    units, near = alignment.units, _near(alignment)
    if not units or alignment.recall < 0.5:
        return []
    english = language_checked(text)
    sure = alignment.recall >= _SAME_MATTER
    against = Verdict.CONTRADICTED if sure else Verdict.PARTIAL
    if not english and (change := turned(sentence, units[0], english)):
        return [Complaint(change[0], _TURNED[change[0]].format(*change[1:]), Verdict.CONTRADICTED)]
    if sure and wide_negation_differs(text, units[0].text):
        return [Complaint("negation", "only one of sentence and passage is negated", Verdict.PARTIAL)]
    if not english:
        pair = opposite(sentence, units[:1], near, english)
        return [Complaint("direction", _TURNED["direction"].format(*pair), against)] if pair else []
    return [*_turned(sentence, units, near, against), *_certainty(sentence, units, near, alignment.recall)]


_TURNED = {
    "negation": "sentence and cited passage say opposite things: one has “{}{}”",
    "direction": "“{}” stands where the cited passage says “{}”",
    "roles": "“{}” and “{}” have changed places",
}


def _is_version(sentence: Unit, units: Sequence[Unit], context: Passage) -> bool:
    """Whether the best sentence of the passages says most of the sentence, or is nearly all in it.

    Names out of the title stand for a pronoun and do not count.
    """
    if not units:
        return False
    shared = len(sentence.terms & units[0].terms)
    mine, theirs = len(sentence.terms - (context.terms - units[0].terms)), len(units[0].terms)
    return shared >= _VERSION * mine or (shared >= _PART * theirs and shared * 3 >= mine)


def _turned(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit], against: Verdict) -> list[Complaint]:
    found: list[Complaint] = []
    if word := added_negation(sentence, units, near):
        found.append(
            Complaint("negation", f"the sentence negates “{word}” (not, no, never...), the passage does not", against)
        )
    if word := lost_negation(sentence, units, near):
        found.append(Complaint("negation", f"only the cited passage negates “{word}”", against))
    if word := denial(sentence, units):
        found.append(Complaint("denial", f"the cited passage says “{word}”", against))
    if converse(sentence, units[0]):
        return found
    change = turned(sentence, units[0])
    if any(u.text != units[0].text and is_version(sentence, u) and not turned(sentence, u) for u in near):
        change = None
    kind, *pair = change or ("",)
    seen = opposite(sentence, units, near) or misplaced(sentence, units, near) or other_bound(sentence, units, near)
    if turns := seen or (kind == "direction" and pair):
        found.append(Complaint("direction", _TURNED["direction"].format(*turns), against))
    roles = exchanged(sentence, units, near) or turned_course(sentence, units) or (kind == "roles" and pair)
    if roles:
        found.append(Complaint("roles", _TURNED["roles"].format(*roles), against))
    return found


def _certainty(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit], recall: float) -> list[Complaint]:
    found: list[Complaint] = []
    if word := lost_hedge(sentence, units):
        found.append(
            Complaint("hedge", f"the cited passage says “{word}”, the sentence states it as a fact", Verdict.PARTIAL)
        )
    if recall >= _SAYS_ALL and (word := added_quantifier(sentence, units)):
        found.append(Complaint("quantifier", f"“{word}” is not in the cited passages", Verdict.PARTIAL))
    if extent := other_extent(sentence, units, near):
        found.append(Complaint("quantifier", _TURNED["direction"].format(*extent), Verdict.PARTIAL))
    return found
