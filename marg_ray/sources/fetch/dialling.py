"""The guard inside aiohttp: names resolve to checked addresses only, and no socket is made for any other."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from marg_ray.errors import AddressBlocked
from marg_ray.sources.fetch.addresses import AddressGuard


class _CheckedResolver(AbstractResolver):
    def __init__(self, guard: AddressGuard, look_up: Callable[[str], Awaitable[Sequence[str]]]) -> None:
        self._guard, self._look_up = guard, look_up

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """One closed address among the answers refuses them all: the server would choose which one is taken."""
        found = await self._look_up(host)
        if not found:
            raise OSError(f"no address for {host}")
        if not all(self._guard.may_dial(ip, port) for ip in found):
            raise AddressBlocked(host)
        return [_result(host, ip, port) for ip in found]

    async def close(self) -> None:
        """Nothing is held."""


def guarded_connector(
    guard: AddressGuard,
    look_up: Callable[[str], Awaitable[Sequence[str]]],
    make_socket: Callable[[Any], socket.socket],
) -> aiohttp.TCPConnector:
    def checked_socket(info: Any) -> socket.socket:
        ip, port = info[4][:2]
        if not guard.may_dial(ip, port):
            raise AddressBlocked(f"{ip}:{port}")
        return make_socket(info)

    return aiohttp.TCPConnector(
        resolver=_CheckedResolver(guard, look_up),
        socket_factory=checked_socket,
        use_dns_cache=False,
        limit=0,  # the fetcher's own slots limit the connections to a host
        keepalive_timeout=15,
    )


def _result(host: str, ip: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ipaddress.ip_address(ip).version == 6 else socket.AF_INET
    return ResolveResult(hostname=host, host=ip, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
