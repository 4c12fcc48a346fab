"""Search without a key through the library `ddgs`, which asks several public engines.

The library is synchronous and reports a refused request (202 puzzle page, 403, 429) as "no results". It runs in a
thread of its own here, with a watch on its HTTP answers that tells refusal from emptiness.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from marg_ray.sources.abandon import abandonable
from marg_ray.sources.web.engine import PUBLIC, EngineFailed, EngineReply
from marg_ray.sources.web.network import NetworkCheck

_NOTHING = "No results found"
_NO_NETWORK = (
    "there is no network: well-known hosts cannot be reached",
    "check the connection, or give documents with --docs and --offline",
)


_REGIONS = {  # the first of these blocks that a letter of the query lies in, else US English
    ("\u3040", "\u30ff"): "jp-ja",
    ("\uac00", "\ud7af"): "kr-ko",
    ("\u4e00", "\u9fff"): "cn-zh",
    ("\u0600", "\u06ff"): "xa-ar",
    ("\u0400", "\u04ff"): "ru-ru",
    ("\u0900", "\u097f"): "in-hi",
    ("\u0590", "\u05ff"): "il-he",
    ("\u0e00", "\u0e7f"): "th-th",
    ("\u0370", "\u03ff"): "gr-el",
}


def region_of(query: str) -> str:
    """Where to search for a query in this script: half of its letters must belong to it ("π meson" is English)."""
    letters = [c for c in query if c.isalpha()]
    for (first, last), region in _REGIONS.items():
        share = sum(first <= c <= last for c in letters)
        if share * 2 >= len(letters) > 0 or (share and region == "jp-ja"):  # Japanese is mostly written in Han letters
            return region
    return "us-en"


@dataclass
class _Watch:
    """What the engines behind the library answered: HTTP statuses by engine, and how connections failed."""

    statuses: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def refused(self) -> str:
        said = [f"{name}: HTTP {status}" for name, status in self.statuses.items() if status != 200]
        said += [f"{name}: {error}" for name, error in self.errors.items()]
        return "; ".join(sorted(said))

    @property
    def answered(self) -> bool:
        return 200 in self.statuses.values()


class _WatchedClient:
    """Stands in front of one engine's HTTP client."""

    def __init__(self, client: Any, engine: str, watch: _Watch) -> None:
        self._client, self._engine, self._watch = client, engine, watch

    def request(self, *args: Any, **kwargs: Any) -> Any:
        if self._watch.stop.is_set():
            raise InterruptedError("nobody waits for this search any more")
        try:
            response = self._client.request(*args, **kwargs)
        except Exception as exc:
            self._watch.errors[self._engine] = _kind(exc)
            raise
        if self._watch.statuses.get(self._engine, 200) == 200:  # a refusal is not made good by a later page
            self._watch.statuses[self._engine] = response.status_code
        return response

    def get(self, url: str, *args: Any, **kwargs: Any) -> Any:
        return self.request("GET", url, *args, **kwargs)

    def post(self, url: str, *args: Any, **kwargs: Any) -> Any:
        return self.request("POST", url, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class DdgsEngine:
    """`backend` is "auto" or names of the library's engines, joined by commas.

    `region` is country-language, such as "de-de"; empty: told from the script that the query is written in.
    """

    name = "ddgs"
    pace = PUBLIC

    def __init__(
        self,
        timeout_s: float = 10.0,
        backend: str = "auto",
        region: str = "",
        network: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._timeout_s, self._backend, self._region = timeout_s, backend, region
        self._network = network or NetworkCheck()

    async def search(self, query: str, limit: int) -> EngineReply:
        if not await self._network():
            raise EngineFailed(*_NO_NETWORK, for_good=True)
        watch = _Watch()
        try:
            async with asyncio.timeout(self._timeout_s):
                entries, error = await abandonable(self._ask, query, limit, watch)
        except TimeoutError:
            raise EngineFailed(f"the public engines did not answer within {self._timeout_s:g} s") from None
        finally:
            watch.stop.set()
        if entries:
            return EngineReply(entries=entries, degraded=watch.refused if len(entries) < limit else "")
        return _without_entries(watch, error)

    async def close(self) -> None:
        """The library holds nothing between searches."""

    def _ask(self, query: str, limit: int, watch: _Watch) -> tuple[list[dict[str, Any]], str]:
        """Runs in the thread. Returns the entries, or none and what the library said."""
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException

        client = DDGS(timeout=max(2, round(self._timeout_s / 2)))
        for engine in client._get_engines("text", self._backend):  # kept and used again by the search itself
            engine.http_client = _WatchedClient(engine.http_client, engine.name, watch)
        try:
            found = client.text(
                query,
                max_results=limit,
                region=self._region or region_of(query),
                backend=self._backend,
                safesearch="moderate",
            )
        except DDGSException as exc:
            return [], str(exc)
        return found, ""


def _without_entries(watch: _Watch, said: str) -> EngineReply:
    """Tell "nothing exists" from "nobody answered".

    Raises:
        EngineFailed: no engine answered, or what it answered was no result page.
    """
    if watch.answered:
        if watch.refused or _NOTHING in said:
            return EngineReply(degraded=watch.refused)
        raise EngineFailed("the public engines answered with something that is no result page")
    if watch.statuses:
        todo = "wait a while, or set MARG_SEARCH__SEARXNG_URL to a SearXNG instance of your own"
        raise EngineFailed(f"the public engines refuse ({watch.refused})", todo)
    if watch.errors and all(error == "no connection" for error in watch.errors.values()):
        raise EngineFailed(*_NO_NETWORK, for_good=True)
    raise EngineFailed(f"the public engines cannot be used ({watch.refused or said[:100] or 'no reason given'})")


def _kind(error: Exception) -> str:
    text = f"{type(error).__name__} {error}"
    if "imeout" in text or "timed out" in text:
        return "time-out"
    if "DNS" in text or "ConnectError" in text or "onnection refused" in text or "unreachable" in text:
        return "no connection"
    return "connection failed"
