"""A library: folders of documents that can be searched."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from marg_ray.errors import SourceError, UsageError
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.records import Answerability, Note
from marg_ray.seams import Embedder, Offload, Vectors, in_thread
from marg_ray.settings import LibrarySettings
from marg_ray.sources.answerability import assess
from marg_ray.sources.library import scan
from marg_ray.sources.library.catalog import Catalog, Entry, absolute, without_copies
from marg_ray.sources.library.found import candidates, hits
from marg_ray.sources.library.hybrid import Opening, complete, first_hop
from marg_ray.sources.library.index import Index
from marg_ray.sources.library.passages import CUT_VERSION
from marg_ray.sources.library.refresh import (
    Clean,
    LibraryReport,
    Progress,
    Refresh,
    Settled,
    locked,
    no_progress,
    unchanged,
)
from marg_ray.sources.library.table import Table, index_of
from marg_ray.sources.protocol import Found, Parser

DIMENSION = 384
MODEL = "all-MiniLM-L6-v2"


@dataclass(frozen=True)
class _Loaded:
    generation: int
    index: Index
    entries: dict[str, Entry]  # by source id


class Library:
    """Searches the documents under `folders`; all that were ever indexed in `home` where none are given.

    Texts, statistics and vectors lie in `home/library` and are shared by every library there: a folder that is part of
    two libraries is read and embedded once. Passages are held in memory for searching, about 3 kB each.
    """

    def __init__(
        self,
        home: Path,
        folders: tuple[Path, ...],
        settings: LibrarySettings,
        catalog: Catalog,
        table: Table,
        embedder: Embedder,
    ) -> None:
        self.home, self.folders, self.settings = home, folders, settings
        self.snapshots = Snapshots(home / "snapshots")
        self._catalog, self._table, self._embedder = catalog, table, embedder
        self._loading = asyncio.Lock()  # one load at a time; searches wait for it
        self._loaded: _Loaded | None = None
        self._settled: tuple[tuple[Path, ...], Settled] | None = None  # the folders of the last refresh

    @classmethod
    async def open(
        cls,
        home: Path,
        folders: Sequence[Path | str],
        settings: LibrarySettings,
        embedder: Embedder,
        *,
        snapshots: Snapshots | None = None,
    ) -> Library:
        """Open the index; nothing is read from the folders yet.

        Raises:
            UsageError: a folder does not exist or may not be read, or the index is damaged.
        """
        paths = tuple(dict.fromkeys(absolute(folder) for folder in folders))
        await in_thread(scan.check_folders, paths)
        place = absolute(home) / "library"
        made = f"{CUT_VERSION}:{settings.passage_words}"
        model = str(getattr(embedder, "name", MODEL))  # what stands for the model in another process may have none
        try:
            catalog = await in_thread(Catalog, place / "catalog.sqlite3")
            table = await Table.open(place / "lance", model, made, DIMENSION)
        except (sqlite3.DatabaseError, RuntimeError, OSError) as exc:
            todo = "check its permissions, or delete it: it is built anew from the documents"
            raise UsageError(f"the index in {str(place)!r} cannot be opened: {exc}", todo) from exc
        library = cls(absolute(home), paths, settings, catalog, table, embedder)
        library.snapshots = snapshots or library.snapshots
        return library

    async def refresh(
        self,
        parse: Parser,
        *,
        clean: Clean = unchanged,
        offload: Offload = in_thread,
        on_progress: Callable[[Progress], None] = no_progress,
    ) -> LibraryReport:
        """Bring the index up to date with the folders. Another process that is doing so is waited for.

        `parse` and `clean` run through `offload`; on a cluster they must be functions that can be pickled.

        Raises:
            UsageError: a folder is missing or unreadable, or not one document can be read.
            SourceError: the index cannot be written (a full disk).
        """
        return await self._refresh(self.folders, parse, clean, offload, on_progress)

    async def add(
        self,
        path: Path | str,
        parse: Parser,
        *,
        clean: Clean = unchanged,
        offload: Offload = in_thread,
        on_progress: Callable[[Progress], None] = no_progress,
    ) -> LibraryReport:
        """Index a file or folder, also one that was removed before; this library then searches it too."""
        added = absolute(path)
        await in_thread(scan.check_folders, (added,))
        await in_thread(self._catalog.include, str(added))
        if self.folders and not scan.under(str(added), self.folders):
            self.folders = (*self.folders, added)
        return await self._refresh((added,), parse, clean, offload, on_progress)

    async def remove(self, path: Path | str) -> tuple[str, ...]:
        """Take a file, or all below a folder, out of the index until it is added again. Return the paths."""
        target = absolute(path)
        async with locked(self.home / "library" / "refresh.lock"):
            await in_thread(self._catalog.exclude, str(target))
            return await self._drop(target)

    async def forget(self, path: Path | str) -> tuple[str, ...]:
        """Take a file that was deleted, or all that was below a folder, out of the index at once. Return the paths."""
        async with locked(self.home / "library" / "refresh.lock"):
            return await self._drop(absolute(path))

    async def _drop(self, target: Path) -> tuple[str, ...]:
        gone = tuple(await in_thread(self._catalog.entries, (target,)))
        await in_thread(self._catalog.drop, gone)
        await self._table.remove(await self._table.all_ids() - await in_thread(self._catalog.source_ids))
        await in_thread(self._catalog.bump)
        return gone

    async def indexed(self) -> set[str]:
        """The texts whose passages can be found, of this library and of others in `home`."""
        return await self._table.present()

    async def list(self) -> tuple[Entry, ...]:
        """All files that were looked at, by path: documents, copies (`duplicate_of`) and unreadable ones (`failed`)."""
        entries = await in_thread(self._catalog.entries, self.folders)
        _, copies = without_copies(entries.values(), await in_thread(self._catalog.sketches))
        return tuple(e.model_copy(update={"duplicate_of": copies.get(e.path, "")}) for e in entries.values())

    async def search(self, query: str, limit: int) -> Found:
        """Up to `limit` documents with their best passages, and whether they can answer.

        Raises:
            SourceError: the index cannot be read.
        """
        try:
            loaded = await self._load()
        except (sqlite3.Error, RuntimeError, OSError) as exc:
            raise SourceError(f"the index in {str(self.home / 'library')!r} cannot be read: {exc}") from exc
        if not query.strip() or not len(loaded.index):
            why = "the query is empty" if len(loaded.index) else "no document has been indexed"
            return Found(answerability=Answerability(), notes=(Note(kind="library", text=why),), searches=1)
        asked = await self._embedder.embed([query])
        opening = await in_thread(first_hop, loaded.index, query, asked, self.settings.dense_weight)
        more = await self._embedder.embed(opening.texts) if opening.texts else None
        return await in_thread(_found, loaded, query, opening, more, limit)

    @property
    def _max_bytes(self) -> int:
        return int(self.settings.max_file_mb * 2**20)

    async def df(self, term: str) -> int:
        """In how many passages a stem (`grounding.terms.stem`) occurs."""
        return (await self._load()).index.df(term)

    async def _refresh(
        self,
        folders: tuple[Path, ...],
        parse: Parser,
        clean: Clean,
        offload: Offload,
        on_progress: Callable[[Progress], None],
    ) -> LibraryReport:
        await in_thread(scan.check_folders, folders)
        try:
            idle = await in_thread(self._idle, folders)
        except (sqlite3.Error, OSError):
            idle = None  # what is wrong shows below
        if idle is not None:
            return idle
        task = Refresh(
            home=self.home,
            folders=folders,
            max_bytes=self._max_bytes,
            passage_words=self.settings.passage_words,
            catalog=self._catalog,
            table=self._table,
            snapshots=self.snapshots,
            parse=parse,
            clean=clean,
            embedder=self._embedder,
            offload=offload,
            on_progress=on_progress,
        )
        try:
            async with locked(self.home / "library" / "refresh.lock"):
                report, settled = await task.run()
        except (sqlite3.Error, OSError) as exc:
            raise SourceError(f"the index in {str(self.home / 'library')!r} cannot be written: {exc}") from exc
        self._settled = folders, settled
        return report

    def _idle(self, folders: tuple[Path, ...]) -> LibraryReport | None:
        """The report of a refresh that has nothing to do; None where there may be something."""
        if self._settled is None or self._settled[0] != folders:
            return None
        last = self._settled[1]
        if self._catalog.generation() != last.generation:
            return None
        return last.report if scan.scan(folders, self._max_bytes, self.home) == last.found else None

    async def _load(self) -> _Loaded:
        """The passages in memory, loaded again after a change by any process."""
        if self._loaded is not None and self._catalog.settled_generation() == self._loaded.generation:
            return self._loaded
        async with self._loading:
            generation = await in_thread(self._catalog.generation)
            if self._loaded is None or self._loaded.generation != generation:
                entries = await in_thread(self._catalog.entries, self.folders)
                kept, _ = without_copies(entries.values(), await in_thread(self._catalog.sketches))
                rows = await self._table.load([entry.source_id for entry in kept])
                index = await in_thread(index_of, rows)
                named = {e.source_id: e for e in kept}
                # a text that another folder holds too is called what it is called here
                index = replace(index, titles=[named[source_id].title for source_id in index.source_ids])
                self._loaded = _Loaded(generation, index, named)
            return self._loaded


def _found(loaded: _Loaded, query: str, opening: Opening, more: Vectors | None, limit: int) -> Found:
    ranking = complete(loaded.index, opening, more)
    verdict = assess(query, candidates(loaded.index, ranking), loaded.index.df, len(loaded.index))
    found = hits(loaded.index, ranking, loaded.entries, verdict, limit)
    return Found(hits=found, answerability=verdict, searches=1)
