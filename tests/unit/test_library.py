from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from marg_ray.errors import SourceError, UsageError
from marg_ray.grounding.snapshots import Document
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.records import SourceKind, Zone
from marg_ray.settings import LibrarySettings
from marg_ray.sources.library.catalog import Catalog, Entry, without_copies
from marg_ray.sources.library.library import Library
from marg_ray.sources.library.refresh import Progress
from marg_ray.sources.library.table import Table, _created
from marg_ray.sources.parse import parse

Open = Callable[..., Awaitable[Library]]

STORM = """# Storm Ada

Storm Ada was a winter storm that crossed the coast of Norland in January.

## Damage

The storm destroyed 420 houses in Norland and cut the power of the city of Osterby for three days.

## Response

The army repaired the bridges of Osterby within a week.
"""
BANK = "# Norland Bank\n\nNorland Bank failed in March because its deposits were withdrawn within two days.\n"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "storm.md").write_text(STORM)
    (folder / "sub" / "bank.md").write_text(BANK)
    return folder


@pytest.fixture
def open_library(tmp_path: Path, docs: Path) -> Open:
    async def make(*folders: Path, embedder: HashingEmbedder | None = None, **settings: float) -> Library:
        return await Library.open(
            tmp_path / "home",
            folders or (docs,),
            LibrarySettings(**settings),
            embedder or HashingEmbedder(),  # type: ignore[arg-type]
        )

    return make


async def test_first_index_finds_documents_with_passages_headings_and_exact_offsets(
    open_library: Open, docs: Path
) -> None:
    library = await open_library()
    report = await library.refresh(parse)
    assert (len(report.added), report.documents, report.failed) == (2, 2, ())
    found = await library.search("How many houses did the storm destroy in Norland?", 5)
    hit = found.hits[0]
    assert (hit.kind, hit.title, hit.location) == (SourceKind.LIBRARY, "Storm Ada", str(docs / "storm.md"))
    assert hit.headings == ("Storm Ada", "Damage", "Response")
    text = library.snapshots.text(hit.source_id)
    assert "420 houses" in text[hit.spans[0].start : hit.spans[0].end]
    assert hit.spans[0].heading.endswith("Damage")
    assert [s.score for s in hit.spans] == sorted((s.score for s in hit.spans), reverse=True)
    assert 0 < hit.relevance <= 1
    assert found.answerability.missing_terms == ()


async def test_a_question_about_something_else_is_refused_and_its_terms_are_named(open_library: Open) -> None:
    library = await open_library()
    await library.refresh(parse)
    verdict = (await library.search("What is the melting point of tungsten?", 5)).answerability
    assert verdict.zone is Zone.NOTHING
    assert verdict.missing_terms == ("melting", "point", "tungsten")


async def test_refresh_reads_and_embeds_only_what_changed(open_library: Open, docs: Path) -> None:
    embedder = HashingEmbedder()
    library = await open_library(embedder=embedder)
    await library.refresh(parse)
    embedder.texts.clear()
    assert (await library.refresh(parse)).unchanged == 2
    assert embedder.texts == []

    os.utime(docs / "storm.md", ns=(1, 1))  # touched
    report = await library.refresh(parse)
    assert (report.unchanged, report.changed) == (2, ())
    (docs / "storm.md").write_text(STORM.replace("within a week", "after a month"))
    (docs / "new.md").write_text("# Tea\n\nTea grows on the island of Sulo.")
    (docs / "sub" / "bank.md").unlink()
    report = await library.refresh(parse)
    assert report.added == (str(docs / "new.md"),)
    assert report.changed == (str(docs / "storm.md"),)
    assert report.removed == (str(docs / "sub" / "bank.md"),)
    assert report.embedded == len(embedder.texts) == 2  # the tea, and the one passage of the storm that differs
    titles = {h.title for h in (await library.search("Norland bank deposits storm tea month", 9)).hits}
    assert titles == {"Tea", "Storm Ada"}


async def test_another_process_sees_the_change_at_its_next_search(open_library: Open, docs: Path) -> None:
    one, two = await open_library(), await open_library()
    await one.refresh(parse)
    assert len((await two.search("storm", 5)).hits) >= 1
    (docs / "tea.md").write_text("# Tea\n\nTea grows on the island of Sulo.")
    await one.refresh(parse)
    assert (await two.search("tea on the island of Sulo", 5)).hits[0].title == "Tea"


async def test_two_refreshes_at_once_read_each_file_once(open_library: Open) -> None:
    parsed: list[str] = []

    def counting(body: bytes, *, name: str, media_type: str = "", charset: str = "") -> Document:
        parsed.append(name)
        return parse(body, name=name)

    one, two = await open_library(), await open_library()
    first, second = await asyncio.gather(one.refresh(counting), two.refresh(counting))
    assert sorted(parsed) == ["bank.md", "storm.md"]
    assert {len(first.added), len(second.added)} == {0, 2}
    assert first.passages == second.passages


async def test_unreadable_hidden_unsupported_and_large_files_are_told_not_fatal(open_library: Open, docs: Path) -> None:
    (docs / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (docs / "empty.txt").write_bytes(b"")
    (docs / "huge.txt").write_text("word " * 300_000)
    (docs / "photo.png").write_bytes(b"\x89PNG")
    (docs / ".secret.md").write_text("# Secret\n\nhidden words")
    (docs / "gone.md").symlink_to(docs / "nowhere.md")
    (docs / "gone.js").symlink_to(docs / "nowhere.js")
    os.mkfifo(docs / "pipe.txt")
    shutil.copy(docs / "storm.md", os.fsdecode(os.fsencode(docs) + b"/bad\xff.md"))
    library = await open_library(max_file_mb=1)
    report = await library.refresh(parse)
    failed = {Path(path).name: why for path, why in report.failed}
    assert failed.keys() == {"broken.pdf", "empty.txt", "huge.txt", "gone.md", "bad\\xff.md"}
    assert "larger than 1 MB" in failed["huge.txt"]
    assert (report.documents, report.skipped_hidden, report.skipped_unsupported) == (2, 1, 3)
    again = await library.refresh(parse)
    assert again.failed == report.failed  # still told
    listed = {Path(e.path).name: e.failed for e in await library.list()}
    assert listed["broken.pdf"]
    assert listed["storm.md"] == ""


async def test_loops_of_links_end_and_one_folder_is_read_once(open_library: Open, docs: Path) -> None:
    (docs / "sub" / "up").symlink_to(docs, target_is_directory=True)
    (docs / "same").symlink_to(docs / "sub", target_is_directory=True)
    report = await (await open_library()).refresh(parse)
    assert len(report.added) == 2


async def test_a_text_under_two_paths_counts_once_and_survives_the_loss_of_either(
    open_library: Open, docs: Path
) -> None:
    shutil.copy(docs / "storm.md", docs / "copy.md")
    library = await open_library()
    report = await library.refresh(parse)
    assert report.documents == 2
    assert report.duplicates == {str(docs / "storm.md"): str(docs / "copy.md")}
    hits = (await library.search("houses the storm destroyed", 9)).hits
    assert [h.title for h in hits].count("Storm Ada") == 1
    (docs / "copy.md").unlink()
    await library.refresh(parse)
    assert (await library.search("houses the storm destroyed", 9)).hits[0].location == str(docs / "storm.md")


def test_a_manual_as_pages_and_in_one_piece_is_kept_in_the_better_format() -> None:
    def entry(path: str, kind: str, chars: int) -> Entry:
        return Entry(path=path, size=1, mtime_ns=0, digest="", source_id=path, media_type=kind, chars=chars)

    runs = set(range(100))
    pages = [entry("/ch1.html", "text/html", 50), entry("/ch2.html", "text/html", 50)]
    whole, other = entry("/all.pdf", "application/pdf", 100), entry("/x.pdf", "application/pdf", 90)
    sketches = {
        "/ch1.html": set(range(50)),
        "/ch2.html": set(range(50, 100)),
        "/all.pdf": runs,
        "/x.pdf": {*range(70, 170)},
    }
    kept, copies = without_copies([whole, other, *pages], sketches)
    assert [e.path for e in kept] == ["/ch1.html", "/ch2.html", "/x.pdf"]
    assert copies.keys() == {"/all.pdf"}
    small = {"/ch1.html": set(range(9)), "/all.pdf": set(range(9))}
    assert without_copies([whole, pages[0]], small)[1] == {}  # too short to tell


async def test_a_folder_that_is_part_of_two_libraries_is_embedded_once(open_library: Open, docs: Path) -> None:
    embedder = HashingEmbedder()
    await (await open_library(docs, embedder=embedder)).refresh(parse)
    embedder.texts.clear()
    part = await open_library(docs / "sub", embedder=embedder)
    report = await part.refresh(parse)
    assert (embedder.texts, report.documents) == ([], 1)
    assert {h.title for h in (await part.search("storm bank Norland", 9)).hits} == {"Norland Bank"}


async def test_a_new_version_of_the_reader_reads_everything_anew(
    open_library: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await open_library()).refresh(parse)
    monkeypatch.setattr("marg_ray.sources.library.refresh.READ_VERSION", 2)
    read: list[str] = []

    def better(body: bytes, *, name: str, media_type: str = "", charset: str = "") -> Document:
        read.append(name)
        return parse(body.replace(b"420", b"430"), name=name)

    library = await open_library()  # as another process would
    report = await library.refresh(better)
    assert sorted(read) == ["bank.md", "storm.md"]
    assert report.changed == ()  # the files are the same
    hit = (await library.search("houses the storm destroyed", 1)).hits[0]
    assert "430 houses" in library.snapshots.text(hit.source_id)
    read.clear()
    await library.refresh(better)
    assert read == []


async def test_vectors_of_another_model_are_not_used(open_library: Open, docs: Path) -> None:
    class Other(HashingEmbedder):
        name = "other/model"

    await (await open_library()).refresh(parse)
    report = await (await open_library(embedder=Other())).refresh(parse)
    assert report.embedded == report.passages


async def test_searching_goes_on_while_the_index_changes(open_library: Open, docs: Path) -> None:
    library = await open_library()
    await library.refresh(parse)
    for i in range(20):
        (docs / f"more{i}.md").write_text(f"# More {i}\n\nThe storm of year {i} destroyed nothing.")
    refresh = asyncio.create_task(library.refresh(parse))
    while not refresh.done():
        assert (await library.search("houses the storm destroyed", 30)).hits[0].title == "Storm Ada"
    await refresh
    assert len((await library.search("storm of year", 30)).hits) >= 20


async def test_remove_keeps_a_document_out_until_it_is_added_again(open_library: Open, docs: Path) -> None:
    library = await open_library()
    await library.refresh(parse)
    assert await library.remove(docs / "sub") == (str(docs / "sub" / "bank.md"),)
    assert "Norland Bank" not in {h.title for h in (await library.search("bank deposits", 9)).hits}
    await library.refresh(parse)
    assert [e.title for e in await library.list()] == ["Storm Ada"]
    await library.add(docs / "sub" / "bank.md", parse)
    assert (await library.search("bank deposits withdrawn", 9)).hits[0].title == "Norland Bank"


async def test_add_takes_a_file_from_elsewhere(open_library: Open, tmp_path: Path) -> None:
    library = await open_library()
    await library.refresh(parse)
    (tmp_path / "tea.md").write_text("# Tea\n\nTea grows on the island of Sulo.")
    await library.add(tmp_path / "tea.md", parse)
    assert (await library.search("tea island", 9)).hits[0].title == "Tea"
    assert len(await library.list()) == 3


async def test_folders_that_cannot_be_used_are_the_callers_mistake(open_library: Open, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder") as missing:
        await open_library(tmp_path / "nowhere")
    assert missing.value.hint
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="there is no document"):
        await (await open_library(tmp_path / "empty")).refresh(parse)
    (tmp_path / "empty" / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    with pytest.raises(UsageError, match=r"broken\.pdf: \w+"):
        await (await open_library(tmp_path / "empty")).refresh(parse)


async def test_a_damaged_index_says_what_to_do(open_library: Open, tmp_path: Path) -> None:
    (tmp_path / "home" / "library").mkdir(parents=True)
    (tmp_path / "home" / "library" / "catalog.sqlite3").write_bytes(b"no database at all" * 100)
    with pytest.raises(UsageError, match="cannot be opened") as damaged:
        await open_library()
    assert "delete" in damaged.value.hint


async def test_an_index_that_breaks_later_is_a_failed_source(open_library: Open, tmp_path: Path) -> None:
    library = await open_library()
    await library.refresh(parse)
    for file in (tmp_path / "home" / "library").glob("catalog.sqlite3*"):
        file.write_bytes(b"no database at all" * 1000)
    with pytest.raises(SourceError, match="cannot be read"):
        await library.search("storm", 5)
    with pytest.raises(SourceError, match="cannot be written"):
        await library.refresh(parse)


async def test_the_index_itself_is_not_indexed(open_library: Open, tmp_path: Path) -> None:
    library = await open_library(tmp_path)  # holds docs/ and home/
    await library.refresh(parse)
    report = await library.refresh(parse)
    assert (report.added, report.documents) == ((), 2)


async def test_what_is_cut_out_is_neither_stored_nor_searched(open_library: Open, docs: Path) -> None:
    def clean(document: Document) -> Document:
        return document.model_copy(update={"text": document.text.replace("420", "###")})

    library = await open_library()
    await library.refresh(parse, clean=clean)
    hit = (await library.search("houses destroyed", 1)).hits[0]
    assert "420" not in library.snapshots.text(hit.source_id)
    assert "###" in library.snapshots.text(hit.source_id)


async def test_an_interrupted_index_goes_on_where_it_was(
    open_library: Open, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marg_ray.sources.library.refresh.COMMIT_PASSAGES", 1)

    class Failing(HashingEmbedder):
        async def embed(self, texts: object) -> object:  # type: ignore[override]
            if self.texts:
                raise RuntimeError("killed")
            return await super().embed(texts)  # type: ignore[arg-type]

    library = await open_library(embedder=Failing())
    with pytest.raises(RuntimeError, match="killed"):
        await library.refresh(parse)
    library._embedder = embedder = HashingEmbedder()
    report = await library.refresh(parse)
    assert report.embedded == len(embedder.texts) < report.passages


async def test_progress_counts_up_to_the_whole(open_library: Open) -> None:
    seen: list[Progress] = []
    report = await (await open_library()).refresh(parse, on_progress=seen.append)
    reads, embeds = ([p for p in seen if p.stage == stage] for stage in ("read", "embed"))
    assert [p.done for p in reads] == [1, 2]
    assert embeds[-1].done == embeds[-1].total == report.passages


async def test_searching_before_anything_is_indexed_finds_nothing_and_says_why(open_library: Open) -> None:
    found = await (await open_library()).search("storm", 5)
    assert (found.hits, found.answerability.zone) == ((), Zone.NOTHING)
    assert "indexed" in found.notes[0].text


@pytest.mark.parametrize("query", ["'; DROP TABLE files; --", '"', "*", "()", "   ", "\x00", "a" * 5000, "{}[]\\%_"])
async def test_no_query_is_an_error(open_library: Open, query: str) -> None:
    library = await open_library()
    await library.refresh(parse)
    await library.search(query, 5)
    assert (await library.search("houses the storm destroyed", 5)).hits[0].title == "Storm Ada"


async def test_chinese_documents_are_found_and_other_questions_are_not(open_library: Open, docs: Path) -> None:
    (docs / "typhoon.md").write_text(
        "# 台风梅花\n\n台风梅花在浙江造成严重损失，三万人被疏散。\n\n沿海城市的学校停课两天。"
    )
    library = await open_library()
    await library.refresh(parse)
    found = await library.search("台风梅花造成了多少损失？", 3)
    assert found.hits[0].title == "台风梅花"
    assert found.answerability.zone is not Zone.NOTHING
    assert (await library.search("量子计算机的原理是什么？", 3)).answerability.zone is Zone.NOTHING


def test_the_generation_is_read_again_only_where_the_files_may_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    connect = sqlite3.connect

    def counted(*args: Any, **options: Any) -> sqlite3.Connection:
        opened.append(1)
        database: sqlite3.Connection = connect(*args, **options)
        return database

    ours, theirs = Catalog(tmp_path / "catalog.sqlite3"), Catalog(tmp_path / "catalog.sqlite3")
    monkeypatch.setattr(sqlite3, "connect", counted)
    first = ours.generation()
    assert ours.generation() == first
    assert len(opened) == 2  # the time stamps are too fresh to be trusted
    os.utime(tmp_path / "catalog.sqlite3", (10**9, 10**9))
    ours.generation()
    opened.clear()
    assert [ours.generation() for _ in range(5)] == [first] * 5
    assert not opened
    theirs.bump()
    assert ours.generation() == first + 1


async def test_a_refresh_with_nothing_to_do_leaves_the_passages_in_memory(open_library: Open, docs: Path) -> None:
    library, other = await open_library(), await open_library()
    first = await library.refresh(parse)
    await library.search("storm", 5)
    loaded = library._loaded
    again, elsewhere = await library.refresh(parse), await other.refresh(parse)
    assert again == elsewhere
    assert (again.unchanged, again.documents, again.passages) == (len(first.added), first.documents, first.passages)
    assert (again.added, again.changed, again.removed, again.embedded) == ((), (), (), 0)
    await library.search("storm", 5)
    assert library._loaded is loaded

    (docs / "new.md").write_text("# Lagoons\n\nA lagoon holds back the tide.", "utf-8")
    assert [Path(p).name for p in (await library.refresh(parse)).added] == ["new.md"]
    assert (await library.search("lagoon holds back the tide", 1)).hits[0].title == "Lagoons"
    (docs / "new.md").unlink()
    assert [Path(p).name for p in (await other.refresh(parse)).removed] == ["new.md"]  # by another process
    assert (await library.refresh(parse)).documents == first.documents


async def test_many_may_open_a_new_index_at_once(tmp_path: Path) -> None:
    for n in range(3):
        tables = await asyncio.gather(*(Table.open(tmp_path / str(n), "m", "1", 4) for _ in range(12)))
        assert [await table.present() for table in tables] == [set()] * 12


async def test_a_table_that_another_process_is_making_is_asked_for_again() -> None:
    class Contended:
        def __init__(self, failures: list[str]) -> None:
            self.failures = failures

        async def create_table(self, name: str, **_: Any) -> str:
            if self.failures:
                raise RuntimeError(self.failures.pop())
            return name

    conflict = "lance error: Retryable commit conflict for version 2"
    assert await _created(Contended([conflict] * 3), "passages", None) == "passages"
    for failures in ([conflict] * 9, ["disk full"]):
        with pytest.raises(RuntimeError, match=failures[0][:9]):
            await _created(Contended(failures), "passages", None)
