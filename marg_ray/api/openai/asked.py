"""From a conversation to what is to be researched, or to be answered from a report that is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from marg_ray.api.openai.bodies import MODELS, ChatIn, MessageIn
from marg_ray.api.openai.errors import BadParameter, ModelUnknown
from marg_ray.api.schemas import ResearchIn
from marg_ray.api.service import Turn

EARLIER = "Only the last message was researched: the earlier ones of this conversation were not taken into account."
SYSTEM = "System messages do not change how research is done; depth, language and sources are fields of their own."
_EFFORT = {"none": "overview", "minimal": "overview", "low": "overview", "high": "deep", "xhigh": "deep"}
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_TURNS = 40  # of a conversation that are looked at


@dataclass(frozen=True)
class Asked:
    """The question; the turns before it, oldest first; the report that it names, if it names one."""

    research: ResearchIn
    earlier: tuple[Turn, ...]
    session_id: str
    notes: tuple[str, ...]
    ignored: tuple[str, ...]


def asked_in(body: ChatIn) -> Asked:
    """What is asked.

    Raises:
        ModelUnknown: of a model that is not here.
        BadParameter: in a way that cannot be met.
    """
    if body.model not in MODELS:
        raise ModelUnknown(body.model)
    _refuse(body)
    turns = [(m.role, _text(m, n)) for n, m in enumerate(body.messages)]
    role, question = turns[-1]
    if role != "user" or not question.strip():
        raise BadParameter("messages", "the last message must be a user's, and hold the question")
    told = _told(body.metadata or {})
    earlier = tuple(Turn(role=r, text=t) for r, t in turns[:-1] if r in ("user", "assistant") and t.strip())
    system = any(r in ("system", "developer") and t.strip() for r, t in turns)
    return Asked(
        research=_research(body, question, told),
        earlier=earlier[-_TURNS:],
        session_id=body.session_id or told.get("session_id", ""),
        notes=(SYSTEM,) if system else (),
        ignored=tuple(sorted(name for name, value in (body.model_extra or {}).items() if value is not None)),
    )


def _refuse(body: ChatIn) -> None:
    """What is asked for and cannot be had is said, rather than left out."""
    if body.n not in (None, 1):
        raise BadParameter("n", "there is one report", "leave n out, or set it to 1")
    if body.tools or body.functions:
        raise BadParameter("tools", "tools cannot be called: research has its own", "leave tools out")
    if body.response_format is not None and body.response_format.type != "text":
        raise BadParameter("response_format", "a report is Markdown", "GET /v1/research/{id}/report gives it as JSON")
    if body.logprobs:
        raise BadParameter("logprobs", "there are no log probabilities of a report")
    if body.modalities and set(body.modalities) != {"text"}:
        raise BadParameter("modalities", "a report is text")


def _text(message: MessageIn, number: int) -> str:
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    for part in message.content:
        if part.type not in ("text", "input_text", "refusal") and message.role == "user":
            raise BadParameter(
                f"messages.{number}.content", f"{part.type[:40]!r} cannot be read: only text can be asked"
            )
    return "\n".join(part.text for part in message.content if part.text)


def _told(metadata: dict[str, str]) -> dict[str, Any]:
    """What metadata say, as the fields that they stand for."""
    told: dict[str, Any] = {n: metadata[n] for n in ("depth", "language", "session_id") if metadata.get(n)}
    for name in ("web", "library", "shared", "strict", "fresh"):
        if name in metadata:
            value = metadata[name].strip().lower()
            if value not in _TRUE + _FALSE:
                raise BadParameter(f"metadata.{name}", f"{metadata[name][:40]!r} is neither true nor false")
            told[name] = value in _TRUE
    told |= {n: metadata[n] for n in ("cost", "tokens", "seconds", "searches") if metadata.get(n)}
    return told


def _research(body: ChatIn, question: str, told: dict[str, Any]) -> ResearchIn:
    """The request as a research route takes it. A field counts more than metadata, these more than the model's name."""
    fields = body.model_dump(
        include={"language", "request_class", "focus_areas", "outline", "strict", "fresh"}, exclude_none=True
    )
    depth = body.depth or told.get("depth") or MODELS[body.model] or _EFFORT.get(body.reasoning_effort or "")
    sources = (
        body.sources.model_dump() if body.sources else {n: told[n] for n in ("web", "library", "shared") if n in told}
    )
    limits: dict[str, Any] = {n: told[n] for n in ("cost", "tokens", "seconds", "searches") if n in told}
    limits |= body.limits.model_dump(exclude_none=True) if body.limits else {}
    same = {n: told[n] for n in ("language", "strict", "fresh") if n in told}
    try:
        return ResearchIn.model_validate(
            {
                **same,
                **fields,
                **({"depth": depth} if depth else {}),
                "question": question,
                "sources": sources,
                "limits": limits,
            }
        )
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        name = "messages" if field == "question" else field
        raise BadParameter(name, f"{field}: {first['msg']}") from None
