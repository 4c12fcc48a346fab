"""The closed sets of words that records, settings and the command line share. Cheap to import."""

from __future__ import annotations

from enum import StrEnum


class Depth(StrEnum):
    OVERVIEW = "overview"
    STANDARD = "standard"
    DEEP = "deep"


class RequestClass(StrEnum):
    FULL_RESEARCH = "full_research"
    QUICK_RESEARCH = "quick_research"
    RESEARCH_ONLY = "research_only"
    ANALYZE_PROVIDED = "analyze_provided"
    WRITE_ONLY = "write_only"


class Role(StrEnum):
    PLANNER = "planner"
    RESEARCHER = "researcher"
    ANALYST = "analyst"
    SYNTHESIZER = "synthesizer"
    CRITIC = "critic"
    FORMATTER = "formatter"
    ASSISTANT = "assistant"


class Verdict(StrEnum):
    """What a sentence may claim, given what it cites."""

    SUPPORTED = "supported"
    PARTIAL = "partial"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    NOT_FACTUAL = "not_factual"  # a question, a transition, a remark on the report itself: nothing to check
    NOT_CHECKED = "not_checked"  # the check itself failed; the report says so


class Zone(StrEnum):
    """How far the sources answer a question."""

    ANSWER = "answer"
    NEAREST = "nearest"  # not stated directly; the nearest material is shown as such
    NOTHING = "nothing"


class SourceKind(StrEnum):
    WEB = "web"
    LIBRARY = "library"
    PROVIDED = "provided"
    ACADEMIC = "academic"
    DATABASE = "database"
    MCP = "mcp"


class GateMode(StrEnum):
    NEVER = "never"
    AUTO = "auto"  # asks when the lowest score is below .70
    ALWAYS = "always"


class OnTimeout(StrEnum):
    """What happens when nobody decides at a gate in time; whichever it is, the report says so."""

    APPROVE = "approve"  # go on as if it had been approved
    CANCEL = "cancel"  # end the session
    WAIT = "wait"  # never time out


class Priority(StrEnum):
    """Interactive sessions are admitted before batch sessions."""

    INTERACTIVE = "interactive"
    BATCH = "batch"


class ReportStatus(StrEnum):
    PASSED = "passed"
    QUALITY_WARNING = "quality_warning"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"
    BUDGET_STOPPED = "budget_stopped"
    CANCELLED = "cancelled"


class IssueKind(StrEnum):
    HALLUCINATION = "hallucination"
    MISSING_SOURCE = "missing_source"
    LOGIC_ERROR = "logic_error"
    OUTDATED = "outdated"
    INCOMPLETE = "incomplete"
    BIAS = "bias"


class ReviewVerdict(StrEnum):
    PASS = "PASS"
    RETRIEVAL_GAP = "RETRIEVAL_GAP"
    QUALITY_FAIL = "QUALITY_FAIL"
    INSUFFICIENT_EVIDENCE = "INSUFFICIENT_EVIDENCE"


class Scope(StrEnum):
    """What a key of the HTTP service may do, always for its owner alone."""

    READ = "read"  # sessions, reports, library lists
    RESEARCH = "research"  # start, decide, steer, cancel, ask
    LIBRARY = "library"  # add and remove documents
    ADMIN = "admin"  # figures over all owners
