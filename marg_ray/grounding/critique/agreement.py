"""Sentences of a draft that contradict each other, and sentences that say what another one says."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from marg_ray.grounding.alignment import Unit
from marg_ray.grounding.contradictions import find_contradictions
from marg_ray.grounding.critique.prose import Flag, Line, Part, shortened
from marg_ray.grounding.dates import find_dates
from marg_ray.grounding.differences import turned
from marg_ray.grounding.names import names
from marg_ray.records import Evidence, IssueKind

_SAME = 0.8  # of the shorter sentence's terms: it says the same
_NEAR = 0.7  # of both sentences' terms: they speak of the same
_LEAST = 5  # terms; a shorter sentence has too much in common with others
_LONG = 6  # terms
_NEGATIONS = frozenset(("not", "never", "no", "cannot", "neither", "nor", "without", "hardly", "nowhere", "nobody"))
_MOST = 300  # sentences of a section that are compared with each other
# Why two figures may both hold.
_EXPLAINED = re.compile(
    r"\b(?:according to|estimates?|estimated|disput\w+|disagree\w*|whereas|while|however|although|in contrast|"
    r"by contrast|other sources?|another source|compared (?:to|with)|previously|formerly|initially|originally|later|"
    r"then|up from|down from|revised|instead)\b",
    re.IGNORECASE,
)


def contradictions(part: Part) -> Iterator[Flag]:
    """Both sentences of every pair that gives one thing two figures or dates, or states and denies it."""
    lines = [line for line in part.lines if line.is_prose][:_MOST]
    pairs = {(a.at, b.at): (a, b, words) for a, b, words in (*_clashing(lines), *_turned(lines))}
    for first, second, words in pairs.values():
        apart = bool(first.sources and second.sources) and not first.sources & second.sources
        nameless = not (names(first.text) and names(second.text))
        if apart and nameless:
            continue  # "its turbines", in one source and in another: of two things perhaps
        for line, other in ((second, first), (first, second)):
            hint = "Say which source gives which" if apart else "Say which of the two holds, or when each does"
            yield Flag(
                signal="contradiction",
                line=line,
                kind=IssueKind.LOGIC_ERROR,
                words=words,
                detail=f'"{shortened(line.text)}" does not agree with "{shortened(other.text)}" ({words})',
                instruction=f"{hint} ({words}): {line.text}" if line is second else "",
                severity="medium" if apart or nameless else "high",
            )


def _clashing(lines: Sequence[Line]) -> Iterator[tuple[Line, Line, str]]:
    """Pairs with another figure or date for the same thing."""
    by_id = {str(line.at): line for line in lines if any(c.isdigit() for c in line.text)}
    told = [
        Evidence(id=key, source=key, quote=line.text, start=0, end=len(line.text))
        for key, line in by_id.items()
        if not _EXPLAINED.search(line.text)
    ]
    for found in find_contradictions(told, {}):
        for one, other in combinations(found.sides, 2):
            first, second = sorted((by_id[one.evidence], by_id[other.evidence]), key=lambda line: line.at)
            yield first, second, f"{one.value} / {other.value}"
    yield from _same_but_one_figure(list(by_id.values()))


def _same_but_one_figure(lines: Sequence[Line]) -> Iterator[tuple[Line, Line, str]]:
    """Two versions of one sentence with one figure changed."""
    for one, other in _near(lines):
        mine, theirs = Counter(one.figures), Counter(other.figures)
        left, right = list((mine - theirs).elements()), list((theirs - mine).elements())
        if len(left) != 1 or len(right) != 1 or one.telling != other.telling:
            continue
        if _reasons(one) != _reasons(other) or (_dated(one) != _dated(other) and len(one.telling) < _LONG):
            continue  # two years, and little else: a series
        yield one, other, f"{left[0]} / {right[0]}"


def _turned(lines: Sequence[Line]) -> Iterator[tuple[Line, Line, str]]:
    """Two versions of one sentence of which one is denied, or says the opposite."""
    for one, other in _near([line for line in lines if len(line.terms) >= _LEAST - 1]):
        if set(one.figures) != set(other.figures) or len(one.telling ^ other.telling) > 2:
            continue
        if (
            one.telling - _NEGATIONS == other.telling - _NEGATIONS
            and len(_negations(one)) % 2 != len(_negations(other)) % 2
        ):
            yield one, other, (_negations(one) or _negations(other))[0]
        elif (found := turned(Unit(one.text), Unit(other.text))) is not None and found[0] == "direction":
            yield one, other, " / ".join(w for w in found[1:] if w)


def _negations(line: Line) -> list[str]:
    return [w for w in line.words if w in _NEGATIONS or w.endswith("n't")]


def _reasons(line: Line) -> list[str]:
    return [m.group().casefold() for m in _EXPLAINED.finditer(line.text)]


def _dated(line: Line) -> list[int | None]:
    return [d.year for d in find_dates(line.text)]


def _near(lines: Sequence[Line]) -> Iterator[tuple[Line, Line]]:
    for one, other in combinations(lines, 2):
        shared = len(one.terms & other.terms)
        if shared >= 3 and shared >= _NEAR * len(one.terms | other.terms):
            yield one, other


def repetitions(parts: Sequence[Part]) -> Iterator[Flag]:
    """Every sentence that says what an earlier one said, in its section or in another."""
    titles = {p.id: p.title for p in parts}
    lines = [line for p in parts for line in p.lines if line.is_prose and len(line.terms) >= _LEAST]
    holders: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        shared = Counter(n for term in line.terms for n in holders[term])
        for term in line.terms:
            holders[term].append(number)
        twin = next((lines[n] for n, count in shared.items() if _says_the_same(line, lines[n], count)), None)
        if twin is None:
            continue
        where = "above" if twin.section == line.section else f"under {titles[twin.section]}"
        yield Flag(
            signal="repetition",
            line=line,
            kind=IssueKind.LOGIC_ERROR,
            words=shortened(twin.text),
            detail=f"Already said {where}: {line.text}",
            instruction=f"Leave out what is said {where}: {line.text}",
            twin=twin,
        )


def _says_the_same(one: Line, other: Line, shared: int) -> bool:
    less, more = sorted((len(one.terms), len(other.terms)))
    if shared < _SAME * less or less < 0.5 * more:
        return False
    mine, theirs = set(one.figures), set(other.figures)
    return mine <= theirs or theirs <= mine
