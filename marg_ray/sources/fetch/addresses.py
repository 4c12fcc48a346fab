"""Which addresses a page may come from. Everything that is not plainly the public web is refused."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

from marg_ray.errors import AddressBlocked
from marg_ray.sources.urls import WebAddress, split_web
from marg_ray.text import one_line

WEB_PORTS = frozenset({80, 443, 8080, 8443})

# IANA's special-purpose registry, written out: what the standard library calls global changes between Python versions.
_CLOSED_V4 = [
    ipaddress.IPv4Network(net)
    for net in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "168.63.129.16/32",  # the metadata service of one cloud, on an address that is public elsewhere
    )
]  # fmt: skip
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_CLOSED_V6 = [
    ipaddress.IPv6Network(net)
    for net in ("2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20")  # Teredo, ORCHID, documentation
]
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_6TO4 = ipaddress.IPv6Network("2002::/16")
_CLOSED_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "localdomain")


class AddressGuard:
    """Checks addresses before they are looked up, and again before they are dialled.

    `allow` holds (address, port) pairs that pass although they are not public: for tests, and for an operator who
    knows that this very service is meant to be read.
    """

    def __init__(self, ports: Collection[int] = WEB_PORTS, allow: Collection[tuple[str, int]] = frozenset()) -> None:
        self._ports = frozenset(ports)
        self._allow = frozenset(allow)

    def address(self, url: str) -> WebAddress:
        """The parts of an address that may be looked up.

        Raises:
            AddressBlocked: it is no web address, or names a private host or another service's port.
        """
        try:
            address = split_web(url)
        except ValueError as exc:
            raise AddressBlocked(one_line(url)[:200], f"not a web address: {exc}") from None
        if (address.host, address.port) in self._allow:
            return address
        if address.port not in self._ports:
            raise AddressBlocked(url, f"port {address.port} is not one of web pages")
        if _is_ip(address.host):
            if not is_public(address.host):
                raise AddressBlocked(url)
        elif "." not in address.host or address.host.endswith(tuple(f".{n}" for n in _CLOSED_NAMES)):
            raise AddressBlocked(url)
        return address

    def may_dial(self, ip: str, port: int) -> bool:
        """Whether a connection to this numeric address may be opened."""
        return (ip, port) in self._allow or (port in self._ports and is_public(ip))


def is_public(ip: str) -> bool:
    """Whether a numeric address lies on the public Internet, also behind its IPv6 wrappings."""
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in net for net in _CLOSED_V4)
    if address.scope_id is not None:
        return False
    if address.ipv4_mapped is not None:
        return is_public(str(address.ipv4_mapped))
    if address in _NAT64:  # how an IPv6-only network reaches the IPv4 web
        return is_public(str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)))
    if address in _6TO4:
        return is_public(str(ipaddress.IPv4Address(int(address) >> 80 & 0xFFFFFFFF)))
    return address in _UNICAST_V6 and not any(address in net for net in _CLOSED_V6)


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
