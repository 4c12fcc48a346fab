"""What the documentation says is so."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    assert dict(leaves(given)).items() <= dict(leaves(load().model_dump(include=set(given)))).items()


def leaves(table: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Each value of a nested table, as text, by its dotted name."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", json.dumps(value, default=str)


def error_classes(root: type[errors.MargError] = errors.MargError) -> Iterator[type[errors.MargError]]:
    yield root
    for child in root.__subclasses__():
        yield from error_classes(child)


def test_the_readme_lists_every_exit_code() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", readme, re.M)}
    ours = {cls.exit_code for cls in error_classes() if cls.__module__ == errors.__name__}
    assert listed == ours | {0, 3, 7, 8}


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


def code_of(page: str, language: str) -> list[str]:
    found = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [code for lang, code in found if lang == language]


def examples_that_assert() -> list[object]:
    return [p for p in blocks("python") if "assert " in p.values[1]]  # type: ignore[attr-defined]


def test_there_are_examples_that_run() -> None:
    assert len(examples_that_assert()) >= 2


@pytest.mark.parametrize(("language", "code"), examples_that_assert())
def test_examples_that_assert_something_run(language: str, code: str) -> None:
    exec(compile(code, "<documentation>", "exec"), {"__name__": "documentation"})


def test_names_in_python_examples_exist() -> None:
    """Examples that need Ray are not run here, but what they import is there and takes the arguments that are given."""
    import importlib
    import inspect

    from marg_ray.client import Marg

    options = set(inspect.signature(Marg.research).parameters)
    calls = 0
    for page in PAGES:
        for code in code_of(str(page.relative_to(ROOT)), "python"):
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("marg_ray"):
                    module = importlib.import_module(node.module or "")
                    assert [n.name for n in node.names if not hasattr(module, n.name)] == []
                if isinstance(node, ast.Call) and ast.unparse(node.func) in ("marg.research", "research"):
                    calls += 1
                    assert {k.arg for k in node.keywords} <= options, page.name
    assert calls >= 2


def test_the_python_page_lists_every_option() -> None:
    import inspect

    from marg_ray.client import Marg

    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(inspect.signature(Marg.research).parameters) - {"self", "question"} <= listed


def commands() -> dict[str, set[str]]:
    """The flags of every command, with those of its parts."""
    import typer

    from marg_ray.cli import app

    group = typer.main.get_command(app)
    assert hasattr(group, "commands")
    return {name: flags(command) for name, command in group.commands.items()}


def flags(command: Any) -> set[str]:
    own = {flag for p in command.params for flag in (*p.opts, *p.secondary_opts)} | {"--help"}
    return own.union(*(flags(part) for part in getattr(command, "commands", {}).values()))


def test_the_readme_lists_every_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `marg (\w+)", readme, re.M)) == set(commands())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_flags_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    known = commands()
    all_flags = set().union(*known.values())
    for line in re.findall(r"(?:`|^ *(?:\$ )?(?:\.venv/bin/)?)marg ([^\n`]+)", text, re.M):
        name, _, rest = line.split("#")[0].partition(" ")
        if name.startswith("-"):  # `marg --help`
            continue
        assert name in known, f"{page.name}: marg {line}"
        given = re.findall(r"(?<!\S)--?[a-z][a-z-]*", re.sub(r'"[^"]*"', "", rest))
        assert set(given) <= known[name], f"{page.name}: marg {line}"
    assert set(re.findall(r"`(--[a-z-]+)(?: [A-Z]+)?`", text)) <= all_flags, page.name


def test_named_tests_exist() -> None:
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    there = set(re.findall(r"def (test_\w+)\(", tests))
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8"))}
    assert len(named) > 20
    assert sorted(named - there) == []


def test_every_row_of_the_failures_names_a_test() -> None:
    page = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")][2:]
    assert [row for row in rows if not re.search(r"\| `test_\w+` \|$", row)] == []


def test_the_excerpt_stands_in_the_library() -> None:
    from marg_ray.sources.parse import parse

    (excerpt,) = code_of("README.md", "markdown")
    files = sorted((ROOT / "examples" / "library").iterdir())
    texts = " ".join(" ".join(parse(f.read_bytes(), name=f.name).text.split()) for f in files)
    body = excerpt.partition("## In brief")[2].partition("## References")[0]
    paragraphs = [line for line in body.splitlines() if re.search(r"\[\d+\]$", line)]
    assert len(paragraphs) >= 4
    prose = [re.sub(r"^- |^\*\*[^*]+\*\* | \[\d+\]$", "", p) for p in paragraphs if not p.startswith("- station:")]
    sentences = [s for p in prose for s in re.split(r"(?<=[.])\s+(?=[A-Z])", p)]
    assert [s for s in sentences if s not in texts] == []
    assert [path for path in re.findall(r"`(examples/\S+)`", excerpt) if not (ROOT / path).exists()] == []


def test_thresholds_in_the_documentation_are_those_of_the_code() -> None:
    from marg_ray.grounding.verify import PARTIAL_FROM, SUPPORTED_FROM
    from marg_ray.quality import THRESHOLDS
    from marg_ray.state import MIN_COVERAGE

    page = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")
    for name, value in THRESHOLDS.model_dump().items():
        assert f"{name} {value:.2f}".replace(" 0.", " .") in page
    for value in (SUPPORTED_FROM, PARTIAL_FROM, MIN_COVERAGE):
        assert f"{value:.2f}"[1:] in page
