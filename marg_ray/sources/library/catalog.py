"""What is known about each file: a small SQLite file beside the index, the same for all processes."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from marg_ray.records import Record
from marg_ray.sources.library.scan import under

_SCHEMA = """
create table if not exists files (
    path text primary key, size integer not null, mtime_ns integer not null, digest text not null,
    source_id text not null, entry text not null);
create table if not exists sketches (source_id text primary key, sketch blob not null);
create table if not exists excluded (path text primary key);
create table if not exists generation (number integer not null);
insert into generation select 0 where not exists (select 1 from generation);
"""
SETTLED_NS = 2_000_000_000  # beyond the coarsest time stamps of file systems
_RANK = {
    "text/html": 0,
    "application/xhtml+xml": 0,
    "text/markdown": 0,
    "application/epub+zip": 1,
    "application/pdf": 2,
}


class Entry(Record):
    """One file of the library. `failed` says why nothing could be read from it."""

    path: str
    size: int
    mtime_ns: int
    digest: str  # SHA-256 of the bytes
    source_id: str = ""
    title: str = ""
    media_type: str = ""
    language: str = ""
    published: str = ""
    chars: int = 0
    pages: int = 0  # of a document that has pages
    headings: tuple[str, ...] = ()
    tainted: bool = False  # instruction-like text was cut out
    failed: str = ""
    reader: int = 0  # `READ_VERSION` of what read it
    duplicate_of: str = ""  # path of the document that holds this one's text; set when listed


class Catalog:
    """Methods open, do one transaction and close; call them off the event loop, all but `settled_generation`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: tuple[tuple[tuple[int, int, int] | None, ...], int] | None = None  # state of the files, generation
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as db:
            db.execute("pragma journal_mode = wal")
            db.executescript(_SCHEMA)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.path, timeout=30)
        try:
            with db:
                yield db
        finally:
            db.close()

    def entries(self, folders: tuple[Path, ...]) -> dict[str, Entry]:
        """What is under `folders`, by path, in the order of paths."""
        with self._open() as db:
            rows = db.execute("select path, entry from files order by path").fetchall()
        return {path: Entry.model_validate_json(entry) for path, entry in rows if under(path, folders)}

    def put(self, entry: Entry, sketch: list[int] | None = None) -> None:
        row = (entry.path, entry.size, entry.mtime_ns, entry.digest, entry.source_id, entry.model_dump_json())
        with self._open() as db:
            db.execute("insert or replace into files values (?, ?, ?, ?, ?, ?)", row)
            if sketch is not None and entry.source_id:
                blob = np.array(sketch, np.int64).tobytes()
                db.execute("insert or replace into sketches values (?, ?)", (entry.source_id, blob))

    def drop(self, paths: Iterable[str]) -> None:
        with self._open() as db:
            db.executemany("delete from files where path = ?", [(path,) for path in paths])

    def source_ids(self) -> set[str]:
        """All texts that some file holds, in any folder."""
        with self._open() as db:
            return {row[0] for row in db.execute("select distinct source_id from files where source_id <> ''")}

    def sketches(self) -> dict[str, set[int]]:
        with self._open() as db:
            rows = db.execute("select source_id, sketch from sketches").fetchall()
        return {source_id: set(np.frombuffer(blob, np.int64).tolist()) for source_id, blob in rows}

    def generation(self) -> int:
        """Grows with every change that a search must see. Read again only where the files may have changed."""
        if (known := self.settled_generation()) is not None:
            return known
        state = self._state()
        began = time.time_ns()
        with self._open() as db:
            number = int(db.execute("select number from generation").fetchone()[0])
        # a change right after this may leave the time stamps as they are: only those that have settled are trusted
        settled = all(file is None or file[2] < began - SETTLED_NS for file in state)
        self._known = (state, number) if settled else None
        return number

    def settled_generation(self) -> int | None:
        """The generation where the files are as they were when it was read; two looks at a local disk."""
        known = self._known
        return known[1] if known is not None and known[0] == self._state() else None

    def _state(self) -> tuple[tuple[int, int, int] | None, ...]:
        """Inode, size and time of the database and of the log beside it, which takes every change first."""
        found: list[tuple[int, int, int] | None] = []
        for ending in ("", "-wal"):
            try:
                status = os.stat(f"{self.path}{ending}")
                found.append((status.st_ino, status.st_size, status.st_mtime_ns))
            except FileNotFoundError:
                found.append(None)
        return tuple(found)

    def bump(self) -> None:
        with self._open() as db:
            db.execute("update generation set number = number + 1")
            db.execute("delete from sketches where source_id not in (select source_id from files)")

    def excluded(self) -> tuple[Path, ...]:
        with self._open() as db:
            return tuple(Path(row[0]) for row in db.execute("select path from excluded order by path"))

    def exclude(self, path: str) -> None:
        with self._open() as db:
            db.execute("insert or ignore into excluded values (?)", (path,))

    def include(self, path: str) -> None:
        """Take back what excludes `path`, or anything below it."""
        with self._open() as db:
            for (other,) in db.execute("select path from excluded").fetchall():
                if under(other, (Path(path),)) or under(path, (Path(other),)):
                    db.execute("delete from excluded where path = ?", (other,))


def without_copies(
    entries: Iterable[Entry], sketches: dict[str, set[int]], share: float = 0.8, least: int = 10
) -> tuple[list[Entry], dict[str, str]]:
    """The documents to search, and for each file left out the path of the one that holds its text.

    A text under two paths counts once. So does a document of which at least `share` of the sampled word runs stand in
    other documents (a manual as pages, as one page, and as PDF): formats with structure are kept before PDF before
    plain text, and long before short. A short text (fewer than 4 x `least` samples, about 300 words) must nearly all
    stand there, one with fewer than `least` must be equal.
    """

    def worth(entry: Entry) -> tuple[int, int, str]:
        return _RANK.get(entry.media_type, 1 if entry.headings else 3), -entry.chars, entry.path

    kept: list[Entry] = []
    copies: dict[str, str] = {}
    by_id: dict[str, str] = {}
    holder: dict[int, str] = {}  # word run -> path of the first document that has it
    for entry in sorted((e for e in entries if e.source_id), key=worth):
        runs = sketches.get(entry.source_id, set())
        held = [holder[run] for run in runs if run in holder]
        if entry.source_id in by_id:
            copies[entry.path] = by_id[entry.source_id]
        elif len(runs) >= least and len(held) >= (share if len(runs) >= 4 * least else 0.95) * len(runs):
            copies[entry.path] = by_id[entry.source_id] = max(sorted(set(held)), key=held.count)
        else:
            kept.append(entry)
            by_id[entry.source_id] = entry.path
            for run in runs:
                holder.setdefault(run, entry.path)
    return sorted(kept, key=lambda e: e.path), copies


def absolute(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))
