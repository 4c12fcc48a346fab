from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from marg_ray.actors.assembly import Places
from marg_ray.cli import main
from marg_ray.store.sql import SqlStore, sqlite_url
from tests.flow import World
from tests.shared import case_file


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def finished(home: Path) -> str:
    """A session with a report under the home; its id."""

    async def make() -> str:
        world = World(home)
        await world.ask("How much power do tidal stations produce? 潮汐 🌊")
        store = await SqlStore.open(sqlite_url(Places(home).database))
        await store.create("S", owner="local", question="How much power do tidal stations produce? 潮汐 🌊")
        epoch, row = await store.take_over("S"), await world.store.session("S")
        for entry in await world.store.read("S"):
            await store.append("S", entry.message, expected_seq=entry.seq - 1, epoch=epoch, status=row.status)
        await store.close()
        return "S"

    return asyncio.run(make())


def marg(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    """Run the command in this process; its exit code."""
    monkeypatch.setattr("sys.argv", ["marg", *args])
    with pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    return code if isinstance(code, int) else 0


ODD = ["", "   ", "\n\t", "\x00\x01", '""', "\u200b\u200b"]


@pytest.mark.parametrize("question", ODD)
def test_a_question_that_says_nothing_is_refused_before_anything_is_stored(
    question: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert marg(monkeypatch, "research", question, "--docs", str(home.parent)) == 2
    error = capsys.readouterr().err
    assert error.startswith("marg: ")
    assert "Traceback" not in error
    assert not Places(home).database.exists()


def test_unusable_questions_of_the_case_are_refused_and_usable_ones_are_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from marg_ray.client import make_request
    from marg_ray.errors import UsageError

    for row in json.loads(case_file("SEA-04", "odd-queries.json").read_text("utf-8")):
        text = row.get("q", row.get("query", row.get("text")))
        if row["usable"]:
            assert make_request(text).question
        else:
            with pytest.raises(UsageError):
                make_request(text)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("research", "q?", "--docs", "/no/such/folder"), "no folder"),
        (("research", "q?", "--docs", ".", "-o", "report.xyz"), ".md"),
        (("research", "q?", "--docs", ".", "--class", "poem"), "full_research"),
        (("research", "q?", "--offline"), "nothing to search"),
        (("research", "q?", "--text", "/no/such/file"), "no such file"),
        (("show", "nope"), "nope"),
        (("show", "last"), "last"),
        (("resume", "nope"), "nope"),
    ],
)
def test_every_mistake_is_one_sentence_and_what_to_do(
    args: tuple[str, ...], said: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert marg(monkeypatch, *args) == 2
    error = capsys.readouterr().err
    assert said.lower() in error.lower()
    assert "Traceback" not in error


def test_a_setting_that_is_wrong_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MARG_RUNTIME__WORKERS", "many")
    assert marg(monkeypatch, "runs") == 2
    assert "runtime.workers" in capsys.readouterr().err


def test_runs_lists_sessions_and_show_prints_them(
    finished: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert marg(monkeypatch, "runs", "--json") == 0
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (row["id"], row["status"]) == (finished, "passed")
    assert marg(monkeypatch, "show", "last") == 0
    assert capsys.readouterr().out.startswith("# ")
    assert marg(monkeypatch, "show", finished, "--log") == 0
    assert "report ready: passed" in capsys.readouterr().out
    assert marg(monkeypatch, "show", finished, "--checks") == 0
    told = capsys.readouterr().out
    assert "supported 1.00: " in told  # a quotation
    assert "[1] “" in told


def test_a_source_is_printed_exactly_as_it_was_frozen(
    finished: str, home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert marg(monkeypatch, "show", finished, "-f", "json") == 0
    report = json.loads(capfdbinary.readouterr().out)
    for source in report["sources"]:
        assert marg(monkeypatch, "show", finished, "--source", source["id"]) == 0
        text = capfdbinary.readouterr().out.decode("utf-8")
        assert text == Places(home).snapshots.text(source["id"])


def test_an_unknown_source_is_an_error(
    finished: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert marg(monkeypatch, "show", finished, "--source", "../../etc/passwd") == 2
    assert "no session or source" in capsys.readouterr().err


def test_a_session_whose_process_is_gone_is_not_called_running(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import socket

    async def make() -> None:
        store = await SqlStore.open(sqlite_url(Places(home).database))
        await store.create("S", owner="local", question="q")
        await store.take_over("S", holder=f"{socket.gethostname()[:30]}/999999999/1")
        await store.close()

    asyncio.run(make())
    assert marg(monkeypatch, "runs", "--json") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "interrupted"


def test_doctor_says_which_model_and_why(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MARG_MODEL", "extractive")
    assert marg(monkeypatch, "doctor", "--offline", "--json") == 0
    findings = {f["name"]: f for f in map(json.loads, capsys.readouterr().out.splitlines())}
    assert "extractive" in findings["model"]["detail"]
    assert findings["home"]["detail"] == str(home)


def test_options_are_listed_in_groups(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert marg(monkeypatch, "research", "--help") == 0
    shown = capsys.readouterr().out
    places = [shown.index(f"\n{group}:\n") for group in ("Arguments", "Options", "Decisions", "Limits", "Output")]
    assert places == sorted(places)
    assert shown.index("--review") > places[2]
    assert places[3] < shown.index("--max-usd") < places[4] < shown.index("--out")
    assert "7 no end yet" in " ".join(shown.split())


def test_the_list_of_commands_loads_no_heavy_library() -> None:
    heavy = ("pydantic", "rich.live", "sqlalchemy", "jinja2", "numpy", "fastapi", "ray")
    code = f"import sys, marg_ray.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
