"""The HTTP service on Ray Serve: replicas of one application that keep nothing of a client.

`app` is for Ray's own commands (`serve run marg_ray.serve_app:app`, or `import_path` in a Serve configuration), `start`
for a program that has a runtime up, as `marg serve` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

# Serve's patience with its own proxy, which a busy machine is slow to start; read when Ray starts.
os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "120")
os.environ.setdefault("RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S", "60")
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")  # whoever asks for something after the end starts no Ray anew

from pydantic import BeforeValidator, Field, ValidationError
from ray import serve
from ray.exceptions import RayError
from ray.serve.schema import LoggingConfig

from marg_ray.actors.assembly import Places, model_name
from marg_ray.actors.deploy import Control, namespace_of
from marg_ray.actors.deploy.creation import see_to_actors, watched
from marg_ray.actors.deploy.handles import RayAssistant, RayEmbedder, ray_offload
from marg_ray.api.app import create_app
from marg_ray.api.service import Service
from marg_ray.errors import RuntimeUnavailable, UsageError
from marg_ray.models.select import Choice, choose
from marg_ray.records import Record
from marg_ray.settings import ServiceSettings, Settings, load
from marg_ray.sources.library.scan import check_folders
from marg_ray.store.sql import SqlStore
from marg_ray.telemetry.lines import configure
from marg_ray.telemetry.masking import secrets_in

if TYPE_CHECKING:
    from fastapi import FastAPI
    from ray.serve import Application

APP = "marg"  # the name of the application in Serve
READERS = 10_000  # requests under way in a replica: most of them are streams that wait
ANSWERS_WITHIN_S, LOOK_EVERY_S = 120.0, 0.2


@dataclass(frozen=True)
class Setup:
    """What a replica is made from."""

    settings: Settings
    choice: Choice
    shared: tuple[Path, ...] = ()  # folders that every caller may search
    offline: bool = False
    alone: bool = False  # nobody else has created the actors, or watches over their places


class Args(Record):
    """`args` of the application in a Serve configuration; settings come from `marg.toml` and the environment.

    On the command line of `serve run` folders have commas between them.
    """

    docs: Annotated[tuple[str, ...], BeforeValidator(lambda v: v.split(",") if isinstance(v, str) else v)] = ()
    offline: bool = False
    model: str = ""
    replicas: int | None = Field(default=None, ge=1)


@serve.deployment(
    name="api",
    max_ongoing_requests=READERS,
    ray_actor_options={"num_cpus": 0},  # it waits for others most of the time
    graceful_shutdown_timeout_s=3.0,  # streams have no end of their own
    graceful_shutdown_wait_loop_s=0.2,
)
@serve.ingress()
class Replica:
    """Carries the application; it has no logic of its own."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def __serve_build_asgi_app__(self) -> FastAPI:
        return await application(self._setup)


def app(args: dict[str, Any]) -> Application:
    """The application, from the settings and `args` (see `Args`). Its replicas create the actors that are missing.

    Where Serve listens is Serve's own setting, which nothing here can see: callers always need a key.

    Raises:
        UsageError: a setting or an argument is wrong, or keys are switched off.
    """
    try:
        wanted = Args.model_validate(args)
    except ValidationError as exc:
        first = exc.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"args.{where}: {first['msg']}", f"known are {', '.join(Args.model_fields)}") from None
    settings = load(model=wanted.model or None)
    if settings.service.auth == "off":
        raise UsageError("service.auth = off is for `marg serve` on this machine only", "leave it out, or say on")
    runtime = settings.runtime.model_copy(update={"ray_address": settings.runtime.ray_address or "auto"})
    service = settings.service.model_copy(
        update={"auth": "on", "replicas": wanted.replicas or settings.service.replicas}
    )
    settings = settings.model_copy(update={"runtime": runtime, "service": service})
    choice = asyncio.run(choose(settings, offline=wanted.offline))
    shared = tuple(Path(folder).expanduser().resolve() for folder in wanted.docs)
    return bound(Setup(settings, choice, shared, wanted.offline, alone=True))


def bound(setup: Setup) -> Application:
    replicas = setup.settings.service.replicas
    return Replica.options(num_replicas=replicas).bind(setup)  # type: ignore[attr-defined]


def start(setup: Setup) -> None:
    """Serve in the Ray that this process is connected to, where the actors are; returns when it answers. Blocks.

    Raises:
        RuntimeUnavailable: it did not start, or a Serve that ran before listens elsewhere.
    """
    for name in ("ray.serve", "ray._private.worker"):
        logging.getLogger(name).setLevel(logging.ERROR)
    service = setup.settings.service
    quiet = LoggingConfig(log_level="WARNING", enable_access_log=False)
    http = {"host": service.host, "port": service.port}
    try:
        with contextlib.suppress(TimeoutError):  # it is slow, and is waited for below
            serve.start(proxy_location="HeadOnly", http_options=http, logging_config=quiet)
        serve.run(bound(setup), name=APP, route_prefix="/", logging_config=quiet)
    except (RuntimeError, RayError) as exc:  # of a deployment that failed, with the end of its log
        raise RuntimeUnavailable("", f"the service: {' '.join(str(exc).split())[-600:]}") from None
    _look_for(address_of(service))


def stop() -> None:
    """End the service; Ray goes on. Blocks."""
    serve.delete(APP)


def address_of(service: ServiceSettings) -> str:
    """Where a browser of this machine reaches it."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(service.host, service.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{service.port}"


async def application(setup: Setup) -> FastAPI:
    """The application over the actors of a runtime, in this process, which may be of another namespace."""
    telemetry = setup.settings.telemetry
    configure(telemetry, actor=f"service:{os.getpid()}", secrets=secrets_in(setup.settings))
    if setup.alone:
        await see_to_actors(setup.settings, setup.choice)
    service = await service_of(setup)
    made = create_app(service)
    if setup.alone:
        made.state.beside.append(lambda: watched(setup.settings, setup.choice))
    made.state.beside.append(lambda: _closing(service))
    return made


async def service_of(setup: Setup) -> Service:
    settings = setup.settings
    namespace, places = namespace_of(settings, setup.choice), Places.of(settings)
    await asyncio.to_thread(check_folders, setup.shared)
    return Service(
        settings=settings,
        sessions=Control(settings.runtime.coordinators, namespace),
        store=await SqlStore.open(places.store_url),
        places=places,
        embedder=RayEmbedder(namespace),
        assistant=RayAssistant(namespace),
        offload=ray_offload,
        model_name=model_name(setup.choice),
        shared=setup.shared,
        offline=setup.offline,
    )


@contextlib.asynccontextmanager
async def _closing(service: Service) -> Any:
    try:
        yield
    finally:
        await service.store.close()


def _look_for(address: str) -> None:
    """See that it answers there: a Serve that ran before keeps the address that it had."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy leads out, not to ourselves
    until, why = time.monotonic() + ANSWERS_WITHIN_S, ""
    while time.monotonic() < until:
        try:
            with direct.open(f"{address}/ready", timeout=15):
                return
        except urllib.error.HTTPError as exc:
            why = exc.read(500).decode("utf-8", "replace") or str(exc)
        except OSError as exc:
            why = str(exc)
        time.sleep(LOOK_EVERY_S)
    raise RuntimeUnavailable("", f"the service does not answer at {address}: {why[-300:]}")
