"""`marg export`: files named after the report, beside what is there; and how the command behaves on odd machines."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from marg_ray.actors.assembly import Places
from marg_ray.messages import ReportReady
from marg_ray.records import ReportStatus
from marg_ray.report import writers
from marg_ray.report.assemble import build_report
from marg_ray.report.model import Report, from_json, to_json
from marg_ray.store.sql import SqlStore, sqlite_url
from tests.report_sample import inputs
from tests.shared import ROOT, case_file
from tests.unit.test_cli import marg

REPORT = build_report(inputs())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARG_HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


def keep(home: Path, report: Report = REPORT, session: str = "S") -> None:
    """A session that ended with this report."""

    async def make() -> None:
        places = Places(home)
        artefact = places.artefacts.put(to_json(report))
        store = await SqlStore.open(sqlite_url(places.database))
        await store.create(session, owner="local", question=report.question)
        epoch = await store.take_over(session)
        ready = ReportReady(task_id="t", artefact=artefact, status=report.status, words=1)
        await store.append(session, ready, expected_seq=0, epoch=epoch, status=report.status)
        await store.close()

    asyncio.run(make())


def test_a_pdf_lies_here_by_default(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(home)
    assert marg(monkeypatch, "export", "last") == 0
    (file,) = capsys.readouterr().out.splitlines()
    assert Path(file).name == "Tidal power plants, output and ecology.pdf"
    assert Path(file).parent == Path.cwd()
    assert Path(file).read_bytes().startswith(b"%PDF-")


def test_every_format_goes_into_a_folder_that_is_made_and_nothing_is_overwritten(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(home)
    assert marg(monkeypatch, "export", "S", "--all", "-o", "reports") == 0
    told = capsys.readouterr().out.splitlines()
    assert sorted(Path(f).suffix for f in told) == sorted(f".{name}" for name in writers.FORMATS)
    assert all(Path(f).is_file() and Path(f).parent == Path.cwd() / "reports" for f in told)
    assert marg(monkeypatch, "export", "S", "-f", "bib", "-f", "md", "-f", "bib", "-o", "reports") == 0
    again = [Path(f).name for f in capsys.readouterr().out.splitlines()]
    assert again == ["Tidal power plants, output and ecology (2).bib", "Tidal power plants, output and ecology (2).md"]


def test_a_file_is_named_and_its_ending_is_the_format(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(home)
    assert marg(monkeypatch, "export", "S", "-o", "a/b.docx") == 0
    assert capsys.readouterr().out == f"{Path.cwd() / 'a' / 'b.docx'}\n"
    assert marg(monkeypatch, "show", "S", "-o", "c.ris") == 0
    assert Path("c.ris").read_bytes().startswith(b"TY  - ")
    assert marg(monkeypatch, "show", "S", "-f", "bib") == 0
    assert "@online{rance2021," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("export", "S", "-f", "pdf", "-o", "a.docx"), "one format"),
        (("export", "S", "--all", "-o", "a.docx"), "one format"),
        (("export", "S", "-o", "a.xyz"), ".xyz is no report format"),
        (("export", "S", "-f", "xyz"), "'xyz' is not one of"),
        (("export", "nope"), "nope"),
        (("export", "S", "-o", "file/inside"), "no file can be made"),
        (("show", "S", "-f", "pdf"), "no text format 'pdf'"),
    ],
)
def test_every_mistake_is_one_sentence_and_what_to_do(
    args: tuple[str, ...], said: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(home)
    Path("file").write_text("", "utf-8")
    assert marg(monkeypatch, *args) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert said in error
    assert "Traceback" not in error
    assert os.listdir() == ["file"]


def test_a_session_without_a_report_says_how_to_get_one(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def make() -> None:
        store = await SqlStore.open(sqlite_url(Places(home).database))
        await store.create("S", owner="local", question="q")
        await store.close()

    asyncio.run(make())
    assert marg(monkeypatch, "export", "S") == 2
    assert "has no report yet" in capsys.readouterr().err
    assert os.listdir() == []


def test_a_format_that_fails_leaves_no_empty_file(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(home)
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    assert marg(monkeypatch, "export", "S", "-f", "pdf", "-f", "md") == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1
    assert "apt-get install" in captured.err
    assert [Path(f).suffix for f in os.listdir()] == [".md"]
    assert marg(monkeypatch, "export", "S", "-f", "pdf") == 1
    assert len(os.listdir()) == 1


@pytest.mark.parametrize("env", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "cp1252"}], ids=str)
def test_rep02_the_command_writes_utf8_whatever_the_machine_says(env: dict[str, str], home: Path) -> None:
    body = " ".join(case_file("REP-02", "emoji-report.md").read_text("utf-8").split())
    keep(home, REPORT.model_copy(update={"title": body, "status": ReportStatus.PASSED}))
    environment = {"PATH": os.environ["PATH"], "MARG_HOME": str(home), **env}
    done = subprocess.run(
        [sys.executable, "-m", "marg_ray.cli", "export", "S", "--all", "-o", "out 潮汐"],
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    assert b"UnicodeEncodeError" not in done.stderr
    files = [Path(line) for line in done.stdout.decode("utf-8").splitlines()]
    assert len(files) == len(writers.FORMATS)
    for file in files:
        assert file.parent.name == "out 潮汐"
        assert "潮汐" in file.name or "LC_ALL" in env  # there names are ASCII
        if file.suffix in (".md", ".html", ".json"):
            text = file.read_bytes().decode("utf-8")
            assert "🌊" in text
            assert "潮汐" in text
    stored = next(f for f in files if f.suffix == ".json")
    assert from_json(stored.read_bytes()).title == body
