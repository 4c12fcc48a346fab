"""Web addresses as text: one canonical host, one form for comparing, one form that is safe to print."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from marg_ray.text import one_line

_DEFAULT_PORTS = {"http": 80, "https": 443}
_ASCII_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")
_TRACKING = re.compile(
    r"utm_\w+|ga_\w+|mc_[ce]id|_hs(enc|mi)|_ga|_gl|fbclid|gclid|gclsrc|dclid|gbraid|wbraid|msclkid|yclid|igshid|igsh"
    r"|twclid|ttclid|li_fat_id|mkt_tok|oly_(anon|enc)_id|vero_id|wickedid|s_cid|ref_src|ref_url|spm|scm|cmpid",
    re.IGNORECASE,
)
# Most addresses: nothing in them is to be encoded, told apart or refused.
_PLAIN = re.compile(
    r"(https?)://((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,3}[a-z]{2,20})"
    r"(/[\w/%:@!$&'()*+,;=~.-]*)?(?:\?([\w/%:@!$&'()*+,;=~.?\[\]-]*))?",
    re.ASCII,
)
_WIKIS = ("wikipedia.org", "wiktionary.org", "wikibooks.org", "wikiquote.org", "wikisource.org", "wikivoyage.org")
_LONGEST_URL = 8_000
_PATH_SAFE = "/%:@!$&'()*+,;=~-._"


class WebAddress(NamedTuple):
    """The parts of an http(s) address. `host` is ASCII, lower case, an IPv6 address without its brackets."""

    scheme: str
    host: str
    port: int
    path: str  # begins with "/", percent-encoded
    query: str  # percent-encoded, without "?"
    fragment: str

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{self.netloc}{self.path}{query}"


@lru_cache(maxsize=2048)  # a search result's address is looked at several times on its way
def split_web(url: str) -> WebAddress:
    """Take an address apart, strictly: what two parsers could read in two ways is refused.

    Raises:
        ValueError: it is no web address; the message says why in a few words.
    """
    url = url.strip()
    if len(url) > _LONGEST_URL:
        raise ValueError(f"it has more than {_LONGEST_URL} characters")
    if (plain := _PLAIN.fullmatch(url)) is not None:
        scheme, host, path, query = plain.groups(default="")
        return WebAddress(scheme, host, _DEFAULT_PORTS[scheme], path or "/", query, "")
    return _read(url)


def _read(url: str) -> WebAddress:
    before_query = re.split(r"[?#]", url, maxsplit=1)[0]
    if _FORBIDDEN.search(before_query.rstrip()) and not _only_path_spaces(before_query):
        raise ValueError("it holds a space, a control character or a backslash")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("it cannot be read as an address") from None
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORTS:
        raise ValueError("only http and https are fetched")
    if "@" in parts.netloc:
        raise ValueError("it carries a user name")
    host = ascii_host(parts.netloc[1 : parts.netloc.index("]")] if "[" in parts.netloc else parts.hostname or "")
    if port is None:
        port = _DEFAULT_PORTS[scheme]
    path = quote(_bytes(parts.path), safe=_PATH_SAFE) or "/"
    query = quote(_bytes(parts.query), safe=_PATH_SAFE + "?[]")
    return WebAddress(scheme, host, port, path, query, parts.fragment)


def ascii_host(host: str) -> str:
    """The host as it is looked up: IDNA, lower case, no trailing dot; an IPv4 address in any spelling as four numbers.

    Raises:
        ValueError: no name can look like this.
    """
    if ":" in host:
        import ipaddress

        return str(ipaddress.IPv6Address(host.partition("%")[0]))
    name = host.strip().lower().removesuffix(".")
    if not name.isascii() or not _ASCII_HOST.fullmatch(name):
        name = _idna(name)
    if not name or len(name) > 253 or any(len(label) > 63 for label in name.split(".")):
        raise ValueError("it has no host name")
    if _NUMBER.fullmatch(name.rsplit(".", 1)[-1]):
        return _ipv4(name)
    return name


def host_of(url: str) -> str:
    """The canonical host of a web address, without its port; "" where it has none."""
    try:
        return split_web(url).host
    except ValueError:
        return ""


def is_web_url(text: str) -> bool:
    """Whether this is an http or https address with a host that can exist."""
    return bool(host_of(text))


def safe_href(url: str) -> str:
    """The address as it may stand in a link of a report: http(s), fully encoded, no user name; else ""."""
    try:
        address = split_web(url)
    except ValueError:
        return ""
    fragment = quote(_bytes(address.fragment), safe=_PATH_SAFE + "?")
    return str(address) + (f"#{fragment}" if fragment else "")


def web_url(found: object) -> str:
    """The address in a search engine's entry, whatever was put there; "" where there is none."""
    if not isinstance(found, str):
        return ""
    text = found.strip()
    return safe_href(f"https:{text}" if text.startswith("//") else text)


def normalise_url(url: str) -> str:
    """A key under which the same page is found again; to compare, not to fetch.

    Equal are: http and https, letter case of the host, default ports, `www.` and mobile hosts, a trailing slash,
    fragments (but not the routes of single-page sites), tracking parameters, the order of the others, and
    percent-encoding. What is no web address is returned trimmed.
    """
    try:
        address = split_web(url)
    except ValueError:
        return url.strip()
    host = _main_host(address.host)
    port = "" if address.port in _DEFAULT_PORTS.values() else f":{address.port}"
    path = _normal_path(address.path)
    pairs = parse_qsl(address.query, keep_blank_values=True)
    kept = sorted((k, v) for k, v in pairs if not _TRACKING.fullmatch(k))
    query = f"?{urlencode(kept)}" if kept else ""
    route = f"#{address.fragment}" if address.fragment.startswith(("!", "/")) else ""
    return f"https://{host}{port}{path}{query}{route}"


def page_name(url: str) -> str:
    """What to call a page that has no title: its host."""
    host = host_of(url)
    return host.removeprefix("www.") or one_line(url)[:80]


def _only_path_spaces(before_query: str) -> bool:
    """Whether the only oddity is a plain space in the path, which every browser encodes."""
    scheme, sep, rest = before_query.partition("://")
    authority, _, path = rest.partition("/")
    return bool(sep) and not _FORBIDDEN.search(scheme + authority) and not re.search(r"[\x00-\x1f\x7f\\]", path)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape" if not re.search("[\ud800-\udc7f\udd00-\udfff]", text) else "replace")


def _idna(name: str) -> str:
    import idna

    try:
        encoded = idna.encode(name, uts46=True, transitional=False).decode("ascii").removesuffix(".")
    except (idna.IDNAError, UnicodeError):
        raise ValueError("its host name is none") from None
    return encoded


def _ipv4(name: str) -> str:
    """The WHATWG reading of an IPv4 address: one to four parts, each decimal, octal (0...) or hexadecimal (0x...)."""
    labels = name.split(".")
    if len(labels) > 4:
        raise ValueError("its host is a malformed IPv4 address")
    numbers = [_part(label) for label in labels]
    *front, last = numbers
    if any(n > 255 for n in front) or last >= 256 ** (5 - len(numbers)):
        raise ValueError("its host is a malformed IPv4 address")
    value = last + sum(n << (8 * (3 - i)) for i, n in enumerate(front))
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))


def _part(label: str) -> int:
    try:
        if label.startswith("0x"):
            return int(label[2:] or "0", 16)
        return int(label, 8 if label.startswith("0") and len(label) > 1 else 10)
    except ValueError:
        raise ValueError("its host is a malformed IPv4 address") from None


@lru_cache(maxsize=2048)
def _main_host(host: str) -> str:
    for wiki in _WIKIS:
        if host.endswith(f".m.{wiki}"):
            return f"{host.removesuffix(f'.m.{wiki}')}.{wiki}"
    for prefix in ("www.", "m.", "mobile."):
        rest = host.removeprefix(prefix)
        # "m.co" and "www.com" are sites of their own: something with a dot must be left
        if rest != host and "." in rest and not _NUMBER.fullmatch(rest.rsplit(".", 1)[-1]):
            return rest
    return host


def _normal_path(path: str) -> str:
    decoded = re.sub(r"%([0-9A-Fa-f]{2})", _unreserved, path) if "%" in path else path
    if "/." not in decoded:
        return decoded.rstrip("/")
    out: list[str] = []
    for step in decoded.split("/"):
        if step == "..":
            if len(out) > 1:
                out.pop()
        elif step != ".":
            out.append(step)
    return "/".join(out).rstrip("/")


def _unreserved(m: re.Match[str]) -> str:
    char = chr(int(m[1], 16))
    return char if char.isascii() and (char.isalnum() or char in "-._~") else m[0].upper()
