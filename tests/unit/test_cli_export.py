"""Exporters are late stages: one that fails costs itself, a process that is killed leaves no half file."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pytest

from marg_ray.cli.export import export
from marg_ray.report import writers
from marg_ray.report.assemble import build_report
from marg_ray.report.model import Report, from_json
from tests.report_sample import inputs
from tests.shared import ROOT

REPORT = build_report(inputs())


ALL = tuple(writers.FORMATS)


@cache
def made(fmt: str) -> bytes:
    """What an exporter makes of the report, made once."""
    return writers.FORMATS[fmt](REPORT)


def always(content: bytes) -> Callable[[Report], bytes]:
    return lambda report: content


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> object:
    """Makes exporters raise."""

    def break_(*formats: str) -> None:
        def fails(report: Report) -> bytes:
            raise ZeroDivisionError("no way")

        whole = {name: always(made(name)) for name in ALL if name not in formats}
        monkeypatch.setattr(writers, "FORMATS", MappingProxyType({**whole, **dict.fromkeys(formats, fails)}))

    return break_


@pytest.mark.parametrize("fmt", ALL)
def test_an_exporter_that_raises_costs_itself_only(fmt: str, tmp_path: Path, broken: object) -> None:
    assert callable(broken)
    broken(fmt)
    paths = tuple(tmp_path / f"r.{name}" for name in ALL)
    delivered = export(REPORT, paths)
    others = [str(p) for p in paths if p.suffix != f".{fmt}"]
    assert list(delivered.files) == others
    assert sorted(os.listdir(tmp_path)) == sorted(Path(p).name for p in others)
    assert delivered.text == ""
    (failure,) = delivered.failures
    line = str(failure)
    assert "\n" not in line
    assert f"r.{fmt}" in line
    assert "ZeroDivisionError: no way" in line
    assert f"marg show {REPORT.session_id} -o {tmp_path}/r.{fmt}" in line
    assert not delivered.nothing


@pytest.mark.parametrize("fmt", ALL)
def test_the_report_goes_out_as_text_where_its_only_file_fails(fmt: str, tmp_path: Path, broken: object) -> None:
    assert callable(broken)
    broken(fmt)
    delivered = export(REPORT, (tmp_path / f"r.{fmt}",))
    assert not delivered.files
    assert not delivered.nothing
    if fmt == "md":  # then the other text form
        assert from_json(delivered.text) == REPORT
    else:
        assert delivered.text.startswith("# Tidal power")


def test_only_where_no_form_at_all_can_be_made_nothing_is_delivered(tmp_path: Path, broken: object) -> None:
    assert callable(broken)
    broken(*ALL)
    delivered = export(REPORT, (tmp_path / "r.html",))
    assert delivered.nothing
    assert len(delivered.failures) == 3


def test_a_path_that_cannot_be_written_is_told_and_the_next_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder.html").mkdir()
    delivered = export(REPORT, (tmp_path / "folder.html", tmp_path / "r.md"))
    assert [Path(f).name for f in delivered.files] == ["r.md"]
    assert "is a folder" in str(delivered.failures[0])


def test_a_full_disk_is_told_and_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "r.md").write_text("old", "utf-8")
    monkeypatch.setattr(os, "fsync", full)
    delivered = export(REPORT, (tmp_path / "r.md",))
    assert "No space left" in str(delivered.failures[0])
    assert delivered.text.startswith("# Tidal power")
    assert os.listdir(tmp_path) == ["r.md"]
    assert (tmp_path / "r.md").read_text("utf-8") == "old"


KILLED = """
import os, signal, sys
from pathlib import Path
from marg_ray.cli.export import export
from marg_ray.report.model import from_json

written = 0
def die_in_the_second(fd, sync=os.fsync):
    global written
    written += 1
    if written == 2:
        os.ftruncate(fd, 100)
        os.kill(os.getpid(), signal.SIGKILL)
    sync(fd)
os.fsync = die_in_the_second
export(from_json(Path(sys.argv[1]).read_bytes()), tuple(map(Path, sys.argv[2:])))
"""


def test_killed_in_mid_export_leaves_whole_files_only_and_a_second_export_gives_all(tmp_path: Path) -> None:
    """DUR-01, killed while exporting: no file is half there, and `marg show -o` writes them again."""
    stored, folder = tmp_path / "stored.json", tmp_path / "out"
    stored.write_bytes(writers.FORMATS["json"](REPORT))
    folder.mkdir()
    (folder / "r.html").write_text("the old report", "utf-8")
    targets = [folder / "r.md", folder / "r.html"]
    done = subprocess.run([sys.executable, "-c", KILLED, stored, *targets], cwd=ROOT, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (folder / "r.md").read_text("utf-8").startswith("# Tidal power")
    assert (folder / "r.html").read_text("utf-8") == "the old report"
    left = [name for name in os.listdir(folder) if name.startswith(writers.DRAFT)]
    assert len(left) == 1
    os.utime(folder / left[0], (0, 0))
    delivered = export(REPORT, tuple(targets))
    assert not delivered.failures
    assert sorted(os.listdir(folder)) == ["r.html", "r.md"]
    assert (folder / "r.html").read_text("utf-8").rstrip().endswith("</html>")


def test_a_draft_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / f"{writers.DRAFT}0123.new").write_bytes(b"of another process")
    export(REPORT, (tmp_path / "r.md",))
    assert len(os.listdir(tmp_path)) == 2


def test_a_format_whose_libraries_are_missing_says_what_to_install_and_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    delivered = export(REPORT, (tmp_path / "r.pdf", tmp_path / "r.bib"))
    assert [Path(f).name for f in delivered.files] == ["r.bib"]
    (failure,) = delivered.failures
    assert "apt-get install libpango-1.0-0" in str(failure)
    assert "\n" not in str(failure)


def test_letters_that_a_pdf_cannot_show_are_told(tmp_path: Path) -> None:
    from marg_ray.report.pdf import lacking_letters

    rare = "\U00012000"
    delivered = export(REPORT.model_copy(update={"title": rare}), (tmp_path / "r.pdf", tmp_path / "r.md"))
    told = [line for line in delivered.warnings if "Cuneiform" in line]
    assert bool(told) == bool(lacking_letters(rare))
    assert all("r.pdf: no font for" in line for line in delivered.warnings)
