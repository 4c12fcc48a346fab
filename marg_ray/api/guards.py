"""What every request passes: who calls, how often, how much; and the headers of every answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request, Response

from marg_ray.api.callers import Caller
from marg_ray.api.service import Service


def install(app: FastAPI, service: Service) -> None:
    @app.middleware("http")
    async def known(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        request.state.caller = Caller(owner="local")
        return await call_next(request)
