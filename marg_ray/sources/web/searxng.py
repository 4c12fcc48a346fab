"""SearXNG (https://docs.searxng.org): the operator's own meta search, asked through its JSON interface."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from marg_ray.errors import UsageError
from marg_ray.sources.resilience import retry_after, utc_now
from marg_ray.sources.urls import split_web
from marg_ray.sources.web.engine import OWN, EngineFailed, EngineReply
from marg_ray.text import one_line

if TYPE_CHECKING:
    import aiohttp

_LONGEST_REPLY = 8 * 1024 * 1024
_IDLE_S = 4.0  # many servers close an idle connection after 5 s; a request that meets that end is lost
_JSON_OFF = "add `json` to `search.formats` in the settings.yml of the SearXNG instance"


class SearxngEngine:
    """One instance, as the operator named it: it may be on a private address, the page guard does not apply.

    Proxies of the environment are not used; a proxy that stands between is part of the instance's address.
    """

    name = "searxng"
    pace = OWN

    def __init__(self, url: str, timeout_s: float = 10.0) -> None:
        try:
            address = split_web(url)
        except ValueError as exc:
            raise UsageError(
                f"the SearXNG address {url!r} is unusable: {exc}",
                "set MARG_SEARCH__SEARXNG_URL to something like http://127.0.0.1:8888",
            ) from None
        self._url = str(address).rstrip("/").removesuffix("/search") + "/search"
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # the session's

    async def search(self, query: str, limit: int) -> EngineReply:
        session = await self._open()
        import aiohttp

        try:
            async with session.get(self._url, params={"q": query, "format": "json"}) as response:
                self._check_status(response)
                body = await self._body(response)
        except TimeoutError:
            raise EngineFailed(f"SearXNG at {self._url} did not answer in time", again_after=0.0) from None
        except aiohttp.ClientConnectorError:
            raise EngineFailed(
                f"nothing answers at {self._url}", "start SearXNG or correct MARG_SEARCH__SEARXNG_URL", for_good=True
            ) from None
        except aiohttp.ClientError as exc:
            raise EngineFailed(f"the connection to SearXNG broke ({type(exc).__name__})", again_after=0.0) from None
        return _reply(body)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(RuntimeError):  # of a loop that is closed: its connections went with it
                await session.close()

    async def _open(self) -> aiohttp.ClientSession:
        """The connections, for the loop that runs. Their library is imported off it: that takes a fifth of a second."""
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            await self.close()
            await asyncio.to_thread(_load)
        if self._session is None:  # nobody else was faster
            self._session, self._loop = self._new_session(), loop
        return self._session

    def _new_session(self) -> aiohttp.ClientSession:
        import aiohttp

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S),  # how many at once is the caller's
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._timeout_s, sock_read=self._timeout_s),
            headers={"Accept": "application/json", "User-Agent": "marg-ray"},  # the limiter blocks libraries by name
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    def _check_status(self, response: aiohttp.ClientResponse) -> None:
        status = response.status
        if status == 403:
            raise EngineFailed("SearXNG answers HTTP 403: its JSON format is switched off", _JSON_OFF, for_good=True)
        if status == 429:
            wait = retry_after(response.headers.get("Retry-After"), utc_now())
            todo = "raise the limits of the SearXNG limiter for this client, or lower MARG_SEARCH__PER_MINUTE"
            raise EngineFailed("SearXNG answers HTTP 429: too many requests", todo, again_after=wait or 0.0)
        if status >= 500:
            raise EngineFailed(f"SearXNG answers HTTP {status}", "look into its log", again_after=0.0)
        if status != 200:
            todo = "check that MARG_SEARCH__SEARXNG_URL is the address of a SearXNG instance"
            raise EngineFailed(f"SearXNG answers HTTP {status}", todo, for_good=status in (401, 404))

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > _LONGEST_REPLY:
                raise EngineFailed("the reply of SearXNG has no end", for_good=True)
        return bytes(body)


def _reply(body: bytes) -> EngineReply:
    try:
        data = json.loads(body)
    except ValueError:
        if body.lstrip()[:1] == b"<":
            raise EngineFailed("SearXNG answers with a web page instead of JSON", _JSON_OFF, for_good=True) from None
        raise EngineFailed("the JSON of SearXNG is cut off or damaged", again_after=0.0) from None
    entries = data.get("results") if isinstance(data, Mapping) else None
    if not isinstance(entries, list):
        raise EngineFailed("the reply of SearXNG holds no list of results", again_after=None)
    return EngineReply(entries=entries, degraded=_unresponsive(data.get("unresponsive_engines")))


def _unresponsive(found: Any) -> str:
    """`[["name", "why"], ...]` in words."""
    if not isinstance(found, list):
        return ""
    parts = [p if isinstance(p, list) else [p] for p in found]
    said = [": ".join(one_line(str(x))[:60] for x in p[:2]) for p in parts if p]
    return "; ".join(said[:8])


def _load() -> None:
    import aiohttp  # noqa: F401
