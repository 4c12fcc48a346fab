"""The facts that make up a session's log: one closed union. Each says what happened, never what to do."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter

from marg_ray.records import (
    Analysis,
    Answerability,
    Draft,
    Evidence,
    Grounding,
    Hit,
    Limits,
    Note,
    Plan,
    ReportStatus,
    Request,
    Review,
    Role,
    Section,
    Sent,
    Source,
    Usage,
)

SCOUT = "scout"  # the section id of the first look at the sources, before there is a plan
SUMMARY = "summary"  # the section id of the executive summary


class _Message(Sent):
    task_id: str  # the task this answers; a second answer to it is dropped
    usage: Usage = Usage()
    notes: tuple[Note, ...] = ()
    seconds: float = 0.0  # how long the agent took


class SessionStarted(_Message):
    """A question was accepted."""

    kind: Literal["session_started"] = "session_started"
    session_id: str
    request: Request
    started_at: str  # ISO 8601, UTC


class PlanReady(_Message):
    kind: Literal["plan_ready"] = "plan_ready"
    plan: Plan


class PlanEdited(_Message):
    """The owner changed the plan that waits for approval; it is a new revision of it, and waits on."""

    kind: Literal["plan_edited"] = "plan_edited"
    revision: int  # the one that was edited
    sections: tuple[Section, ...]
    by: str = "owner"


class PlanDecided(_Message):
    """The owner (or the time-out policy) approved the plan, as it was or edited; `sections` empty: as it was."""

    kind: Literal["plan_decided"] = "plan_decided"
    approved: bool
    revision: int = 0  # of the plan, from 1
    sections: tuple[Section, ...] = ()
    note: str = ""
    by: str = "owner"


class SearchDone(_Message):
    """One query was put to every chosen source."""

    kind: Literal["search_done"] = "search_done"
    section: str
    query: str
    hits: tuple[Hit, ...] = ()
    answerability: Answerability = Answerability()
    rewritten: str = ""  # the second query, where the first found nothing


class SourceRead(_Message):
    """One source was read for one section. `read` without evidence: it said nothing to the point."""

    kind: Literal["source_read"] = "source_read"
    section: str
    location: str
    status: Literal["read", "unavailable"]
    reason: str = ""
    source: Source | None = None
    evidence: tuple[Evidence, ...] = ()


class DraftReady(_Message):
    kind: Literal["draft_ready"] = "draft_ready"
    draft: Draft


class DraftGrounded(_Message):
    kind: Literal["draft_grounded"] = "draft_grounded"
    grounding: Grounding


class AnalysisReady(_Message):
    kind: Literal["analysis_ready"] = "analysis_ready"
    analysis: Analysis


class ReviewDone(_Message):
    kind: Literal["review_done"] = "review_done"
    review: Review


class ReviewDecided(_Message):
    """The owner (or the time-out policy) decided at the gate before delivery."""

    kind: Literal["review_decided"] = "review_decided"
    decision: Literal["approve", "reject", "extend"]
    round: int = 0  # the review round that was decided on, from 1
    note: str = ""  # becomes feedback to the writer
    by: str = "owner"


class ReportReady(_Message):
    """The report was stored; `artefact` is the SHA-256 of its JSON."""

    kind: Literal["report_ready"] = "report_ready"
    artefact: str
    status: ReportStatus
    words: int = 0
    reason: str = ""  # of a refusal


class TaskFailed(_Message):
    """A task ended without a result. What that means for the run is decided by `apply`."""

    kind: Literal["task_failed"] = "task_failed"
    role: Role
    stage: str  # the task's kind
    section: str = ""
    target: str = ""  # the query or location concerned
    error: str  # class name of the error
    detail: str
    exit_code: int = 1


class Steered(_Message):
    """The owner changed the course of a session under way.

    `add` a sub-question (to `section`, or as a section of its own), `drop` one (or a whole section), `pin` a source
    that is to be read, `ban` one whose evidence is not to be used, `raise` the limits.
    """

    kind: Literal["steered"] = "steered"
    action: Literal["add", "drop", "pin", "ban", "raise"]
    section: str = ""  # a section's id
    query: str = ""  # the sub-question
    hit: Hit | None = None  # the source to pin
    location: str = ""  # the source to ban: a URL, a host or a path
    limits: Limits | None = None
    by: str = "owner"


class LimitReached(_Message):
    """Time is up. `hard`: for the writer as well; otherwise for research, so that there is time to write."""

    kind: Literal["limit_reached"] = "limit_reached"
    limit: Literal["seconds", "deadline"]
    detail: str
    hard: bool


class SessionPaused(_Message):
    kind: Literal["session_paused"] = "session_paused"
    by: str = "owner"


class SessionCancelled(_Message):
    kind: Literal["session_cancelled"] = "session_cancelled"
    by: str = "owner"


class SessionResumed(_Message):
    """Work was taken up again after a halt or a pause."""

    kind: Literal["session_resumed"] = "session_resumed"
    by: str = "owner"


Message: TypeAlias = (
    SessionStarted
    | PlanReady
    | PlanEdited
    | PlanDecided
    | SearchDone
    | SourceRead
    | DraftReady
    | DraftGrounded
    | AnalysisReady
    | ReviewDone
    | ReviewDecided
    | ReportReady
    | TaskFailed
    | Steered
    | LimitReached
    | SessionPaused
    | SessionCancelled
    | SessionResumed
)
"""What code matches on. Kept bare, so that `get_args(Message)` lists the members."""
WireMessage: TypeAlias = Annotated[Message, Field(discriminator="kind")]
MESSAGES: TypeAdapter[Message] = TypeAdapter(WireMessage, config=ConfigDict(defer_build=True))
