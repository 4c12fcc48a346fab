"""Whether the service lives, and whether it can work."""

from __future__ import annotations

import asyncio
import contextlib
from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, Depends

from marg_ray.api import problems
from marg_ray.api.app import service_of
from marg_ray.api.guards import needs_keys
from marg_ray.api.schemas import HealthOut, ReadyOut
from marg_ray.api.service import Service
from marg_ray.errors import RuntimeUnavailable, SessionNotFound

router = APIRouter(tags=["system"])

Parts = Annotated[Service, Depends(service_of)]
WITHIN_S = 10.0  # its coordinator and its store answer
NOBODY = "ready"  # a session's id that is none's


@router.get("/health", summary="See whether it lives", responses=problems.responses())
async def health() -> HealthOut:
    """Answers as long as the process does. Needs no key."""
    return HealthOut(version=version("marg-ray"))


@router.get("/ready", summary="See whether it can work", responses=problems.responses(503))
async def ready(service: Parts) -> ReadyOut:
    """Answers when the store and the coordinators do; 503 until then. Needs no key."""
    try:
        async with asyncio.timeout(WITHIN_S):
            with contextlib.suppress(SessionNotFound):  # which a coordinator says after it has asked the store
                await service.sessions.progress(NOBODY, 0, 0.0)
    except TimeoutError:
        raise RuntimeUnavailable("", f"the coordinators do not answer within {WITHIN_S:g} s") from None
    return ReadyOut(
        version=version("marg-ray"),
        model=service.model_name,
        auth=needs_keys(service.settings),
        shared=len(service.shared),
    )
