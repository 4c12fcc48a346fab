from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from marg_ray.errors import SessionNotFound, Unreadable, UsageError
from marg_ray.files import LocalFolder, RemoteFolder, folder
from marg_ray.store.artefacts import Artefacts

TEXT = '{"title": "潮汐 🌊"}'
NAME = hashlib.sha256(TEXT.encode()).hexdigest()


@pytest.fixture(params=["path", "text", "file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """A folder that does not exist yet, named in every way there is."""
    kinds: dict[str, Path | str] = {
        "path": tmp_path / "re ports",
        "text": str(tmp_path / "re ports"),
        "file": f"file://{tmp_path}/re ports",
        "memory": f"memory://{tmp_path.name}/re ports",
    }
    return kinds[request.param]


def test_a_text_is_stored_under_its_hash(place: Path | str) -> None:
    artefacts = Artefacts(place)
    assert artefacts.put(TEXT) == NAME
    assert artefacts.put(TEXT) == NAME
    assert Artefacts(place).get(NAME) == TEXT
    assert folder(place).get(f"{NAME}.json") == TEXT.encode()


def test_what_was_never_stored_is_not_found(place: Path | str) -> None:
    for name in ("0" * 64, "no such name", "", "\x00"):
        with pytest.raises(SessionNotFound):
            Artefacts(place).get(name)


def test_a_damaged_file_is_an_error_and_no_other_text(place: Path | str) -> None:
    artefacts = Artefacts(place)
    artefacts.put(TEXT)
    for damaged in (TEXT.encode()[:-3], TEXT.encode().replace(b"t", b"T"), b"\xff\xfe", b""):
        folder(place).put(f"{NAME}.json", damaged)
        with pytest.raises(Unreadable, match=f"{NAME}.json: damaged"):
            artefacts.get(NAME)


def test_a_file_that_was_cut_off_is_written_again(place: Path | str) -> None:
    artefacts = Artefacts(place)
    for cut in (b"", TEXT.encode()[:5]):
        folder(place).put(f"{NAME}.json", cut)
        artefacts.put(TEXT)
        assert artefacts.get(NAME) == TEXT


def test_a_stored_file_is_not_written_again(tmp_path: Path) -> None:
    artefacts = Artefacts(tmp_path)
    artefacts.put(TEXT)
    before = (tmp_path / f"{NAME}.json").stat()
    artefacts.put(TEXT)
    after = (tmp_path / f"{NAME}.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert [p.name for p in tmp_path.iterdir()] == [f"{NAME}.json"]  # nothing half-written beside it


def test_local_folders_need_no_fsspec(tmp_path: Path) -> None:
    assert isinstance(folder(tmp_path), LocalFolder)
    assert isinstance(folder(f"file://{tmp_path}"), LocalFolder)
    assert isinstance(folder("memory://somewhere"), RemoteFolder)
    script = f"""
import sys
from marg_ray.store.artefacts import Artefacts
name = Artefacts("file://{tmp_path}/reports").put("text")
Artefacts("{tmp_path}/reports").get(name)
print("fsspec" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"


def test_a_protocol_that_is_not_known_is_said() -> None:
    for url in ("nosuch://bucket/prefix", "dropbox://bucket/prefix"):  # unknown; known, and its package missing
        with pytest.raises(UsageError, match=url.split(":", 1)[0]):
            Artefacts(url)


def test_a_store_of_files_crosses_a_process(place: Path | str) -> None:
    artefacts = Artefacts(place)
    artefacts.put(TEXT)
    assert pickle.loads(pickle.dumps(artefacts)).get(NAME) == TEXT
