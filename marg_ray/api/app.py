"""The application: routes, errors and guards around a `Service`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version

from fastapi import FastAPI, Request

from marg_ray.api import guards, problems
from marg_ray.api.figures import CountRequests
from marg_ray.api.mcp.http import mount
from marg_ray.api.openai.errors import OpenAIErrors
from marg_ray.api.openapi import TAGS, described
from marg_ray.api.service import Service

TITLE = "MARG-Ray"
Beside = Callable[[], contextlib.AbstractAsyncContextManager[object]]
"""What runs as long as the application does: `app.state.beside.append(it)` before the application starts."""


def create_app(service: Service) -> FastAPI:
    """A FastAPI application over `service`; it keeps nothing of a client between two requests."""
    from marg_ray.api.routes import ROUTERS  # they import this module

    app = FastAPI(
        title=TITLE,
        version=version("marg-ray"),
        summary="Research reports whose every sentence can be checked.",
        openapi_tags=TAGS,
        docs_url=None,
        redoc_url=None,
        lifespan=_life,
    )
    app.state.service = service
    app.state.beside = list[Beside]()
    problems.install(app)
    guards.install(app, service)
    app.add_middleware(OpenAIErrors)
    app.add_middleware(CountRequests)  # around all others: what they refuse is counted too
    mount(app, service)
    for router in ROUTERS:
        app.include_router(router)
    described(app)
    return app


@contextlib.asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as stack:
        for beside in app.state.beside:
            await stack.enter_async_context(beside())
        yield


def service_of(request: Request) -> Service:
    """For routes: the service that the application was made with."""
    service: Service = request.app.state.service
    return service
