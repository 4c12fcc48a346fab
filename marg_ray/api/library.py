"""Callers' documents: a folder for each owner, and where each document stands on its way into the index.

Nothing is kept in this process: what there is, is in the folder; what was read of it, is in the library's index. So any
process answers, and what one that died left undone is done by the next that looks.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from marg_ray.api.service import Service
from marg_ray.errors import MargError, UsageError
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.language import detect
from marg_ray.records import Record
from marg_ray.report.filenames import reserve, unique_name
from marg_ray.seams import in_thread
from marg_ray.sources.library.catalog import Entry, absolute
from marg_ray.sources.library.library import Library
from marg_ray.sources.parse import sniff
from marg_ray.sources.protocol import Found

log = logging.getLogger(__name__)

PLACE, INCOMING = "knowledge", ".incoming"
CHUNK = 1 << 20  # bytes
MAX_UNPACKED = 60_000_000
_ENDINGS = {
    sniff.PDF: ".pdf",
    sniff.DOCX: ".docx",
    sniff.XLSX: ".xlsx",
    sniff.PPTX: ".pptx",
    sniff.EPUB: ".epub",
    sniff.HTML: ".html",
    sniff.MARKDOWN: ".md",
    sniff.CSV: ".csv",
    sniff.TSV: ".tsv",
    sniff.TEXT: ".txt",
}
OPENING = 1000  # characters that tell a document's language
LANGUAGES = 10_000  # that are remembered

_background = set[asyncio.Task[None]]()
_languages: dict[str, str] = {}  # by the text's hash: the same for everybody


class DocumentNotFound(MargError):
    """The caller has no such document."""

    http_status = 404
    exit_code = 2

    def __init__(self, doc_id: str) -> None:
        super().__init__(doc_id)
        self.doc_id = doc_id

    def __str__(self) -> str:
        return f"there is no document {self.doc_id!r}"

    @property
    def hint(self) -> str:
        return "GET /v1/knowledge lists your documents"


class Kept(Record):
    """A document of a caller."""

    id: str
    name: str
    state: Literal["waiting", "indexed", "failed"]
    why: str = ""  # it failed
    title: str = ""
    media_type: str = ""
    language: str = ""
    pages: int = 0
    chars: int = 0
    size: int  # bytes
    added_at: float  # seconds since 1970, UTC
    same_as: str = ""  # name of the document that holds this one's text
    tainted: bool = False  # instruction-like text was cut out


@dataclass(frozen=True)
class _File:
    path: str
    name: str
    size: int
    mtime_ns: int

    @property
    def id(self) -> str:
        """Follows from folder and name: the same in every process."""
        return hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]


def folder_of(service: Service, owner: str) -> Path:
    """Where an owner's documents lie. It may not be there yet."""
    name = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return absolute(service.settings.home) / PLACE / name


async def refresh(service: Service, folders: Sequence[Path | str]) -> None:
    """Bring the index over some folders up to date.

    Raises:
        UsageError: a folder is missing, or not one document in it can be read.
    """
    if folders:
        await service.shelves.fresh(tuple(map(str, folders)))


def refresh_behind(service: Service, folders: Sequence[Path | str]) -> None:
    """The same without waiting. What goes wrong shows in each document's state, or at the next look."""

    async def run() -> None:
        try:
            await refresh(service, folders)
        except MargError as exc:
            log.info("the index over %s: %s", ", ".join(map(str, folders)), exc)
        except Exception:
            log.exception("the index could not be brought up to date")

    task = asyncio.ensure_future(run())
    _background.add(task)
    task.add_done_callback(_background.discard)


# ---- what there is


async def documents(service: Service, owner: str) -> list[Kept]:
    """An owner's documents by name; those that wait are being indexed from now on."""
    folder = folder_of(service, owner)
    files = await in_thread(_files, folder)
    if not files:
        return []
    library = await _library(service, folder)
    entries = {entry.path: entry for entry in await library.list()}
    indexed = await library.indexed()
    found = [_kept(file, entries.get(file.path), indexed) for file in files]
    if any(one.state == "waiting" for one in found):
        refresh_behind(service, [folder])
    texts = {Path(entry.path).name: entry.source_id for entry in entries.values() if entry.source_id}
    return [await _with_language(service, one, texts.get(one.name, "")) for one in found]


async def _with_language(service: Service, kept: Kept, source_id: str) -> Kept:
    """With the language that its words are of, where the document does not say."""
    if kept.state != "indexed" or kept.language or not source_id:
        return kept
    if source_id not in _languages:
        while len(_languages) >= LANGUAGES:
            del _languages[next(iter(_languages))]
        _languages[source_id] = await in_thread(_language, service.places.snapshots, source_id)
    return kept.model_copy(update={"language": _languages[source_id]})


def _language(snapshots: Snapshots, source_id: str) -> str:
    try:
        return detect(snapshots.text(source_id)[:OPENING], default="")
    except MargError:  # its text is away; the list goes on
        return ""


async def document(service: Service, owner: str, doc_id: str) -> Kept:
    """One document.

    Raises:
        DocumentNotFound: this owner has none of this id.
    """
    for one in await documents(service, owner):
        if one.id == doc_id:
            return one
    raise DocumentNotFound(doc_id)


async def _library(service: Service, folder: Path) -> Library:
    return await service.shelves.library((str(folder),))


def _files(folder: Path) -> list[_File]:
    try:
        with os.scandir(folder) as entries:
            return sorted(_those_there(entries), key=lambda f: f.name.casefold())
    except FileNotFoundError:
        return []


def _those_there(entries: Iterator[os.DirEntry[str]]) -> Iterator[_File]:
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):  # deleted in this moment
            status = entry.stat(follow_symlinks=False)
            if entry.is_file(follow_symlinks=False) and not entry.name.startswith("."):
                yield _File(entry.path, entry.name, status.st_size, status.st_mtime_ns)


def _kept(file: _File, entry: Entry | None, indexed: Collection[str]) -> Kept:
    blank = Kept(id=file.id, name=file.name, state="waiting", size=file.size, added_at=round(file.mtime_ns / 1e9, 3))
    if entry is None or (entry.size, entry.mtime_ns) != (file.size, file.mtime_ns):
        return blank
    if entry.failed:
        return blank.model_copy(update={"state": "failed", "why": entry.failed})
    there = bool(entry.duplicate_of) or entry.source_id in indexed
    return blank.model_copy(
        update={
            "state": "indexed" if there else "waiting",
            "title": entry.title,
            "media_type": entry.media_type,
            "language": entry.language,
            "pages": entry.pages,
            "chars": entry.chars,
            "same_as": Path(entry.duplicate_of).name if entry.duplicate_of else "",
            "tainted": entry.tainted,
        }
    )


# ---- what comes in, and goes


async def add(service: Service, owner: str, file: BinaryIO, name: str, media_type: str = "") -> tuple[Kept, bool]:
    """Take a document in; it is indexed from now on. Returns it, and whether it is new: the same bytes are kept once.

    Raises:
        UsageError: it cannot be read, or is too large; says why.
    """
    folder = folder_of(service, owner)
    most_mb = service.settings.library.max_file_mb
    incoming = await in_thread(_received, folder.parent / INCOMING, file, most_mb)
    try:
        ending = await in_thread(_ending, incoming.path, name, media_type)
        same = await _same(service, owner, incoming.digest)
        if same is not None:
            return same, False
        path = await in_thread(_placed, incoming.path, folder, name, ending)
    finally:
        await in_thread(incoming.path.unlink, missing_ok=True)
    refresh_behind(service, [folder])
    status = await in_thread(path.stat)
    placed = _File(str(path), path.name, status.st_size, status.st_mtime_ns)
    return _kept(placed, None, ()), True


async def remove(service: Service, owner: str, doc_id: str) -> Kept:
    """Delete a document, and what the index has of it. What reports have quoted stays with the reports.

    Raises:
        DocumentNotFound: this owner has none of this id.
    """
    folder = folder_of(service, owner)
    gone = next((f for f in await in_thread(_files, folder) if f.id == doc_id), None)
    if gone is None:
        raise DocumentNotFound(doc_id)
    await in_thread(Path(gone.path).unlink, missing_ok=True)
    library = await _library(service, folder)
    await library.forget(gone.path)
    return _kept(gone, None, ())


@dataclass(frozen=True)
class _Incoming:
    path: Path
    digest: str


def _received(place: Path, file: BinaryIO, most_mb: float) -> _Incoming:
    """The bytes in a file of their own, as they come."""
    place.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    handle, path = tempfile.mkstemp(dir=place)
    try:
        with os.fdopen(handle, "wb") as out:
            while chunk := file.read(CHUNK):
                size += len(chunk)
                if size > most_mb * 2**20:
                    raise UsageError(f"the document is larger than {most_mb:g} MB", "split it")
                digest.update(chunk)
                out.write(chunk)
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise
    return _Incoming(Path(path), digest.hexdigest())


def _ending(path: Path, name: str, media_type: str) -> str:
    """The ending that tells what a document is, by its content.

    Raises:
        Unreadable: it is none that can be read.
    """
    body = path.read_bytes()
    bare = _bare(name)
    given = "" if media_type == "application/octet-stream" else media_type
    unpacked = sniff.unpack(body, bare, MAX_UNPACKED)
    kind = sniff.sniff(unpacked, bare, given)
    own = sniff.suffix_of(bare)
    ending = own if sniff.media_type_of(bare) == kind else _ENDINGS[kind]
    return ending + (".gz" if unpacked is not body else "")


async def _same(service: Service, owner: str, digest: str) -> Kept | None:
    """The document that has these bytes already."""
    there = await documents(service, owner)
    if not there:
        return None
    folder = folder_of(service, owner)
    library = await _library(service, folder)
    names = {Path(entry.path).name for entry in await library.list() if entry.digest == digest}
    return next((one for one in there if one.name in names), None)


def _placed(incoming: Path, folder: Path, name: str, ending: str) -> Path:
    """Move a file into the folder under a name of its own, whole and in one step; nothing is overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = _stem(name)
    while True:
        path = folder / unique_name(stem, ending, os.listdir(folder))
        try:
            os.link(incoming, path)
        except FileExistsError:
            continue
        except OSError:  # a file system without links
            path = reserve(folder, stem, ending)
            os.replace(incoming, path)
        return path


def _bare(name: str) -> str:
    """A file's name without the folders that some clients send with it."""
    return name.replace("\\", "/").rpartition("/")[2]


def _stem(name: str) -> str:
    bare = _bare(name)
    if bare.lower().endswith(".gz"):
        bare = bare[:-3]
    return os.path.splitext(bare)[0] or "document"


# ---- search


async def search(service: Service, owner: str, query: str, limit: int) -> tuple[Found, dict[str, str], int]:
    """What an owner's documents say of a query: hits, their documents' ids by path, and how many documents wait.

    Raises:
        SourceError: the index cannot be read.
    """
    there = await documents(service, owner)
    waiting = sum(one.state == "waiting" for one in there)
    if not there:
        return Found(), {}, 0
    folder = folder_of(service, owner)
    library = await _library(service, folder)
    found = await library.search(query, limit)
    ids = {str(folder / one.name): one.id for one in there}
    return found, ids, waiting
