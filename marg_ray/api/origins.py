"""From where a request comes, and under which name it reached this server."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_PORTS = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Whether a name or an address, without a port, is this machine's own."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def address_of(scope: Scope) -> str:
    """The client's address, for counting; of IPv6 the network that one site has to itself."""
    host = scope["client"][0] if scope.get("client") else ""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))


def is_near(scope: Scope, headers: Headers) -> bool:
    """Whether the client is a process of this machine, and no proxy that speaks for somebody else."""
    client = scope.get("client")
    return client is not None and is_loopback(client[0]) and not any(name in headers for name in FORWARDED)


def host_is_loopback(headers: Headers) -> bool:
    """Whether the client called the server by one of this machine's own names.

    A page whose name was made to point here (DNS rebinding) still carries its own name in `Host`.
    """
    name, _ = split_host(headers.get("host", ""))
    return is_loopback(name)


def split_host(host: str) -> tuple[str, int | None]:
    """Name and port of a `Host` header; an empty name where it is not one."""
    try:
        parts = urlsplit(f"//{host}")
        plain = parts.netloc == host and not parts.username and parts.password is None
        return (parts.hostname or "", parts.port) if plain else ("", None)
    except ValueError:
        return "", None


def is_cross_site(scope: Scope, headers: Headers, allowed: Collection[str]) -> bool:
    """Whether a page of another origin sent the request, which may be harmful without any answer being read.

    Links from elsewhere are followed; what changes something, and what is embedded, comes from the server's own page
    or from an origin in `allowed`.
    """
    origin = headers.get("origin")
    if origin is not None and origin in allowed:
        return False
    if origin is not None and not _is_own(origin, scope, headers):
        return True
    site = headers.get("sec-fetch-site", "none")
    if site in ("none", "same-origin"):
        return False
    return scope["method"] not in ("GET", "HEAD") or headers.get("sec-fetch-mode") != "navigate"


def _is_own(origin: str, scope: Scope, headers: Headers) -> bool:
    try:
        theirs = urlsplit(origin)
        port = theirs.port or _PORTS.get(theirs.scheme)
    except ValueError:
        return False
    name, own_port = split_host(headers.get("host", ""))
    return (theirs.hostname, port) == (name, own_port or _PORTS.get(theirs.scheme)) and theirs.scheme in _PORTS
