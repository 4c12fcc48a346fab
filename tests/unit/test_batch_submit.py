"""A batch as a job: what is sent, and how the command line says so."""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from marg_ray.actors.deploy.jobs import JobState
from marg_ray.batch.folder import BatchFolder
from marg_ray.batch.results import RowResult
from marg_ray.batch.rows import Form, Row, read_rows
from marg_ray.batch.submit import QUESTIONS, Entry, local_paths, questions_file, variables, with_address
from marg_ray.batch.thresholds import Thresholds
from marg_ray.cli.batch_run import Command, RowDefaults
from marg_ray.cli.batch_submit import options_of
from marg_ray.errors import UsageError
from tests.unit.batches import lines_of
from tests.unit.test_cli import marg


@pytest.mark.parametrize(
    ("args", "whole"),
    [
        (["q.jsonl", "--submit"], ["q.jsonl", "--submit", "auto"]),
        (["--submit", "q.jsonl", "-o", "x"], ["--submit", "auto", "q.jsonl", "-o", "x"]),
        (["--submit", "--json"], ["--submit", "auto", "--json"]),
        (["--submit", "http://head:8265", "q"], ["--submit", "http://head:8265", "q"]),
        (["--submit", "10.0.0.1:6379"], ["--submit", "10.0.0.1:6379"]),
        (["--submit", "[::1]:6379"], ["--submit", "[::1]:6379"]),
        (["--submit", "ray://head:10001"], ["--submit", "ray://head:10001"]),
        (["--submit", "auto", "q"], ["--submit", "auto", "q"]),
        (["--submit=http://h:1", "q"], ["--submit=http://h:1", "q"]),
        (["--", "--submit"], ["--", "--submit"]),
        (["q"], ["q"]),
    ],
)
def test_submit_may_stand_alone(args: list[str], whole: list[str]) -> None:
    assert with_address(args) == whole


def test_rows_are_sent_with_their_keys_and_absolute_paths() -> None:
    rows = [
        Row(question='What is "it"? 潮', key="a", docs=("papers", "/abs"), text=("t.md",), line=3, meta={"n": 1}),
        Row(question="b?", key="b", limits={"usd": 0.5}, depth="deep"),  # type: ignore[arg-type]
    ]
    data = questions_file(rows, Path("/data"))
    first, second = map(json.loads, data.decode().splitlines())
    assert first["docs"] == ["/data/papers", "/abs"]
    assert first["text"] == ["/data/t.md"]
    back = read_rows(data, Form.JSONL)
    assert not back.problems
    assert back.rows[0].question == rows[0].question
    assert back.rows[0].meta == {"n": 1}
    assert back.rows[0].line == 3
    assert back.rows[1] == rows[1]
    assert "docs" not in second


def test_an_empty_list_of_docs_stays_empty() -> None:
    (row,) = read_rows(questions_file([Row(question="a?", key="a", docs=())], Path("/")), Form.JSONL).rows
    assert row.docs == ()


def test_every_path_that_the_cluster_must_have_is_named(tmp_path: Path) -> None:
    rows = [Row(question="a?", docs=("x",)), Row(question="b?", text=("y",))]
    assert local_paths(rows, tmp_path, [tmp_path / "z"]) == [tmp_path / "z", tmp_path / "x", tmp_path / "y"]
    assert local_paths(rows[:1], tmp_path, [tmp_path / "z"]) == [tmp_path / "x"]


def test_the_job_runs_the_same_command_on_its_own_cluster() -> None:
    command = Command(
        questions="q.jsonl",
        out=Path("out"),
        defaults=RowDefaults(
            docs=(Path("/shared/papers"),),
            web=False,
            offline=True,
            language="de",
            fresh=True,
            limits={"usd": 0.5, "deadline": "20m"},
        ),
        thresholds=Thresholds(max_failed=2, min_supported=0.9),
        at_once=4,
        again=("budget_stopped",),
        strict=True,
        total_usd=9.0,
        formats=("md", "json"),
    )
    line = Entry(Path("/a folder/out"), tuple(options_of(command, "extractive"))).line()
    setting, run, *words = shlex.split(line)
    assert setting == "MARG_RUNTIME__RAY_ADDRESS=$RAY_ADDRESS"
    assert (run, words[:3]) == ("exec", ["marg", "batch", "questions.jsonl"])
    assert words[words.index("-o") + 1] == "/a folder/out"
    pairs = dict(itertools.pairwise(words))
    assert pairs["--docs"] == "/shared/papers"
    assert pairs["--max-usd"] == "0.5"
    assert pairs["--total-usd"] == "9.0"
    assert pairs["--max-failed"] == "2"
    assert pairs["--min-supported"] == "0.9"
    assert pairs["--model"] == "extractive"
    assert pairs["--again"] == "budget_stopped"
    assert "T" in pairs["--deadline"], "a moment, not a duration that begins when the job does"
    assert {"--no-web", "--offline", "--fresh", "--strict", "--json"} <= set(words)


# ---- followed from here


@dataclass
class FakeJobs:
    """A job server that runs nothing: what it is sent, and what a job of its prints."""

    output: list[str]
    now: JobState | None = None
    end: JobState = field(default_factory=lambda: JobState("SUCCEEDED", "", 0))
    url: str = "http://head:8265"
    sent: list[tuple[str, bytes, dict[str, str]]] = field(default_factory=list)

    async def submit(self, entrypoint: str, *, name: str, folder: Path, env: dict[str, str]) -> str:
        self.sent.append((entrypoint, (folder / QUESTIONS).read_bytes(), env))
        self.now = JobState("RUNNING")
        return name

    async def state(self, name: str) -> JobState | None:
        return self.now

    async def lines(self, name: str) -> AsyncIterator[str]:
        for line in self.output:
            yield line
        self.now = self.end


def job_output(*results: RowResult, **end: object) -> list[str]:
    ended = [json.dumps({"kind": "ended", **r.model_dump(mode="json")}) for r in results]
    return ["Running entrypoint", *ended, json.dumps({"kind": "end", "rows": len(results), "exit_code": 0, **end})]


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJobs:
    monkeypatch.setenv("MARG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.jsonl").write_text('# no json\n{"question": "a?", "id": "a"}\n')
    fake = FakeJobs(job_output(RowResult(key="a", line=2, status="passed", sentences=1, files=("a.md",))))

    async def at(address: str) -> FakeJobs:
        return fake

    monkeypatch.setattr("marg_ray.actors.deploy.jobs.Jobs.at", at)
    return fake


SUBMIT = ("batch", "q.jsonl", "-o", "out", "--submit", "http://head:8265")


def test_figures_come_home_where_the_folder_is_not_shared(
    jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert marg(monkeypatch, *SUBMIT, "--env", "A=1") == 0
    ((_, rows, env),) = jobs.sent
    assert env == {"A": "1"}
    back = read_rows(rows, Form.JSONL)
    assert [(r.key, r.line) for r in back.rows] == [("a", 2)]
    assert [str(p) for p in back.problems] == ["line 1: is no JSON: Expecting value"]
    (line,) = lines_of(tmp_path / "out")
    assert (line.key, line.status, line.line) == ("a", "passed", 2)
    told = capsys.readouterr().err
    assert "marg: line 1: is no JSON" in told
    assert "Running entrypoint" in told
    assert "rsync-down" in told


def test_where_the_folder_is_shared_nothing_has_to_be_fetched(
    jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = BatchFolder(tmp_path / "out")
    folder.add(RowResult(key="a", line=2, status="passed", sentences=1, files=("a.md",)))
    folder.close()
    (tmp_path / "out" / "a.md").write_text("# A")
    before = (tmp_path / "out" / "results.jsonl").read_bytes()
    assert marg(monkeypatch, *SUBMIT) == 0
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == before
    assert "rsync-down" not in capsys.readouterr().err


def test_a_job_under_way_is_followed_and_not_submitted_again(
    jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert marg(monkeypatch, *SUBMIT, "--no-wait") == 0
    assert marg(monkeypatch, *SUBMIT) == 0
    assert len(jobs.sent) == 1
    assert "works on this batch already" in capsys.readouterr().err
    assert marg(monkeypatch, *SUBMIT) == 0
    assert len(jobs.sent) == 2


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (JobState("FAILED", "exit 8", 8), 8),
        (JobState("FAILED", "the node is gone"), 5),
        (JobState("FAILED", "killed", -9), 5),
        (JobState("STOPPED", "by its owner"), 130),
        (JobState("SUCCEEDED"), 0),
    ],
)
def test_the_exit_code_is_the_jobs(
    end: JobState, code: int, jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs.end = end
    assert marg(monkeypatch, *SUBMIT) == code
    assert end.status.lower() in capsys.readouterr().err


def test_what_a_machine_reads_is_what_the_job_printed(
    jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert marg(monkeypatch, *SUBMIT, "--json") == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [e["kind"] for e in events] == ["problem", "ended", "end"]


def test_variables_are_taken_from_here_or_as_given() -> None:
    assert variables(["A", "B=x=y", "C="], {"A": "1"}) == {"A": "1", "B": "x=y", "C": ""}
    for wrong in ("NOT_SET", "1A=x", "=x"):
        with pytest.raises(UsageError):
            variables([wrong], {})
