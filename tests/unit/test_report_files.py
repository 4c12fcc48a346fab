"""Reports as files: names that every system takes, files that are whole, in UTF-8 whatever the machine says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from html import unescape
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote

import docx
import pypdfium2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marg_ray.errors import UsageError
from marg_ray.records import Block, Draft
from marg_ray.report import writers
from marg_ray.report.assemble import build_report
from marg_ray.report.filenames import content_disposition, reserve, safe_name, unique_name
from marg_ray.report.model import from_json
from marg_ray.report.writers import FORMATS, MEDIA_TYPES, check_path, format_of, render, write_report
from tests.report_sample import E1, inputs, said
from tests.shared import ROOT, case_file

REPORT = build_report(inputs())
FORBIDDEN = set('/\\:*?"<>|')
RESERVED = {"CON", "PRN", "AUX", "NUL", "COM1", "LPT1"}


def is_good(name: str) -> bool:
    return (
        len(name.encode()) <= 255
        and not FORBIDDEN & set(name)
        and all(unicodedata.category(c) not in ("Cc", "Cs") and c not in "\u200b\u200e\u200f\u202e\ufeff" for c in name)
        and name.split(".")[0].upper() not in RESERVED
        and name[0] not in ".-~ "
        and name[-1] not in ". "
    )


# ---- REP-02: titles


def titles() -> list[str]:
    found: list[str] = json.loads(case_file("REP-02", "titles.json").read_text("utf-8"))
    return found


@pytest.mark.parametrize("ending", [f".{name}" for name in FORMATS])
def test_all_titles_give_files_of_their_own_in_the_folder(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = FORMATS[ending[1:]](REPORT)  # made once: what is looked at are the names
    monkeypatch.setattr(writers, "FORMATS", MappingProxyType({ending[1:]: lambda report: content}))
    marker = tmp_path / "pwned"
    folder = tmp_path / "out"
    paths = [reserve(folder, t.replace("{TMP}", str(tmp_path)), ending) for t in titles()]
    for path in paths:
        write_report(REPORT, path)
        assert path.resolve().parent == folder
        assert is_good(path.name)
    assert len(paths) == len({p.name.casefold() for p in paths}) == len(os.listdir(folder)) == 30
    assert not marker.exists()
    assert all(p.read_bytes() == content for p in paths)
    assert len(content) > 500


def test_a_cut_title_keeps_whole_letters_and_its_number() -> None:
    long = "潮" * 200
    first = unique_name(long, ".html", [])
    second = unique_name(long, ".html", [first])
    assert first.endswith("潮.html")
    assert second.endswith("潮 (2).html")
    assert len(second.encode()) <= 255


def test_a_cut_does_not_part_a_letter_from_its_marks() -> None:
    name = safe_name("x" * 249 + "e\u0301\u0323\u0331", ".md")
    assert unicodedata.normalize("NFD", name[:-3])[-1] == "x" or len(name.encode()) <= 255
    assert not unicodedata.combining(safe_name("a" * 251 + "\u0331", ".md")[-4])


@pytest.mark.parametrize("title", ["CON", "nul.txt", "com1", "LPT9.pdf", "aux."])
def test_names_that_windows_keeps_for_itself_are_changed(title: str) -> None:
    assert safe_name(title, ".md").split(".")[0].upper() not in RESERVED | {"LPT9"}


def test_a_title_of_nothing_becomes_a_report() -> None:
    assert [safe_name(t, ".md") for t in ("", "   ", "???", "..", "\u200b")] == ["report.md"] * 5


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300), st.sampled_from([".md", ".html", ".json"]))
def test_any_title_is_a_good_name(title: str, ending: str) -> None:
    name = safe_name(title, ending)
    assert is_good(name)
    assert name.endswith(ending)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.sampled_from("aAéE\u0301 ?"), max_size=4), max_size=12))
def test_names_never_meet(found: list[str]) -> None:
    names: list[str] = []
    for title in found:
        names.append(unique_name(title, ".md", names))
    assert len({unicodedata.normalize("NFC", n).casefold() for n in names}) == len(names)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_a_download_header_is_ascii_on_one_line_and_tells_the_exact_name(title: str) -> None:
    name = safe_name(title, ".html")
    header = content_disposition(name)
    assert header.isascii()
    assert header.isprintable()
    plain, exact = header.removeprefix('attachment; filename="').split("\"; filename*=UTF-8''")
    assert unquote(exact) == name
    assert plain.endswith(".html")
    assert '"' not in plain
    assert len(plain) > len(".html")


def test_the_page_shows_the_title_as_typed(tmp_path: Path) -> None:
    for number, title in enumerate(t for t in titles() if t.strip() and "\u202e" not in t and len(t) < 100):
        report = REPORT.model_copy(update={"title": " ".join(title.replace("\x00", "").replace("\u200b", "").split())})
        path = write_report(report, tmp_path / f"{number}.html")
        head = path.read_text("utf-8").split("<title>")[1].split("</title>")[0]
        assert unescape(head) == report.title


# ---- writing


@pytest.mark.parametrize("ending", [".md", ".html", ".json", ".bib", ".ris"])
def test_each_text_format_is_written_whole(tmp_path: Path, ending: str) -> None:
    path = write_report(REPORT, tmp_path / f"report{ending}")
    text = path.read_bytes().decode("utf-8")
    assert "江厦潮汐电站" in text
    assert "\r" not in text or ending == ".ris"
    assert ending[1:] in MEDIA_TYPES
    assert os.listdir(tmp_path) == [path.name]
    assert path.stat().st_mode & 0o111 == 0
    if ending == ".json":
        assert from_json(text) == REPORT


def test_the_ending_decides_in_any_case() -> None:
    assert format_of(Path("a.HTML")) == "html"
    assert format_of(Path("a.htm")) == "html"
    assert format_of(Path("a.markdown")) == "md"
    assert format_of(Path("a.PDF")) == "pdf"
    assert set(FORMATS) == set(MEDIA_TYPES)


def test_a_report_is_rendered_as_text_or_the_formats_are_named() -> None:
    assert render(REPORT, "md").startswith("# Tidal power")
    assert from_json(render(REPORT, "json")) == REPORT
    with pytest.raises(UsageError) as caught:
        render(REPORT, "pdf")
    assert caught.value.hint == "choose one of md, html, json, bib, ris"


@pytest.mark.parametrize("name", ["report", "report.xyz", ".md", "report.", "report.md.exe", "a\0b.md"])
def test_an_unknown_ending_is_a_mistake_that_names_the_formats(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        write_report(REPORT, tmp_path / name)
    assert "\0" in name or ".md, .html, .json, .pdf, .docx, .bib, .ris" in caught.value.hint
    assert os.listdir(tmp_path) == []


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    assert write_report(REPORT, tmp_path / "a" / "b" / "r.md").read_text("utf-8").startswith("# Tidal power")


@pytest.mark.parametrize("place", ["folder.md", "file/r.md", "x" * 300 + ".md"])
def test_where_no_file_can_be_the_error_says_so_and_nothing_is_left(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(UsageError):
        write_report(REPORT, tmp_path / place)
    with pytest.raises(UsageError):
        write_report(REPORT, tmp_path / place)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.md"]


def test_targets_can_be_checked_before_a_run(tmp_path: Path) -> None:
    check_path(tmp_path / "new" / "r.html")
    assert (tmp_path / "new").is_dir()
    for wrong in (tmp_path, tmp_path / "r.docm"):
        with pytest.raises(UsageError):
            check_path(wrong)


def test_an_old_report_is_replaced_and_a_link_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "real.md", tmp_path / "link.md"
    real.write_text("old", "utf-8")
    link.symlink_to(real)
    write_report(REPORT, link)
    assert link.is_symlink()
    assert real.read_text("utf-8").startswith("# Tidal power")


def test_files_are_utf8_whatever_the_locale(tmp_path: Path) -> None:
    body = case_file("REP-02", "emoji-report.md").read_text("utf-8")
    sentence = said(" ".join(body.split()), E1)
    draft = Draft(section="s1", revision=1, blocks=(Block(kind="paragraph", sentences=(sentence,)),))
    source = tmp_path / "r.json"
    source.write_bytes(FORMATS["json"](build_report(inputs(drafts={"s1": draft}))))
    code = (
        "import sys; from pathlib import Path; from marg_ray.report.model import from_json; "
        "from marg_ray.report.writers import write_report; report = from_json(Path(sys.argv[1]).read_bytes()); "
        "[write_report(report, Path(p)) for p in sys.argv[2:]]"
    )
    targets = [tmp_path / f"out.{name}" for name in ("md", "html", "json", "pdf", "docx", "bib", "ris")]
    done = subprocess.run(
        [sys.executable, "-c", code, source, *targets],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    for target in targets[:3]:
        text = target.read_bytes().decode("utf-8")
        assert "🌊" in text
        assert "潮汐" in text
    assert "潮汐" in pypdfium2.PdfDocument(targets[3])[1].get_textpage().get_text_bounded()
    assert "🌊" in "".join(p.text for p in docx.Document(str(targets[4])).paragraphs)
    for target in targets[5:]:
        assert "Rance" in target.read_bytes().decode("utf-8")


def test_importing_the_report_loads_no_heavy_library() -> None:
    code = (
        "import sys, marg_ray.report.writers, marg_ray.report.model, marg_ray.report.assemble; "
        "print([m for m in ('jinja2', 'nh3', 'markdown_it', 'weasyprint', 'docx', 'ray', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
