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

# What one sentence of ten that is at fault costs, in tenths.
COST = {
    "contradiction": 2.0,
    "repetition": 2.0,
    "incoherence": 1.5,
    "off_subject": 0.5,
    "undefined_abbreviation": 0.5,
    "promotional": 2.0,
    "one_sided": 2.0,
    "unattributed_opinion": 1.5,
}
CLARITY = ("contradiction", "repetition", "incoherence", "off_subject", "undefined_abbreviation")
OBJECTIVITY = ("promotional", "one_sided", "unattributed_opinion")
ANY_LANGUAGE = frozenset(("contradiction", "repetition"))
_LEAST = 10  # sentences; fewer are counted as so many
_UNANSWERED, _THIN = 0.4, 0.15  # of a section's coverage, where all its sub-questions are open, and where it is thin
_MOST_ISSUES = 30

Key: TypeAlias = tuple[str, int]  # a sentence: its section, and its place there


def measured(sections: Sequence[Judged], evidence: Mapping[str, Evidence], *, question: str, language: str) -> Measured:
    """What can be counted in a draft. English has every signal; in other languages the rest is not measured."""
    parts = read(sections, evidence)
    lines = [line for part in parts for line in part.lines]
    english = language.casefold().startswith("en")
    flags, subjects = _flags(parts, lines, question) if english else (_agreeing(parts), False)
    flagged = {_key(f.line) for f in flags}

    def clean(line: Line) -> bool:
        return line.verdict not in FAULTY and _key(line) not in flagged

    unknown = () if english else tuple(s for s in (*CLARITY, *OBJECTIVITY) if s not in ANY_LANGUAGE)
    if english and not subjects:
        unknown = ("off_subject",)
    open_questions = {p.id: answering.unanswered(p, question, clean) for p in parts if not p.gap} if english else {}
    thin = [p for p in parts if not p.gap and answering.is_thin(p, clean)]
    prose = [line for line in lines if line.is_prose]
    sound = sum(clean(line) for line in prose)
    signals = (
        *_covering(parts, open_questions, thin, measured_in=english),
        *(_signal(s, d, flags, sound, s in unknown) for d, names in _DIMENSIONS for s in names),
    )
    return Measured(
        scores={
            "accuracy": _accuracy(lines, flagged),
            "coverage": _coverage(parts, open_questions, thin),
            "clarity": _score(CLARITY, flags, sound, prose),
            "objectivity": _score(OBJECTIVITY, flags, sound, prose) if english else None,
        },
        complete=frozenset(("clarity", "objectivity")) if english else frozenset(),
        signals=(_accurate(lines, flagged), *signals),
        issues=tuple(_issues(flags, open_questions, thin, parts)),
    )


_DIMENSIONS: tuple[tuple[Dimension, tuple[str, ...]], ...] = (("clarity", CLARITY), ("objectivity", OBJECTIVITY))


# ---- what is at fault


def _flags(parts: Sequence[Part], lines: Sequence[Line], question: str) -> tuple[list[Flag], bool]:
    """In order: what a sentence shows by itself; pairs; then what only sound sentences can make good."""
    found = [*objectivity.flags(lines), *_agreeing(parts)]

    def clean(line: Line) -> bool:
        return line.verdict not in FAULTY and _key(line) not in taken

    taken = {_key(f.line) for f in found}
    given = [question, *(t for p in parts for t in (p.title, *p.queries))]
    spelling = [*given, *(f"({' ('.join(abbreviations.named(t))}" for t in given if abbreviations.named(t))]
    found += abbreviations.flags(lines, (*spelling, *(line.text for line in lines if clean(line))))
    taken = {_key(f.line) for f in found}
    subjects = False
    for part in parts:
        known, strange = coherence.strangers(part, question, clean)
        subjects |= known
        found += strange
    taken = {_key(f.line) for f in found}
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
    return max(0.0, 1 - sum(COST[s] * accused[s] / max(_LEAST, sound + accused[s]) for s in names))


# ---- what is told


def _signal(name: str, dimension: Dimension, flags: Iterable[Flag], sound: int, unknown: bool) -> Signal:
    if unknown:
        return Signal(name=name, dimension=dimension, value=None)
    found = len({_key(f.line) for f in flags if f.signal == name})
    total = sound + found
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
    """What a writer or researcher can act on, gravest first; each abbreviation and each pair of sentences once."""
    found: dict[tuple[str, str], Issue] = {}
    clashing = {_key(f.line) for f in flags if f.signal == "contradiction"}
    for flag in flags:
        if not flag.instruction or (flag.signal == "repetition" and _key(flag.line) in clashing):
            continue
        once = flag.words if flag.signal == "undefined_abbreviation" else f"{flag.line.section} {flag.line.at}"
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
        found.setdefault((flag.signal, once), issue)
    issues = [*found.values(), *_gaps(open_questions, thin, parts)]
    return sorted(issues, key=lambda issue: ("high", "medium", "low").index(issue.severity))[:_MOST_ISSUES]


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
