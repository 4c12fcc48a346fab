"""What a trace is made of, with the names of OpenTelemetry's GenAI semantic conventions.

The conventions are young and were moved to a repository of their own, so the names stand here; a test compares them
with those of the installed package. `marg.*` is what they have no name for.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Literal, TypeAlias

from pydantic import Field

from marg_ray.records import Record

Value: TypeAlias = str | int | float | bool | tuple[str, ...]
Kind: TypeAlias = Literal["session", "task", "model", "search", "fetch", "wait"]

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CONVERSATION = "gen_ai.conversation.id"
WORKFLOW = "gen_ai.workflow.name"
AGENT = "gen_ai.agent.name"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL = "gen_ai.tool.call.id"
ERROR = "error.type"
ADDRESS, PORT = "server.address", "server.port"

WORKFLOW_NAME = "marg-research"


class SpanEvent(Record):
    """Something that happened at one moment of a span."""

    name: str
    at: datetime
    attributes: dict[str, Value] = Field(default_factory=dict)


class Span(Record):
    """One piece of work. `about` and `said` are the owner's texts: they are shown to the owner, and never exported."""

    id: str  # 16 hexadecimal digits; the same whenever the trace is made
    parent: str = ""  # empty: the session itself
    name: str
    kind: Kind
    start: datetime
    end: datetime
    status: Literal["ok", "error", "unset"] = "ok"
    error: str = ""  # class of the error
    attributes: dict[str, Value] = Field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    about: str = ""  # the query or the address
    said: str = ""  # what came of it, in words
    after: str = ""  # the span whose end made this one due
    waited: float = 0.0  # seconds from then to its start
    critical: bool = False  # on the chain that decided when the session ended

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()


class Trace(Record):
    """A session's spans: itself first, then by start."""

    id: str  # 32 hexadecimal digits
    session: str
    status: str
    spans: tuple[Span, ...]

    @property
    def root(self) -> Span:
        return self.spans[0]


def trace_id(session: str) -> str:
    return hashlib.sha256(f"trace {session}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def span_id(session: str, *place: object) -> str:
    """Follows from what the span is: a trace that is made twice is one trace."""
    text = " ".join(map(str, ("span", session, *place)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
