"""The canonical state of a session: what it holds, and what can be asked of it. `folding` makes it from the log."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from functools import lru_cache
from typing import Any, assert_never

from pydantic import Field

from marg_ray.messages import (
    AnalysisReady,
    DraftGrounded,
    DraftReady,
    LimitReached,
    Message,
    PlanDecided,
    PlanEdited,
    PlanReady,
    ReportReady,
    ReviewDecided,
    ReviewDone,
    SearchDone,
    SessionCancelled,
    SessionPaused,
    SessionResumed,
    SessionStarted,
    SourceRead,
    Steered,
    TaskFailed,
)
from marg_ray.records import (
    Analysis,
    Answerability,
    Depth,
    Draft,
    Evidence,
    Grounding,
    Hit,
    Limits,
    Note,
    Plan,
    Record,
    ReportStatus,
    Request,
    RequestClass,
    Review,
    ReviewVerdict,
    Role,
    Section,
    Source,
    Usage,
    Verdict,
    Zone,
)

MIN_COVERAGE = 0.90  # of a section's factual sentences
MAX_FEEDBACK = 30  # remarks that a writer is given
MAX_FAILED_REVISIONS = 2  # after these the honest verdict ships
READS_PER_QUERY = {Depth.OVERVIEW: 3, Depth.STANDARD: 5, Depth.DEEP: 10}
READS_PER_SECTION = {Depth.OVERVIEW: 4, Depth.STANDARD: 8, Depth.DEEP: 12}


class Skipped(StrEnum):
    """Why a search or a read is not carried out."""

    NO = ""
    BUDGET = "budget"  # due again when the budget is raised
    DROPPED = "dropped"
    BANNED = "banned"


class Stop(StrEnum):
    """What a spent limit has stopped."""

    NOTHING = ""
    RESEARCH = "research"  # what is there is written up
    ALL = "all"  # what is written is delivered


class SearchSlot(Record):
    query: str
    iteration: int
    done: bool = False
    skipped: Skipped = Skipped.NO
    opened: int = 0  # how often it was skipped and became due again
    zone: Zone = Zone.NOTHING

    @property
    def open(self) -> bool:
        return not self.done and not self.skipped


class ReadSlot(Record):
    hit: Hit
    done: bool = False
    skipped: Skipped = Skipped.NO
    opened: int = 0  # how often it was skipped and became due again

    @property
    def open(self) -> bool:
        return not self.done and not self.skipped


class SectionState(Record):
    """A section's own path: researched, drafted and grounded without waiting for the others."""

    section: Section
    searches: tuple[SearchSlot, ...]
    reads: tuple[ReadSlot, ...] = ()
    evidence: tuple[str, ...] = ()
    wanted: int = 1  # the revision that is to be written
    draft: Draft | None = None
    drafted_from: int = 0  # how much evidence the draft had
    grounding: Grounding | None = None
    failed_revisions: int = 0
    feedback: tuple[str, ...] = ()
    failure: str = ""  # why the section could not be researched or written, if so

    @property
    def researched(self) -> bool:
        return not any(s.open for s in self.searches) and not any(r.open for r in self.reads)

    @property
    def grounded(self) -> bool:
        return (
            self.draft is not None
            and self.grounding is not None
            and self.draft.revision == self.grounding.revision == self.wanted
        )

    @property
    def settled(self) -> bool:
        """Nothing more is due here: the draft is grounded, or there is nothing to draft from."""
        return self.researched and (self.grounded or not self.evidence)

    @property
    def gap(self) -> str:
        if self.evidence or not self.researched:
            return ""
        if self.failure:
            return self.failure
        skipped = {s.skipped for s in self.searches} | {r.skipped for r in self.reads}
        if Skipped.BUDGET in skipped:
            return "the budget was spent before this was researched"
        return "its source was banned" if Skipped.BANNED in skipped else "no source says anything on this"


class Halt(Record):
    """The session stopped and can be resumed."""

    error: str
    detail: str
    stage: str
    exit_code: int


class ResearchState(Record):
    session_id: str = ""
    request: Request | None = None
    started_at: str = ""
    answered: frozenset[str] = frozenset()
    scouted: bool = False
    scout_hits: tuple[Hit, ...] = ()
    answerability: Answerability = Answerability()
    plan: Plan | None = None
    plan_revision: int = 0  # of the plan that is there
    plan_approved: bool = False
    plan_rejections: tuple[str, ...] = ()
    sections: dict[str, SectionState] = Field(default_factory=dict)
    sections_made: int = 0  # a dropped section's id is not used again
    evidence: dict[str, Evidence] = Field(default_factory=dict)
    sources: dict[str, Source] = Field(default_factory=dict)
    unavailable: dict[str, str] = Field(default_factory=dict)  # location to reason
    analysis: Analysis | None = None
    analysed_from: int = 0  # how much evidence the analysis had
    iteration: int = 1
    extra_iterations: int = 0  # granted at the gate
    reviews: tuple[Review, ...] = ()
    reviewed: dict[str, int] = Field(default_factory=dict)  # section to the revision that the last review saw
    review_failed: bool = False
    decided: bool = False  # at the gate
    pinned: tuple[Hit, ...] = ()
    banned: tuple[str, ...] = ()  # URLs, hosts, paths
    asked_too: tuple[str, ...] = ()  # sub-questions that were added before there was a plan
    summary_round: int = 1  # rises when what it summarised has changed
    summary: Draft | None = None
    summary_grounding: Grounding | None = None
    summary_failed: bool = False
    format_failures: int = 0
    report: ReportReady | None = None
    halt: Halt | None = None
    halts: int = 0
    cancelled: bool = False
    paused: bool = False
    limits: Limits = Limits()
    tasks_done: int = 0
    stop: Stop = Stop.NOTHING
    notes: tuple[Note, ...] = ()
    usage: dict[Role, Usage] = Field(default_factory=dict)

    @property
    def cap(self) -> int:
        """Critic rounds allowed."""
        assert self.request is not None
        if self.request_class is RequestClass.QUICK_RESEARCH:
            return 1 + self.extra_iterations
        return self.request.max_iterations + self.extra_iterations

    @property
    def request_class(self) -> RequestClass:
        if self.request is not None and self.request.request_class is not None:
            return self.request.request_class
        return self.plan.request_class if self.plan else RequestClass.FULL_RESEARCH

    @property
    def drafts_changed(self) -> bool:
        """Whether any section differs from what the last review saw."""
        return self.reviewed != {s.section.id: s.draft.revision for s in self.sections.values() if s.draft}

    @property
    def budget_stopped(self) -> bool:
        return self.stop is not Stop.NOTHING

    @property
    def over(self) -> bool:
        return self.report is not None or self.halt is not None or self.cancelled


def status_of(state: ResearchState) -> ReportStatus:
    """The status a report made from this state would carry."""
    sections = state.sections.values()
    if state.cancelled:
        return ReportStatus.CANCELLED
    if not any(s.evidence for s in sections):
        return ReportStatus.BUDGET_STOPPED if state.budget_stopped else ReportStatus.INSUFFICIENT_EVIDENCE
    if state.budget_stopped:
        return ReportStatus.BUDGET_STOPPED
    if passes(state):
        return ReportStatus.PASSED
    assert state.request is not None
    return ReportStatus.INSUFFICIENT_EVIDENCE if state.request.strict else ReportStatus.QUALITY_WARNING


def passes(state: ResearchState) -> bool:
    """Every sentence that is published was checked and holds, and the last review passed or was not asked for."""
    drafts = [s.grounding for s in state.sections.values() if s.draft]
    if state.summary is not None:
        drafts.append(state.summary_grounding)
    fine = all(g is not None and grounding_passes(g) for g in drafts)
    if not fine or state.answerability.zone is not Zone.ANSWER or state.review_failed:
        return False
    if any(s.failure or (s.draft and s.draft.incomplete) for s in state.sections.values()):
        return False
    return not state.reviews or state.reviews[-1].verdict is ReviewVerdict.PASS


def grounding_passes(grounding: Grounding) -> bool:
    bad = (Verdict.UNSUPPORTED, Verdict.CONTRADICTED, Verdict.NOT_CHECKED)
    return grounding.coverage >= MIN_COVERAGE and not any(v.verdict in bad for v in grounding.verdicts)


@lru_cache(maxsize=8192)  # the slots of a session are named at each of its steps
def slot_of(location: str) -> str:
    """A short name for a location inside task ids."""
    return hashlib.sha256(location.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def role_of(message: Message) -> Role | None:
    """The agent that says this kind of thing; None: the session's owner, or the clock, said it."""
    match message:
        case PlanReady():
            return Role.PLANNER
        case SearchDone() | SourceRead():
            return Role.RESEARCHER
        case AnalysisReady():
            return Role.ANALYST
        case DraftReady():
            return Role.SYNTHESIZER
        case DraftGrounded() | ReviewDone():
            return Role.CRITIC
        case ReportReady():
            return Role.FORMATTER
        case TaskFailed():
            return message.role
        case (
            SessionStarted()
            | PlanEdited()
            | PlanDecided()
            | ReviewDecided()
            | Steered()
            | LimitReached()
            | SessionPaused()
            | SessionCancelled()
            | SessionResumed()
        ):
            return None
    assert_never(message)


def teller_of(message: Message) -> str:
    """Who says it, in a word for people."""
    role = role_of(message)
    if role is not None:
        return str(role)
    return "clock" if isinstance(message, LimitReached) else "owner"


def changed(state: ResearchState, **changes: Any) -> ResearchState:
    return state.model_copy(update=changes)
