"""`marg batch` on the command line: what is refused, what is shown, what is skipped. No Ray: nothing is left to do, or
the runtime is in this process."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from marg_ray.actors.live import Progress, Running
from marg_ray.batch.asking import Here
from marg_ray.batch.folder import BatchFolder
from marg_ray.batch.results import RowResult, asked_of
from marg_ray.batch.thresholds import Thresholds, summarise
from marg_ray.cli.batch_board import BatchBoard, closing, line_of, stage_of
from marg_ray.cli.batch_run import Command, RowDefaults, read_questions, request_maker
from marg_ray.client import Marg, Step
from marg_ray.errors import UsageError
from marg_ray.kinds import Priority
from marg_ray.settings import load
from marg_ray.state import ResearchState
from tests.flow import World
from tests.unit.batches import Nearby, a_row, a_todo, lines_of, reborn
from tests.unit.test_cli import marg


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def near(home: Path, monkeypatch: pytest.MonkeyPatch) -> Nearby:
    """What `marg batch` finds in the place of a Ray."""
    nearby = Nearby(World(home / "world"))

    async def start(self: Marg) -> None:
        nearby.world = reborn(nearby.world)
        nearby.started += 1

    monkeypatch.setattr(Marg, "start", start)
    for name in ("known", "submit", "resume", "follow", "index", "report"):
        monkeypatch.setattr(Here, name, _of(nearby, name))
    return nearby


def _of(nearby: Nearby, name: str) -> Any:
    def call(self: Here, *args: Any) -> Any:
        return getattr(nearby, name)(*args)

    return call


def write(home: Path, *rows: object, name: str = "q.jsonl") -> str:
    (home / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return name


def test_a_batch_runs_and_is_not_run_again(
    near: Nearby, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = write(
        home,
        {"question": "How much power do tidal stations produce?", "id": "a"},
        {"question": 3},
        {"question": "What else do tidal stations produce, and how much power?"},
    )
    args = ("batch", name, "-o", "out", "--depth", "overview", "--max-failed", "1", "-f", "md", "-f", "json")
    assert marg(monkeypatch, *args) == 0
    told = capsys.readouterr().err
    assert "marg: line 2: question: " in told
    assert "passed  a: " in told
    assert "2 reports" in told
    assert {r.key: r.status for r in lines_of(home / "out")} == {
        "line-2": "invalid",
        "a": "passed",
        next(r.key for r in lines_of(home / "out") if r.key.startswith("what-else-do-")): "passed",
    }
    assert {p.name for p in (home / "out").glob("a.*")} == {"a.md", "a.json"}
    assert all(priority is Priority.BATCH for priority in near.priorities)
    asked = len(near.submitted)
    assert marg(monkeypatch, *args) == 0
    assert len(near.submitted) == asked
    assert near.started == 1, "nothing was left to do, so no runtime was started"
    assert len(lines_of(home / "out")) == 3
    (home / "out" / "a.json").unlink()
    assert marg(monkeypatch, *args) == 0
    assert len(near.submitted) == asked
    assert (home / "out" / "a.json").exists()


def test_what_a_machine_reads(
    near: Nearby, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = write(home, {"question": "How much power do tidal stations produce?", "id": "a"}, {"q": 1})
    assert marg(monkeypatch, "batch", name, "-o", "out", "--json") == 8
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [e["kind"] for e in events] == ["problem", "begun", "ended", "end"]
    assert events[2]["status"] in ("passed", "quality_warning")
    assert events[3]["exit_code"] == 8
    assert events[3]["failed"] == 1


def test_with_strict_a_wrong_row_stops_everything(
    near: Nearby, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = write(home, {"question": "How much?"}, {"question": "a?", "docs": "no/such"})
    assert marg(monkeypatch, "batch", name, "-o", "out", "--strict") == 2
    told = capsys.readouterr().err
    assert "line 2: there is no folder" in told
    assert "nothing was begun" in told
    assert not near.submitted


def test_a_row_whose_question_has_changed_is_asked_anew(
    near: Nearby, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home, {"question": "How much power do tidal stations produce?", "id": "a"})
    assert marg(monkeypatch, "batch", "q.jsonl", "-o", "out") == 0
    write(home, {"question": "How much power do tidal stations produce, and where?", "id": "a"})
    assert marg(monkeypatch, "batch", "q.jsonl", "-o", "out") == 0
    assert "asked anew" in capsys.readouterr().err
    (line,) = lines_of(home / "out")
    assert line.question == "How much power do tidal stations produce, and where?"
    assert marg(monkeypatch, "batch", "q.jsonl", "-o", "out", "--again", "passed", "--again", "quality_warning") == 0
    assert len(near.submitted) == 3


def test_questions_come_from_standard_input(
    near: Nearby, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"How much power do tidal stations produce?\n# no\n")))
    assert marg(monkeypatch, "batch", "-", "-o", "out") == 0
    (line,) = lines_of(home / "out")
    assert line.question == "How much power do tidal stations produce?"


def test_thresholds_are_the_exit_code(
    near: Nearby, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = write(home, {"question": "How much power do tidal stations produce?", "id": "a", "depth": "overview"})
    assert marg(monkeypatch, "batch", name, "-o", "out", "--min-supported", "0.9", "--min-passed", "1") == 0
    wrong = write(
        home,
        {"question": "How much power do tidal stations produce?", "id": "a", "depth": "overview"},
        {"question": ""},
        name="w.jsonl",
    )
    assert marg(monkeypatch, "batch", wrong, "-o", "out", "--min-passed", "0.6", "--max-failed", "9") == 8
    assert "passed: 0.500 of the rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("none.jsonl", "-o", "out"), "no such file"),
        (("empty.txt", "-o", "out"), "no question"),
        (("list.json", "-o", "out"), "jq"),
        (("q.txt", "-o", "q.txt"), "cannot be used"),
        (("q.txt", "-o", "out", "--no-wait"), "--submit"),
        (("q.txt", "-o", "out", "--env", "A=1"), "--submit"),
        (("q.txt", "-o", "out", "--submit", "127.0.0.1:9", "--env", "NOT_SET_ANYWHERE"), "not set here"),
    ],
)
def test_every_mistake_is_one_sentence(
    args: tuple[str, ...], said: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "empty.txt").write_text("\n# nothing\n")
    (home / "list.json").write_text('[{"question": "a?"}]')
    (home / "q.txt").write_text("a?\n")
    assert marg(monkeypatch, "batch", *args) == 2
    error = capsys.readouterr().err
    assert said.lower() in error.lower()
    assert "Traceback" not in error


def test_rows_say_what_they_need_and_the_command_the_rest(home: Path) -> None:
    (home / "sub" / "papers").mkdir(parents=True)
    (home / "shared").mkdir()
    write(
        home,
        {"question": "a?", "docs": "papers", "limits": {"usd": 1}, "owner": "ann", "sections": ["Costs: cost"]},
        {"question": "b?", "web": True, "depth": "deep", "language": "de"},
        name="sub/q.jsonl",
    )
    defaults = RowDefaults(docs=(home / "shared",), limits={"tokens": 9, "usd": 2.0}, language="fr")
    command = Command("sub/q.jsonl", home / "out", defaults=defaults)
    make = request_maker(load(), command)
    a, b = map(make, read_questions(command).rows)
    assert a.sources.folders == (str(home / "sub" / "papers"),)
    assert (a.sources.web, b.sources.web) == (False, True)
    assert b.sources.folders == (str(home / "shared"),)
    assert (a.limits.usd, a.limits.tokens, b.limits.usd) == (1, 9, 2)
    assert (a.owner, b.owner) == ("ann", "local")
    assert (a.language, b.language, b.depth) == ("fr", "de", "deep")
    assert a.outline[0].queries == ("cost",)
    assert a.priority is Priority.BATCH


def test_a_row_with_limits_that_are_none_is_named(home: Path) -> None:
    write(home, {"question": "a?", "deadline": "yesterday"})
    command = Command("q.jsonl", home / "out")
    with pytest.raises(UsageError, match="deadline"):
        request_maker(load(), command)(read_questions(command).rows[0])


# ---- what is shown


def _console(width: int = 100, height: int = 24) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, color_system=None, width=width, height=height, _environ={})


def _step(*kinds: str, position: int = 0) -> Step:
    running = tuple(
        Running(id=str(n), role="r", kind=kind, section="", target="", since=0.0) for n, kind in enumerate(kinds)
    )
    return Step(Progress(entries=(), running=running, status="running", position=position), ResearchState())


def test_a_stage_is_the_furthest_that_is_under_way() -> None:
    assert stage_of(_step("search", "read", "read")) == "reading 2"
    assert stage_of(_step("draft", "search")) == "writing"
    assert stage_of(_step(position=3)) == "third in the queue"
    assert stage_of(_step()) == ""


@pytest.mark.parametrize(("width", "height"), [(120, 30), (60, 12), (30, 8)])
def test_the_table_fits_its_terminal(width: int, height: int) -> None:
    console, now = _console(width, height), [0.0]
    board = BatchBoard(console, rows=200, done=7, clock=lambda: now[0])
    todos = [a_todo(a_row(f"r{n}", "A long question \x1b[31m with 潮汐 in it " * 4)) for n in range(40)]
    for todo in todos:
        board.began(todo, "s")
        board.step(todo, _step("read"))
    now[0] = 90.0
    for todo in todos[:9]:
        board.ended(todo, RowResult(key=todo.row.key, status="passed", sentences=3, words=9, tokens=5))
    with console.capture() as shown:
        console.print(board.render())
    lines = shown.get().splitlines()
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert "\x1b" not in shown.get()
    if width > 100:
        assert "7 done before · 9 delivered · 31 running · 153 queued" in lines[0]
        assert "about 30:40 left" in lines[1]
        assert "reading" in shown.get()


def test_elsewhere_every_row_that_ends_is_one_line() -> None:
    console = Console(file=io.StringIO(), width=200)
    board = BatchBoard(console, rows=2)
    todo = a_todo(a_row("a"))
    with board:
        board.began(todo, "s")
        board.ended(todo, RowResult(key="a", status="passed", sentences=3, words=412, supported=0.995, sources=6))
    (line,) = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert "1/2  passed  a: 412 words, 99 % supported, 6 sources" in line


def test_a_line_of_a_row_without_a_report_says_why() -> None:
    result = RowResult.model_validate(
        {"key": "a", "status": "error", "error": {"type": "X", "detail": "the \x1b[1mdisk\nis full"}}
    )
    assert line_of(result, 1.0, 1, 1).endswith("error  a: the [1mdisk is full")


def test_the_closing_account() -> None:
    results = [
        RowResult(key="a", status="passed", sentences=2, words=5, verdicts={"supported": 2}, quality=0.9),
        RowResult(key="b", status="halted"),
    ]
    console = Console(file=io.StringIO(), width=100)
    console.print(closing(summarise(results, Thresholds(min_quality=0.95), not_begun=3)))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "5 in all · 1 passed · 1 halted · 3 not begun" in text
    assert "100 % of the sentences supported" in text
    assert "failed: 1, at most 0 may" in text
    assert "quality: 0.900" in text


# ---- interrupted


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_says_how_to_go_on(
    sign: signal.Signals, near: Nearby, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def stop(session: str) -> None:
        os.kill(os.getpid(), sign)
        await asyncio.Event().wait()

    name = write(
        home, {"question": "How much power do tidal stations produce?", "id": "a"}, {"question": "And else?", "id": "b"}
    )
    near.gate = stop
    assert marg(monkeypatch, "batch", name, "-o", "out") == 130
    told = capsys.readouterr().err
    assert "interrupted; 0 of 2 rows are done" in told
    assert f"marg batch {name} -o out" in told
    near.gate = None
    before = {session for session, _, _ in near.submitted}
    assert marg(monkeypatch, "batch", name, "-o", "out") == 0
    assert {r.session for r in lines_of(home / "out")} >= before


def test_the_command_is_quick_to_load() -> None:
    code = "import sys, marg_ray.cli; sys.exit(any(m in sys.modules for m in ('ray', 'torch', 'filelock')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_folder_in_use_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = BatchFolder(home / "out")
    name = write(home, {"question": "How much power do tidal stations produce?"})
    assert marg(monkeypatch, "batch", name, "-o", "out") == 2
    folder.close()
    assert asked_of(a_todo(a_row("a")).request)
