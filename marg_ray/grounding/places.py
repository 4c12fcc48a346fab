"""Names, figures and times that the passages do have, but that stand where the best sentence has another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from marg_ray.grounding.alignment import Unit
from marg_ray.grounding.dates import Date
from marg_ray.grounding.names import is_same_name
from marg_ray.grounding.quantities import Quantity
from marg_ray.grounding.slots import Token, common, fillers, name_runs

TITLES = frozenset(
    """
    president king queen sir lord lady dr mr mrs ms prof prince princess pope saint st general captain colonel major
    senator minister professor judge mayor governor chancellor emperor bishop the former actor singer director hurricane
    cyclone typhoon storm mount lake river city
    """.split()  # noqa: SIM905
)
_BESIDE = 2  # words that agree on one side of two names which stand in the same place
_Run = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Misplaced:
    """What the sentence says, and what stands there in the passages: as written."""

    kind: str  # "name" | "number" | "date"
    here: str
    there: str


def misplaced_name(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit]) -> Misplaced | None:
    """A name of the sentence where the best sentence of the passages has another name, or None."""
    mine = sentence.tokens
    here = Counter(t.word for t in mine)
    asked = list(dict.fromkeys([*units[:1], *near]))
    best = {t.word for u in asked[:1] for t in u.tokens}
    there = {t.word for u in (*asked, *units) for t in u.tokens}
    known = {t.word for u in (*asked, *units) for n, t in enumerate(u.tokens) if n and t.capital}
    for first, after in name_runs(mine):
        run = mine[first:after]
        absent = not any(t.word in best for t in run)
        least = 3 if any(t.word in there for t in run) else _BESIDE
        other: Sequence[Token] = ()
        for unit in asked:
            places = fillers(mine, first, after, unit.tokens, unit.index)
            if any(is_same_run(run, unit.tokens[s:e]) for s, e in places) and not _part_differs(run, unit, places):
                other = ()
                break
            if unit is not asked[0]:
                continue
            inside = [(s + n, s + m) for s, e in places for n, m in name_runs(unit.tokens[s:e])]
            beside = _beside(mine, first, after, unit, least) if absent else []
            for start, end in (*inside, *beside):
                rival = unit.tokens[start:end]
                if (first, after) == (0, 1) and not start and not {run[0].word, rival[0].word} & known:
                    continue  # any word may begin a sentence
                moved = not (absent and (start, end) in inside) and not _is_rarer(rival, here, unit)
                if _is_part_changed(run, rival) or not (moved or is_same_run(run, rival)):
                    other = other or rival
        if other:
            return Misplaced("name", written(run), written(other))
    return None


def _is_rarer(rival: Sequence[Token], here: Counter[str], unit: Unit) -> bool:
    """Whether the sentence has a name less often than the passage does; else it has only been moved."""
    often = Counter(t.word for t in unit.tokens)
    return all(here[t.word] < often[t.word] for t in rival)


def _part_differs(run: Sequence[Token], unit: Unit, places: Sequence[_Run]) -> bool:
    exact = [unit.tokens[s:e] for s, e in places if e - s == len(run)]
    return bool(exact) and all(_is_part_changed(run, stretch) for stretch in exact)


def _is_part_changed(run: Sequence[Token], other: Sequence[Token]) -> bool:
    """Whether one word of a longer name is another one: "Edwards Vacuum" and "Edwards Air"; titles do not count."""
    if len(run) != len(other) or len(run) < 2 or not all(t.capital for t in other):
        return False
    changed = [(a.word, b.word) for a, b in zip(run, other, strict=True) if a.word != b.word]
    if len(changed) != 1:
        return False
    a, b = changed[0]
    return not (is_same_name(a, b) or {a, b} & TITLES or a.startswith(b) or b.startswith(a))


def _beside(mine: Sequence[Token], first: int, after: int, unit: Unit, least: int) -> list[_Run]:
    """The names before or after which at least so many words are the same."""
    found: list[_Run] = []
    for start, end in name_runs(unit.tokens):
        for count, content in (
            common(mine, first - 1, unit.tokens, start - 1, -1),
            common(mine, after, unit.tokens, end, 1),
        ):
            if count >= least and content:
                found.append((start, end))
    return found


def is_same_run(run: Sequence[Token], stretch: Sequence[Token]) -> bool:
    """Whether one of the names is the other, shorter, as initials, with another title or in another form."""
    theirs = [t for t in stretch if t.content and (t.capital or any(t.word == m.word for m in run))]
    mine = [t for t in run if t.content]
    if mine and theirs:
        if is_same_name(mine[-1].word, theirs[-1].word):  # surnames
            return True
        few, many = sorted((mine, theirs), key=len)
        if all(any(is_same_name(a.word, b.word) for b in many) for a in few if a.word not in TITLES):
            return True
    short, full = sorted((run, stretch), key=len)
    return len(short) == 1 and len(full) > 1 and short[0].word == "".join(t.word[0] for t in full if t.capital)


def written(run: Sequence[Token]) -> str:
    return " ".join(t.word for t in run).title()


def misplaced_number(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit]) -> Misplaced | None:
    """A figure of the sentence where the best sentence of the passages has another one, or None."""
    found = _misplaced(
        sentence,
        units,
        near,
        lambda unit: unit.quantities,
        lambda a, b: (a.same_unit(b) and (a.same_value(b) or a.rounds(b))) or a.converts(b),
        lambda a, b: a.same_unit(b) and a.same_value(b),
        lambda a, b: a.unit == b.unit and a.ordinal == b.ordinal,
    )
    return Misplaced("number", *found) if found else None


def misplaced_date(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit]) -> Misplaced | None:
    """A date of the sentence where the best sentence of the passages has another one, or None."""
    found = _misplaced(
        sentence,
        units,
        near,
        lambda unit: unit.dates,
        lambda a, b: not a.clashes(b),
        lambda a, b: not a.clashes(b),
        lambda a, b: bool(a.month) == bool(b.month) and bool(a.year) == bool(b.year),
    )
    return Misplaced("date", *found) if found else None


_Figure = TypeVar("_Figure", Quantity, Date)


def _misplaced(
    sentence: Unit,
    units: Sequence[Unit],
    near: Sequence[Unit],
    read: Callable[[Unit], Sequence[_Figure]],
    same: Callable[[_Figure, _Figure], bool],
    equal: Callable[[_Figure, _Figure], bool],
    alike: Callable[[_Figure, _Figure], bool],
) -> tuple[str, str] | None:
    """A figure and its rival that the sentence does not have itself, or two figures that have changed places."""
    clashes: list[tuple[_Figure, _Figure, int, bool]] = []
    agreed: list[_Figure] = []
    mine = read(sentence)
    for one in mine:
        first, after = _span(sentence.tokens, one.start, one.end)
        rival, often, exact = None, 0, False
        for unit in dict.fromkeys([*units[:1], *near]):
            figures = read(unit)
            places = fillers(sentence.tokens, first, after, unit.tokens, unit.index)
            there = _within(figures, places, unit.tokens)
            if any(same(one, t) for t in there):
                rival = None
                agreed.append(one)
                break
            if unit is not units[0]:
                continue
            exact = bool(there)
            if not there and not any(same(one, t) for t in figures):
                there = [t for t in figures if _is_beside(sentence.tokens, first, after, unit, t) and alike(one, t)]
            if there:
                rival, often = there[0], sum(f == there[0] or f.text == there[0].text for f in figures)
        if rival is not None:
            clashes.append((one, rival, often, exact))
    for one, rival, often, exact in clashes:
        if sum(equal(m, rival) for m in mine) < often:
            return one.text.strip(), rival.text.strip()
        if exact and not any(equal(other, rival) for other in agreed):
            return one.text.strip(), rival.text.strip()
    return None


def _is_beside(mine: Sequence[Token], first: int, after: int, unit: Unit, figure: Quantity | Date) -> bool:
    """Whether the word before it, or the one after it, is the same."""
    start, end = _span(unit.tokens, figure.start, figure.end)
    before, _ = common(mine, first - 1, unit.tokens, start - 1, -1)
    behind, _ = common(mine, after, unit.tokens, end, 1)
    inside = first > 0 and start > 0
    return bool((before and inside) or (behind and after < len(mine) and end < len(unit.tokens)))


def _span(tokens: Sequence[Token], start: int, end: int) -> _Run:
    inside = [n for n, t in enumerate(tokens) if start <= t.start < end]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


def _within(figures: Sequence[_Figure], places: Sequence[_Run], tokens: Sequence[Token]) -> list[_Figure]:
    spans = [(tokens[s].start, tokens[e - 1].start) for s, e in places]
    return [f for f in figures if any(first <= f.start <= last for first, last in spans)]
