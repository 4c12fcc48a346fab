"""Who did what to whom: names and sides that have changed places around a verb, a comparison or a cause."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from marg_ray.grounding.alignment import VAGUE, Unit
from marg_ray.grounding.antonyms import IRREGULAR
from marg_ray.grounding.slots import Token, name_runs
from marg_ray.grounding.terms import STOP_WORDS, stem

_OBJECT = 3  # words after a verb that may be its object
_SIDE = 7  # words on each side of a verb that may be its subject or object
_BE = frozenset("is are was were be been being gets got get".split())  # noqa: SIM905
_PAST = frozenset(w for forms in IRREGULAR.replace("\n", "|").split("|") for w in forms.split()[1:])
# Between two names these make no order: "A and B", "A, B or C".
_EVEN = frozenset(("and", "or", "as", "well", "both", "with", "vs", "versus", "like", "nor", "also"))
_CAUSES = frozenset(map(stem, "cause result produce trigger bring spark prompt create provoke induce".split()))  # noqa: SIM905
_LEADS = frozenset("lead leads led leading".split())  # noqa: SIM905
_CAUSED_BY = frozenset(map(stem, "because due owing thanks stem attributed attributable".split()))  # noqa: SIM905
_CLAUSES = frozenset("that which who whom whose where while but".split())  # noqa: SIM905
_LINKS = frozenset("across along around near without despite behind beyond throughout via within upon".split())  # noqa: SIM905
_ORDERED = frozenset(("than", "after", "before", "until", "despite", "although", "instead", "over", "into"))

_VERSION = 0.7  # of the content words
_NEAR_BY = 5  # words between a participle and its "by"
_NEAR_VERB = 7  # words between two names with a verb between them

_Run = tuple[int, int]


def exchanged(sentence: Unit, units: Sequence[Unit], near: Sequence[Unit]) -> tuple[str, str] | None:
    """Two names or sides of the sentence that have changed places against its best match, or None."""
    for unit in units[:1]:
        found = _names(sentence.tokens, unit.tokens) or _sides(sentence.tokens, unit.tokens) or _objects(sentence, unit)
        if found and not any(_agrees(sentence, u, found) for u in near if u is not unit):
            return found
    return None


def _agrees(sentence: Unit, unit: Unit, pair: tuple[str, str]) -> bool:
    """Whether another version of the sentence has both and does not say it the other way round."""
    if len(sentence.terms & unit.terms) < _VERSION * len(sentence.terms):
        return False
    there = {t.word for t in unit.tokens}
    both = all(set(one.lower().split()) & there for one in pair)
    return both and not (_names(sentence.tokens, unit.tokens) or _sides(sentence.tokens, unit.tokens))


# ---- names


def _names(mine: Sequence[Token], theirs: Sequence[Token]) -> tuple[str, str] | None:
    """Names that stand where the other one does: what is around them is compared, not their order."""
    shared = [(run, other) for run in name_runs(mine) for other in _same_run(mine, run, theirs)]
    for (a, ua), (b, ub) in combinations(shared, 2):
        if a == b or ua == ub or _are_even(mine, a, b) or _are_even(theirs, ua, ub):
            continue
        passive, other_passive = _passive_between(mine, a, b), _passive_between(theirs, ua, ub)
        inverted = (a < b) != (ua < ub)
        if bool(passive) != bool(other_passive):
            active = _active_between(theirs, ua, ub) if passive else _active_between(mine, a, b)
            if inverted:
                continue
            if active & (passive or other_passive):
                return _text(mine, a), _text(mine, b)
        own = _alike(mine, a, theirs, ua), _alike(mine, b, theirs, ub)
        cross = _alike(mine, a, theirs, ub), _alike(mine, b, theirs, ua)
        if inverted and min(cross) >= 1 and sum(cross) >= 3 and sum(cross) >= sum(own) + 2:
            return _text(mine, a), _text(mine, b)
    return None


def _same_run(mine: Sequence[Token], run: _Run, theirs: Sequence[Token]) -> list[_Run]:
    """The place of the name in the other sentence, where it stands there exactly once: in full, or its last word."""
    wanted = [t.word for t in mine[slice(*run)]]
    there = [r for r in name_runs(theirs) if not (r == (0, 1) and run == (0, 1))]  # any word may begin a sentence
    full = [(s, e) for s, e in there if [t.word for t in theirs[s:e]] == wanted]
    part = [(s, e) for s, e in there if set(wanted) & {t.word for t in theirs[s:e]}]
    return full if len(full) == 1 else part if len(part) == 1 and not full else []


def _are_even(sentence: Sequence[Token], a: _Run, b: _Run) -> bool:
    """Whether only "and", a comma or other names are between two names."""
    first, second = sorted((a, b))
    between = sentence[first[1] : second[0]]
    return all(t.capital or t.word in _EVEN or t.word == "the" for t in between) and (
        bool(between) or sentence[first[0]].clause != sentence[second[0]].clause
    )


def _alike(mine: Sequence[Token], a: _Run, theirs: Sequence[Token], b: _Run) -> int:
    """How far the two words before and the two words after agree; the nearest count double."""
    points = 0
    for step, (first, second) in ((-1, (a[0] - 1, b[0] - 1)), (1, (a[1], b[1]))):
        for worth in (2, 1):
            inside, inside_too = 0 <= first < len(mine), 0 <= second < len(theirs)
            if not inside and not inside_too:
                points += 1
                break
            if inside and inside_too and mine[first].term == theirs[second].term:
                points += worth
            first, second = first + step, second + step
    return points


def _passive_between(sentence: Sequence[Token], a: _Run, b: _Run) -> set[str]:
    """The stems of the verbs of "A was founded in 1900 by B"."""
    first, second = sorted((a, b))
    between = sentence[first[1] : second[0]]
    by = next((n for n, t in enumerate(between) if t.word == "by"), -1)
    if by < 0 or len(between) - by > 3:
        return set()
    return {t.term for t in between[max(0, by - _NEAR_BY) : by] if _is_participle(t.word)}


def _active_between(sentence: Sequence[Token], a: _Run, b: _Run) -> set[str]:
    """The stems of the verbs of "A founded B"."""
    first, second = sorted((a, b))
    between = sentence[first[1] : second[0]]
    return {t.term for t in between if _is_participle(t.word)} if len(between) <= _NEAR_VERB else set()


def _is_participle(word: str) -> bool:
    return (word.endswith("ed") and len(word) > 3) or word in _PAST


def _text(sentence: Sequence[Token], run: _Run) -> str:
    return " ".join(t.word for t in sentence[slice(*run)]).title()


# ---- sides


def _sides(mine: Sequence[Token], theirs: Sequence[Token]) -> tuple[str, str] | None:
    """What stands before and after the same verb, the other way round; a passive turns the sides."""
    for at, kind in _anchors(mine):
        for place, other_kind in _anchors(theirs):
            if kind != other_kind and not (kind[0] == other_kind[0] == "cause"):
                continue
            left, right = _around(mine, at, kind)
            other_left, other_right = _around(theirs, place, other_kind)
            straight = len(left & other_left) + len(right & other_right)
            a, b = left & other_right, right & other_left
            if a and b and len(a) + len(b) > straight:
                return _word_of(mine, a), _word_of(mine, b)
    return None


def _objects(sentence: Unit, unit: Unit) -> tuple[str, str] | None:
    """What follows two verbs of the sentence, where the passage has it the other way round: "reads A and writes B"."""
    mine, theirs = _followers(sentence, unit), _followers(unit, sentence)
    for one, other in combinations(sorted(mine.keys() & theirs.keys()), 2):
        if (mine[one] & theirs[one]) | (mine[other] & theirs[other]):
            continue
        a, b = mine[one] & theirs[other], mine[other] & theirs[one]
        if a and b:
            return _word_of(sentence.tokens, a), _word_of(sentence.tokens, b)
    return None


def _followers(sentence: Unit, other: Unit) -> dict[str, set[str]]:
    """The content words after each verb that both sentences have once, up to the next such verb."""
    shared = [
        at
        for at, t in enumerate(sentence.tokens)
        if (_is_participle(t.word) or t.word.endswith("s")) and len(t.word) > 4 and not t.capital
        if t.content
        and len(sentence.index[t.term]) == len(other.index.get(t.term, ())) == 1
        and other.tokens[other.index[t.term][0]].word == t.word
    ]
    ends = [*shared[1:], len(sentence.tokens)][: len(shared)]
    return {
        sentence.tokens[at].term: _terms(sentence.tokens[at + 1 : min(end, at + 1 + _OBJECT)])
        for at, end in zip(shared, ends, strict=True)
    }


_Kind = tuple[str, str]


def _anchors(sentence: Sequence[Token]) -> list[tuple[int, _Kind]]:
    """The words of a sentence that have two different sides, with what makes two of them the same."""
    found: list[tuple[int, _Kind]] = []
    for at, token in enumerate(sentence):
        if token.capital and at:
            continue
        if token.term in _CAUSES or (token.word in _LEADS and _next_is(sentence, at, "to")):
            found.append((at, ("cause", "")))
        elif token.term in _CAUSED_BY:
            found.append((at, ("cause", "by")))
        elif token.word in _ORDERED:
            found.append((at, ("order", token.word)))
        elif _is_participle(token.word) and token.word not in STOP_WORDS:
            found.append((at, ("verb", token.term)))
    return found


def _next_is(sentence: Sequence[Token], at: int, word: str) -> bool:
    return at + 1 < len(sentence) and sentence[at + 1].word == word


def _around(sentence: Sequence[Token], at: int, kind: _Kind) -> tuple[set[str], set[str]]:
    """The stems before and after `sentence[at]`, as of an active verb: who does it, and to whom."""
    clause = sentence[at].clause
    before = [t for t in sentence[max(0, at - _SIDE) : at] if t.clause == clause]
    after = [t for t in sentence[at + 1 : at + 1 + _SIDE] if t.clause == clause]
    before = before[max((n + 1 for n, t in enumerate(before) if t.word in _CLAUSES), default=0) :]
    after = after[: next((n for n, t in enumerate(after) if t.word in _CLAUSES and n), len(after))]
    if not before and kind[0] in ("cause", "order"):  # "After B, A"
        before = [t for t in sentence[at + 1 :] if t.clause == clause + 1][:_SIDE]
    turned = kind == ("cause", "by")
    by = next((n for n, t in enumerate(after[:5]) if t.word == "by"), -1)
    if kind[0] != "order" and by >= 0 and (by == 0 or any(t.word in _BE for t in before[-3:])):
        turned, after = not turned, after[by + 1 :]
    left, right = _terms(before), _terms(after)
    return (right, left) if turned else (left, right)


def _terms(some: Sequence[Token]) -> set[str]:
    plain = (t for t in some if t.content and t.word not in _LINKS)
    return {t.term for t in plain if t.term not in VAGUE and not t.word[0].isdigit()}


def _word_of(sentence: Sequence[Token], terms: set[str]) -> str:
    return next(t.word for t in sentence if t.term in terms)


# ---- from and to


def turned_course(sentence: Unit, units: Sequence[Unit]) -> tuple[str, str] | None:
    """ "from A to B" where the best sentence says "from B to A": the two words, or None."""
    for unit in units[:1]:
        for start, end in _courses(sentence.tokens):
            for other_start, other_end in _courses(unit.tokens):
                if start == other_end and end == other_start and start != end:
                    return start, end
    return None


def _courses(sentence: Sequence[Token]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for at, token in enumerate(sentence):
        if token.word != "from":
            continue
        stop = next((n for n in range(at + 2, min(len(sentence), at + 8)) if sentence[n].word == "to"), 0)
        if stop and stop + 1 < len(sentence):
            first = [t.word for t in sentence[at + 1 : stop] if t.content]
            second = [t.word for t in sentence[stop + 1 : stop + 4] if t.content]
            if first and second:
                found.append((first[0], second[0]))
    return found
