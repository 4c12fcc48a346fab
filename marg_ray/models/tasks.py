"""Everything a model is ever asked to do, with the type of each answer."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from marg_ray.grounding.judging import Opinion
from marg_ray.grounding.snapshots import Document
from marg_ray.models.client import ModelTask, Tier
from marg_ray.models.passages import Passage as Passage
from marg_ray.models.passages import numbered
from marg_ray.records import Depth, IssueKind, OutlineEntry, Record, RequestClass, Role


class Output(BaseModel):
    """Base of answers: unknown keys are ignored (models add them), missing ones are errors."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class FreeText(Output):
    """An answer in Markdown; evidence is cited as [n]."""

    markdown: str
    incomplete: bool = False  # cut by the output limit and not completed


# ---- plan


class ScoutHit(Record):
    """What a first look at the sources found, so that a plan fits what is there."""

    title: str
    snippet: str = ""
    headings: tuple[str, ...] = ()
    relevance: float = 0.0


class SectionIdea(Output):
    title: Annotated[str, Field(min_length=1, max_length=200)]
    queries: Annotated[list[str], Field(min_length=1, max_length=5)]
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0


class PlanIdea(Output):
    title: Annotated[str, Field(min_length=1, max_length=300)]
    request_class: RequestClass = RequestClass.FULL_RESEARCH
    sections: Annotated[list[SectionIdea], Field(min_length=1, max_length=12)]
    hypotheses: Annotated[list[str], Field(max_length=3)] = []


class MakePlan(ModelTask[PlanIdea]):
    """Outline the research. With `outline` given, only queries, hypotheses and the class are asked for."""

    template: ClassVar[str] = "make_plan"
    role: ClassVar[Role] = Role.PLANNER
    tier: ClassVar[Tier] = Tier.FAST
    output: ClassVar[type[BaseModel]] = PlanIdea

    question: str
    depth: Depth
    language: str
    max_sections: int
    focus_areas: tuple[str, ...] = ()
    outline: tuple[OutlineEntry, ...] = ()
    scout: tuple[ScoutHit, ...] = ()


# ---- search


class QueryIdea(Output):
    query: Annotated[str, Field(min_length=1, max_length=400)]


class RewriteQuery(ModelTask[QueryIdea]):
    """A search found nothing: say the same in words that a source would use."""

    template: ClassVar[str] = "rewrite_query"
    role: ClassVar[Role] = Role.RESEARCHER
    tier: ClassVar[Tier] = Tier.FAST
    output: ClassVar[type[BaseModel]] = QueryIdea
    max_tokens: ClassVar[int] = 200

    question: str
    section_title: str
    query: str


# ---- read


class Pick(Output):
    """Sentences of the passages, named by number: fewer words than copying them takes, and never misquoted."""

    claim: str
    sentences: Annotated[list[int], Field(min_length=1, max_length=12)]
    quote: SkipJsonSchema[str] = ""  # by a model that copies all the same

    @model_validator(mode="before")
    @classmethod
    def _copied(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("quote") and not given.get("sentences"):
            return {**given, "sentences": [0]}
        return given


class Picks(Output):
    claims: Annotated[list[Pick], Field(max_length=20)]


class ClaimIdea(Output):
    claim: str
    quote: Annotated[str, Field(min_length=1)]  # verbatim from the passages


class ClaimIdeas(Output):
    claims: Annotated[list[ClaimIdea], Field(max_length=20)]
    dropped: SkipJsonSchema[int] = 0  # picks that named nothing


class ExtractClaims(ModelTask[ClaimIdeas]):
    """Take from one document the passages that answer one section. Quotes that are not in it are thrown away.

    `passages` are the document's best windows, packed to a budget; `document` is the whole, for a backend that
    can use its structure, and is not rendered into the prompt. A language model names sentences by their numbers.
    """

    template: ClassVar[str] = "extract_claims"
    role: ClassVar[Role] = Role.RESEARCHER
    tier: ClassVar[Tier] = Tier.FAST
    output: ClassVar[type[BaseModel]] = ClaimIdeas
    answer: ClassVar[type[BaseModel] | None] = Picks

    question: str
    section_title: str
    queries: tuple[str, ...]
    source_title: str
    passages: Annotated[tuple[Passage, ...], AfterValidator(numbered)]
    document: Document
    max_claims: int = 6

    def understood(self, answer: BaseModel) -> ClaimIdeas:
        """Claims with the words of the sentences that were named; a name of nothing is dropped."""
        assert isinstance(answer, Picks)
        quotes = [(p, max((q.quote(p.sentences) for q in self.passages), key=len, default="")) for p in answer.claims]
        claims = [ClaimIdea(claim=p.claim, quote=words) for p, found in quotes if (words := found or p.quote)]
        return ClaimIdeas(claims=claims, dropped=len(quotes) - len(claims))


# ---- draft


class EvidenceCard(Record):
    """A piece of evidence as a writer sees it: cited by `number`."""

    number: int
    quote: str
    source_title: str
    source_id: str  # evidence of one source stays together
    start: int  # place in the source, for source order
    end: int
    heading: str = ""
    claim: str = Field(default="", exclude=True)
    relevance: float = Field(default=0.0, exclude=True)
    published: str = ""


class DraftSection(ModelTask[FreeText]):
    """Write one section from its evidence only, citing by number."""

    template: ClassVar[str] = "draft_section"
    role: ClassVar[Role] = Role.SYNTHESIZER
    tier: ClassVar[Tier] = Tier.STRONG
    output: ClassVar[type[BaseModel]] = FreeText
    max_tokens: ClassVar[int] = 1600

    question: str
    report_title: str
    section_title: str
    queries: tuple[str, ...]
    other_sections: tuple[str, ...]
    evidence: tuple[EvidenceCard, ...]
    language: str
    words: int
    feedback: tuple[str, ...] = ()  # what was wrong with `previous`, sentence by sentence
    previous: str = ""


class SectionText(Record):
    id: str
    title: str
    text: str  # Markdown with [n] marks, n = EvidenceCard.number
    grounding: str = ""  # verdict counts in words


class SummariseReport(ModelTask[FreeText]):
    """The executive summary, from the finished sections and with their citations."""

    template: ClassVar[str] = "summarise_report"
    role: ClassVar[Role] = Role.SYNTHESIZER
    tier: ClassVar[Tier] = Tier.STRONG
    output: ClassVar[type[BaseModel]] = FreeText
    max_tokens: ClassVar[int] = 600

    question: str
    language: str
    sections: tuple[SectionText, ...]
    words: int = 150


# ---- analyse


class FindingIdea(Output):
    text: str
    evidence: list[int]  # EvidenceCard.number


class AnalysisIdea(Output):
    findings: Annotated[list[FindingIdea], Field(max_length=12)] = []
    unknowns: Annotated[list[str], Field(max_length=8)] = []


class AnalyseEvidence(ModelTask[AnalysisIdea]):
    """Findings across all evidence, and what stays unknown. Contradictions are found by code."""

    template: ClassVar[str] = "analyse_evidence"
    role: ClassVar[Role] = Role.ANALYST
    tier: ClassVar[Tier] = Tier.FAST
    output: ClassVar[type[BaseModel]] = AnalysisIdea

    question: str
    language: str
    hypotheses: tuple[str, ...]
    evidence: tuple[EvidenceCard, ...]


# ---- judge


class ClaimToJudge(Record):
    """A sentence of a draft, and which of the task's passages (by index, from 0) it is held against."""

    number: int
    text: str
    passages: tuple[int, ...]


class ClaimRuling(Output):
    """`sentence`: the number of the one that decides; 0 where there is none."""

    claim: int
    verdict: Opinion
    sentence: int = 0


class Judgement(Output):
    rulings: Annotated[list[ClaimRuling], Field(max_length=20)]


class JudgeClaims(ModelTask[Judgement]):
    """Say of each sentence whether the passages it cites bear it out: asked where words alone leave it open."""

    template: ClassVar[str] = "judge_claims"
    role: ClassVar[Role] = Role.CRITIC
    tier: ClassVar[Tier] = Tier.FAST
    output: ClassVar[type[BaseModel]] = Judgement
    max_tokens: ClassVar[int] = 400

    shown: Annotated[tuple[Passage, ...], AfterValidator(numbered)]  # needed whole: nothing of it is left out
    claims: tuple[ClaimToJudge, ...]

    def place(self, claim: ClaimToJudge, sentence: int) -> tuple[int, int, int] | None:
        """Of a sentence that the claim is held against: the passage's index, and the stretch of its origin."""
        for index in claim.passages:
            if (span := self.shown[index].place(sentence)) is not None:
                return index, *span
        return None


# ---- review


class ScoreIdea(Output):
    accuracy: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    coverage: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    clarity: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    objectivity: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class IssueIdea(Output):
    kind: IssueKind
    severity: Literal["low", "medium", "high"]
    section: str = ""  # a section's id
    detail: str
    fix_query: str = ""
    instruction: str = ""


class ReviewIdea(Output):
    scores: ScoreIdea
    issues: Annotated[list[IssueIdea], Field(max_length=20)] = []


class ReviewReport(ModelTask[ReviewIdea]):
    """Score the draft on four dimensions and name its faults. Code caps scores and decides the verdict."""

    template: ClassVar[str] = "review_report"
    role: ClassVar[Role] = Role.CRITIC
    tier: ClassVar[Tier] = Tier.STRONG
    output: ClassVar[type[BaseModel]] = ReviewIdea
    max_tokens: ClassVar[int] = 1500

    question: str
    language: str
    sections: tuple[SectionText, ...]
    gaps: tuple[str, ...] = ()  # titles of sections without evidence


# ---- talk


class Turn(Record):
    """One side's words in a conversation."""

    role: str  # "user" or "assistant"
    text: str


class TurnIdea(Output):
    """What to look for, and what the user said of lasting interest."""

    question: Annotated[str, Field(min_length=1, max_length=1000)]  # understood without the conversation
    queries: Annotated[list[str], Field(max_length=3)] = []
    facts: Annotated[list[str], Field(max_length=5)] = []


class PlanTurn(ModelTask[TurnIdea]):
    """Before a turn of a conversation is answered: what it asks by itself, and what to search for.

    `tried` holds the searches that did not find enough. No source's text is shown here: what becomes a fact about the
    user comes from the user.
    """

    template: ClassVar[str] = "plan_turn"
    role: ClassVar[Role] = Role.ASSISTANT
    tier: ClassVar[Tier] = Tier.FAST
    output: ClassVar[type[BaseModel]] = TurnIdea
    max_tokens: ClassVar[int] = 400

    question: str  # the user's words
    language: str
    history: tuple[Turn, ...] = ()
    remembered: tuple[str, ...] = ()
    places: tuple[str, ...] = ()  # what can be searched
    tried: tuple[str, ...] = ()


class AnswerQuestion(ModelTask[FreeText]):
    """Answer from evidence only, citing by number; where it does not answer, one line `UNKNOWN: what is missing`."""

    template: ClassVar[str] = "answer_question"
    role: ClassVar[Role] = Role.ASSISTANT
    tier: ClassVar[Tier] = Tier.STRONG
    output: ClassVar[type[BaseModel]] = FreeText
    max_tokens: ClassVar[int] = 800

    question: str
    language: str
    evidence: tuple[EvidenceCard, ...]
    history: tuple[Turn, ...] = ()
    remembered: tuple[str, ...] = ()  # of the user: how to answer, never what
    words: int = 120
    near: bool = False  # the cards are near what is asked, and may not state it


TASKS: tuple[type[ModelTask[Output]], ...] = (  # every task there is, for contract tests and prompt checks
    MakePlan,  # type: ignore[assignment]
    RewriteQuery,
    ExtractClaims,
    DraftSection,
    SummariseReport,
    AnalyseEvidence,
    JudgeClaims,
    ReviewReport,
    PlanTurn,
    AnswerQuestion,
)
