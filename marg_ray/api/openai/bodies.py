"""What clients of OpenAI's chat API send and get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from marg_ray.api.schemas import LimitsIn, Line, OutlineIn, Plain, SourcesIn
from marg_ray.kinds import Depth, RequestClass

MODELS: Mapping[str, Depth | None] = {
    "marg-research": None,  # as deep as the request says, or standard
    "marg-research-overview": Depth.OVERVIEW,
    "marg-research-deep": Depth.DEEP,
}
Words = Annotated[str, Field(max_length=2_000_000), Plain]


class _Loose(BaseModel):
    """Clients send more than is read here."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class PartIn(_Loose):
    type: str
    text: Words | None = None


class MessageIn(_Loose):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Words | tuple[PartIn, ...] | None = None


class StreamOptionsIn(_Loose):
    include_usage: bool | None = None


class ResponseFormatIn(_Loose):
    type: str = "text"


class ChatIn(BaseModel):
    """A chat completion. The last message is the question; what it is to cost and where to look are fields of ours,
    for `extra_body`. A field that can change nothing is accepted, and named in the answer's `marg.ignored`."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "model": "marg-research",
                    "messages": [{"role": "user", "content": "What are the effects of tidal barrages?"}],
                    "stream": True,
                    "depth": "overview",
                }
            ]
        },
    )

    model: Annotated[str, Field(max_length=200, examples=["marg-research"]), Plain]
    messages: Annotated[tuple[MessageIn, ...], Field(min_length=1, max_length=1000)]
    stream: bool | None = None
    stream_options: StreamOptionsIn | None = None
    n: Annotated[int | None, Field(description="only 1")] = None
    tools: Annotated[tuple[Any, ...] | None, Field(description="none: research has its own")] = None
    functions: Annotated[tuple[Any, ...] | None, Field(description="none")] = None
    response_format: Annotated[ResponseFormatIn | None, Field(description="only text")] = None
    modalities: Annotated[tuple[str, ...] | None, Field(description="only text")] = None
    logprobs: Annotated[bool | None, Field(description="there are none")] = None
    reasoning_effort: Annotated[
        str | None, Field(description="minimal and low are an overview, high is deep, where no depth is named")
    ] = None
    metadata: Annotated[
        dict[str, str] | None,
        Field(
            description="`depth`, `language`, `web`, `library`, `shared`, `strict`, `fresh`, `cost`, `tokens`, "
            "`seconds`, `searches` and `session_id` as texts, for clients that send no other fields; the rest is yours"
        ),
    ] = None
    # ours
    depth: Depth | None = None
    sources: SourcesIn | None = None
    limits: LimitsIn | None = None
    language: Annotated[str | None, Field(pattern="^[a-z]{2}$", description="ISO 639-1 of the report")] = None
    request_class: RequestClass | None = None
    focus_areas: Annotated[tuple[Line, ...] | None, Field(max_length=20)] = None
    outline: Annotated[tuple[OutlineIn, ...] | None, Field(max_length=20)] = None
    strict: bool | None = None
    fresh: Annotated[bool | None, Field(description="research anew, whatever is known")] = None
    session_id: Annotated[
        str | None, Field(max_length=200, description="of a finished report that the question is about"), Plain
    ] = None


class UsageOut(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class MessageOut(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: Annotated[str, Field(description="Markdown")]
    refusal: None = None
    reasoning_content: Annotated[str, Field(description="what was done, line by line")] = ""


class ChoiceOut(BaseModel):
    index: int = 0
    message: MessageOut
    logprobs: None = None
    finish_reason: Annotated[
        Literal["stop", "length"], Field(description="length: a limit ended the research before it was done")
    ]


class MargOut(BaseModel):
    """What a chat completion has no place for."""

    session_id: str
    status: Annotated[str, Field(examples=["passed", "insufficient_evidence"])]
    cached: Annotated[bool, Field(description="the report was there already")] = False
    follow_up: Annotated[bool, Field(description="answered from a report's evidence, not researched")] = False
    cost: Annotated[float, Field(description="US dollars")] = 0.0
    notes: tuple[str, ...] = ()
    ignored: Annotated[tuple[str, ...], Field(description="fields that changed nothing")] = ()


class CompletionOut(BaseModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: tuple[ChoiceOut, ...]
    usage: UsageOut
    marg: MargOut


class ModelOut(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "marg-ray"


class ModelsOut(BaseModel):
    object: Literal["list"] = "list"
    data: tuple[ModelOut, ...]
