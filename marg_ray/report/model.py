"""The report as data: the versioned JSON that every other format is made from.

Version 1.0 is stable: fields are added, never renamed, removed or given another meaning. Readers ignore
fields they do not know. `docs/report.schema.json` is written by `python -m marg_ray.report.model`.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from marg_ray.records import CheckedBy, Depth, IssueKind, ReportStatus, RequestClass, SourceKind, Verdict, Zone

SCHEMA_VERSION: Literal["1.0"] = "1.0"
BlockKind = Literal["paragraph", "bullet", "ordered", "quote", "heading", "label", "table", "code", "formula"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class ReportClaim(_Part):
    """One of several statements that a sentence makes, checked by itself."""

    text: str
    verdict: Verdict
    reason: str = ""
    evidence: Annotated[str, Field(description="id of the evidence that decided, or empty")] = ""
    span: Annotated[
        tuple[int, int] | None, Field(description="deciding stretch of its quote: characters, end exclusive")
    ] = None


class ReportSentence(_Part):
    """One sentence without its marks, what it cites, and what the check of it found."""

    text: str
    citations: Annotated[tuple[str, ...], Field(description="evidence ids")] = ()
    numbers: Annotated[tuple[int, ...], Field(description="reference numbers, one per source cited")] = ()
    verdict: Verdict = Verdict.NOT_CHECKED
    reason: Annotated[str, Field(description="why this verdict, in words")] = ""
    caution: Annotated[
        str, Field(description="that a source of it carried instruction-like text, and how near it stood")
    ] = ""
    probability: Annotated[
        float | None, Field(ge=0, le=1, description="that it is supported; null where no scorer was asked")
    ] = None
    evidence: Annotated[str, Field(description="id of the evidence that decided, or empty")] = ""
    span: Annotated[
        tuple[int, int] | None, Field(description="deciding stretch of its quote: characters, end exclusive")
    ] = None
    claims: Annotated[tuple[ReportClaim, ...], Field(description="where the sentence makes several statements")] = ()
    checked_by: Annotated[
        CheckedBy | None, Field(description="what decided; figures: only part of the check knows the language")
    ] = None


class ReportCitations(_Part):
    """How well sentences are cited, after ALCE (Gao et al. 2023). Not checked counts as not supported."""

    coverage: Annotated[
        float | None,
        Field(description="share of the factual sentences that what they cite supports; null: no such one"),
    ] = None
    precision: Annotated[
        float | None,
        Field(description="share of the cited passages that take part in supporting their sentence; null: none cited"),
    ] = None
    factual: int = 0
    supported: int = 0
    cited: Annotated[int, Field(description="passages, sentence by sentence")] = 0
    contributing: int = 0


class ReportDroppedCitation(_Part):
    """A citation, or a passage, that the report does without because `kept` says the same."""

    section: Annotated[str, Field(description='id of the section, or "summary"')]
    sentence: Annotated[str, Field(description="whose citation it was; empty where no writer was shown it")] = ""
    evidence: str
    source: str
    kept: Annotated[str, Field(description="id of the evidence that says the same")]
    kept_source: str
    reason: Annotated[
        Literal["repeats", "adds_nothing", "not_shown"],
        Field(description="repeats: the same words in another source; not_shown: the same, before it was written"),
    ]


class ReportBlock(_Part):
    """Layout of a stretch of a section: `sentences[start:end]`, and text that is no sentence."""

    kind: BlockKind
    start: Annotated[int, Field(ge=0, description="index of the first sentence")]
    end: Annotated[int, Field(ge=0, description="index after the last sentence")]
    text: Annotated[str, Field(description="of a heading, label, code block or formula; a table's header row")] = ""
    level: Annotated[int, Field(description="heading level below the section's title, or list depth")] = 0
    language: Annotated[str, Field(description="of a code block")] = ""


class ReportSection(_Part):
    id: str
    title: str
    sentences: tuple[ReportSentence, ...] = ()
    blocks: tuple[ReportBlock, ...] = ()
    gap: Annotated[str, Field(description="why the section has no evidence, or empty")] = ""
    quoted_only: Annotated[bool, Field(description="lists passages; nothing was written from them")] = False
    citations: ReportCitations | None = None


class Reference(_Part):
    number: Annotated[int, Field(ge=1)]
    source: Annotated[str, Field(description="id of the source")]


class ReportEvidence(_Part):
    """A verbatim passage: `snapshot(source)[start:end] == quote`, offsets in characters."""

    id: str
    source: str
    quote: str
    start: int
    end: int
    claim: str = ""
    heading: str = ""
    page: int | None = None
    tainted: Annotated[bool, Field(description="its source carried instruction-like text")] = False


class CutPassage(_Part):
    """Instruction-like text that was removed from a source before it was used, or that it carries and does not show."""

    text: str
    rule: str
    at: Annotated[int, Field(description="where in the frozen text it stood; -1: not in the text")] = -1
    where: Annotated[str, Field(description="text, title, snippet or hidden")] = ""


class ReportSource(_Part):
    """What was read; `id` is the SHA-256 of its frozen text."""

    id: str
    title: str
    location: Annotated[str, Field(description="address, or path of a file")]
    kind: SourceKind
    fetched_at: datetime
    published: Annotated[str, Field(description="ISO date where the source says it")] = ""
    language: str = ""
    chars: int = 0
    injections: tuple[CutPassage, ...] = ()


class Side(_Part):
    value: Annotated[str, Field(description="as the source writes it")]
    evidence: str
    date: str = ""


class Disagreement(_Part):
    """Sources that give the same quantity another value or date."""

    subject: str
    sides: tuple[Side, ...]
    note: str = ""


class ReportScores(_Part):
    accuracy: float
    coverage: float
    clarity: float
    objectivity: float


class ReportIssue(_Part):
    kind: IssueKind
    severity: Literal["low", "medium", "high"]
    section: Annotated[str, Field(description="id of the section; empty = the whole report")]
    detail: str
    fix_query: str = ""
    instruction: str = ""
    signal: Annotated[str, Field(description="the measurement that found it; empty where a reviewer named it")] = ""
    sentence: str = ""
    words: Annotated[str, Field(description="the words of the sentence that are concerned")] = ""


class ReportSignal(_Part):
    """What was measured on the text beside the reviewer's opinion."""

    name: str
    dimension: Literal["accuracy", "coverage", "clarity", "objectivity"]
    value: Annotated[float | None, Field(description="1: nothing at fault; null: it could not be measured")] = None
    found: Annotated[int, Field(description="sentences, sections or sub-questions at fault")] = 0
    total: Annotated[int, Field(description="how many were looked at")] = 0


class Spent(_Part):
    """What calls cost. `seconds` is time inside calls; `reused` calls were not made again."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Annotated[float, Field(description="US dollars")] = 0.0
    seconds: float = 0.0
    searches: int = 0
    fetches: int = 0
    reused: int = 0


class ReportUsage(Spent):
    by_role: dict[str, Spent] = {}
    wall_seconds: Annotated[float, Field(description="on the clock, from question to report")] = 0.0


class TraceEntry(_Part):
    """One thing that happened, in order of `seq`."""

    seq: int
    at: datetime | None = None
    role: str = ""
    task: str = ""
    text: str = ""


class Gap(_Part):
    section: str
    reason: str


class ReportFinding(_Part):
    text: str
    evidence: tuple[str, ...]


class ReportAnswerability(_Part):
    """How far the sources answer the question; see `zone`."""

    zone: Zone
    missing_terms: Annotated[tuple[str, ...], Field(description="words that occur in no document")] = ()
    nearest: Annotated[tuple[str, ...], Field(description="titles, best first")] = ()
    cosine: float = 0.0
    coverage: float = 0.0


class ReportNote(_Part):
    """Something a reader should know. `kind` is for programs, `text` for people."""

    kind: str
    text: str
    section: str = ""


class ChartSeries(_Part):
    name: str
    values: Annotated[tuple[float | None, ...], Field(description="one a label; null where the table has none")]


class ChartRow(_Part):
    """The row of a source's table that a label stands for: `snapshot(source)[start:end]`, offsets in characters."""

    source: str
    start: int
    end: int
    cited: Annotated[bool, Field(description="a sentence of the section rests on it")] = False


class ReportChart(_Part):
    """A table of a cited source as a picture: data only, drawn when it is shown."""

    id: str
    section: str
    kind: Literal["bar", "line", "scatter"]
    title: str
    x: Annotated[str, Field(description="what the labels are")]
    y: Annotated[str, Field(description="what the values are, with their unit")]
    labels: tuple[str, ...]
    series: tuple[ChartSeries, ...]
    rows: Annotated[tuple[ChartRow, ...], Field(description="one a label; none for data that is no source's")] = ()
    numbers: Annotated[tuple[int, ...], Field(description="reference numbers")] = ()
    notes: Annotated[tuple[str, ...], Field(description="what was left out, and why")] = ()


class Report(_Part):
    """A finished report with everything needed to check it."""

    schema_version: Literal["1.0"] = SCHEMA_VERSION
    session_id: str
    question: str
    title: str
    language: str
    model: str
    status: ReportStatus
    verdict: Annotated[str, Field(description="the outcome in words")] = ""
    depth: Depth = Depth.STANDARD
    request_class: RequestClass = RequestClass.FULL_RESEARCH
    created_at: datetime | None = None
    finished_at: datetime | None = None
    summary: tuple[ReportSentence, ...] = ()
    summary_blocks: tuple[ReportBlock, ...] = ()
    sections: tuple[ReportSection, ...] = ()
    references: tuple[Reference, ...] = ()
    evidence: tuple[ReportEvidence, ...] = ()
    sources: tuple[ReportSource, ...] = ()
    charts: tuple[ReportChart, ...] = ()
    contradictions: tuple[Disagreement, ...] = ()
    findings: tuple[ReportFinding, ...] = ()
    unknowns: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    hypotheses: tuple[str, ...] = ()
    answerability: ReportAnswerability | None = None
    scores: ReportScores | None = None
    issues: tuple[ReportIssue, ...] = ()
    signals: tuple[ReportSignal, ...] = ()
    citations: ReportCitations | None = None
    dropped_citations: tuple[ReportDroppedCitation, ...] = ()
    iterations: int = 0
    usage: ReportUsage = ReportUsage()
    notes: tuple[ReportNote, ...] = ()
    trace: tuple[TraceEntry, ...] = ()

    def sentences(self) -> tuple[ReportSentence, ...]:
        """Every sentence in reading order, the summary first."""
        return self.summary + tuple(s for section in self.sections for s in section.sentences)


def to_json(report: Report) -> str:
    """Strict JSON (no NaN), fields in the schema's order: the same report gives the same text."""
    return report.model_dump_json(indent=2) + "\n"


def from_json(text: str | bytes) -> Report:
    """Read a report back.

    Raises:
        pydantic.ValidationError: the text is no report of this version.
    """
    return Report.model_validate_json(text)


def schema() -> dict[str, JsonValue]:
    """The JSON schema of what `to_json` writes: every field is there, unknown ones may be added later."""
    body = Report.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **body}


def schema_text() -> str:
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
