"""What goes in and out over HTTP: the bodies of the research routes. Answers may gain fields, never lose one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from marg_ray.kinds import (
    Depth,
    GateMode,
    IssueKind,
    OnTimeout,
    Priority,
    ReportStatus,
    RequestClass,
    ReviewVerdict,
    SourceKind,
    Verdict,
)
from marg_ray.records import Limits, OutlineEntry

MAX_TEXT = 500_000  # letters of a text that is handed in; the body's own limit is usually met first
MAX_COUNT = 1_000_000_000_000  # of tokens, searches, tasks: more is no limit, and no database's integer either
QUESTION = "What are the environmental effects of tidal barrages?"


def _plain(value: str | None) -> str | None:
    """No lone surrogates and no NUL: neither UTF-8 nor a database takes them."""
    if value is None:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("the text is not valid Unicode") from None
    if "\0" in value:
        raise ValueError("the text holds a NUL")
    return value


def _in_utc(value: datetime) -> datetime:
    """A moment without a zone is one of UTC."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _moment_only(value: Any) -> Any:
    if value is not None and not isinstance(value, str | datetime):
        raise ValueError("give a date and time as ISO 8601 text")
    return value


Plain = AfterValidator(_plain)
Line = Annotated[str, Field(max_length=1000), Plain]
Note = Annotated[str, Field(max_length=20_000), Plain]
Title = Annotated[str, Field(min_length=1, max_length=1000), Plain]
Address = Annotated[str, Field(max_length=4000), Plain]
Moment = Annotated[datetime, BeforeValidator(_moment_only), AfterValidator(_in_utc)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]


class Body(BaseModel):
    """A request's body: a field that is not known is a mistake, and is said."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Out(BaseModel):
    model_config = ConfigDict(frozen=True)


# ---- what comes in


class LimitsIn(Body):
    """What a session may spend; without one, the server's own limit holds."""

    tokens: Annotated[int | None, Field(ge=0, le=MAX_COUNT, description="of models, in and out")] = None
    cost: Annotated[float | None, Field(ge=0, allow_inf_nan=False, description="US dollars")] = None
    seconds: Annotated[Seconds | None, Field(description="of work; waiting for a decision does not count")] = None
    deadline: Annotated[Moment | None, Field(description="when the report is due, ISO 8601")] = None
    searches: Annotated[int | None, Field(ge=0, le=MAX_COUNT, description="web searches")] = None
    tasks: Annotated[int | None, Field(ge=1, le=MAX_COUNT, description="agents' tasks")] = None

    def limits(self, otherwise: Limits | None = None) -> Limits:
        """As the runtime keeps them; what is not named is as in `otherwise`."""
        named = self.model_dump(exclude_none=True)
        if "cost" in named:
            named["usd"] = named.pop("cost")
        return (otherwise or Limits()).model_copy(update=named)


class OutlineIn(Body):
    """A section; without queries its title is what is asked."""

    title: Title
    queries: Annotated[tuple[Line, ...], Field(max_length=10)] = ()

    def entry(self) -> OutlineEntry:
        return OutlineEntry(title=self.title, queries=self.queries)


class SourcesIn(Body):
    """Where to look."""

    web: Annotated[bool | None, Field(description="without a word: where nothing else is to be searched")] = None
    library: Annotated[bool, Field(description="the documents that you have uploaded")] = False
    shared: Annotated[bool, Field(description="the folders that the server shares with everybody")] = True
    mcp: Annotated[bool, Field(description="the MCP servers that this server is set up with")] = True
    folders: Annotated[
        tuple[Line, ...],
        Field(max_length=50, description="folders on the server's machine; only without a key, from that machine"),
    ] = ()


class ResearchIn(Body):
    """A question, and how it is to be answered."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"question": QUESTION, "depth": "overview"},
                {
                    "question": QUESTION,
                    "depth": "standard",
                    "sources": {"web": False, "library": True},
                    "outline": [{"title": "Fish", "queries": ["How do turbines harm fish?"]}, {"title": "Silt"}],
                    "approve_plan": True,
                    "gate": "auto",
                    "limits": {"cost": 0.5, "seconds": 600},
                },
            ]
        }
    )

    question: Annotated[str, Field(min_length=1, max_length=20_000, description="in any language"), Plain]
    depth: Annotated[Depth, Field(description="how much to write: 3 sections, 5 or 6, 8 to 10")] = Depth.STANDARD
    request_class: Annotated[RequestClass | None, Field(description="without one the planner classifies")] = None
    sources: SourcesIn = SourcesIn()
    text: Annotated[
        tuple[Annotated[str, Field(max_length=MAX_TEXT), Plain], ...],
        Field(max_length=20, description="texts to analyse or to write from"),
    ] = ()
    focus_areas: Annotated[tuple[Line, ...], Field(max_length=20, description="to look at in particular")] = ()
    outline: Annotated[tuple[OutlineIn, ...], Field(max_length=20, description="your own sections")] = ()
    language: Annotated[
        str | None, Field(pattern="^[a-z]{2}$", description="ISO 639-1; without one: the question's")
    ] = None
    strict: Annotated[bool, Field(description="no report rather than one with a warning")] = False
    gate: Annotated[GateMode, Field(description="whether the draft waits for you; auto: if a score is low")] = (
        GateMode.NEVER
    )
    approve_plan: Annotated[bool, Field(description="the plan waits for you before research begins")] = False
    on_timeout: Annotated[OnTimeout, Field(description="what happens if you do not decide in time")] = OnTimeout.APPROVE
    gate_timeout_s: Annotated[Seconds, Field(description="how long it waits for you")] = 300.0
    limits: LimitsIn = LimitsIn()
    max_iterations: Annotated[int, Field(ge=1, le=3, description="rounds of review")] = 3
    priority: Annotated[Priority, Field(description="interactive goes before batch")] = Priority.INTERACTIVE
    fresh: Annotated[bool, Field(description="research anew, although the same question has its report")] = False


class DecisionIn(Body):
    """What you decide on the plan or on the draft that waits."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"what": "approve"},
                {"what": "edit", "on": 1, "outline": [{"title": "Fish"}, {"title": "Silt", "queries": ["silting"]}]},
                {"what": "reject", "note": "say more on costs"},
            ]
        }
    )

    what: Annotated[
        Literal["approve", "reject", "extend", "edit"],
        Field(description="extend: one more round of research (a draft); edit: another outline (a plan)"),
    ]
    on: Annotated[
        int, Field(ge=0, le=MAX_COUNT, description="the plan's revision or the review's round that you saw; 0: any")
    ] = 0
    outline: Annotated[tuple[OutlineIn, ...], Field(max_length=20, description="of an edited plan")] = ()
    note: Annotated[Note, Field(description="goes to the planner or the writer")] = ""


class SteerIn(Body):
    """A change of course while it runs."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"action": "add", "query": "What did the barrage at Annapolis Royal cost?"},
                {"action": "drop", "section": "s3"},
                {"action": "pin", "url": "https://example.org/report.pdf"},
                {"action": "ban", "location": "example.com"},
                {"action": "raise", "limits": {"cost": 2}},
            ]
        }
    )

    action: Annotated[
        Literal["add", "drop", "pin", "ban", "raise"],
        Field(description="a sub-question to add or drop, a source to read or not to use, limits to raise"),
    ]
    section: Annotated[Line, Field(description="its id; without one: all, or a section of its own")] = ""
    query: Annotated[Line, Field(description="the sub-question")] = ""
    url: Annotated[Address, Field(description="of the page to pin")] = ""
    location: Annotated[Address, Field(description="what to ban: a URL, a host, or a document's path")] = ""
    limits: LimitsIn | None = None


# ---- what goes out


class Links(Out):
    self: str = Field(examples=["/v1/research/20261130-120000-ab12cd"])
    events: str = Field(examples=["/v1/research/20261130-120000-ab12cd/events"])
    report: str = Field(examples=["/v1/research/20261130-120000-ab12cd/report"])

    @classmethod
    def of(cls, session_id: str) -> Links:
        base = f"/v1/research/{session_id}"
        return cls(self=base, events=f"{base}/events", report=f"{base}/report")


class ResearchOut(Out):
    """A session that was taken on; `cached`: the same was asked before, and its report is there."""

    id: str = Field(examples=["20261130-120000-ab12cd"])
    status: str = Field(examples=["running"])
    cached: bool = False
    links: Links


class StatusOut(Out):
    """Where the session stands now."""

    id: str = Field(examples=["20261130-120000-ab12cd"])
    status: str = Field(examples=["running"])


class _Session(Out):
    id: str = Field(examples=["20261130-120000-ab12cd"])
    question: str = Field(examples=[QUESTION])
    status: Annotated[
        str,
        Field(
            description="running, waiting (for your decision), paused, halted, cancelled, or the report's: passed, "
            "quality_warning, insufficient_evidence, budget_stopped",
            examples=["passed"],
        ),
    ]
    depth: Depth | None = None
    created_at: datetime
    updated_at: datetime
    seq: Annotated[int, Field(description="entries in its log")]


class SessionSummary(_Session):
    report: Annotated[bool, Field(description="whether there is a report to read")]


class SessionsOut(Out):
    sessions: tuple[SessionSummary, ...]


class OutlineOut(Out):
    title: str
    queries: tuple[str, ...]


class RequestOut(Out):
    """What was asked for. Of the sources only what kind they are."""

    question: str
    depth: Depth
    request_class: RequestClass | None
    language: str | None
    focus_areas: tuple[str, ...]
    outline: tuple[OutlineOut, ...]
    web: bool
    offline: bool
    folders: Annotated[int, Field(description="folders of documents that are searched")]
    texts: Annotated[int, Field(description="texts that were handed in")]
    strict: bool
    gate: GateMode
    approve_plan: bool
    on_timeout: OnTimeout
    gate_timeout_s: float
    max_iterations: int
    priority: Priority
    fresh: bool


class SectionPlan(Out):
    id: str
    title: str
    weight: float
    queries: tuple[str, ...]


class PlanOut(Out):
    title: str
    revision: int
    sections: tuple[SectionPlan, ...]


class ScoresOut(Out):
    accuracy: float
    coverage: float
    clarity: float
    objectivity: float


class IssueOut(Out):
    kind: IssueKind
    severity: Literal["low", "medium", "high"]
    section: str
    detail: str


class ReviewOut(Out):
    round: int
    scores: ScoresOut
    issues: tuple[IssueOut, ...]
    verdict: ReviewVerdict


SectionStage = Literal["planned", "searching", "reading", "drafting", "grounding", "done", "gap"]


class SectionOut(Out):
    """How far a section is."""

    id: str
    title: str
    state: SectionStage
    searches: Annotated[int, Field(description="carried out")]
    sources: Annotated[int, Field(description="read for it")]
    evidence: Annotated[int, Field(description="passages found")]
    words: Annotated[int, Field(description="written")]


class RunningOut(Out):
    """An agent's task under way."""

    id: str
    role: str
    kind: str
    section: str
    target: str
    since: Annotated[float, Field(description="seconds")]


class LimitsOut(Out):
    tokens: int | None
    cost: float | None
    seconds: float | None
    deadline: datetime | None
    searches: int | None
    tasks: int | None

    @classmethod
    def of(cls, limits: Limits) -> LimitsOut:
        named = limits.model_dump(exclude={"writer_share"})
        return cls(cost=named.pop("usd"), **named)


class SpentOut(Out):
    calls: Annotated[int, Field(description="of models")] = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Annotated[float, Field(description="US dollars")] = 0.0
    searches: int = 0
    fetches: int = 0
    seconds: Annotated[float, Field(description="inside calls, not on the clock")] = 0.0


class NoteOut(Out):
    kind: str
    text: str


class ReportOut(Out):
    status: ReportStatus
    verdict: Annotated[str, Field(description="the outcome in words")]
    artefact: Annotated[str, Field(description="SHA-256 of the report's JSON")]
    words: int = 0


class SessionOut(_Session):
    """Everything about a session but its report and its log."""

    request: RequestOut | None
    waiting_for: Annotated[Literal["", "plan", "review"], Field(description="the decision that is awaited")]
    position: Annotated[int, Field(description="in the queue; 0: in none")]
    halt: Annotated[str, Field(description="why it stopped, if it did; it can be resumed")]
    plan: PlanOut | None
    review: ReviewOut | None
    sections: tuple[SectionOut, ...]
    running: tuple[RunningOut, ...]
    limits: LimitsOut
    spent: SpentOut
    notes: tuple[NoteOut, ...]
    report: Annotated[ReportOut | None, Field(description="how it came out, once it is there")]


class CitedSource(Out):
    """A source as it was read; its frozen text is at `/v1/research/{session}/sources/{id}`."""

    id: str
    title: str
    location: str
    kind: SourceKind
    fetched_at: datetime
    published: str
    language: str
    chars: int
    injections: Annotated[int, Field(description="instruction-like passages that were cut out of it")]


class CitedEvidence(Out):
    id: str
    claim: str
    heading: str
    page: int | None
    start: Annotated[int, Field(description="in characters of the source's text")]
    end: int
    tainted: Annotated[bool, Field(description="its source carried instruction-like text")]


class CitingSentence(Out):
    """A sentence of the report that rests on it, and what the check of it found."""

    section: str
    text: str
    verdict: Verdict
    reason: str


class EvidenceOut(Out):
    """A passage where it stands: `before + quote + after` is a stretch of the source's text."""

    evidence: CitedEvidence
    source: CitedSource
    before: str
    quote: str
    after: str
    sentences: tuple[CitingSentence, ...]


class HealthOut(Out):
    status: Literal["ok"] = "ok"
    version: str


class ReadyOut(Out):
    status: Literal["ok"] = "ok"
    version: str
    model: str
    auth: Annotated[bool, Field(description="whether every request needs a key")]
    shared: Annotated[int, Field(description="folders that every caller may search")]
