"""What code can tell of an answer without reading it: whether it does what its task asks, judged by its input.

A check finds answers that are of no use. It does not find good ones: what a draft says is judged sentence by sentence,
later, against its evidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from marg_ray.grounding.citations import find_marks
from marg_ray.grounding.quotes import locate
from marg_ray.grounding.terms import STOP_WORDS, content_terms, words
from marg_ray.models.client import ModelTask
from marg_ray.models.tasks import (
    AnalyseEvidence,
    AnalysisIdea,
    AnswerQuestion,
    ClaimIdeas,
    DraftSection,
    ExtractClaims,
    FreeText,
    JudgeClaims,
    Judgement,
    MakePlan,
    PlanIdea,
    PlanTurn,
    QueryIdea,
    ReviewIdea,
    ReviewReport,
    RewriteQuery,
    SummariseReport,
    TurnIdea,
)

COVERED = 1 / 3  # of the question's words, the least that a plan in its language must have
LOW = 0.75  # a score below it says that something is wrong
GRAVE = 0.7  # no score is above it where a grave fault is named
MAX_NUMBER = 1000  # of an evidence card


def fault(task: ModelTask[Any], output: BaseModel) -> str:
    """Why the answer is of no use, in words; empty where nothing speaks against it."""
    match task, output:
        case MakePlan(), PlanIdea():
            return _plan(task, output)
        case RewriteQuery(), QueryIdea():
            return _query(task, output)
        case ExtractClaims(), ClaimIdeas():
            return _claims(task, output)
        case DraftSection(), FreeText():
            return _draft(task, output)
        case SummariseReport(), FreeText():
            return _summary(task, output)
        case AnalyseEvidence(), AnalysisIdea():
            return _analysis(task, output)
        case JudgeClaims(), Judgement():
            return _judgement(task, output)
        case ReviewReport(), ReviewIdea():
            return _review(task, output)
        case PlanTurn(), TurnIdea():
            return "" if words(output.question) or not words(task.question) else "it asks nothing"
        case AnswerQuestion(), FreeText():
            return _answer(task, output)
        case _:
            return ""


def _plan(task: MakePlan, plan: PlanIdea) -> str:
    titles = [s.title for s in plan.sections]
    if not any(words(title) for title in titles):
        return "no section has a title"
    if task.outline:
        known = {_key(title) for title in titles}
        return "" if any(_key(e.title) in known for e in task.outline) else "it has none of the sections asked for"
    asked = set(content_terms(task.question))
    planned = set(content_terms(" ".join([plan.title, *titles, *(q for s in plan.sections for q in s.queries)])))
    same_language = task.language == "en" and not STOP_WORDS.isdisjoint(words(task.question))
    least = max(1.0, COVERED * len(asked)) if same_language else 1  # a name at least is the same in every language
    return "it does not cover the question" if asked and len(asked & planned) < least else ""


def _query(task: RewriteQuery, idea: QueryIdea) -> str:
    new = words(idea.query)
    if not new:
        return "the query has no word"
    return "it is the query that found nothing" if set(new) == set(words(task.query)) else ""


def _claims(task: ExtractClaims, found: ClaimIdeas) -> str:
    """No claim at all is a good answer: not every document treats every section."""
    if found.dropped and not found.claims:
        return "it names sentences that are not there"
    text = "\n\n".join(p.text for p in task.passages)
    if not found.claims or any(locate(c.quote, text) for c in found.claims):
        return ""
    return "not one of its quotes stands in the passages"


def _draft(task: DraftSection, draft: FreeText) -> str:
    if not draft.markdown.strip():
        return "it is empty"
    if draft.incomplete:
        return "it is cut off"
    known = {card.number for card in task.evidence}
    return "" if not known or _cites(draft.markdown, known) else "it cites no evidence"


def _summary(task: SummariseReport, summary: FreeText) -> str:
    if not summary.markdown.strip():
        return "it is empty"
    if summary.incomplete:
        return "it is cut off"
    known = _numbers(s.text for s in task.sections)
    return "" if not known or _cites(summary.markdown, known) else "it keeps no citation of the sections"


def _answer(task: AnswerQuestion, answer: FreeText) -> str:
    """That the cards do not answer is a good answer."""
    if not answer.markdown.strip():
        return "it is empty"
    if answer.incomplete:
        return "it is cut off"
    known = {card.number for card in task.evidence}
    says_so = "UNKNOWN:" in answer.markdown
    return (
        "" if says_so or _cites(answer.markdown, known) else "it cites no evidence and does not say that it is unknown"
    )


def _analysis(task: AnalyseEvidence, analysis: AnalysisIdea) -> str:
    if not task.evidence:
        return ""
    if not analysis.findings and not analysis.unknowns:
        return "it finds nothing and misses nothing"
    known = {card.number for card in task.evidence}
    if analysis.findings and not any(known & set(f.evidence) for f in analysis.findings):
        return "no finding names evidence that exists"
    return ""


def _judgement(task: JudgeClaims, judgement: Judgement) -> str:
    known = {claim.number: claim for claim in task.claims}
    rulings = [r for r in judgement.rulings if r.claim in known]
    if known and not rulings:
        return "it judges none of the claims"
    named = [r for r in rulings if r.sentence]
    if named and not any(task.place(known[r.claim], r.sentence) for r in named):
        return "it names sentences that are not there"
    return ""


def _review(task: ReviewReport, review: ReviewIdea) -> str:
    scores = review.scores.model_dump().values()
    if max(scores) == 0:
        return "its scores are those of the example"
    if min(scores) < LOW and not review.issues:
        return "it marks the report down and names no fault"
    if min(scores) > GRAVE and any(i.severity == "high" for i in review.issues):
        return "it names a grave fault and gives good marks"
    known = {_key(name) for s in task.sections for name in (s.id, s.title)} | {_key(title) for title in task.gaps}
    named = {_key(i.section) for i in review.issues} - {""}
    return "it names no section that exists" if named and known.isdisjoint(named) else ""


def _key(title: str) -> str:
    return " ".join(title.split()).casefold()


def _cites(text: str, known: set[int]) -> bool:
    return any(known & set(mark.numbers) for mark in find_marks(text, known))


def _numbers(texts: Iterable[str]) -> set[int]:
    possible = range(1, MAX_NUMBER)
    return {n for text in texts for mark in find_marks(text, possible) for n in mark.numbers}
