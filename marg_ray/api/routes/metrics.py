"""Figures for Prometheus, and a session's trace."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, Field

from marg_ray.actors.trace import trace_of
from marg_ray.api.app import service_of
from marg_ray.api.callers import Caller, Scope, needs
from marg_ray.api.problems import responses
from marg_ray.api.refusals import NotReady
from marg_ray.api.sessions import session_of
from marg_ray.errors import StoreUnavailable
from marg_ray.store.protocol import Store
from marg_ray.telemetry.exposition import MEDIA_TYPE, exposition
from marg_ray.telemetry.figures import FIGURES, Figures, Taken
from marg_ray.telemetry.spans import Span, Trace

router = APIRouter(tags=["system"])


class EventOut(BaseModel):
    name: str
    at: str = Field(description="ISO 8601, UTC")
    attributes: dict[str, str | int | float | bool | list[str]]


class SpanOut(BaseModel):
    """One piece of work; names and attributes are those of OpenTelemetry's GenAI conventions."""

    id: str
    parent: str = Field(description="empty: the session itself")
    name: str
    kind: str = Field(description="session, task, model, search, fetch or wait")
    start: str = Field(description="ISO 8601, UTC")
    end: str
    seconds: float
    waited: float = Field(description="seconds from when it was due until it began")
    after: str = Field(description="the span whose end made it due")
    critical: bool = Field(description="on the chain that decided when the session ended")
    status: str = Field(description="ok, error, or unset: not finished")
    about: str = Field(description="the query or the address")
    said: str
    attributes: dict[str, str | int | float | bool | list[str]]
    events: list[EventOut]


class TraceOut(BaseModel):
    """A session's spans: itself first, then by start."""

    id: str
    session: str
    status: str
    spans: list[SpanOut]


@router.get(
    "/metrics",
    summary="Read the figures, as Prometheus does",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **responses()},
)
async def metrics(request: Request, who: Annotated[Caller, Depends(needs(Scope.ADMIN))]) -> Response:
    """Of all owners and processes: sessions, tasks, models, searches, caches, requests. For the scope `admin`."""
    service = service_of(request)
    others, store = await asyncio.gather(service.sessions.figures(), _of_the_store(service.store))
    taken = {f"service:{os.getpid()}": FIGURES.taken(), "store": store}
    for actor, figures in others.items():
        seen = figures or Taken()
        taken[actor] = Taken({**seen.values, ("marg_actor_up", ()): float(figures is not None)}, seen.spreads)
    return Response(await asyncio.to_thread(exposition, taken), media_type=MEDIA_TYPE)


@router.get(
    "/v1/research/{session_id}/trace",
    tags=["research"],
    summary="See what ran when, and what waited for what",
    responses=responses(404, 409),
)
async def trace(
    request: Request,
    session_id: Annotated[str, Path(max_length=200)],
    who: Annotated[Caller, Depends(needs(Scope.READ))],
) -> TraceOut:
    """The session as spans, made from its log and the ledger: of one that goes on as well."""
    service = service_of(request)
    row = await session_of(service, who, session_id)
    entries, calls = await asyncio.gather(service.store.read(row.id), service.store.calls(row.id))
    if not entries:
        raise NotReady(row.id, row.status)
    return _shown(await asyncio.to_thread(trace_of, row.id, entries, calls))


async def _of_the_store(store: Store) -> Taken:
    """What the store counts; nothing where it is away: the other figures are worth having then."""
    figures = Figures()
    with contextlib.suppress(StoreUnavailable):
        for status, number in (await store.session_counts()).items():
            figures.set("marg_sessions", number, status)
        for count in await store.cache_counts():
            figures.set("marg_cache_entries", count.entries, count.space)
    return figures.taken()


def _shown(trace: Trace) -> TraceOut:
    spans = [_span(span) for span in trace.spans]
    return TraceOut(id=trace.id, session=trace.session, status=trace.status, spans=spans)


def _span(span: Span) -> SpanOut:
    plain = span.model_dump(mode="json")
    return SpanOut.model_validate({**plain, "seconds": round(span.seconds, 6)})
