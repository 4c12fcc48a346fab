from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from marg_ray.actors.shelves import NAMED_FILES, LocalShelves
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.messages import SCOUT
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.records import Request, RequestClass, SourceChoice
from marg_ray.seams import in_thread
from marg_ray.settings import LibrarySettings
from marg_ray.sources.library.library import Library
from marg_ray.sources.library.refresh import LibraryReport, Progress, no_progress
from marg_ray.tasks import SearchTask


def task(folder: Path, section: str, session: str = "S") -> SearchTask:
    request = Request(question="How do tides make power?", sources=SourceChoice(folders=(str(folder),), web=False))
    return SearchTask(
        id=f"{session}/{section}",
        session_id=session,
        section=section,
        request=request,
        request_class=RequestClass.FULL_RESEARCH,
        title="",
        query=request.question,
    )


async def test_files_that_cannot_be_read_are_named_once_in_a_run(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "good.md").write_text("# Tides\n\nTides make power when water falls through turbines.", "utf-8")
    for n in range(NAMED_FILES + 2):
        (docs / f"bad{n:02d}.docx").write_bytes(b"this is no Word file " * n)
    home = tmp_path / "home"
    shelves = LocalShelves(home, LibrarySettings(), HashingEmbedder(), Snapshots(home / "snapshots"), in_thread)

    (scout,) = await shelves.searchers(task(docs, SCOUT))
    notes = [n.text for n in (await scout.search("tides power", 5)).notes]
    assert sum("could not be read: " in n for n in notes) == NAMED_FILES
    assert "2 more files could not be read" in notes

    (other,) = await shelves.searchers(task(docs, "s1"))
    found = await other.search("tides power", 5)
    assert found.hits
    assert not [n for n in found.notes if n.kind == "unreadable_file"]


async def test_sessions_that_begin_together_share_a_refresh_that_begins_after_them(tmp_path: Path) -> None:
    docs, home = tmp_path / "docs", tmp_path / "home"
    docs.mkdir()
    (docs / "tides.md").write_text("# Tides\n\nTides make power when water falls through turbines.", "utf-8")

    class Counted(LocalShelves):
        def __init__(self) -> None:
            super().__init__(home, LibrarySettings(), HashingEmbedder(), Snapshots(home / "snapshots"), in_thread)
            self.begun, self.first = 0, asyncio.Event()

        async def refresh(
            self, library: Library, on_progress: Callable[[Progress], None] = no_progress
        ) -> LibraryReport:
            self.begun += 1
            self.first.set()
            return await super().refresh(library, on_progress)

    shelves = Counted()
    first = [asyncio.ensure_future(shelves.searchers(task(docs, "s1", f"A{n}"))) for n in range(5)]
    await shelves.first.wait()
    (docs / "storms.md").write_text("# Storms\n\nStorm Ada destroyed houses in Osterby.", "utf-8")
    late = [asyncio.ensure_future(shelves.searchers(task(docs, "s1", f"B{n}"))) for n in range(5)]
    await asyncio.gather(*first, *late)
    assert shelves.begun == 2
    (library,) = late[0].result()
    assert [h.title for h in (await library.search("storm houses Osterby", 5)).hits][:1] == ["Storms"]
    await shelves.searchers(task(docs, "s2", "A1"))
    assert shelves.begun == 2
