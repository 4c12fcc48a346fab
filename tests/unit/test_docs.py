"""What the documentation says is so."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from marg_ray import errors
from marg_ray.settings_doc import settings_markdown

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "examples" / "README.md"])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


def blocks(*languages: str) -> list[object]:
    return [
        pytest.param(language, code, id=f"{page.name}-{n}-{language}")
        for page in PAGES
        for n, (language, code) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
        if language in languages
    ]


def test_settings_page_is_that_of_the_settings() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page == settings_markdown(), "run: python -m marg_ray.settings_doc > docs/settings.md"


def test_every_setting_has_a_meaning() -> None:
    rows = [line for line in settings_markdown().splitlines() if line.startswith("| `")]
    assert len(rows) > 25
    assert [row for row in rows if row.endswith("|  |")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link.split("#")[0]).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:marg_ray|tests|docs|examples|benchmarks)/[\w./-]*)`", text))
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


@pytest.mark.parametrize(("language", "code"), blocks("python", "json", "toml"))
def test_code_blocks_can_be_read(language: str, code: str) -> None:
    match language:
        case "python":
            ast.parse(code)
        case "json":
            json.loads(code)
        case "toml":
            tomllib.loads(code)


@pytest.mark.parametrize(("language", "code"), blocks("toml"))
def test_toml_blocks_are_settings(language: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from marg_ray.settings import load

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MARG_HOME", str(tmp_path / "home"))
    (tmp_path / "marg.toml").write_text(code, encoding="utf-8")
    given = tomllib.loads(code)
    settings = load().model_dump(include=set(given))
    for area, values in given.items():
        for name, value in values.items() if isinstance(values, dict) else [("", values)]:
            assert (settings[area][name] if name else settings[area]) == value


def error_classes(root: type[errors.MargError] = errors.MargError) -> Iterator[type[errors.MargError]]:
    yield root
    for child in root.__subclasses__():
        yield from error_classes(child)


def test_the_readme_lists_every_exit_code() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", readme, re.M)}
    ours = {cls.exit_code for cls in error_classes() if cls.__module__ == errors.__name__}
    assert listed == ours | {0, 3}


def test_named_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for page in [*PAGES, ROOT / ".ci" / "run"]:
        named = re.findall(r"(?:^\$ |`|\" )make ([a-z]+)", page.read_text(encoding="utf-8"), re.M)
        assert set(named) <= targets, page.name


def pins() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    found = (re.fullmatch(r"([\w.-]+)==(\S+)", line) for line in lines if line and not line.startswith("#"))
    return {m[1].lower(): m[2] for m in found if m is not None}


def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [Requirement(r) for r in [*project["dependencies"], *project["optional-dependencies"]["dev"]]]


@pytest.mark.parametrize("wanted", declared(), ids=lambda r: r.name)
def test_the_lock_pins_what_is_declared(wanted: Requirement) -> None:
    name = re.sub(r"[-_.]+", "-", wanted.name).lower()
    assert name in pins(), "run: make lock"
    assert wanted.specifier.contains(pins()[name], prereleases=True), "run: make lock"


def test_the_lock_is_plain() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.!]+", line)] == []  # no paths, no build tags


def test_the_licence_is_the_declared_one() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    assert "Apache License\n                           Version 2.0, January 2004" in licence
    assert "END OF TERMS AND CONDITIONS" in licence
