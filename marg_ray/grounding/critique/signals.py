"""The critic's measurements: what is at fault in a draft, sentence by sentence, and a bound for each score.

A sentence that is at fault in any way earns nothing in any dimension: it backs no sub-question, introduces no name,
and does not thin out the faults of others. So no sentence that is bad, no citation that is taken away and no
contradiction that is added can raise a score; tests/unit/test_critique.py tries it on made-up drafts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from marg_ray.grounding.critique import abbreviations, agreement, answering, coherence, objectivity
from marg_ray.grounding.critique.prose import FAULTY, Flag, Line, Part, read, shortened
from marg_ray.quality import WEIGHT, Measured
from marg_ray.records import Evidence, Issue, IssueKind, Signal, Verdict
from marg_ray.tasks import Judged

Dimension: TypeAlias = Literal["accuracy", "coverage", "clarity", "objectivity"]

# What one sentence of ten that is at fault costs, in tenths; and all that a signal may cost. A reader is put out by
# what is said twice or hangs in the air, and misled by what contradicts itself or takes a side.
COST = {
    "contradiction": (1.5, 1.0),
    "repetition": (2.0, 0.19),
    "incoherence": (1.5, 0.08),
    "off_subject": (0.5, 0.02),
    "undefined_abbreviation": (0.5, 0.10),
    "promotional": (2.0, 1.0),
    "one_sided": (2.0, 1.0),
    "unattributed_opinion": (1.5, 1.0),
}
CLARITY = ("contradiction", "repetition", "incoherence", "off_subject", "undefined_abbreviation")
OBJECTIVITY = ("promotional", "one_sided", "unattributed_opinion")
ANY_LANGUAGE = frozenset(("contradiction", "repetition"))
_LEAST = 10  # sentences; fewer are counted as so many
_UNANSWERED, _THIN = 0.26, 0.08  # of a section's coverage, where all its sub-questions are open, and where it is thin
_MOST_ISSUES = 30

Key: TypeAlias = tuple[str, int]  # a sentence: its section, and its place there


def measured(sections: Sequence[Judged], evidence: Mapping[str, Evidence], *, question: str, language: str) -> Measured:
    """What can be counted in a draft. English has every signal; in other languages the rest is not measured.

    What is told of (signals, issues) takes every sentence that holds for an introduction of what follows; the scores
    only those without a fault.
    """
    parts = read(sections, evidence)
    lines = [line for part in parts for line in part.lines]
    english = language.casefold().startswith("en")
    apparent = [*_agreeing(parts), *(objectivity.flags(lines) if english else ())]
    told, subjects = _leaning(parts, lines, question, apparent, strict=False) if english else (apparent, False)
    flags = _leaning(parts, lines, question, apparent, strict=True)[0] if english else apparent
    flagged = {_key(f.line) for f in flags}

    def clean(line: Line) -> bool:
        return _holds(line) and _key(line) not in flagged

    unknown = () if english else tuple(s for s in (*CLARITY, *OBJECTIVITY) if s not in ANY_LANGUAGE)
    if english and not subjects:
        unknown = ("off_subject",)
    there = [p for p in parts if not p.gap]
    left_open, seem_open = (
        {p.id: answering.unanswered(p, question, good) for p in there} if english else {} for good in (clean, _holds)
    )
    thin, seem_thin = ([p for p in there if answering.is_thin(p, good)] for good in (clean, _holds))
    prose = [line for line in lines if line.is_prose]
    sound = sum(clean(line) for line in prose)
    return Measured(
        scores={
            "accuracy": _accuracy(lines, flagged),
            "coverage": _coverage(parts, left_open, thin),
            "clarity": _score(CLARITY, flags, sound, prose),
            "objectivity": _score(OBJECTIVITY, flags, sound, prose) if english else None,
        },
        complete=frozenset(("clarity", "objectivity")) if english else frozenset(),
        signals=(
            _accurate(lines, flagged),
            *_covering(parts, seem_open, seem_thin, measured_in=english),
            *(_signal(s, d, told, len(prose), s in unknown) for d, names in _DIMENSIONS for s in names),
        ),
        issues=tuple(_issues(told, seem_open, seem_thin, parts)),
    )


def _holds(line: Line) -> bool:
    return line.verdict not in FAULTY


_DIMENSIONS: tuple[tuple[Dimension, tuple[str, ...]], ...] = (("clarity", CLARITY), ("objectivity", OBJECTIVITY))


# ---- what is at fault


def _leaning(
    parts: Sequence[Part], lines: Sequence[Line], question: str, apparent: Sequence[Flag], *, strict: bool
) -> tuple[list[Flag], bool]:
    """What a sentence shows by itself or beside another, then what other sentences can make good, step by step.

    `strict`: only a sentence that is not at fault so far can. Also whether the sections' subjects can be told.
    """
    found = list(apparent)
    taken: set[Key] = set()

    def clean(line: Line) -> bool:
        return _holds(line) and not (strict and _key(line) in taken)

    taken = {_key(f.line) for f in found}
    given = [question, *(t for p in parts for t in (p.title, *p.queries))]
    spelling = [*given, *(f"({short})" for t in given for short in abbreviations.named(t))]
    found += abbreviations.flags(lines, (*spelling, *(line.text for line in lines if clean(line))))
    taken = {_key(f.line) for f in found}
    subjects = False
    for part in parts:
        known, strange = coherence.strangers(part, question, clean)
        subjects |= known
        found += strange
    # Of two that say the same either may be the one too many: neither makes good what follows it.
    taken = {_key(line) for f in found for line in (f.line, f.twin) if line is not None}
    for part in parts:
        found += coherence.openings(part, question, clean)
    return found, subjects


def _agreeing(parts: Sequence[Part]) -> list[Flag]:
    return [*(flag for part in parts for flag in agreement.contradictions(part)), *agreement.repetitions(parts)]


def _key(line: Line) -> Key:
    return line.section, line.at


# ---- scores


def _accuracy(lines: Sequence[Line], flagged: set[Key]) -> float:
    """The supported share of the factual sentences; one at fault otherwise counts only where it does not hold."""
    factual = [line for line in lines if line.verdict not in (None, Verdict.NOT_FACTUAL)]
    if not factual:
        return 0.0
    sound = [line for line in factual if _key(line) not in flagged]
    doubtful = sum(line.verdict is not Verdict.SUPPORTED for line in factual if _key(line) in flagged)
    total = len(sound) + doubtful
    return sum(WEIGHT.get(line.verdict, 0.0) for line in sound if line.verdict) / total if total else 1.0


def _coverage(parts: Sequence[Part], open_questions: Mapping[str, Sequence[str]], thin: Sequence[Part]) -> float:
    """The sections' weights, each less what its open sub-questions and its brevity cost."""
    total = sum(p.weight for p in parts)
    covered = 0.0
    for part in parts:
        if not part.gap:
            missing = len(open_questions.get(part.id, ())) / len(part.queries) if part.queries else 0.0
            covered += part.weight * (1 - _UNANSWERED * missing) * (1 - _THIN * (part in thin))
    return covered / total if total else 0.0


def _score(names: Iterable[str], flags: Iterable[Flag], sound: int, prose: Sequence[Line]) -> float:
    """One less what each signal costs: the share of the sentences it accuses, of these and the sound ones."""
    if not prose:
        return 1.0
    accused = Counter(name for name, _ in {(f.signal, _key(f.line)) for f in flags})
    cost = (min(COST[s][1], COST[s][0] * accused[s] / max(_LEAST, sound + accused[s])) for s in names)
    return max(0.0, 1 - sum(cost))


# ---- what is told


def _signal(name: str, dimension: Dimension, flags: Iterable[Flag], total: int, unknown: bool) -> Signal:
    if unknown:
        return Signal(name=name, dimension=dimension, value=None)
    found = len({_key(f.line) for f in flags if f.signal == name})
    value = round(1 - found / total, 4) if total else 1.0
    return Signal(name=name, dimension=dimension, value=value, found=found, total=total)


def _accurate(lines: Sequence[Line], flagged: set[Key]) -> Signal:
    factual = [line for line in lines if line.verdict not in (None, Verdict.NOT_FACTUAL)]
    found = sum(line.verdict is not Verdict.SUPPORTED for line in factual)
    value = round(_accuracy(lines, flagged), 4) if factual else None
    return Signal(name="verdicts", dimension="accuracy", value=value, found=found, total=len(factual))


def _covering(
    parts: Sequence[Part], open_questions: Mapping[str, Sequence[str]], thin: Sequence[Part], *, measured_in: bool
) -> tuple[Signal, ...]:
    gaps = sum(bool(p.gap) for p in parts)
    asked = sum(len(p.queries) for p in parts if not p.gap)
    missing = sum(map(len, open_questions.values()))
    weight = sum(p.weight for p in parts)
    outline = sum(p.weight for p in parts if not p.gap) / weight if weight else 0.0
    return (
        Signal(name="outline", dimension="coverage", value=round(outline, 4), found=gaps, total=len(parts)),
        Signal(
            name="sub_questions",
            dimension="coverage",
            value=round(1 - missing / asked, 4) if measured_in and asked else None,
            found=missing,
            total=asked if measured_in else 0,
        ),
        Signal(
            name="section_weights",
            dimension="coverage",
            value=round(1 - len(thin) / len(parts), 4) if parts else None,
            found=len(thin),
            total=len(parts),
        ),
    )


def _issues(
    flags: Sequence[Flag], open_questions: Mapping[str, Sequence[str]], thin: Sequence[Part], parts: Sequence[Part]
) -> list[Issue]:
    """What a writer or researcher can act on, gravest first; each abbreviation and each sentence once."""
    found: dict[tuple[str, str], Issue] = {}
    for flag in flags:
        if not flag.instruction:
            continue
        short = flag.signal == "undefined_abbreviation"
        once = ("abbreviation", flag.words) if short else (flag.line.section, str(flag.line.at))
        issue = Issue(
            kind=flag.kind,
            severity=flag.severity,
            section=flag.line.section,
            detail=flag.detail,
            instruction=flag.instruction,
            signal=flag.signal,
            sentence=flag.line.text,
            words=flag.words,
        )
        found.setdefault(once, issue)  # of what is at fault with one sentence the first, which is the gravest
    untrue = [_untrue(line) for part in parts for line in part.lines if not _holds(line)]
    issues = [*untrue, *found.values(), *_gaps(open_questions, thin, parts)]
    return sorted(issues, key=lambda issue: ("high", "medium", "low").index(issue.severity))[:_MOST_ISSUES]


def _untrue(line: Line) -> Issue:
    return Issue(
        kind=IssueKind.HALLUCINATION,
        severity="high",
        section=line.section,
        detail=f'{line.verdict}: "{line.text}"',
        instruction=f"Correct or leave out: {line.text}",
        signal="verdicts",
        sentence=line.text,
    )


def _gaps(open_questions: Mapping[str, Sequence[str]], thin: Sequence[Part], parts: Sequence[Part]) -> Iterable[Issue]:
    for part in parts:
        for query in open_questions.get(part.id, ()):
            yield Issue(
                kind=IssueKind.INCOMPLETE,
                severity="low",
                section=part.id,
                detail=f'No sentence answers "{shortened(query)}"',
                fix_query=query,
                instruction=f'Answer "{query}" where the evidence does.',
                signal="sub_questions",
            )
        if part in thin:
            yield Issue(
                kind=IssueKind.INCOMPLETE,
                severity="low",
                section=part.id,
                detail=f"{part.title} says little for its place in the outline",
                fix_query=part.title,
                signal="section_weights",
            )
