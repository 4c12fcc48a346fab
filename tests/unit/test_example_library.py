"""The example library is what examples/README.md says it is."""

from __future__ import annotations

import csv
import importlib.util
import re
import sys
import zipfile
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIBRARY = EXAMPLES / "library"
FILES = sorted(LIBRARY.iterdir())


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_library", EXAMPLES / "build_library.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def plain(name: str) -> str:
    """The words of a document, white space joined; for PDF and Word files those of the text they were built from."""
    path = LIBRARY / name
    if path.suffix in {".pdf", ".docx"}:
        path = EXAMPLES / "source" / f"{path.stem}.txt"
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        text = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", text, flags=re.S)
    return " ".join(text.split())


def test_every_kind_of_document_is_there() -> None:
    kinds = Counter(path.suffix for path in FILES)
    assert kinds == {".html": 5, ".md": 4, ".pdf": 2, ".docx": 2, ".csv": 2, ".txt": 1}
    assert sum(path.stat().st_size for path in FILES) < 1_000_000


@pytest.mark.parametrize("name", [p.name for p in FILES if p.suffix != ".csv"])
def test_a_document_is_neither_a_note_nor_a_book(name: str) -> None:
    assert 400 <= len(plain(name).split()) <= 1500


@pytest.mark.parametrize("name", [p.name for p in FILES if p.suffix == ".csv"])
def test_a_table_is_rectangular(name: str) -> None:
    with (LIBRARY / name).open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert len(rows) >= 8
    assert {len(row) for row in rows} == {len(header)}


def test_built_files_are_those_of_the_texts(builder: ModuleType, tmp_path: Path) -> None:
    for path in builder.build(tmp_path):
        committed = LIBRARY / path.name
        if path.suffix == ".docx":
            assert _members(path) == _members(committed), path.name
        else:
            assert _stable(path) == _stable(committed), path.name


def test_building_twice_gives_the_same_bytes(builder: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for first, second in zip(builder.build(tmp_path / "a"), builder.build(tmp_path / "b"), strict=True):
        assert first.read_bytes() == second.read_bytes()


def _members(path: Path) -> dict[str, bytes]:
    """Compared without compression, which differs between builds of zlib."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _stable(path: Path) -> list[str]:
    """What a PDF shows, page by page."""
    import pdfplumber

    with pdfplumber.open(path) as document:
        return [page.extract_text() or "" for page in document.pages]


def test_the_review_has_two_columns_and_a_table() -> None:
    import pdfplumber

    with pdfplumber.open(LIBRARY / "tidal-range-review.pdf") as document:
        page = document.pages[0]
        middle = page.width / 2
        left = [w for w in page.extract_words() if w["x1"] < middle]
        right = [w for w in page.extract_words() if w["x0"] > middle]
        assert min(len(left), len(right)) > 100
        tables = [t for p in document.pages for t in p.extract_tables()]
    assert ["La Rance", "1966", "240", "24", "500"] in tables[0]


def test_two_documents_disagree_on_one_figure() -> None:
    assert "La Rance generates about 540 GWh of electricity in an average year" in plain("la-rance.html")
    assert "La Rance generates about 500 GWh of electricity in an average year" in plain("tidal-range-review.pdf")


def test_one_document_is_out_of_date() -> None:
    old = plain("survey-of-tidal-stations-2010.txt")
    assert "March 2010" in old
    assert "with 240 MW, is the largest tidal power station in the world" in old
    assert "it has been the largest tidal power station in the world since it opened in August 2011" in plain(
        "sihwa-lake.html"
    )


def test_one_document_gives_orders_to_its_readers() -> None:
    orders = [p.name for p in FILES if p.suffix != ".csv" and "ignore all previous instructions" in plain(p.name)]
    assert orders == ["tidal-market-outlook.html"]


def test_there_are_three_questions() -> None:
    lines = (EXAMPLES / "questions.txt").read_text(encoding="utf-8").splitlines()
    questions = [line for line in lines if line and not line.startswith("#")]
    assert len(questions) == 3
    assert all(q.endswith("?") for q in questions)


def test_the_readme_names_every_document() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [p.name for p in FILES if f"`{p.name}`" not in readme] == []
