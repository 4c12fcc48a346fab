"""One sample of every model task, on a text that is long enough to be read, quoted and cited."""

from __future__ import annotations

from typing import Any

from marg_ray.grounding.snapshots import Document, Part
from marg_ray.models.client import ModelTask
from marg_ray.models.tasks import (
    AnalyseEvidence,
    AnswerQuestion,
    ClaimToJudge,
    DraftSection,
    EvidenceCard,
    ExtractClaims,
    JudgeClaims,
    MakePlan,
    Passage,
    PlanTurn,
    ReviewReport,
    RewriteQuery,
    ScoutHit,
    SectionText,
    SummariseReport,
    Turn,
)
from marg_ray.records import Depth, OutlineEntry

QUESTION = "How much power do tidal barrages give, and what do they do to wading birds?"
PARAGRAPHS = (
    "The La Rance barrage opened in 1966 and has a capacity of 240 MW. Its 24 bulb turbines work in both directions.",
    "Wading birds lost about 40 % of their feeding ground. Dunlin numbers fell from 5,200 to 3,100 within ten years.",
    "Kosten in Höhe von 120 € je MWh wurden für „Swansea“ genannt. 潮汐发电站的成本仍然很高。",
)
TEXT = "\n\n".join(PARAGRAPHS)


def document(text: str = TEXT) -> Document:
    parts, start = [], 0
    for paragraph in text.split("\n\n"):
        parts.append(Part(kind="paragraph", start=start, end=start + len(paragraph)))
        start += len(paragraph) + 2
    return Document(title="Tidal barrages", text=text, parts=tuple(parts), language="en")


def passages(doc: Document) -> tuple[Passage, ...]:
    return tuple(
        Passage(text=doc.text[p.start : p.end], start=p.start, end=p.end, heading="Sites", score=1 / (n + 1))
        for n, p in enumerate(doc.parts)
    )


def cards(quotes: tuple[str, ...] = PARAGRAPHS) -> tuple[EvidenceCard, ...]:
    return tuple(
        EvidenceCard(
            number=n,
            quote=quote,
            source_title=f"Source {n}",
            source_id=f"{n:064x}",
            start=TEXT.find(quote) if quote in TEXT else 0,
            end=(TEXT.find(quote) if quote in TEXT else 0) + len(quote),
            heading="Sites > Birds",
            claim=quote,
            relevance=1 / n,
            published="2024-05-01",
        )
        for n, quote in enumerate(quotes, 1)
    )


def make_plan(**changed: Any) -> MakePlan:
    base = MakePlan(
        question=QUESTION,
        depth=Depth.STANDARD,
        language="en",
        max_sections=5,
        focus_areas=("birds",),
        outline=(OutlineEntry(title="Power", queries=("tidal barrage capacity",)), OutlineEntry(title="Birds")),
        scout=(ScoutHit(title="Tidal barrages", snippet="La Rance", headings=("Sites", "Birds"), relevance=0.8),),
    )
    return base.model_copy(update=changed)


def rewrite_query(**changed: Any) -> RewriteQuery:
    base = RewriteQuery(question=QUESTION, section_title="Birds", query='"dunlin decline" barrage 2024 exact')
    return base.model_copy(update=changed)


def extract_claims(**changed: Any) -> ExtractClaims:
    doc = document()
    base = ExtractClaims(
        question=QUESTION,
        section_title="Birds",
        queries=("wading birds barrage",),
        source_title=doc.title,
        passages=passages(doc),
        document=doc,
    )
    return base.model_copy(update=changed)


def draft_section(**changed: Any) -> DraftSection:
    base = DraftSection(
        question=QUESTION,
        report_title="Tidal barrages",
        section_title="Birds",
        queries=("wading birds barrage",),
        other_sections=("Power",),
        evidence=cards(),
        language="en",
        words=200,
        feedback=('"Dunlin vanished [2]." : the card says that numbers fell, not that they vanished',),
        previous="Dunlin vanished [2].",
    )
    return base.model_copy(update=changed)


def section_texts() -> tuple[SectionText, ...]:
    power = (
        "The La Rance barrage opened in 1966 and has a capacity of 240 MW [1]. "
        "Its 24 bulb turbines work in both directions [1]."
    )
    birds = (
        "Wading birds lost about 40 % of their feeding ground after the barrage was closed [2]. "
        "Dunlin numbers fell from 5,200 to 3,100 within ten years [2]."
    )
    return (
        SectionText(id="s1", title="Power", text=power, grounding="2 supported"),
        SectionText(id="s2", title="Birds", text=birds),
    )


def summarise_report(**changed: Any) -> SummariseReport:
    base = SummariseReport(question=QUESTION, language="en", sections=section_texts())
    return base.model_copy(update=changed)


def analyse_evidence(**changed: Any) -> AnalyseEvidence:
    base = AnalyseEvidence(
        question=QUESTION, language="en", hypotheses=("Barrages reduce bird numbers.",), evidence=cards()
    )
    return base.model_copy(update=changed)


def judge_claims(**changed: Any) -> JudgeClaims:
    base = JudgeClaims(
        shown=passages(document()),
        claims=(
            ClaimToJudge(number=1, text="La Rance can deliver 240 MW.", passages=(0,)),
            ClaimToJudge(number=2, text="Dunlins gave up breeding after the barrage was closed.", passages=(1, 2)),
        ),
    )
    return base.model_copy(update=changed)


def review_report(**changed: Any) -> ReviewReport:
    base = ReviewReport(question=QUESTION, language="en", sections=section_texts(), gaps=("Costs",))
    return base.model_copy(update=changed)


TALK = (
    Turn(role="user", text="Tell me about La Rance."),
    Turn(role="assistant", text="The La Rance barrage opened in 1966."),
)


def plan_turn(**changed: Any) -> PlanTurn:
    base = PlanTurn(
        question=QUESTION,
        language="en",
        history=TALK,
        remembered=("The user works at a bird observatory.",),
        places=("reports", "library"),
        tried=("dunlin decline",),
    )
    return base.model_copy(update=changed)


def answer_question(**changed: Any) -> AnswerQuestion:
    base = AnswerQuestion(
        question=QUESTION,
        language="en",
        evidence=cards(),
        history=TALK,
        remembered=("The user wants figures in metric units.",),
    )
    return base.model_copy(update=changed)


def every_task() -> tuple[ModelTask[Any], ...]:
    return (
        make_plan(),
        rewrite_query(),
        extract_claims(),
        draft_section(),
        summarise_report(),
        analyse_evidence(),
        judge_claims(),
        review_report(),
        plan_turn(),
        answer_question(),
    )
