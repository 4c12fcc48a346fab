"""The web page: one document at every address of the page, and its files under the digest of them all."""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

import marg_ray
from marg_ray.seams import in_thread

router = APIRouter(include_in_schema=False)

ADDRESSES = ("/", "/runs", "/runs/{rest:path}", "/library")
"""Where the page may be opened; which view that is, its script sees from the address."""

# Nothing but our own files: no inline script, no inline style, no markup that a script makes out of text.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_FOLDER = Path(marg_ray.__file__).parent / "web"
_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_VERSION = re.compile(r"[0-9a-f]{16}/")
_ROBOTS = "User-agent: *\nDisallow: /\n"


@dataclass(frozen=True)
class File:
    body: bytes
    packed: bytes  # the same, by gzip
    media_type: str
    etag: str


@dataclass(frozen=True)
class Site:
    """The page's files by their path; `version` follows from all of them, so that they may be kept for ever."""

    version: str
    files: dict[str, File]


@cache
def site(folder: Path = _FOLDER) -> Site:
    """Read every file of the page once."""
    bodies = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in _MEDIA
    }
    version = hashlib.sha256(b"\0".join(part for name in bodies for part in (name.encode(), bodies[name]))).hexdigest()
    version = version[:16]
    index = bodies["index.html"].replace(b'"/assets/', f'"/assets/{version}/'.encode())
    bodies["index.html"] = index.replace(b"<!-- modules -->", _preloads(version, bodies))
    return Site(version, {name: _file(name, body) for name, body in bodies.items()})


def _preloads(version: str, names: dict[str, bytes]) -> bytes:
    """All modules at once, instead of each when another has asked for it."""
    scripts = (name for name in names if name.endswith(".js"))
    return "\n".join(f'<link rel="modulepreload" href="/assets/{version}/{name}">' for name in scripts).encode()


def _file(name: str, body: bytes) -> File:
    digest = hashlib.sha256(body).hexdigest()[:32]
    return File(body, gzip.compress(body, mtime=0), _MEDIA[Path(name).suffix], f'"{digest}"')


async def page(request: Request) -> Response:
    files = (await in_thread(site)).files
    return _answer(request, files["index.html"], "no-cache", {"Content-Security-Policy": POLICY})


async def asset(request: Request, path: str) -> Response:
    """A file of the page. Asked for by the version that is served, it may be kept; by another, it is the new one."""
    found = await in_thread(site)
    name = _VERSION.sub("", path, count=1) if _VERSION.match(path) else path
    file = found.files.get(name)
    if file is None or name == "index.html":
        raise HTTPException(404, "there is no such file")
    kept = "public, max-age=31536000, immutable" if path.startswith(f"{found.version}/") else "no-cache"
    return _answer(request, file, kept, {})


async def icon(request: Request) -> Response:
    return _answer(request, (await in_thread(site)).files["icons/marg.svg"], "public, max-age=86400", {})


async def robots() -> Response:
    return Response(_ROBOTS, media_type="text/plain")


def _answer(request: Request, file: File, kept: str, more: dict[str, str]) -> Response:
    headers = {"ETag": file.etag, "Cache-Control": kept, "Vary": "Accept-Encoding", **more}
    if file.etag in re.split(r"\s*,\s*", request.headers.get("if-none-match", "").replace("W/", "")):
        return Response(status_code=304, headers=headers)
    packs = "gzip" in request.headers.get("accept-encoding", "")
    if packs:
        headers["Content-Encoding"] = "gzip"
    return Response(file.packed if packs else file.body, headers=headers, media_type=file.media_type)


for _address in ADDRESSES:
    router.add_api_route(_address, page, methods=["GET", "HEAD"])
router.add_api_route("/assets/{path:path}", asset, methods=["GET", "HEAD"])
router.add_api_route("/favicon.ico", icon, methods=["GET", "HEAD"])
router.add_api_route("/robots.txt", robots, methods=["GET", "HEAD"])
