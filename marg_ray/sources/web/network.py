"""Whether there is a way out at all. An absent network is noticed in a moment, not after every client's time-outs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from marg_ray.sources.abandon import resolve

_LANDMARKS = ("duckduckgo.com", "www.wikipedia.org")
_LONGEST_S = 1.8
_PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "DDGS_PROXY")


async def network_reachable(
    hosts: Sequence[str] = _LANDMARKS,
    port: int = 443,
    resolver: Callable[[str], Awaitable[Sequence[str]]] = resolve,
) -> bool:
    """Whether one of these well-known hosts has an address and accepts a connection. Takes at most 1.8 s.

    With a proxy in the environment the answer is yes: what lies behind it only the proxy knows.
    """
    if any(os.environ.get(name) for name in _PROXY_VARIABLES):
        return True
    if not _has_route():
        return False
    tasks = [asyncio.create_task(_answers(host, port, resolver)) for host in hosts]
    try:
        async with asyncio.timeout(_LONGEST_S):
            for done in asyncio.as_completed(tasks):
                if await done:
                    return True
    except TimeoutError:
        pass
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return False


class NetworkCheck:
    """`network_reachable`, asked once by many at the same time and remembered for a while."""

    def __init__(
        self,
        check: Callable[[], Awaitable[bool]] = network_reachable,
        keep_s: float = 20.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._check, self._keep_s, self._clock = check, keep_s, clock
        self._known: tuple[float, bool] | None = None
        self._turn = asyncio.Lock()

    async def __call__(self) -> bool:
        async with self._turn:
            if self._known is None or self._clock() - self._known[0] > self._keep_s:
                reachable = await self._check()
                self._known = (self._clock(), reachable)
            return self._known[1]

    def forget(self) -> None:
        self._known = None


async def _answers(host: str, port: int, resolver: Callable[[str], Awaitable[Sequence[str]]]) -> bool:
    try:
        addresses = await resolver(host)
    except OSError:
        return False
    for address in addresses[:2]:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(address, port)
            writer.close()
            return True
    return False


def _has_route() -> bool:
    """Whether the machine has a default route; where the system does not say, yes."""
    v4, v6 = Path("/proc/net/route"), Path("/proc/net/ipv6_route")
    try:
        rows = [line.split() for line in v4.read_text("ascii").splitlines()[1:]]
        six = [line.split() for line in v6.read_text("ascii").splitlines()] if v6.exists() else []
    except (OSError, ValueError):
        return True
    by_v4 = any(len(row) > 1 and row[1] == "00000000" for row in rows)
    by_v6 = any(len(row) > 9 and row[0] == "0" * 32 and row[1] == "00" and row[9] != "lo" for row in six)
    return by_v4 or by_v6
