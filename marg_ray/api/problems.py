"""Every error as problem+json (RFC 9457), with the status that the error tree gives it."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from marg_ray.errors import MargError
from marg_ray.masking import masked

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
TYPE = "https://marg-ray.dev/problems/"


class Problem(BaseModel):
    """What went wrong (`title`, `detail`), and what to do about it (`hint`)."""

    type: str = Field(examples=[f"{TYPE}SessionNotFound"])
    title: str = Field(examples=["SessionNotFound"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["there is no session or source '20261130-120000-ab12cd'"])
    hint: str = ""
    code: str = Field(description="for programs: the error's name", examples=["SessionNotFound"])
    retryable: bool = False


def problem(
    status: int, code: str, detail: str, hint: str = "", *, retryable: bool = False, **more: Any
) -> JSONResponse:
    body = Problem(
        type=f"{TYPE}{code}",
        title=code,
        status=status,
        detail=masked(detail),
        hint=masked(hint),
        code=code,
        retryable=retryable,
    )
    headers = more.pop("headers", None)
    return JSONResponse({**body.model_dump(), **more}, status, headers, MEDIA_TYPE)


HINTS = {  # where the error's own speaks of the command line
    "SessionNotFound": "GET /v1/research lists your sessions",
    "SessionMoved": "ask there, or try again when it has ended",
    "DecisionConflict": "GET the session to see where it stands",
}


def of_error(exc: MargError) -> JSONResponse:
    wait = getattr(exc, "retry_after_s", None)
    headers = {"Retry-After": str(max(1, round(wait)))} if isinstance(wait, int | float) else {}
    if exc.http_status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    more = getattr(exc, "more", {})  # what else a program may want to know
    hint = HINTS.get(exc.code, exc.hint)
    return problem(exc.http_status, exc.code, str(exc), hint, retryable=exc.retryable, headers=headers, **more)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's documentation: the problems it may answer with, besides those that every route has."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"model": Problem, "content": content} for status in sorted({401, 403, 422, 429, 503, *statuses})}


def install(app: FastAPI) -> None:
    async def ours(_: Request, exc: Exception) -> JSONResponse:
        assert isinstance(exc, MargError)
        return of_error(exc)

    async def invalid(_: Request, exc: Exception) -> JSONResponse:
        assert isinstance(exc, RequestValidationError)
        first = exc.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        fields = [
            {"field": masked(".".join(map(str, e["loc"]))), "problem": masked(e["msg"])} for e in exc.errors()[:20]
        ]
        return problem(422, "UsageError", f"{where}: {first['msg']}", "see /openapi.json for the fields", errors=fields)

    async def refused(_: Request, exc: Exception) -> JSONResponse:
        assert isinstance(exc, HTTPException)
        return problem(exc.status_code, "HttpError", str(exc.detail), headers=exc.headers)

    async def unforeseen(request: Request, exc: Exception) -> JSONResponse:
        log.error("%s %s failed", request.method, request.url.path, exc_info=exc)
        return problem(500, "InternalError", "something went wrong here", "the server's log says more")

    app.add_exception_handler(MargError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(Exception, unforeseen)
