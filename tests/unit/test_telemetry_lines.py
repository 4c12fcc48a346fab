"""Log lines: one per event with its fields, without secrets and without texts of the run; none by default."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marg_ray.models.testing import CannedModel
from marg_ray.settings import ModelSettings, Settings, TelemetrySettings
from marg_ray.telemetry import lines
from marg_ray.telemetry.masking import MASK, Mask, secrets_in
from tests.flow import TIDES, World

QUESTION = "How much power do ZEBRAFISH tidal stations produce?"


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    lines.reset()


def configured(file: Path, level: str = "info", log_format: str = "json", **more: Any) -> Path:
    how = TelemetrySettings.model_validate({"log_format": log_format, "log_level": level, "log_file": str(file)})
    lines.configure(how, actor="test", **more)
    return file


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.fixture
async def told(tmp_path: Path) -> tuple[World, list[dict[str, Any]]]:
    """A whole run, and its lines."""
    file = configured(tmp_path / "lines.jsonl")
    world = World(tmp_path / "world")
    await world.ask(QUESTION)
    return world, read(file)


async def test_every_task_enters_once_and_exits_once(told: tuple[World, list[dict[str, Any]]]) -> None:
    world, said = told
    answered = [e.message for e in await world.store.read("S") if e.message.seconds]
    tasks = [m.task_id.removeprefix("S/") for m in answered]
    assert len(tasks) > 8
    assert sorted(line["task"] for line in said if line["event"] == "ENTER") == sorted(tasks)
    exits = [line for line in said if line["event"] == "EXIT"]
    assert [line["task"] for line in exits] == tasks
    assert all(
        {"time", "level", "actor", "session", "role", "iteration", "latency", "sources"} <= set(x) for x in exits
    )
    assert [line["latency"] for line in exits] == [m.seconds for m in answered]


async def test_an_exit_names_what_became_due_because_of_it(told: tuple[World, list[dict[str, Any]]]) -> None:
    _, said = told
    entered: list[str] = []
    for line in said:
        if line["event"] == "ENTER":
            entered.append(line["task"])
        elif line["event"] in ("EXIT", "SESSION"):
            assert entered == line.get("due", [])
            entered = []
    assert next(line["due"] for line in said if line["event"] == "SESSION") == ["scout/search/0"]


async def test_the_critics_scores_and_what_was_spent_stand_in_their_lines(
    told: tuple[World, list[dict[str, Any]]],
) -> None:
    world, said = told
    review = (await world.coordinator.state("S")).reviews[-1]
    line = next(line for line in reversed(said) if line.get("kind") == "review" and line["event"] == "EXIT")
    assert line["scores"] == review.scores.model_dump()
    assert line["verdict"] == review.verdict
    drafts = [line for line in said if line.get("kind") == "draft" and line["event"] == "EXIT"]
    assert drafts
    assert all(line["tokens"] == line["tokens_in"] + line["tokens_out"] for line in drafts)
    searches = [line for line in said if line.get("kind") == "search" and line["event"] == "EXIT"]
    assert {line["found"] for line in searches} == {len(TIDES)}


async def test_every_tool_call_has_its_result(told: tuple[World, list[dict[str, Any]]]) -> None:
    world, said = told
    calls = [(line["task"], line["tool"]) for line in said if line["event"] == "TOOL_CALL"]
    results = [(line["task"], line["tool"]) for line in said if line["event"] in ("TOOL_RESULT", "ERROR")]
    assert sorted(calls) == sorted(results)
    assert {tool for _, tool in calls} == {"model", "web_search", "fetch"}
    assert len(calls) >= len(await world.store.calls("S"))


async def test_no_line_bears_the_question_a_page_or_a_text(told: tuple[World, list[dict[str, Any]]]) -> None:
    _, said = told
    text = json.dumps(said, ensure_ascii=False)
    words = ["ZEBRAFISH", "tides.test", "La Rance", "megawatts", "How much power"]
    assert [word for word in words if word in text] == []


async def test_at_debug_a_line_says_what_it_is_about(tmp_path: Path) -> None:
    file = configured(tmp_path / "lines.jsonl", "debug")
    await World(tmp_path / "world").ask(QUESTION)
    assert {line.get("location") for line in read(file)} >= set(TIDES)


async def test_a_failed_task_is_an_error_of_its_class(tmp_path: Path) -> None:
    file = configured(tmp_path / "lines.jsonl")
    await World(tmp_path / "world", broken=frozenset({"analyse"})).ask(QUESTION)
    (error,) = [line for line in read(file) if line["event"] == "ERROR"]
    assert (error["role"], error["kind"], error["error"]) == ("analyst", "analyse", "ZeroDivisionError")
    assert "detail" not in error  # its words may be anybody's


async def test_by_default_no_line_is_built_and_structlog_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never() -> None:
        raise AssertionError("a line was built")

    monkeypatch.setattr(lines, "_structlog", never)
    file = configured(tmp_path / "lines.jsonl", "warning")
    await World(tmp_path / "world").ask(QUESTION)
    assert file.read_text() == ""


def test_the_default_settings_are_the_quiet_ones() -> None:
    assert TelemetrySettings().log_level == "warning"
    code = "import sys, marg_ray.telemetry.lines as l, marg_ray.settings as s; l.configure(s.TelemetrySettings());"
    code += "print([m for m in ('structlog', 'prometheus_client', 'opentelemetry.sdk') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


async def test_text_lines_are_logfmt_and_move_no_cursor(tmp_path: Path) -> None:
    file = configured(tmp_path / "lines.txt", log_format="text")
    lines.say("EXIT", session="S", due=("a", "b"), scores={"accuracy": 0.5}, detail='red\x1b[31m\r\nand = "more"')
    (line,) = file.read_text().splitlines()
    assert line.partition("Z ")[2] == (
        'level=info actor=test event=EXIT session=S due=a,b scores.accuracy=0.5 detail="red [31m \\nand = \\"more\\""'
    )
    assert line.startswith("time=20")


SECRETS = [
    ("Authorization: Bearer abcdef123456", "abcdef123456"),
    ("{'authorization': 'Token abcdef123456'}", "abcdef123456"),
    ("x-api-key=abcdef123456 and more", "abcdef123456"),
    ('{"api_key": "abcdef123456"}', "abcdef123456"),
    ("key sk-proj-abcdef123456 was refused", "abcdef123456"),
    ("postgresql+asyncpg://marg:hunter22@db:5432/marg", "hunter22"),
    ("GET https://api.test/v1?q=tides&key=abcdef123456&x=1", "abcdef123456"),
    ("token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "c2lnbmF0dXJl"),
    ("AIzaSyA1234567890abcdef", "SyA1234567890"),
    ("password=hunter22", "hunter22"),
    ("Cookie: session=abcdef123456; other=fedcba654321", "fedcba654321"),
    ("a secret that is known: plainwords", "plainwords"),
    (f"the service's own marg_{'0a' * 6}_{'1b' * 32}", "1b" * 32),
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
@pytest.mark.parametrize("log_format", ["json", "text"])
def test_secrets_do_not_get_into_lines(text: str, secret: str, log_format: str, tmp_path: Path) -> None:
    file = configured(tmp_path / "lines", log_format=log_format, secrets=["plainwords"])
    lines.say("ERROR", detail=text, inner={"deep": [text]}, api_key=secret, token=secret, tokens=12)
    logging.getLogger("marg_ray.anything").error("it said %s", text)
    try:
        raise ValueError(text)
    except ValueError:
        logging.getLogger("marg_ray.anything").exception("it failed")
    written = file.read_text("utf-8")
    assert secret not in written
    assert written.count(MASK) >= 2
    assert "it said" in written
    assert "ValueError" in written
    assert ("tokens=12" if log_format == "text" else '"tokens": 12') in written


def test_ordinary_texts_stay_as_they_are() -> None:
    text = "The keyboard was basic; session 20261130-120000-ab12cd read https://a.test/x?q=tides in 3 s: key findings"
    assert Mask(["short"]).text(text) == text


def test_masking_takes_no_time_over_a_hostile_text() -> None:
    import time

    mask, base = Mask(), "plain words, " * 1500
    began = time.process_time()
    for _ in range(3):
        mask.text(base)
    plain = time.process_time() - began
    began = time.process_time()
    for text in ("a-" * 9_000, "api_key" * 2_500, "eyJ" * 6_000, "://" * 6_000, "bearer " * 2_500):
        mask.text(text)
    assert time.process_time() - began < 100 * plain + 0.5


def test_the_settings_and_the_environment_name_the_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "from-the-environment")
    models = ModelSettings.model_validate({"api_key": "first-key", "keys": {"groq": "second-key"}})
    settings = Settings(models=models)
    assert {"first-key", "second-key", "from-the-environment"} <= set(secrets_in(settings))


WRITER = """
import sys
from marg_ray.settings import TelemetrySettings
from marg_ray.telemetry import lines
lines.configure(TelemetrySettings(log_format="json", log_level="info", log_file=sys.argv[1]), actor=sys.argv[2])
for n in range(60):
    lines.say("EXIT", n=n, filler="x" * 15_000)
"""


async def test_what_goes_wrong_in_telling_does_not_go_wrong_in_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("telemetry")

    from marg_ray.telemetry import events

    file = configured(tmp_path / "lines.jsonl")
    for name in ("_told", "_where", "_spent"):
        monkeypatch.setattr(events, name, broken)
    state = await World(tmp_path / "world").ask(QUESTION)
    assert state.report is not None
    assert state.report.status == "passed"
    assert "telemetry: recorded failed" in file.read_text()


def test_several_processes_share_a_file_without_mixing_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "lines.jsonl"
    command = [sys.executable, "-c", WRITER, str(file)]
    writers = [subprocess.Popen([*command, name]) for name in ("a", "b")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found = read(file)
    assert [[x["n"] for x in found if x["actor"] == actor] for actor in "ab"] == [list(range(60))] * 2


def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LOOK_EVERY_S", 0.0)
    file = configured(tmp_path / "lines.jsonl")
    lines.say("EXIT", n=1)
    os.rename(file, tmp_path / "lines.1")
    lines.say("EXIT", n=2)
    assert [x["n"] for x in read(tmp_path / "lines.1")] == [1]
    assert [x["n"] for x in read(file)] == [2]


def test_a_file_that_cannot_be_written_costs_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    configured(tmp_path / "file" / "lines.jsonl")
    lines.say("EXIT", n=1)
    first, second = capsys.readouterr().err.splitlines()
    assert "cannot be written" in json.loads(first)["event"]
    assert json.loads(second)["n"] == 1


def test_a_log_file_is_the_same_for_every_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert TelemetrySettings(log_file="lines.jsonl").log_file == str(tmp_path / "lines.jsonl")


async def test_a_model_that_is_refused_for_its_key_tells_no_key(tmp_path: Path) -> None:
    """The error of a call stands in no line unless its words are ours; the known secret is masked even there."""
    from marg_ray.errors import ModelUnavailable

    def refuse(*_: object) -> None:
        raise ModelUnavailable("http://model.test", "401: invalid key verysecretkey")

    from marg_ray.models.tasks import MakePlan

    file = configured(tmp_path / "lines.jsonl", secrets=["verysecretkey"])
    await World(tmp_path / "world", model=CannedModel({MakePlan: refuse})).ask(QUESTION)
    errors = [line for line in read(file) if line["event"] == "ERROR"]
    assert errors
    assert "verysecretkey" not in file.read_text()
    assert any(MASK in line.get("detail", "") for line in errors)
