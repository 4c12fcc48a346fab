"""What may run: one closed union of tasks. Each carries just what its agent may read."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from marg_ray.records import (
    Answerability,
    Depth,
    Draft,
    Evidence,
    Grounding,
    Hit,
    Plan,
    Record,
    ReportStatus,
    Request,
    RequestClass,
    Role,
    Section,
    Sent,
    Source,
)


class _Task(Sent):
    id: str  # derives from the state: the same work has the same id
    session_id: str
    role: Role
    section: str = ""
    epoch: int = 0  # of the coordinator that hands it out; part of no id

    @property
    def target(self) -> str:
        """What within the section this is about, where a section has several of the kind."""
        return ""


class PlanTask(_Task):
    kind: Literal["plan"] = "plan"
    role: Role = Role.PLANNER
    request: Request
    scout: tuple[Hit, ...] = ()
    answerability: Answerability = Answerability()
    rejections: tuple[str, ...] = ()


class SearchTask(_Task):
    kind: Literal["search"] = "search"
    role: Role = Role.RESEARCHER
    request: Request
    request_class: RequestClass
    title: str
    query: str

    @property
    def target(self) -> str:
        return self.query


class ReadTask(_Task):
    kind: Literal["read"] = "read"
    role: Role = Role.RESEARCHER
    question: str
    title: str
    queries: tuple[str, ...]
    hit: Hit
    offline: bool = False
    owner: str = "local"
    fresh: bool = False  # whatever is cached

    @property
    def target(self) -> str:
        return self.hit.location


class DraftTask(_Task):
    kind: Literal["draft"] = "draft"
    role: Role = Role.SYNTHESIZER
    question: str
    report_title: str
    title: str
    queries: tuple[str, ...]
    other_sections: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    sources: dict[str, Source]
    language: str
    words: int
    revision: int
    feedback: tuple[str, ...] = ()
    previous: Draft | None = None


class GroundTask(_Task):
    kind: Literal["ground"] = "ground"
    role: Role = Role.CRITIC
    draft: Draft
    evidence: dict[str, Evidence]
    titles: dict[str, str]  # source id to title
    sources: dict[str, Source] = Field(
        default_factory=dict
    )  # of the evidence: which of two like passages is the original


class AnalyseTask(_Task):
    kind: Literal["analyse"] = "analyse"
    role: Role = Role.ANALYST
    question: str
    language: str
    hypotheses: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    sources: dict[str, Source]


class Judged(Record):
    """A section as the critic sees it."""

    section: Section
    draft: Draft | None
    grounding: Grounding | None
    evidence: int  # pieces found
    sources: int  # different sources cited
    gap: str = ""


class ReviewTask(_Task):
    kind: Literal["review"] = "review"
    role: Role = Role.CRITIC
    question: str
    language: str
    depth: Depth
    iteration: int
    cap: int
    sections: tuple[Judged, ...]
    evidence: dict[str, Evidence]


class SummariseTask(_Task):
    kind: Literal["summarise"] = "summarise"
    role: Role = Role.SYNTHESIZER
    question: str
    language: str
    plan: Plan
    drafts: dict[str, Draft]
    revision: int = 1


class FormatTask(_Task):
    """The formatter reads the log itself: a session's whole state is a lot to send."""

    kind: Literal["format"] = "format"
    role: Role = Role.FORMATTER
    status: ReportStatus


Task: TypeAlias = (
    PlanTask | SearchTask | ReadTask | DraftTask | GroundTask | AnalyseTask | ReviewTask | SummariseTask | FormatTask
)
