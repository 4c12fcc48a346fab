"""A batch as a job: what is sent, and how the command line says so."""

from __future__ import annotations

import itertools
import json
import shlex
from pathlib import Path

import pytest

from marg_ray.batch.rows import Form, Row, read_rows
from marg_ray.batch.submit import Entry, local_paths, questions_file, variables, with_address
from marg_ray.batch.thresholds import Thresholds
from marg_ray.cli.batch_run import Command, RowDefaults
from marg_ray.cli.batch_submit import options_of
from marg_ray.errors import UsageError


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
    assert back.rows[1].model_copy(update={"line": 0}) == rows[1]
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


def test_variables_are_taken_from_here_or_as_given() -> None:
    assert variables(["A", "B=x=y", "C="], {"A": "1"}) == {"A": "1", "B": "x=y", "C": ""}
    for wrong in ("NOT_SET", "1A=x", "=x"):
        with pytest.raises(UsageError):
            variables([wrong], {})
