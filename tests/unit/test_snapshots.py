from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from marg_ray.errors import SessionNotFound, Unreadable
from marg_ray.files import folder
from marg_ray.grounding.snapshots import Document, Part, Snapshots

TEXT = "Tides\n\nThe moon pulls the water. 潮汐"
DOCUMENT = Document(
    title="Tides",
    text=TEXT,
    parts=(Part(kind="heading", start=0, end=5, level=1), Part(kind="paragraph", start=7, end=len(TEXT))),
    language="en",
)


@pytest.fixture(params=["path", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    return tmp_path / "snapshots" if request.param == "path" else f"memory://{tmp_path.name}/snapshots"


def file_of(source_id: str, ending: str) -> str:
    return f"{source_id[:2]}/{source_id}{ending}"


def test_a_document_comes_back_as_it_was_frozen(place: Path | str) -> None:
    source_id = Snapshots(place).put(DOCUMENT)
    assert source_id == DOCUMENT.source_id
    assert Snapshots(place).text(source_id) == TEXT
    assert Snapshots(place).document(source_id) == DOCUMENT


def test_the_same_text_keeps_its_first_structure(place: Path | str) -> None:
    snapshots = Snapshots(place)
    source_id = snapshots.put(DOCUMENT)
    assert snapshots.put(DOCUMENT.model_copy(update={"title": "Another title"})) == source_id
    assert snapshots.document(source_id).title == "Tides"


def test_an_empty_text_is_a_text(place: Path | str) -> None:
    empty = Document(title="", text="", parts=())
    assert Snapshots(place).text(Snapshots(place).put(empty)) == ""


def test_what_was_never_frozen_is_not_found(place: Path | str) -> None:
    for name in ("0" * 64, "../../../etc/passwd", "", "Ä" * 64, "G" * 64):
        with pytest.raises(SessionNotFound):
            Snapshots(place).text(name)
        with pytest.raises(SessionNotFound):
            Snapshots(place).document(name)


def test_a_damaged_text_is_an_error_and_no_other_text(place: Path | str) -> None:
    snapshots = Snapshots(place)
    source_id = snapshots.put(DOCUMENT)
    for damaged in (TEXT.encode()[:-1], TEXT.encode().replace(b"pulls", b"leave"), b"\xff"):
        folder(place).put(file_of(source_id, ".txt"), damaged)
        for read in (snapshots.text, snapshots.document):
            with pytest.raises(Unreadable, match=r"\.txt: damaged"):
                read(source_id)


def test_a_damaged_structure_is_an_error(place: Path | str) -> None:
    snapshots = Snapshots(place)
    source_id = snapshots.put(DOCUMENT)
    for damaged in (b"", b"{", b'{"title": 3}', b"\xff"):
        folder(place).put(file_of(source_id, ".json"), damaged)
        with pytest.raises(Unreadable, match=r"\.json: damaged"):
            snapshots.document(source_id)
        assert snapshots.text(source_id) == TEXT


def test_files_that_were_cut_off_are_written_again(place: Path | str) -> None:
    snapshots = Snapshots(place)
    source_id = DOCUMENT.source_id
    folder(place).put(file_of(source_id, ".txt"), TEXT.encode()[:9])
    folder(place).put(file_of(source_id, ".json"), b"")
    snapshots.put(DOCUMENT)
    assert snapshots.document(source_id) == DOCUMENT


def frozen(snapshots: Snapshots, *texts: str) -> list[str]:
    return [snapshots.put(Document(title=text, text=text, parts=())) for text in texts]


def test_the_documents_read_last_are_not_read_again(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path, recent=2, recent_chars=10)
    one, two, three, long = frozen(snapshots, "one", "two", "three", "far too long")
    first = snapshots.document(one)
    snapshots.document(two)
    assert snapshots.document(one) is first
    snapshots.document(three)  # eleven characters: the second goes
    for source_id in (one, two, three, long):
        (tmp_path / file_of(source_id, ".json")).unlink()
    assert snapshots.document(one) is first
    for source_id in (two, long):
        with pytest.raises(SessionNotFound):
            snapshots.document(source_id)


def test_a_document_that_is_larger_than_all_room_is_not_kept(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path, recent_chars=10)
    (source_id,) = frozen(snapshots, "far too long")
    assert snapshots.document(source_id) is not snapshots.document(source_id)


def test_another_process_gets_the_place_and_not_the_documents(place: Path | str) -> None:
    snapshots = Snapshots(place)
    source_id = snapshots.put(DOCUMENT)
    snapshots.document(source_id)
    sent = pickle.dumps(snapshots)
    assert "潮汐".encode() not in sent
    assert pickle.loads(sent).document(source_id) == DOCUMENT


def test_threads_share_what_was_read(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path, recent=3)
    ids = frozen(snapshots, *(f"text {n}" for n in range(6)))
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(snapshots.document, ids * 200))
    assert [d.source_id for d in found] == ids * 200
    assert len(snapshots._recent._kept) == 3
    assert snapshots._recent._chars == 3 * len("text 1")
