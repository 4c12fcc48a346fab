"""The draft of a session under way, to be read before it is decided on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path

from marg_ray.actors.formatter import report_inputs
from marg_ray.api import problems
from marg_ray.api.app import service_of
from marg_ray.api.callers import Caller, Scope, needs
from marg_ray.api.refusals import NotReady
from marg_ray.api.service import Service
from marg_ray.api.sessions import session_of
from marg_ray.folding import replay
from marg_ray.report.assemble import build_report
from marg_ray.report.model import Report
from marg_ray.seams import in_thread
from marg_ray.state import ResearchState
from marg_ray.store.protocol import LogEntry

router = APIRouter(tags=["reports"])


@router.get(
    "/v1/research/{session_id}/draft",
    summary="Read the draft",
    responses=problems.responses(404, 409),
)
async def draft(
    service: Annotated[Service, Depends(service_of)],
    who: Annotated[Caller, Depends(needs(Scope.READ))],
    session_id: Annotated[str, Path(description="the session's id", examples=["20261130-120000-ab12cd"])],
) -> Report:
    """What is written so far, in the form of a report: for whoever is to approve it. 409 while nothing is written."""
    row = await session_of(service, who, session_id)
    entries = await service.store.read(row.id)
    state = await in_thread(replay, [e.message for e in entries])
    if not any(section.draft for section in state.sections.values()):
        raise NotReady(row.id, row.status)
    return await in_thread(_drafted, state, tuple(entries), service.model_name)


def _drafted(state: ResearchState, entries: tuple[LogEntry, ...], model: str) -> Report:
    """As if it ended here. A strict request would refuse what does not hold yet; its owner is to see it."""
    assert state.request is not None
    shown = state.model_copy(update={"request": state.request.model_copy(update={"strict": False})})
    return build_report(report_inputs(shown, entries, model, datetime.now(UTC), state.usage))
