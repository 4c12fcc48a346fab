"""What is found to be of no use, for every kind of task, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from marg_ray.models.checks import fault
from marg_ray.models.client import ModelTask
from marg_ray.models.tasks import (
    AnalysisIdea,
    ClaimIdea,
    ClaimIdeas,
    FindingIdea,
    FreeText,
    IssueIdea,
    Pick,
    Picks,
    PlanIdea,
    QueryIdea,
    ReviewIdea,
    ScoreIdea,
    SectionIdea,
)
from marg_ray.models.testing import answer
from marg_ray.records import IssueKind
from tests import model_tasks as samples

Case = tuple[ModelTask[Any], BaseModel]
PLAN = samples.make_plan(outline=())


def plan(*titles: str, queries: tuple[str, ...] = ("a query",)) -> PlanIdea:
    return PlanIdea(title="A report", sections=[SectionIdea(title=t, queries=list(queries)) for t in titles])


def claims(*quotes: str) -> ClaimIdeas:
    return ClaimIdeas(claims=[ClaimIdea(claim="It is so.", quote=q) for q in quotes])


def review(accuracy: float = 0.9, *issues: IssueIdea, others: float = 0.9) -> ReviewIdea:
    scores = ScoreIdea(accuracy=accuracy, coverage=others, clarity=others, objectivity=others)
    return ReviewIdea(scores=scores, issues=list(issues))


def issue(section: str = "s1", severity: Any = "medium") -> IssueIdea:
    return IssueIdea(kind=IssueKind.INCOMPLETE, severity=severity, section=section, detail="thin")


def finding(*numbers: int) -> AnalysisIdea:
    return AnalysisIdea(findings=[FindingIdea(text="So it is.", evidence=list(numbers))])


USELESS: dict[str, Case] = {
    "another plan": (PLAN, plan("Pottery", "Glazes")),
    "a plan without a title": (PLAN, plan("...", "--")),
    "a plan with none of its sections": (samples.make_plan(), plan("Pottery")),
    "a plan that shares no word": (samples.make_plan(outline=(), language="de"), plan("Keramik", "Glasuren")),
    "the same query": (samples.rewrite_query(query="tides birds"), QueryIdea(query="Birds, tides")),
    "no query": (samples.rewrite_query(), QueryIdea(query="???")),
    "invented quotes": (samples.extract_claims(), claims("The dam is blue.", "Nobody came.")),
    "sentences from nowhere": (
        samples.extract_claims(),
        samples.extract_claims().understood(Picks(claims=[Pick(claim="So.", sentences=[99])])),
    ),
    "no citation": (samples.draft_section(), FreeText(markdown="The barrage opened in 1966.")),
    "citations of nothing": (samples.draft_section(), FreeText(markdown="It opened in 1966 [44].")),
    "nothing written": (samples.draft_section(), FreeText(markdown=" \n")),
    "a text cut off": (samples.draft_section(), FreeText(markdown="It opened in 1966 [1].", incomplete=True)),
    "a summary without marks": (samples.summarise_report(), FreeText(markdown="It opened in 1966.")),
    "a summary with other marks": (samples.summarise_report(), FreeText(markdown="It opened in 1966 [9].")),
    "findings without evidence": (samples.analyse_evidence(), finding()),
    "findings from nowhere": (samples.analyse_evidence(), finding(17)),
    "an empty analysis": (samples.analyse_evidence(), AnalysisIdea()),
    "the example's scores": (samples.review_report(), review(0.0, others=0.0)),
    "low marks for nothing": (samples.review_report(), review(0.4)),
    "a grave fault and good marks": (samples.review_report(), review(0.9, issue(severity="high"))),
    "faults of other sections": (samples.review_report(), review(0.6, issue("s9"), issue("Introduction"))),
}
GOOD: dict[str, Case] = {
    "no claim": (samples.extract_claims(), claims()),
    "one quote of two": (samples.extract_claims(), claims("The dam is blue.", samples.PARAGRAPHS[0])),
    "other white space": (samples.extract_claims(), claims(samples.PARAGRAPHS[1].replace(" ", "\n"))),
    "a section of the outline": (samples.make_plan(), plan(" power ", "Pottery")),
    "a plan in another language": (
        samples.make_plan(question="What did La Rance cost?", language="de", outline=()),
        plan("Kosten", queries=("La Rance Baukosten",)),
    ),
    "another way to cite": (samples.draft_section(), FreeText(markdown="It opened in 1966 【2】.")),
    "a draft from nothing": (samples.draft_section(evidence=()), FreeText(markdown="Nothing is known.")),
    "a summary of sections without marks": (
        samples.summarise_report(
            sections=tuple(s.model_copy(update={"text": "A word."}) for s in samples.section_texts())
        ),
        FreeText(markdown="A word."),
    ),
    "nothing found, but missed": (samples.analyse_evidence(), AnalysisIdea(unknowns=["The cost."])),
    "one finding of two": (samples.analyse_evidence(), finding(17, 2)),
    "a fault of the whole": (samples.review_report(), review(0.6, issue(""))),
    "a fault by its section's title": (samples.review_report(), review(0.6, issue("BIRDS"))),
    "a fault of a gap": (samples.review_report(), review(0.6, issue("Costs"))),
    "a grave fault and a low mark": (samples.review_report(), review(0.5, issue(severity="high"))),
}


@pytest.mark.parametrize("case", USELESS.values(), ids=USELESS.keys())
def test_what_is_of_no_use_is_found(case: Case) -> None:
    assert fault(*case)


@pytest.mark.parametrize("case", GOOD.values(), ids=GOOD.keys())
def test_what_may_be_right_passes(case: Case) -> None:
    assert fault(*case) == ""


@pytest.mark.parametrize("task", [*samples.every_task(), PLAN], ids=lambda t: type(t).__name__)
def test_a_plain_answer_passes(task: ModelTask[Any]) -> None:
    assert fault(task, answer(task)) == ""
