"""The local sources of a session: its library folders, and text that was handed in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from marg_ray.grounding.injection import cut_injections
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.seams import Embedder, Offload
from marg_ray.settings import LibrarySettings
from marg_ray.sources.library.library import Library
from marg_ray.sources.library.refresh import LibraryReport, Progress, no_progress
from marg_ray.sources.parse import parse
from marg_ray.sources.protocol import Searcher
from marg_ray.sources.provided import ProvidedText
from marg_ray.tasks import SearchTask


class LocalShelves:
    """Opens each library once per process, and brings its index up to date once per session."""

    def __init__(
        self, home: Path, settings: LibrarySettings, embedder: Embedder, snapshots: Snapshots, offload: Offload
    ) -> None:
        self._home, self._settings, self._embedder = home, settings, embedder
        self._snapshots, self._offload = snapshots, offload
        self._libraries: dict[tuple[str, ...], Library] = {}
        self._fresh: dict[tuple[str, tuple[str, ...]], asyncio.Task[LibraryReport]] = {}

    async def searchers(self, task: SearchTask) -> Sequence[Searcher]:
        """Everything local that this task may search.

        Raises:
            UsageError: a folder is missing, or not one document in it can be read.
        """
        found: list[Searcher] = []
        folders = task.request.sources.folders
        if folders:
            found.append(await self._fresh_library(task.session_id, folders))
        if task.request.provided:
            found.append(ProvidedText(self._snapshots, task.request.provided, self._embedder))
        return found

    async def _fresh_library(self, session_id: str, folders: tuple[str, ...]) -> Library:
        library = await self.library(folders)
        key = (session_id, folders)
        if key not in self._fresh:
            self._fresh[key] = asyncio.ensure_future(self.refresh(library))
        await asyncio.shield(self._fresh[key])  # one search that is cancelled does not stop the others' index
        return library

    async def library(self, folders: tuple[str, ...]) -> Library:
        if folders not in self._libraries:
            opened = await Library.open(self._home, folders, self._settings, self._embedder, snapshots=self._snapshots)
            self._libraries.setdefault(folders, opened)
        return self._libraries[folders]

    async def refresh(self, library: Library, on_progress: Callable[[Progress], None] = no_progress) -> LibraryReport:
        return await library.refresh(parse, clean=cut_injections, offload=self._offload, on_progress=on_progress)
