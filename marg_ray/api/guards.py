"""What every request passes before a route sees it: where it comes from, who calls, how often, and how much."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from urllib.parse import unquote

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from marg_ray.api import bodies, headers, origins, problems
from marg_ray.api.callers import Caller
from marg_ray.api.keys import KNOWN_S, KeyRing
from marg_ray.api.rates import Rates, Standing
from marg_ray.api.refusals import CrossSite, KeyMisplaced, Unauthorized, WrongHost
from marg_ray.api.service import Service
from marg_ray.errors import MargError, UsageError
from marg_ray.masking import KEY, TELLING, mask_logs, masked
from marg_ray.settings import Settings

log = logging.getLogger(__name__)

PROBES = frozenset({"/health", "/ready"})  # for whoever watches over the server, under whatever name
OPEN = frozenset({"/", "/runs", "/library", "/openapi.json", "/favicon.ico", "/robots.txt"}) | PROBES
OPEN_UNDER = ("/assets/", "/runs/")  # the page: it holds nothing of anybody's
ALLOWED_HEADERS = (
    "Authorization",
    "X-API-Key",
    "Content-Type",
    "Idempotency-Key",
    "Last-Event-ID",
    "Mcp-Session-Id",
    "Mcp-Protocol-Version",
)
EXPOSED_HEADERS = (
    "Location",
    "Content-Disposition",
    "Retry-After",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
    "Mcp-Session-Id",
    "X-Session-Id",
)
_ORIGIN = re.compile(r"https?://[^/\s*@?#]+", re.IGNORECASE)


def check(settings: Settings) -> None:
    """See that the service is not open to whom it should not be. Called before anything listens.

    Raises:
        UsageError: it would be.
    """
    service = settings.service
    if service.auth == "off" and not origins.is_loopback(service.host):
        raise UsageError(
            f"service.auth off, on {service.host}: whoever reaches it could use it as if it were theirs",
            "leave it at auto and make keys with `marg keys add`, or listen on 127.0.0.1",
        )
    for origin in service.cors:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise UsageError(f"service.cors: {origin!r} is no origin", "such as https://example.org, without a path")
    if "*" in service.cors and not needs_keys(settings):
        raise UsageError(
            "service.cors *, without keys: every web page that you open could use the service",
            "name the origins, or set service.auth to on",
        )


def needs_keys(settings: Settings) -> bool:
    """Whether everybody needs a key, also on this machine."""
    return settings.service.auth == "on" or not origins.is_loopback(settings.service.host)


def install(app: FastAPI, service: Service, *, known_s: float = KNOWN_S) -> None:
    """Put the guards around the application's routes. A key that is revoked ends within `known_s` seconds.

    Raises:
        UsageError: see `check`.
    """
    settings = service.settings
    check(settings)
    mask_logs()
    several = settings.service.replicas > 1
    rates = Rates(settings.service.per_minute, service.store.tally if several else None)
    app.add_middleware(Guard, settings=settings, keys=KeyRing(service.store, known_s=known_s), rates=rates)
    if settings.service.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.service.cors,
            allow_methods=("GET", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=ALLOWED_HEADERS,
            expose_headers=EXPOSED_HEADERS,
        )
    app.add_middleware(headers.SecurityHeaders)  # the outermost: those that the others turn away get them as well


class Guard:
    """Finds the caller, or turns the request away."""

    def __init__(self, app: ASGIApp, settings: Settings, keys: KeyRing, rates: Rates) -> None:
        self.app = app
        self._settings, self._keys, self._rates = settings, keys, rates
        self._keyless = not needs_keys(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":  # there are no web sockets
            return await send({"type": "websocket.close", "code": 1008})
        answer = Answer(send, self._keys)
        try:
            receive = await self._admit(scope, receive, answer)
            await self.app(scope, receive, answer.send)
        except Exception as exc:
            if answer.ended:
                return
            if answer.started:
                raise
            problem = problems.of_error(exc) if isinstance(exc, MargError) else _unforeseen(scope, exc)
            await problem(scope, receive, answer.send)

    async def _admit(self, scope: Scope, receive: Receive, answer: Answer) -> Receive:
        path, given = scope["path"], Headers(scope=scope)
        if path in PROBES:
            return receive
        if TELLING.search(path) or TELLING.search(unquote(scope.get("query_string", b"").decode("latin-1"))):
            raise KeyMisplaced("address")
        is_open = scope["method"] in bodies.SAFE and is_part_of_the_page(path)
        who = await self._caller(scope, given, is_open)
        if is_open:
            return receive
        answer.standing = await self._rates.take(f"key {who.key_id}" if who and who.key_id else _address(scope))
        if who is None:
            raise Unauthorized
        answer.key_id = who.key_id
        scope.setdefault("state", {})["caller"] = who
        return await bodies.admitted(scope, receive, self._settings)

    async def _caller(self, scope: Scope, given: Headers, is_open: bool) -> Caller | None:
        """Who calls; None where nobody is known.

        Raises:
            WrongHost, CrossSite: it would need no key, but seems to come from elsewhere.
        """
        sent = sent_key(given)
        if KEY.fullmatch(sent) or not self._keyless:
            key = await self._keys.find(sent)
            return Caller.with_key(key) if key is not None else None
        if self._settings.service.auth != "off" and not origins.is_near(scope, given):
            return None
        if not origins.host_is_loopback(given):
            raise WrongHost
        if not is_open and origins.is_cross_site(scope, given, self._settings.service.cors):
            raise CrossSite
        return Caller(owner="local")


class Answer:
    """An answer on its way: with where the caller stands, and cut off when its key ends meanwhile."""

    def __init__(self, send: Send, keys: KeyRing, clock: Callable[[], float] = time.monotonic) -> None:
        self._send, self._keys, self._clock = send, keys, clock
        self._seen = clock()
        self.standing: Standing | None = None
        self.key_id = ""
        self.started = self.ended = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            if self.standing is not None:
                message.setdefault("headers", [])
                MutableHeaders(scope=message).update(self.standing.headers())
        elif self.key_id and self._clock() - self._seen > self._keys.known_s:
            await self._look_again(message)
        await self._send(message)

    async def _look_again(self, message: Message) -> None:
        self._seen = self._clock()
        try:
            good = await self._keys.still_good(self.key_id)
        except MargError as exc:  # the store is away: a stream that was allowed goes on
            log.warning("whether the key %s is still good could not be seen: %s", self.key_id, exc)
            return
        if not good:
            self.ended = True
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
            raise OSError("the key that this answer was for has ended")  # as if the client had left


def sent_key(given: Headers) -> str:
    """The key that a request brings; empty where it brings none."""
    scheme, _, value = given.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else given.get("x-api-key", "").strip()


def is_part_of_the_page(path: str) -> bool:
    return path in OPEN or path.startswith(OPEN_UNDER)


def _address(scope: Scope) -> str:
    return f"address {origins.address_of(scope)}"


def _unforeseen(scope: Scope, exc: Exception) -> ASGIApp:
    log.error("%s %s failed", scope["method"], masked(scope["path"]), exc_info=exc)
    return problems.problem(500, "InternalError", "something went wrong here", "the server's log says more")
