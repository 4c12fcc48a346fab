"""The critic's judgement, as code: scores bounded by what was measured, and the verdict that follows from them.

A reviewer (model or measure) proposes scores and issues. What it may not do is contradict the facts: a draft with
unsupported sentences is not accurate, one with missing sections does not cover its outline, whatever it was given.
There is one floor: a low score for clarity or objectivity that names no fault, where all that can be measured of it
is sound, is lifted to the threshold, for no writer could act on it. It never goes above what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from marg_ray.records import Issue, IssueKind, Review, ReviewVerdict, Scores, Signal, Verdict
from marg_ray.tasks import Judged

THRESHOLDS = Scores(accuracy=0.80, coverage=0.75, clarity=0.70, objectivity=0.75)
HIGH_CAP, MEDIUM_CAP = 0.60, 0.85  # a dimension with an issue of this severity scores no more
GIVE_UP_ROUND = 3  # from here a draft that cannot pass is INSUFFICIENT_EVIDENCE

DIMENSION = {
    IssueKind.HALLUCINATION: "accuracy",
    IssueKind.OUTDATED: "accuracy",
    IssueKind.MISSING_SOURCE: "coverage",
    IssueKind.INCOMPLETE: "coverage",
    IssueKind.LOGIC_ERROR: "clarity",
    IssueKind.BIAS: "objectivity",
}
WEIGHT = {Verdict.SUPPORTED: 1.0, Verdict.PARTIAL: 0.5}
FAULTY = (Verdict.UNSUPPORTED, Verdict.CONTRADICTED)


@dataclass(frozen=True)
class Measured:
    """What was counted in a draft.

    `scores` holds an upper bound for each dimension, None where nothing of it could be measured. `complete` names the
    dimensions of which everything was measured that can be.
    """

    scores: Mapping[str, float | None] = field(default_factory=dict)
    complete: frozenset[str] = frozenset()
    signals: tuple[Signal, ...] = ()
    issues: tuple[Issue, ...] = ()


NOTHING = Measured()


def judge(
    proposed: Scores,
    issues: Sequence[Issue],
    sections: Sequence[Judged],
    *,
    iteration: int,
    cap: int,
    measured: Measured = NOTHING,
) -> Review:
    """Cap the proposed scores by issues and measurements, and name the verdict, the sections and the remedy."""
    named = {DIMENSION[i.kind] for i in issues}
    issues = tuple(dict.fromkeys((*issues, *_measured_issues(sections), *measured.issues)))
    scores = _capped(_floored(proposed, named, measured), issues, sections, measured)
    return _review(scores, issues, sections, iteration, cap).model_copy(update={"signals": measured.signals})


def _review(scores: Scores, issues: tuple[Issue, ...], sections: Sequence[Judged], iteration: int, cap: int) -> Review:
    failing = [d for d in Scores.model_fields if getattr(scores, d) < getattr(THRESHOLDS, d)]
    if not failing:
        return Review(iteration=iteration, scores=scores, issues=issues, verdict=ReviewVerdict.PASS)
    concerned = [i for i in issues if DIMENSION[i.kind] in failing]
    research = "coverage" in failing or any(
        i.fix_query or i.kind is IssueKind.MISSING_SOURCE for i in concerned if DIMENSION[i.kind] == "accuracy"
    )
    verdict = ReviewVerdict.RETRIEVAL_GAP if research else ReviewVerdict.QUALITY_FAIL
    if iteration >= max(cap, GIVE_UP_ROUND):
        verdict = ReviewVerdict.INSUFFICIENT_EVIDENCE
    named = dict.fromkeys(i.section for i in concerned if i.section)
    whole = tuple(j.section.id for j in sections)
    return Review(iteration=iteration, scores=scores, issues=issues, verdict=verdict, sections=tuple(named) or whole)


def _measured_issues(sections: Sequence[Judged]) -> list[Issue]:
    """What code sees by itself: sections without evidence, sentences that do not hold."""
    found = []
    for judged in sections:
        section = judged.section
        if judged.gap:
            found.append(
                Issue(
                    kind=IssueKind.MISSING_SOURCE,
                    severity="high" if section.weight >= 0.3 else "medium",
                    section=section.id,
                    detail=f"{section.title}: {judged.gap}",
                    fix_query=section.title,
                )
            )
        verdicts = judged.grounding.verdicts if judged.grounding else ()
        faulty = sum(v.verdict in FAULTY for v in verdicts)
        if faulty:
            found.append(
                Issue(
                    kind=IssueKind.HALLUCINATION,
                    severity="high",
                    section=section.id,
                    detail=f"{faulty} of {len(verdicts)} sentences are not supported by what they cite",
                    instruction="Remove or correct every sentence that its citations do not support.",
                )
            )
    return found


def _floored(proposed: Scores, named: set[str], measured: Measured) -> Scores:
    """A score that names no fault, lifted to the threshold where its measurements reach it."""
    lifted = {
        d: getattr(THRESHOLDS, d)
        for d in measured.complete - named
        if getattr(proposed, d) < getattr(THRESHOLDS, d) <= (measured.scores.get(d) or 0.0)
    }
    return proposed.model_copy(update=lifted) if lifted else proposed


def _capped(proposed: Scores, issues: Sequence[Issue], sections: Sequence[Judged], measured: Measured) -> Scores:
    caps = {d: min(1.0, max(0.0, getattr(proposed, d))) for d in Scores.model_fields}
    for issue in issues:
        bound = {"high": HIGH_CAP, "medium": MEDIUM_CAP, "low": 1.0}[issue.severity]
        dimension = DIMENSION[issue.kind]
        caps[dimension] = min(caps[dimension], bound)
    caps["accuracy"] = min(caps["accuracy"], _supported_share(sections))
    caps["coverage"] = min(caps["coverage"], _covered_weight(sections))
    for dimension, bound_of in measured.scores.items():
        if bound_of is not None:
            caps[dimension] = min(caps[dimension], bound_of)
    return Scores(**{d: math.floor(v * 1000) / 1000 for d, v in caps.items()})


def _supported_share(sections: Sequence[Judged]) -> float:
    """Share of the factual sentences that hold, partial ones counting half; 0 where nothing was checked."""
    checked = [v.verdict for j in sections if j.grounding for v in j.grounding.verdicts]
    factual = [v for v in checked if v is not Verdict.NOT_FACTUAL]
    return sum(WEIGHT.get(v, 0.0) for v in factual) / len(factual) if factual else 0.0


def _covered_weight(sections: Sequence[Judged]) -> float:
    total = sum(j.section.weight for j in sections)
    return sum(j.section.weight for j in sections if not j.gap) / total if total else 0.0
