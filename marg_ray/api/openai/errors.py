"""Errors as clients of OpenAI's API read them, on the routes that are meant for them.

The routes raise what every route raises; the answer's body is put into the other form on its way out. So the guards'
refusals (a missing key, too many requests) come in it too.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, Field
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from marg_ray.api.problems import MEDIA_TYPE
from marg_ray.errors import UsageError

PATHS = ("/v1/chat/completions", "/v1/models")
LONGEST = 100_000  # bytes of a problem; ours are far shorter


class ErrorDetail(BaseModel):
    message: str = Field(examples=["there is no model 'gpt-5'. GET /v1/models lists them"])
    type: str = Field(examples=["invalid_request_error"])
    param: str | None = Field(default=None, description="the field that is wrong", examples=["model"])
    code: str | None = Field(default=None, examples=["model_not_found"])


class ErrorOut(BaseModel):
    error: ErrorDetail


class BadParameter(UsageError):
    """A field that cannot be met."""

    http_status = 400

    def __init__(self, param: str, what: str, todo: str = "") -> None:
        super().__init__(what, todo)
        self.args = (param, what, todo)
        self.param = param

    @property
    def more(self) -> dict[str, str]:
        return {"param": self.param}


class ModelUnknown(BadParameter):
    http_status = 404

    def __init__(self, model: str) -> None:
        super().__init__("model", f"there is no model {model[:100]!r}", "GET /v1/models lists them")
        self.args = (model,)


_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_CODES = {"Unauthorized": "invalid_api_key", "RateLimited": "rate_limit_exceeded", "ModelUnknown": "model_not_found"}


def error_of(problem: dict[str, Any], status: int) -> dict[str, Any]:
    """A problem in OpenAI's form."""
    fields = problem.get("errors") or ()
    field = str(fields[0].get("field", "")) if fields and isinstance(fields[0], dict) else ""
    hint = "" if fields else problem.get("hint", "")  # the problem's own hint names our page of fields
    code = str(problem.get("code", ""))
    return {
        "message": ". ".join(t for t in (str(problem.get("detail", "")), str(hint)) if t),
        "type": _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error"),
        "param": problem.get("param") or field.removeprefix("body.") or None,
        "code": _CODES.get(code, code) or None,
    }


class OpenAIErrors:
    """Outermost: turns the problems of these routes into errors; 422 becomes 400, as those clients expect it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PATHS):
            await self._app(scope, receive, send)
            return
        held: Message | None = None
        body = b""

        async def sending(message: Message) -> None:
            nonlocal held, body
            if message["type"] == "http.response.start" and _is_problem(message):
                held = message
            elif held is None:
                await send(message)
            else:
                body += message.get("body", b"")[: LONGEST - len(body)]
                if not message.get("more_body", False):
                    for translated in _translated(held, body):
                        await send(translated)

        await self._app(scope, receive, sending)


def _is_problem(start: Message) -> bool:
    return MutableHeaders(scope=start).get("content-type", "").startswith(MEDIA_TYPE)


def _translated(start: Message, body: bytes) -> list[Message]:
    try:
        problem = json.loads(body)
    except ValueError:  # an answer to HEAD has none
        problem = {}
    status = 400 if start["status"] == 422 else int(start["status"])
    out = json.dumps({"error": error_of(problem, status)}).encode() if body else b""
    headers = MutableHeaders(scope=start)
    headers["content-type"] = "application/json"
    headers["content-length"] = str(len(out))
    return [{**start, "status": status}, {"type": "http.response.body", "body": out}]


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For the routes' documentation; 422 stands there so that FastAPI does not put another form in."""
    return {s: {"model": ErrorOut} for s in sorted({400, 401, 403, 413, 421, 422, 429, 503, *statuses})}
