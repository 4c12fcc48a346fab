"""The local sources of a session: its library folders, and text that was handed in."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from marg_ray.grounding.injection import cut_injections
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.messages import SCOUT
from marg_ray.records import Note
from marg_ray.seams import Embedder, Offload
from marg_ray.settings import LibrarySettings
from marg_ray.sources.library.library import Library
from marg_ray.sources.library.refresh import LibraryReport, Progress, no_progress
from marg_ray.sources.parse import parse
from marg_ray.sources.protocol import Found, Searcher
from marg_ray.sources.provided import ProvidedText
from marg_ray.tasks import SearchTask

SESSIONS = 1000  # that are remembered as having a fresh index
LIBRARIES = 64  # that stay open
NAMED_FILES = 10  # unreadable files that a report names; of more it gives the number


@dataclass(frozen=True)
class Noted:
    """A searcher whose results carry notes, once in a run."""

    searcher: Searcher
    notes: tuple[Note, ...]

    async def search(self, query: str, limit: int) -> Found:
        found = await self.searcher.search(query, limit)
        return replace(found, notes=(*found.notes, *self.notes))


def unreadable(report: LibraryReport) -> tuple[Note, ...]:
    """What a reader should know of files that gave no text."""
    notes = [
        Note(kind="unreadable_file", text=f"{Path(path).name} could not be read: {why}")
        for path, why in report.failed[:NAMED_FILES]
    ]
    if len(report.failed) > NAMED_FILES:
        more = len(report.failed) - NAMED_FILES
        notes.append(Note(kind="unreadable_file", text=f"{more} more files could not be read"))
    return tuple(notes)


class LocalShelves:
    """Opens each library once per process, and brings its index up to date once per session.

    Sessions that ask while a refresh is under way share the next one: it begins after all of them have asked.
    """

    def __init__(
        self, home: Path, settings: LibrarySettings, embedder: Embedder, snapshots: Snapshots, offload: Offload
    ) -> None:
        self._home, self._settings, self._embedder = home, settings, embedder
        self._snapshots, self._offload = snapshots, offload
        self._opening = asyncio.Lock()
        self._libraries: OrderedDict[tuple[str, ...], Library] = OrderedDict()
        self._fresh: OrderedDict[tuple[str, tuple[str, ...]], asyncio.Task[LibraryReport]] = OrderedDict()
        self._running: dict[tuple[str, ...], asyncio.Task[LibraryReport]] = {}
        self._next: dict[tuple[str, ...], asyncio.Task[LibraryReport]] = {}

    async def searchers(self, task: SearchTask) -> Sequence[Searcher]:
        """Everything local that this task may search.

        Raises:
            UsageError: a folder is missing, or not one document in it can be read.
        """
        found: list[Searcher] = []
        folders = task.request.sources.folders
        if folders:
            library, report = await self._fresh_library(task.session_id, folders)
            found.append(Noted(library, unreadable(report)) if task.section == SCOUT else library)
        if task.request.provided:
            found.append(ProvidedText(self._snapshots, task.request.provided, self._embedder))
        return found

    async def _fresh_library(self, session_id: str, folders: tuple[str, ...]) -> tuple[Library, LibraryReport]:
        library = await self.library(folders)
        key = (session_id, folders)
        before = self._fresh.get(key)
        if before is None or (before.done() and (before.cancelled() or before.exception())):  # there may be more by now
            self._fresh[key] = self._refreshed(library, folders)
            while len(self._fresh) > SESSIONS:
                self._fresh.popitem(last=False)
        # one search that is cancelled does not stop the others' index
        return library, await asyncio.shield(self._fresh[key])

    def _refreshed(self, library: Library, folders: tuple[str, ...]) -> asyncio.Task[LibraryReport]:
        """A refresh that has not begun yet."""
        if folders in self._next:
            return self._next[folders]
        before = self._running.get(folders)

        async def run() -> LibraryReport:
            if before is not None:
                await asyncio.wait([before])
            self._running[folders] = self._next.pop(folders)
            return await self.refresh(library)

        self._next[folders] = asyncio.ensure_future(run())
        return self._next[folders]

    async def library(self, folders: tuple[str, ...]) -> Library:
        async with self._opening:
            if folders not in self._libraries:
                self._libraries[folders] = await Library.open(
                    self._home, folders, self._settings, self._embedder, snapshots=self._snapshots
                )
            self._libraries.move_to_end(folders)
            while len(self._libraries) > LIBRARIES:
                self._libraries.popitem(last=False)
            return self._libraries[folders]

    async def fresh(self, folders: tuple[str, ...]) -> LibraryReport:
        """Bring the index over some folders up to date. Who asks while that is under way shares the next refresh.

        Raises:
            UsageError: a folder is missing, or not one document in it can be read.
        """
        return await asyncio.shield(self._refreshed(await self.library(folders), folders))

    async def refresh(self, library: Library, on_progress: Callable[[Progress], None] = no_progress) -> LibraryReport:
        return await library.refresh(parse, clean=cut_injections, offload=self._offload, on_progress=on_progress)
