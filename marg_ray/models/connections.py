"""The connections to one endpoint: how a request gets there, and what it says when it does not."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from marg_ray.models.endpoints import Endpoint

if TYPE_CHECKING:
    import aiohttp

CONNECT_S = 10.0
IDLE_S = 4.0  # many servers close an idle connection after 5 s; a request that meets that end is lost


class NotSent(Exception):
    """The request did not leave: no name, no connection, no proxy."""


class Connections:
    """A pool of at most `limit` connections, opened on first use inside the loop that uses it."""

    def __init__(self, endpoint: Endpoint, *, limit: int) -> None:
        self._endpoint, self._limit = endpoint, limit
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._url, self._proxy = "", ""

    async def ready(self) -> None:
        """Open the pool, for the loop that runs. What it needs is imported off the loop: it takes a fifth of a second.

        Raises:
            NotSent: the environment names a proxy that cannot be used.
        """
        loop = asyncio.get_running_loop()
        if self._session is not None and self._loop is loop:
            return
        await self.aclose()
        await asyncio.to_thread(_load)
        if self._session is None:  # nobody else was faster
            self._session, self._loop = self._open(), loop

    @asynccontextmanager
    async def post(self, body: dict[str, Any], *, caller: str = "") -> AsyncIterator[aiohttp.ClientResponse]:
        """Post `body` to the endpoint's chat completions; the connection is closed where the reply is left unread.

        Raises:
            NotSent: no connection was made.
            aiohttp.ClientError: it broke off.
        """
        import aiohttp

        assert self._session is not None, "`ready` comes first"
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        headers = {"X-Marg-Task": caller} if caller and self._endpoint.local else None
        try:
            response = await self._session.post(
                self._url, data=text.encode("utf-8", "replace"), headers=headers, proxy=self._proxy or None
            )
        except (
            aiohttp.ClientConnectorError,
            aiohttp.ClientHttpProxyError,
            aiohttp.ConnectionTimeoutError,
            aiohttp.InvalidURL,
        ) as exc:
            raise NotSent(_reason(exc)) from None
        async with response:
            yield response

    async def aclose(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(RuntimeError):  # of a loop that is closed: its connections went with it
                await session.close()

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        where = urlsplit(self._endpoint.base_url)
        self._url = _without_user(where)._replace(path=f"{where.path.rstrip('/')}/chat/completions").geturl()
        self._proxy = "" if self._endpoint.local else environment_proxy(where)  # it leads out, not to this machine
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._limit, keepalive_timeout=IDLE_S),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            headers=_headers(self._endpoint, where),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,  # else every request reads the environment and .netrc anew, in a thread
        )


def environment_proxy(where: SplitResult) -> str:
    """The proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY (or the system) name for an address, or "".

    Raises:
        NotSent: it is none that speaks HTTP.
    """
    proxies = getproxies()
    proxy = proxies.get(where.scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(where.netloc.rpartition("@")[2]) or proxy_bypass(where.hostname or ""):
        return ""
    scheme, _, rest = proxy.rpartition("://")
    if scheme not in ("", "http", "https"):
        raise NotSent(f"the environment names a {scheme} proxy, and only one that speaks HTTP can be used")
    return f"{scheme or 'http'}://{rest}"


def _headers(endpoint: Endpoint, where: SplitResult) -> dict[str, str]:
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": "marg-ray",
        "Authorization": f"Bearer {endpoint.key or 'none'}",  # some servers without keys want one all the same
    }
    if where.username:
        given = f"{unquote(where.username)}:{unquote(where.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(given.encode()).decode()}"
    if endpoint.provider == "openai":
        names = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
        headers |= {header: value for header, name in names.items() if (value := os.environ.get(name, "").strip())}
    return headers


def _without_user(where: SplitResult) -> SplitResult:
    return where._replace(netloc=where.netloc.rpartition("@")[2])


def _load() -> None:
    import aiohttp  # noqa: F401


def _reason(exc: Exception) -> str:
    """Why there is no connection, in the system's words."""
    cause = getattr(exc, "os_error", None)
    if isinstance(cause, ConnectionError) and cause.errno:
        return os.strerror(cause.errno).lower()
    if isinstance(cause, socket.gaierror):
        return str(cause.strerror).lower()
    return str(cause or exc)
