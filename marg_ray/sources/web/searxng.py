"""SearXNG (https://docs.searxng.org): the operator's own meta search, asked through its JSON interface."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from marg_ray.errors import UsageError
from marg_ray.sources.resilience import retry_after, utc_now
from marg_ray.sources.urls import split_web
from marg_ray.sources.web.engine import OWN, EngineFailed, EngineReply
from marg_ray.text import one_line

if TYPE_CHECKING:
    import httpx

_LONGEST_REPLY = 8 * 1024 * 1024
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
        self._client: httpx.AsyncClient | None = None

    async def search(self, query: str, limit: int) -> EngineReply:
        import httpx

        try:
            async with self._open().stream("GET", self._url, params={"q": query, "format": "json"}) as response:
                self._check_status(response)
                body = await self._body(response)
        except httpx.TimeoutException:
            raise EngineFailed(f"SearXNG at {self._url} did not answer in time", again_after=0.0) from None
        except httpx.ConnectError:
            raise EngineFailed(
                f"nothing answers at {self._url}", "start SearXNG or correct MARG_SEARCH__SEARXNG_URL", for_good=True
            ) from None
        except httpx.HTTPError as exc:
            raise EngineFailed(f"the connection to SearXNG broke ({type(exc).__name__})", again_after=0.0) from None
        return _reply(body)

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    def _open(self) -> httpx.AsyncClient:
        if self._client is None:
            import httpx

            self._client = httpx.AsyncClient(
                timeout=self._timeout_s,
                follow_redirects=True,
                trust_env=False,
                headers={"Accept": "application/json"},
                limits=httpx.Limits(max_keepalive_connections=self.pace.at_once),  # how many at once is the caller's
            )
        return self._client

    def _check_status(self, response: httpx.Response) -> None:
        status = response.status_code
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

    async def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for piece in response.aiter_bytes():
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
