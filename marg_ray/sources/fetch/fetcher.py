"""Fetches pages for a run from addresses that strangers chose.

The host is looked up here, every one of its addresses is checked, and the connection goes to one of those very
addresses; each socket is checked once more when it is made. The same holds for every redirect. Proxies of the
environment are not used: a proxy would look the name up again, out of reach of these checks.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from marg_ray.errors import AddressBlocked, FetchFailed
from marg_ray.settings import FetchSettings
from marg_ray.sources.abandon import resolve
from marg_ray.sources.fetch.addresses import WEB_PORTS, AddressGuard
from marg_ray.sources.fetch.bodies import (
    ACCEPT,
    ACCEPT_ENCODING,
    LimitedBody,
    UnreadableBody,
    is_text,
    is_wanted,
)
from marg_ray.sources.protocol import Fetched
from marg_ray.sources.resilience import HostSlots, Now, Sleep, backoff, retry_after, utc_now
from marg_ray.sources.urls import WebAddress

if TYPE_CHECKING:
    import aiohttp

Resolver = Callable[[str], Awaitable[Sequence[str]]]
Connector = Callable[[Any], socket.socket]
"""Makes the socket for one `getaddrinfo`-shaped tuple (family, type, protocol, name, socket address)."""

USER_AGENT = "marg-ray/0.1 (research reader; +https://github.com/marg-ray/marg-ray)"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})
_CONNECT_S = 10.0
_AT_ONCE = 100  # pages under way: bounds open sockets, and bodies in memory
_PIECE = 64 * 1024


def open_socket(info: Any) -> socket.socket:
    """The ordinary `Connector`."""
    family, kind, protocol, _, _ = info
    return socket.socket(family, kind, protocol)


@dataclass
class _Visit:
    """One page being fetched, over all its redirects and tries."""

    url: str  # as it was asked for
    seconds_left: float  # on the network; pauses do not count
    tries_left: int


@dataclass(frozen=True)
class _Redirect:
    location: str


@dataclass(frozen=True)
class _Busy:
    """An answer, or none, that another try may better."""

    reason: str
    status: int = 0
    wait: float | None = None  # as the server asks


@dataclass
class GuardedFetcher:
    """A `Fetcher` that reaches the public web only. One per process; used from one event loop; `close()` it.

    `ports` and `allow` widen the guard (see `AddressGuard`); `resolver`, `connector`, `now` and `sleep` are the seams.
    """

    settings: FetchSettings = field(default_factory=FetchSettings)
    resolver: Resolver = resolve
    connector: Connector = open_socket
    ports: Collection[int] = WEB_PORTS
    allow: Collection[tuple[str, int]] = frozenset()
    now: Now = utc_now
    sleep: Sleep = asyncio.sleep

    def __post_init__(self) -> None:
        self._guard = AddressGuard(self.ports, self.allow)
        self._hosts = HostSlots(self.settings.per_host, self.now, self.sleep)
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._session: aiohttp.ClientSession | None = None

    async def fetch(self, url: str) -> Fetched:
        """Get a page (see `Fetcher`). A text longer than the limit comes cut and marked; other documents are refused.

        Raises:
            AddressBlocked: the address, or one that it redirects to, is not one a page may come from.
            FetchFailed: it did not come.
        """
        visit = _Visit(url, self.settings.timeout_s, self.settings.tries)
        address = self._guard.address(url)
        for _ in range(self.settings.redirects + 1):
            answer = await self._ask(visit, address)
            if isinstance(answer, Fetched):
                return answer
            address = self._guard.address(urljoin(str(address), answer.location))
        raise FetchFailed(url, f"more than {self.settings.redirects} redirects")

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _ask(self, visit: _Visit, address: WebAddress) -> Fetched | _Redirect:
        """Ask one address until it answers or the tries are used up."""
        attempt = 0
        while True:
            visit.tries_left -= 1
            async with self._hosts.slot(address.netloc):
                answer = await self._timed(visit, address)
            if not isinstance(answer, _Busy):
                visit.tries_left += 1  # a redirect is no failure
                return answer
            if visit.tries_left <= 0:
                raise FetchFailed(visit.url, answer.reason, answer.status)
            pause = backoff(attempt) if answer.wait is None else answer.wait
            self._hosts.pause(address.netloc, pause)
            attempt += 1

    async def _timed(self, visit: _Visit, address: WebAddress) -> Fetched | _Redirect | _Busy:
        async with self._slots:
            started = time.monotonic()
            try:
                async with asyncio.timeout(max(visit.seconds_left, 0.0)):
                    return await self._get(visit.url, address)
            except TimeoutError:
                limit = self.settings.timeout_s
                raise FetchFailed(visit.url, f"timed out after {limit:g} s") from None
            finally:
                visit.seconds_left -= time.monotonic() - started

    async def _get(self, url: str, address: WebAddress) -> Fetched | _Redirect | _Busy:
        """One request and its answer."""
        import aiohttp

        try:
            async with self._open().get(_exact(address), allow_redirects=False) as response:
                try:
                    return await self._read(url, address, response)
                finally:
                    if not response.content.is_eof():
                        response.close()  # a half-read body must not be drained into the pool
        except AddressBlocked:
            raise AddressBlocked(str(address)) from None
        except aiohttp.ClientConnectorDNSError:
            raise FetchFailed(url, "its host name is not known") from None
        except aiohttp.ClientSSLError:
            raise FetchFailed(url, "no secure connection: its certificate or TLS set-up is not valid") from None
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError):
            raise FetchFailed(url, "its host cannot be reached") from None
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientPayloadError):
            return _Busy("the connection broke off")
        except aiohttp.ClientResponseError as exc:
            raise FetchFailed(url, f"no valid HTTP answer: {exc.message.splitlines()[0][:80]}") from None
        except (aiohttp.ClientError, ValueError, OSError) as exc:
            raise FetchFailed(url, f"no valid HTTP answer ({type(exc).__name__})") from None

    async def _read(
        self, url: str, address: WebAddress, response: aiohttp.ClientResponse
    ) -> Fetched | _Redirect | _Busy:
        status, location = response.status, response.headers.get("Location", "")
        if status in _REDIRECTS and location:
            return _Redirect(location)
        if status in _WORTH_ANOTHER_TRY:
            wait = retry_after(response.headers.get("Retry-After"), self.now())
            return _Busy("the server does not give it now", status, wait)
        if not 200 <= status < 300 or status in (204, 205):
            raise FetchFailed(url, "the server does not give it", status)
        media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if not is_wanted(media_type, address.path):
            raise FetchFailed(url, f"unsupported type {media_type[:60]}")
        body, truncated = await self._body(url, response, is_text(media_type))
        return Fetched(
            url=url,
            final_url=str(address),
            status=status,
            media_type=media_type,
            charset=_charset(response),
            body=body,
            fetched_at=self.now(),
            truncated=truncated,
        )

    async def _body(self, url: str, response: aiohttp.ClientResponse, text: bool) -> tuple[bytes, bool]:
        import aiohttp

        limit = self.settings.max_bytes
        too_large = f"too large, more than {limit / 2**20:.3g} MiB"
        if (response.content_length or 0) > limit:
            raise FetchFailed(url, too_large)
        try:
            body = LimitedBody(response.headers.get("Content-Encoding", ""), limit)
        except UnreadableBody as exc:
            raise FetchFailed(url, str(exc)) from None
        try:
            async for piece in response.content.iter_chunked(_PIECE):
                if not body.feed(piece):
                    break
            else:
                body.close()
        except aiohttp.ClientPayloadError:  # it ended before its declared length
            if not (text and body.body):
                raise
            return body.body, True
        if body.cut and not text:
            raise FetchFailed(url, too_large if len(body.body) >= limit else "its compressed body is damaged")
        return body.body, body.cut

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            from marg_ray.sources.fetch.dialling import guarded_connector

            connect = min(_CONNECT_S, self.settings.timeout_s)
            self._session = aiohttp.ClientSession(
                connector=guarded_connector(self._guard, self.resolver, self.connector),
                timeout=aiohttp.ClientTimeout(total=None, connect=connect),
                headers={"User-Agent": USER_AGENT, "Accept": ACCEPT, "Accept-Encoding": ACCEPT_ENCODING},
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session


def _exact(address: WebAddress) -> Any:
    """The address for the HTTP library, already encoded: it must not read it in a second way."""
    from yarl import URL

    return URL(str(address), encoded=True)


def _charset(response: aiohttp.ClientResponse) -> str:
    with contextlib.suppress(ValueError, LookupError):
        return (response.charset or "").strip().lower()[:40]
    return ""
