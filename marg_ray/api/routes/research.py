"""Sessions: ask, look, decide, steer, cancel."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import uuid4

from fastapi import APIRouter, Depends, Header, Path, Query, Response

from marg_ray.actors.owner import Decision
from marg_ray.api import problems
from marg_ray.api.app import service_of
from marg_ray.api.asking import ask
from marg_ray.api.callers import Caller, Scope, needs
from marg_ray.api.schemas import (
    DecisionIn,
    ResearchIn,
    ResearchOut,
    SessionOut,
    SessionsOut,
    StatusOut,
    SteerIn,
)
from marg_ray.api.service import Service
from marg_ray.api.sessions import abandoned, session_of, view_of
from marg_ray.api.views import session_summary
from marg_ray.errors import UsageError
from marg_ray.messages import Steered
from marg_ray.records import Hit, Limits, SourceKind
from marg_ray.sources.urls import split_web

router = APIRouter(tags=["research"])

Reads = Annotated[Caller, Depends(needs(Scope.READ))]
Researches = Annotated[Caller, Depends(needs(Scope.RESEARCH))]
Parts = Annotated[Service, Depends(service_of)]
SessionId = Annotated[str, Path(description="the session's id", examples=["20261130-120000-ab12cd"])]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"\S",
        description="a text of your own: the same body that comes again with it starts nothing",
        examples=["8f14e45f-ceea-467f"],
    ),
]
SessionStatus = Literal[
    "running",
    "waiting",
    "paused",
    "halted",
    "cancelled",
    "passed",
    "quality_warning",
    "insufficient_evidence",
    "budget_stopped",
]


@router.post(
    "/v1/research",
    status_code=202,
    summary="Ask a question",
    response_description="Taken on: follow it at `links.events`.",
    responses={
        200: {"model": ResearchOut, "description": "The same was asked before, and its report is there."},
        **problems.responses(409, 413),
    },
)
async def start(service: Parts, who: Researches, body: ResearchIn, response: Response, key: Key = None) -> ResearchOut:
    """Starts a session and answers at once. What was asked before with the same settings and sources has its report
    already, which is named instead (200, `cached`); `fresh` researches anew."""
    taken = await ask(service, who, body, key or "")
    response.status_code = 200 if taken.cached else 202
    response.headers["Location"] = taken.links.self
    return taken


@router.get("/v1/research", summary="List your sessions", responses=problems.responses())
async def sessions(
    service: Parts,
    who: Reads,
    limit: Annotated[int, Query(ge=1, le=500, description="at most so many, the newest")] = 50,
    status: Annotated[SessionStatus | None, Query(description="only these")] = None,
) -> SessionsOut:
    rows = await service.store.sessions(limit=limit, status=status or "", owner=who.owner)
    return SessionsOut(sessions=tuple(session_summary(row, abandoned=abandoned(row)) for row in rows))


@router.get("/v1/research/{session_id}", summary="See where a session stands", responses=problems.responses(404))
async def session(service: Parts, who: Reads, session_id: SessionId) -> SessionOut:
    """Its plan, sections, agents at work, what was spent, and what it waits for."""
    return await view_of(service, await session_of(service, who, session_id))


@router.post(
    "/v1/research/{session_id}/decision",
    summary="Decide on the plan or the draft that waits",
    responses=problems.responses(404, 409),
)
async def decide(service: Parts, who: Researches, session_id: SessionId, body: DecisionIn) -> StatusOut:
    """Of several who decide at once the first wins; the others get 409 with what was decided. A decision that was
    made on an older plan is refused."""
    row = await session_of(service, who, session_id)
    outline = tuple(section.entry() for section in body.outline)
    decision = Decision(what=body.what, on=body.on, outline=outline, note=body.note, by=_by(who))
    return StatusOut(id=row.id, status=await service.sessions.decide(row.id, decision))


@router.post(
    "/v1/research/{session_id}/steer",
    summary="Change the course of a session",
    responses=problems.responses(404, 409),
)
async def steer(service: Parts, who: Researches, session_id: SessionId, body: SteerIn) -> StatusOut:
    """Add or drop a sub-question, have a page read or a source left out, raise the limits."""
    row = await session_of(service, who, session_id)
    return StatusOut(id=row.id, status=await service.sessions.steer(row.id, _steered(service, who, row.id, body)))


@router.post(
    "/v1/research/{session_id}/cancel", summary="End a session for good", responses=problems.responses(404, 409)
)
async def cancel(service: Parts, who: Researches, session_id: SessionId) -> StatusOut:
    """What it has found stays in its log. A session that is over already stays as it is."""
    row = await session_of(service, who, session_id)
    return StatusOut(id=row.id, status=await service.sessions.cancel(row.id, _by(who)))


@router.post(
    "/v1/research/{session_id}/pause", summary="Stop a session for now", responses=problems.responses(404, 409)
)
async def pause(service: Parts, who: Researches, session_id: SessionId) -> StatusOut:
    """What is under way is aborted; what is settled is not paid again."""
    row = await session_of(service, who, session_id)
    return StatusOut(id=row.id, status=await service.sessions.pause(row.id, _by(who)))


@router.post(
    "/v1/research/{session_id}/resume",
    summary="Go on after a pause or a halt",
    responses=problems.responses(404, 409),
)
async def resume(service: Parts, who: Researches, session_id: SessionId) -> StatusOut:
    row = await session_of(service, who, session_id)
    return StatusOut(id=row.id, status=await service.sessions.resume(row.id, _by(who)))


def _by(who: Caller) -> str:
    """Who decided, as it stands on the report."""
    return who.owner if who.key_id else "owner"


def _steered(service: Service, who: Caller, session_id: str, body: SteerIn) -> Steered:
    """The wish as a message.

    Raises:
        UsageError: what it needs is missing or makes no sense here.
    """
    hit = _page(service, body.url) if body.action == "pin" and body.url else None
    limits = None
    if body.action == "raise" and body.limits is not None:
        limits = body.limits.limits(Limits())
        if limits == Limits():
            raise UsageError("the limits to raise are missing", 'such as {"cost": 2}')
    return Steered(
        task_id=f"{session_id}/steer/{uuid4().hex[:8]}",
        action=body.action,
        section=body.section,
        query=body.query,
        hit=hit,
        location=body.location,
        limits=limits,
        by=_by(who),
    )


def _page(service: Service, url: str) -> Hit:
    """A page that is to be read, whatever a search says of it."""
    if service.offline:
        raise UsageError("this server is offline: it reads no pages")
    try:
        split_web(url)
    except ValueError as exc:
        raise UsageError(f"url is no web address: {exc}", "give one that begins with http:// or https://") from None
    return Hit(location=url, title=url, kind=SourceKind.WEB, relevance=1.0)
