"""Brings the index up to date with its folders."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from marg_ray.errors import MargError, Unreadable, UsageError
from marg_ray.grounding.injection import named
from marg_ray.grounding.snapshots import Document, Snapshots
from marg_ray.seams import Embedder, Offload, Vectors, in_thread
from marg_ray.sources.library import scan
from marg_ray.sources.library.catalog import Catalog, Entry, without_copies
from marg_ray.sources.library.passages import Row, rows_of, sketch
from marg_ray.sources.library.table import Table, digest
from marg_ray.sources.parse.sniff import SUPPORTED_SUFFIXES
from marg_ray.sources.protocol import Parser

Clean = Callable[[Document], Document]  # cuts instruction-like passages out
READ_VERSION = 1  # raise it when parsing or cleaning comes out differently: files are read anew
PARSED_AT_ONCE = 4
COMMIT_PASSAGES = 512  # about this many are embedded and stored together
EMBED_AT_ONCE = 128


@dataclass(frozen=True)
class Progress:
    """How far a refresh has come: files read, then passages embedded."""

    stage: Literal["read", "embed"]
    done: int
    total: int
    name: str = ""


@dataclass(frozen=True)
class LibraryReport:
    """What a refresh did. Paths are absolute; `duplicates` maps a left-out path to the one that holds its text."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    failed: tuple[tuple[str, str], ...] = ()  # path, why
    duplicates: dict[str, str] = field(default_factory=dict)
    documents: int = 0
    passages: int = 0
    embedded: int = 0  # passages that had to be embedded now
    skipped_hidden: int = 0
    skipped_unsupported: int = 0


def no_progress(_: Progress) -> None: ...


def unchanged(document: Document) -> Document:
    return document


@dataclass(frozen=True)
class _Read:
    """What a worker makes of one file's bytes."""

    document: Document | None
    sketch: list[int]
    why: str = ""


def read_document(parse: Parser, clean: Clean, body: bytes, name: str) -> _Read:
    """Parse, clean and sample a file. Pure CPU; a file that cannot be read gives its reason, not an error."""
    try:
        document = clean(parse(body, name=name))
    except Unreadable as exc:
        return _Read(None, [], exc.why)
    except (MargError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError, OSError) as exc:
        return _Read(None, [], f"cannot be parsed ({type(exc).__name__})")
    if not document.text.strip():
        return _Read(None, [], "no text in it")
    return _Read(document, sketch(document.text))


@dataclass(frozen=True)
class Settled:
    """What a refresh left behind. As long as a scan and the generation are the same, another one would do nothing."""

    found: scan.Scan
    generation: int
    report: LibraryReport  # what that other one would report


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """One pass over the folders. The caller holds the lock."""

    home: Path
    folders: tuple[Path, ...]
    max_bytes: int
    passage_words: int
    catalog: Catalog
    table: Table
    snapshots: Snapshots
    parse: Parser
    clean: Clean
    embedder: Embedder
    offload: Offload
    on_progress: Callable[[Progress], None] = no_progress

    async def run(self) -> tuple[LibraryReport, Settled]:
        """Read what is new, drop what is gone, embed what is missing.

        Raises:
            UsageError: a folder cannot be read, or there is not one readable document in all of them.
        """
        found = await in_thread(scan.scan, self.folders, self.max_bytes, self.home)
        before = await in_thread(self.catalog.entries, self.folders)
        excluded = await in_thread(self.catalog.excluded)
        files = {p: f for p, f in found.files.items() if not (excluded and scan.under(p, excluded))}
        gone = [path for path in before if path not in files]
        await in_thread(self.catalog.drop, gone)
        new = [f for p, f in files.items() if p not in before or not _same(before[p], f)]
        digests = await self._read_all(new, before)
        entries = await in_thread(self.catalog.entries, self.folders)
        failed = [*found.failed, *((e.path, e.failed) for e in entries.values() if e.failed)]
        if not any(e.source_id for e in entries.values()):
            if gone or digests:
                await in_thread(self.catalog.bump)
            raise nothing_readable(self.folders, failed, found.unsupported)
        kept, copies = without_copies(entries.values(), await in_thread(self.catalog.sketches))
        embedded, passages, synced = await self._sync(kept)
        if gone or digests or synced:  # else every process would load the passages again
            await in_thread(self.catalog.bump)
        changed = [p for p in digests if p in before and before[p].digest != digests[p]]
        report = LibraryReport(
            added=tuple(p for p in digests if p not in before and not entries[p].failed),
            changed=tuple(changed),
            removed=tuple(gone),
            unchanged=len(files) - len([p for p in digests if p not in before]) - len(changed),
            failed=tuple(sorted(failed)),
            duplicates=copies,
            documents=len(kept),
            passages=passages,
            embedded=embedded,
            skipped_hidden=found.hidden,
            skipped_unsupported=found.unsupported,
        )
        idle = replace(report, added=(), changed=(), removed=(), embedded=0, unchanged=len(files))
        return report, Settled(found, await in_thread(self.catalog.generation), idle)

    async def _read_all(self, files: Sequence[scan.File], before: dict[str, Entry]) -> dict[str, str]:
        """Read files into the catalog, a few at a time; return the SHA-256 of each by path."""
        slots, digests = asyncio.Semaphore(PARSED_AT_ONCE), dict[str, str]()

        async def one(file: scan.File) -> None:
            async with slots:
                digests[file.path] = await self._read(file, before.get(file.path))
                self.on_progress(Progress("read", len(digests), len(files), file.path))

        try:
            async with asyncio.TaskGroup() as group:
                for file in files:
                    group.create_task(one(file))
        except* OSError as failed:  # the index itself cannot be written
            raise failed.exceptions[0] from None
        return {f.path: digests[f.path] for f in files}

    async def _read(self, file: scan.File, before: Entry | None) -> str:
        blank = Entry(path=file.path, size=file.size, mtime_ns=file.mtime_ns, digest="", reader=READ_VERSION)
        try:
            body = await in_thread(scan.read, file.path, self.max_bytes)
        except Unreadable as exc:
            await in_thread(self.catalog.put, blank.model_copy(update={"failed": exc.why}))
            return ""
        known = hashlib.sha256(body).hexdigest()
        if before is not None and (before.digest, before.reader) == (known, READ_VERSION):  # touched, not changed
            touched = before.model_copy(update={"size": file.size, "mtime_ns": file.mtime_ns})
            await in_thread(self.catalog.put, touched)
            return known
        read = await self.offload(read_document, self.parse, self.clean, body, Path(file.path).name)
        if read.document is None:
            await in_thread(self.catalog.put, blank.model_copy(update={"digest": known, "failed": read.why}))
            return known
        entry = _entry(blank.model_copy(update={"digest": known}), read.document)
        await in_thread(self.snapshots.put, read.document)
        await in_thread(self.catalog.put, entry, read.sketch)
        return known

    async def _sync(self, kept: Sequence[Entry]) -> tuple[int, int, bool]:
        """Make the table hold exactly the kept documents' passages.

        Return how many were embedded, how many there are, and whether anything was done.
        """
        present = await self.table.present()
        missing = [entry for entry in kept if entry.source_id not in present]
        cut: list[tuple[Entry, list[Row]]] = []
        for entry in missing:
            document = await in_thread(self.snapshots.document, entry.source_id)
            titled = document.model_copy(update={"title": entry.title})
            cut.append((entry, await self.offload(rows_of, titled, self.passage_words)))
        total = sum(len(rows) for _, rows in cut)
        known = await self.table.known_vectors(digest(r.embedded) for _, rows in cut for r in rows) if cut else {}
        embedded = done = 0
        for group in _groups(cut):
            rows = [row for _, part in group for row in part]
            vectors, new = await self._vectors(rows, known, done, total)
            await self.table.add([(e.source_id, e.title, part) for e, part in group], vectors)
            embedded, done = embedded + new, done + len(rows)
        wanted = await in_thread(self.catalog.source_ids)
        unwanted = await self.table.all_ids() - wanted
        await self.table.remove(unwanted)
        if cut or unwanted:
            await self.table.tidy()
        return embedded, await self.table.count([e.source_id for e in kept]), bool(cut or unwanted)

    async def _vectors(
        self, rows: Sequence[Row], known: dict[bytes, Vectors], done: int, total: int
    ) -> tuple[Vectors, int]:
        """Vectors of `rows`, taken from `known` where the same text was embedded before; and how many were not."""
        digests = [digest(row.embedded) for row in rows]
        texts = {d: row.embedded for d, row in zip(digests, rows, strict=True) if d not in known}
        waiting = sorted(texts.items(), key=lambda item: len(item[1]))
        ready = len(rows) - len(waiting)
        for i in range(0, len(waiting), EMBED_AT_ONCE):
            part = waiting[i : i + EMBED_AT_ONCE]
            vectors = await self.embedder.embed([text for _, text in part])
            known.update(zip((d for d, _ in part), vectors, strict=True))
            ready += len(part)
            self.on_progress(Progress("embed", done + ready, total))
        return np.stack([known[d] for d in digests]) if rows else np.zeros((0, 0), np.float32), len(waiting)


def _groups(cut: Sequence[tuple[Entry, list[Row]]]) -> list[list[tuple[Entry, list[Row]]]]:
    """Whole documents, about `COMMIT_PASSAGES` together, so that an interrupted index goes on where it was."""
    groups: list[list[tuple[Entry, list[Row]]]] = []
    size = COMMIT_PASSAGES
    for item in cut:
        if size >= COMMIT_PASSAGES:
            groups.append([])
            size = 0
        groups[-1].append(item)
        size += len(item[1])
    return groups


def _same(entry: Entry, file: scan.File) -> bool:
    return (entry.size, entry.mtime_ns, entry.reader) == (file.size, file.mtime_ns, READ_VERSION)


def _entry(blank: Entry, document: Document) -> Entry:
    text = document.text
    headings = [" ".join(text[p.start : p.end].split()) for p in document.parts if p.kind == "heading"]
    return blank.model_copy(
        update={
            "source_id": document.source_id,
            "title": named(document.title, Path(blank.path).stem, location=""),
            "media_type": document.media_type,
            "language": document.language,
            "published": document.published,
            "chars": len(text),
            "pages": max((p.page for p in document.parts if p.page is not None), default=0),
            "headings": tuple(headings[:300]),
            "tainted": bool(document.injections),
        }
    )


def nothing_readable(folders: Sequence[Path], failed: Sequence[tuple[str, str]], unsupported: int) -> UsageError:
    where = ", ".join(map(str, folders)) or "the library"
    if failed:
        reasons = "; ".join(scan.quick_lines(list(failed)))
        return UsageError(f"no document in {where} can be read: {reasons}", "repair the files, or add readable ones")
    kinds = " ".join(SUPPORTED_SUFFIXES)
    other = f" ({unsupported} files of other kinds)" if unsupported else ""
    return UsageError(f"there is no document in {where}{other}", f"put documents there; these are read: {kinds}")


@asynccontextmanager
async def locked(path: Path, pause_s: float = 0.2) -> AsyncIterator[None]:
    """One refresh of a library at a time, over all processes of the machine. Waits without blocking the loop."""
    from filelock import FileLock, Timeout

    lock = FileLock(path, thread_local=False)
    while True:
        try:
            lock.acquire(blocking=False)
            break
        except Timeout:
            await asyncio.sleep(pause_s)
    try:
        yield
    finally:
        lock.release()
