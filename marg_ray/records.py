"""What a research run is made of: frozen records shared by every layer above. No behaviour, no I/O."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from marg_ray.kinds import Depth as Depth
from marg_ray.kinds import GateMode as GateMode
from marg_ray.kinds import IssueKind as IssueKind
from marg_ray.kinds import OnTimeout as OnTimeout
from marg_ray.kinds import Priority as Priority
from marg_ray.kinds import ReportStatus as ReportStatus
from marg_ray.kinds import RequestClass as RequestClass
from marg_ray.kinds import ReviewVerdict as ReviewVerdict
from marg_ray.kinds import Role as Role
from marg_ray.kinds import SourceKind as SourceKind
from marg_ray.kinds import Verdict as Verdict
from marg_ray.kinds import Zone as Zone

CheckedBy: TypeAlias = Literal["words", "quotation", "similarity", "scorer", "judge", "figures"]
"""What decided on a sentence. `figures`: its language is one of which only figures, dates, names and words are read."""


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Sent(Record):
    """A record that goes from process to process: pickled as its JSON, which is a quarter of the work."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_json, (type(self), self.model_dump_json())


def _from_json(cls: type[Sent], text: str) -> Sent:
    return cls.model_validate_json(text)


class OutlineEntry(Record):
    """A section the caller asks for; without queries its title is the query."""

    title: str
    queries: tuple[str, ...] = ()


class SourceChoice(Record):
    """Where a run may look. Folders are absolute paths."""

    folders: tuple[str, ...] = ()
    web: bool = True
    offline: bool = False  # nothing leaves the machine
    mcp: bool = True  # the MCP servers of the settings


class Limits(Record):
    """What a session may spend, in all; None: no limit. Part of each is held back for writing the report."""

    tokens: Annotated[int | None, Field(ge=0)] = None  # in and out
    usd: Annotated[float | None, Field(ge=0)] = None
    seconds: Annotated[float | None, Field(gt=0)] = None  # of work; waiting for its owner does not count
    deadline: datetime | None = None  # the moment by which the report is due
    searches: Annotated[int | None, Field(ge=0)] = None  # web searches
    tasks: Annotated[int | None, Field(ge=1)] = None  # agents' tasks
    writer_share: Annotated[float, Field(ge=0, le=0.9)] = 0.4  # held back for writing

    def raised(self, to: Limits) -> Limits:
        """These limits with those that `to` names in their place."""
        return self.model_copy(update={k: v for k, v in to if v is not None and k != "writer_share"})


class Request(Record):
    """A question and how it is to be answered."""

    question: str
    depth: Depth = Depth.STANDARD
    request_class: RequestClass | None = None  # None: classified by the planner
    focus_areas: tuple[str, ...] = ()
    outline: tuple[OutlineEntry, ...] = ()
    language: str | None = None  # ISO 639-1; None: the question's
    sources: SourceChoice = SourceChoice()
    provided: tuple[str, ...] = ()  # snapshot ids of text the caller handed in
    strict: bool = False  # refuse rather than deliver with a warning
    gate: GateMode = GateMode.NEVER
    approve_plan: bool = False
    max_iterations: Annotated[int, Field(ge=1, le=3)] = 3
    on_timeout: OnTimeout = OnTimeout.APPROVE  # at either gate
    gate_timeout_s: Annotated[float, Field(gt=0)] = 300.0
    limits: Limits = Limits()
    priority: Priority = Priority.INTERACTIVE
    owner: str = "local"
    fresh: bool = False  # research anew, whatever is cached


class Section(Record):
    id: str  # "s1", "s2", ... in the plan's order
    title: str
    weight: float  # the sections' weights sum to 1
    queries: tuple[str, ...]


class Plan(Record):
    title: str
    request_class: RequestClass
    language: str
    sections: tuple[Section, ...]
    hypotheses: tuple[str, ...] = ()


class Span(Record):
    """A stretch of a snapshot's text: offsets in characters, end exclusive."""

    start: int
    end: int
    heading: str = ""  # headings above it, outermost first, joined by " > "
    score: float = 0.0


class Answerability(Record):
    """Whether what a search found can answer its query, and what is missing."""

    zone: Zone = Zone.NOTHING
    missing_terms: tuple[str, ...] = ()  # the query's words that occur in no document
    nearest: tuple[str, ...] = ()  # titles, best first
    cosine: float = 0.0
    coverage: float = 0.0  # idf-weighted share of the query's terms in the best passages


class Hit(Record):
    """One search result: a page on the web, or a document of a library with its best passages."""

    location: str  # URL, or the absolute path of a library file
    title: str
    kind: SourceKind
    snippet: str = ""
    engine: str = ""
    relevance: float = 0.0  # 0 to 1
    source_id: str = ""  # snapshot id where the text is stored already
    spans: tuple[Span, ...] = ()  # a library document's best passages, best first
    headings: tuple[str, ...] = ()  # a library document's headings, in order
    published: str = ""  # ISO date where known


class Injection(Record):
    """An instruction-like passage that was cut out of a source before any model saw it."""

    text: str
    rule: str
    at: int = -1  # where in the frozen text it stood; -1: not in the text
    where: str = ""  # "text", "title", "snippet" or "hidden": in what a page carries and does not show


class Source(Record):
    """What was read: `id` is the SHA-256 of the frozen text."""

    id: str
    title: str
    location: str
    kind: SourceKind
    fetched_at: datetime
    published: str = ""
    language: str = ""
    chars: int = 0
    injections: tuple[Injection, ...] = ()


class Evidence(Record):
    """A verbatim passage of a snapshot: `snapshot[start:end] == quote`."""

    id: str
    source: str  # Source.id
    quote: str
    start: int
    end: int
    claim: str = ""
    heading: str = ""
    page: int | None = None
    relevance: float = 0.0
    tainted: bool = False  # its source carried instruction-like text


def evidence_id(source: str, start: int, end: int) -> str:
    """The id follows from the place, so that the same passage found twice is one piece of evidence."""
    return "e" + hashlib.sha256(f"{source}:{start}:{end}".encode()).hexdigest()[:10]


class ClaimVerdict(Record):
    """One of the statements that a sentence makes, checked by itself."""

    text: str  # readable alone: the subject is carried over
    verdict: Verdict
    reason: str = ""
    evidence: str = ""
    span: tuple[int, int] | None = None


class SentenceVerdict(Record):
    """What the check of a sentence found. `span`: the deciding stretch of the quote of `evidence`, end exclusive."""

    verdict: Verdict
    reason: str = ""  # in words, with the words concerned
    evidence: str = ""  # the evidence that decided
    probability: float | None = None  # of being supported, as a calibrated scorer has it
    span: tuple[int, int] | None = None
    claims: tuple[ClaimVerdict, ...] = ()  # of a sentence that makes more than one
    checked_by: CheckedBy = "words"


class Sentence(Record):
    """One sentence of a draft, without its citation marks."""

    text: str
    citations: tuple[str, ...] = ()  # evidence ids
    verdict: Verdict | None = None  # None: not checked yet
    reason: str = ""
    check: SentenceVerdict | None = None  # all that was found; None in older logs


class Block(Record):
    """A piece of a section's layout.

    Prose kinds carry `sentences`. A `table` carries its header row in `text` and one sentence per row. `heading`
    and `label` (a bold run-in name) carry `text`; `code` and `formula` carry it verbatim.
    """

    kind: Literal["paragraph", "bullet", "ordered", "quote", "heading", "label", "table", "code", "formula"]
    sentences: tuple[Sentence, ...] = ()
    text: str = ""
    level: int = 0  # heading level below the section's title (1 = directly below), or list depth
    language: str = ""  # of a code block


class UnknownCitation(Record):
    """A mark that names no evidence; it was removed from the text and is kept here."""

    mark: str
    section: str


class Draft(Record):
    section: str  # Section.id, or "summary"
    revision: int
    blocks: tuple[Block, ...]
    unknown_citations: tuple[UnknownCitation, ...] = ()
    incomplete: bool = False  # the model's answer was cut and could not be completed
    prompted: tuple[str, ...] = ()  # evidence ids that the writer was shown

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        return tuple(s for block in self.blocks for s in block.sentences)


class DroppedCitation(Record):
    """A citation that a draft does not need: `kept` says the same, in another source's words or in the same."""

    sentence: int  # its place in `Draft.sentences`
    evidence: str
    kept: str
    reason: Literal["repeats", "adds_nothing"]


class Grounding(Record):
    """The verdicts on a draft, in the order of `Draft.sentences`."""

    section: str
    revision: int
    verdicts: tuple[SentenceVerdict, ...]
    coverage: float  # supported share of the factual sentences, partial counting half; 1 where there are none
    checked: bool = True  # False: the check itself failed, every verdict is NOT_CHECKED
    dropped: tuple[DroppedCitation, ...] = ()  # the draft as it is judged goes without them


class Scores(Record):
    accuracy: float
    coverage: float
    clarity: float
    objectivity: float

    @property
    def lowest(self) -> float:
        return min(self.accuracy, self.coverage, self.clarity, self.objectivity)


class Issue(Record):
    kind: IssueKind
    severity: Literal["low", "medium", "high"]
    section: str  # Section.id, "" = the whole report
    detail: str
    fix_query: str = ""  # what to search for
    instruction: str = ""  # what to rewrite
    signal: str = ""  # the measurement that found it; empty where a reviewer named it
    sentence: str = ""  # the sentence concerned
    words: str = ""  # the words in it


class Signal(Record):
    """One measurement of a draft: `found` sentences, sections or sub-questions are at fault, of `total` looked at.

    `value` is 1 where none is, None where the signal cannot be measured (another language, nothing to compare).
    """

    name: str
    dimension: Literal["accuracy", "coverage", "clarity", "objectivity"]
    value: float | None
    found: int = 0
    total: int = 0


class Review(Record):
    iteration: int
    scores: Scores
    issues: tuple[Issue, ...] = ()
    verdict: ReviewVerdict
    sections: tuple[str, ...] = ()  # the ones to research or rewrite
    signals: tuple[Signal, ...] = ()  # what was measured beside the reviewer's opinion


class ContradictionSide(Record):
    value: str  # as the source writes it
    evidence: str
    date: str = ""


class Contradiction(Record):
    """Sources that give the same quantity another value or date."""

    subject: str
    sides: tuple[ContradictionSide, ...]
    note: str = ""


class Finding(Record):
    text: str
    evidence: tuple[str, ...]


class Analysis(Record):
    findings: tuple[Finding, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    unknowns: tuple[str, ...] = ()


class Usage(Record):
    """What was spent. Adding two gives their sum. `seconds` is time inside calls, not wall-clock."""

    calls: int = 0  # model calls
    searches: int = 0
    fetches: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0  # US dollars
    seconds: float = 0.0
    reused: int = 0  # calls answered from the ledger or a cache without being made again
    throttled: int = 0  # answers that said "too many requests"

    def __add__(self, other: Usage) -> Usage:
        names = type(self).model_fields
        return Usage(**{n: getattr(self, n) + getattr(other, n) for n in names})


class Note(Record):
    """Something a reader of the report should know. `kind` is for programs, `text` for people."""

    kind: str
    text: str
    section: str = ""
