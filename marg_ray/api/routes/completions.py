"""OpenAI-compatible: any chat client can ask for a report."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from starlette.responses import StreamingResponse

from marg_ray.api.app import service_of
from marg_ray.api.callers import Caller, Scope, needs
from marg_ray.api.following import follow
from marg_ray.api.openai.answers import Said, Taken, begin, said_by
from marg_ray.api.openai.asked import Asked, asked_in
from marg_ray.api.openai.bodies import (
    MODELS,
    ChatIn,
    ChoiceOut,
    CompletionOut,
    MargOut,
    MessageOut,
    ModelOut,
    ModelsOut,
    UsageOut,
)
from marg_ray.api.openai.errors import ModelUnknown, responses
from marg_ray.api.openai.streaming import Chunks, answering, line_of, usage_of
from marg_ray.api.routes.events import hub_of
from marg_ray.api.routes.research import Key
from marg_ray.api.service import Service
from marg_ray.api.sse import HEADERS, MEDIA_TYPE

router = APIRouter(tags=["openai"])

SESSION = "X-Session-Id"  # header of every answer, also of one whose reader leaves
_EXAMPLE = """data: {"id":"chatcmpl-20261130-120000-ab12cd","object":"chat.completion.chunk","choices":[{"index":0,\
"delta":{"reasoning_content":"planner: planned 3 sections with 6 queries\\n"},"finish_reason":null}], ...}

data: {... "delta":{"content":"# Tidal barrages\\n\\n"} ...}

data: [DONE]
"""


@router.get("/v1/models", summary="The models that can be asked", responses=responses())
async def models(_: Annotated[Caller, Depends(needs(Scope.READ))]) -> ModelsOut:
    """One model, in three depths."""
    return ModelsOut(data=tuple(ModelOut(id=name) for name in MODELS))


@router.get("/v1/models/{model}", summary="One of the models", responses=responses(404))
async def model(
    model: Annotated[str, Path(examples=["marg-research"])], _: Annotated[Caller, Depends(needs(Scope.READ))]
) -> ModelOut:
    if model not in MODELS:
        raise ModelUnknown(model)
    return ModelOut(id=model)


@router.post(
    "/v1/chat/completions",
    response_model=CompletionOut,
    summary="Ask as one asks a chat model",
    response_description="The report, as the assistant's message.",
    responses={
        200: {
            "headers": {SESSION: {"schema": {"type": "string"}, "description": "the session that answers"}},
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": _EXAMPLE}},
        },
        **responses(404, 409, 500, 502),
    },
)
async def complete(
    request: Request,
    response: Response,
    who: Annotated[Caller, Depends(needs(Scope.RESEARCH))],
    body: ChatIn,
    key: Key = None,
) -> CompletionOut | Response:
    """The last message is researched, and the answer is the report in Markdown. A question about a report of the same
    conversation is answered from the report's evidence, where that does.

    It takes minutes: with `stream` the work is told as reasoning until the report comes. Who leaves stops nothing; the
    session's id is in the header `X-Session-Id`, and the research routes have it.
    """
    service, asked = service_of(request), asked_in(body)
    begun = await begin(service, who, asked, key or "")
    response.headers[SESSION] = begun.session_id
    if body.stream:
        usage = bool(body.stream_options and body.stream_options.include_usage)
        created = begun.created if isinstance(begun, Said) else int(time.time())
        chunks = Chunks(_id(begun.session_id), body.model, created, usage)
        return StreamingResponse(
            answering(service, hub_of(request.app), who, begun, chunks),
            media_type=MEDIA_TYPE,
            headers={**HEADERS, SESSION: begun.session_id},
        )
    lines = await _waited(request, service, begun) if isinstance(begun, Taken) else ""
    said = await said_by(service, who, begun) if isinstance(begun, Taken) else begun
    return _completion(body.model, asked, begun, said, lines)


async def _waited(request: Request, service: Service, taken: Taken) -> str:
    """Wait for the session to end, or for its reader to leave; what happened, line by line."""
    lines = []
    async with aclosing(follow(hub_of(request.app), service, taken.session_id)) as happenings:
        async for happening in happenings:
            if happening.text:
                lines.append(line_of(happening))
            elif await request.is_disconnected():
                break
    return "".join(lines)


def _completion(model: str, asked: Asked, begun: Said | Taken, said: Said, lines: str) -> CompletionOut:
    return CompletionOut(
        id=_id(said.session_id),
        created=said.created,
        model=model,
        choices=(
            ChoiceOut(
                message=MessageOut(content=said.content, reasoning_content=lines),
                finish_reason="length" if said.limited else "stop",
            ),
        ),
        usage=UsageOut(**usage_of(said.usage)),
        marg=MargOut(
            session_id=said.session_id,
            status=said.status,
            cached=isinstance(begun, Taken) and begun.cached,
            follow_up=said.follow_up,
            cost=said.usage.cost,
            notes=begun.notes if isinstance(begun, Taken) else asked.notes,
            ignored=asked.ignored,
        ),
    )


def _id(session_id: str) -> str:
    return f"chatcmpl-{session_id}"
