from __future__ import annotations

from pathlib import Path

from marg_ray.actors.shelves import NAMED_FILES, LocalShelves
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.messages import SCOUT
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.records import Request, RequestClass, SourceChoice
from marg_ray.seams import in_thread
from marg_ray.settings import LibrarySettings
from marg_ray.tasks import SearchTask


def task(folder: Path, section: str) -> SearchTask:
    request = Request(question="How do tides make power?", sources=SourceChoice(folders=(str(folder),), web=False))
    return SearchTask(
        id=f"S/{section}",
        session_id="S",
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
