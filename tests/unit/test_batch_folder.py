"""The folder of a batch after every kind of death, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marg_ray.batch.folder import BEGUN, RESULTS, BatchFolder
from marg_ray.batch.plan import plan
from marg_ray.batch.results import RowResult, asked_of
from marg_ray.batch.rows import Row
from marg_ray.errors import UsageError
from marg_ray.records import Limits, Request


def result(key: str, status: str = "passed", **fields: object) -> RowResult:
    return RowResult.model_validate({"key": key, "status": status, "sentences": 3, **fields})


def test_a_line_that_was_torn_costs_itself(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path)
    folder.add(result("a"))
    folder.add(result("b"))
    folder.close()
    path = tmp_path / RESULTS
    path.write_bytes(path.read_bytes()[:-9])
    again = BatchFolder(tmp_path)
    assert set(again.results) == {"a"}
    again.add(result("c"))
    assert len(path.read_text("utf-8").splitlines()) == 3, "nothing is glued to what was torn"
    again.forget(())
    again.close()
    assert [json.loads(line)["key"] for line in path.read_text("utf-8").splitlines()] == ["a", "c"]


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_sessions_are_found_again_wherever_the_journal_was_cut(tmp_path: Path, cut: int) -> None:
    folder = BatchFolder(tmp_path)
    folder.begin("a", "x", "s1")
    folder.close()
    whole = (tmp_path / BEGUN).read_bytes()
    (tmp_path / BEGUN).write_bytes(whole + b'{"key":"b","asked":"y","session":"s2"}\n'[:cut])
    again = BatchFolder(tmp_path)
    assert again.batch == folder.batch
    assert again.session("a", "x") == "s1"
    assert again.session("a", "other") == ""
    assert again.request_key("a", "x") == folder.request_key("a", "x")
    again.begin("a", "x", "s3")
    again.close()
    last = BatchFolder(tmp_path)
    assert last.session("a", "x") == "s3"
    assert last.request_key("a", "x") != folder.request_key("a", "x").replace("/1", "/0")
    last.close()


def test_a_later_line_of_a_key_stands(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path)
    folder.add(result("a", "halted"))
    folder.add(result("b"))
    folder.add(result("a", "passed"))
    folder.close()
    lines = map(json.loads, (tmp_path / RESULTS).read_text("utf-8").splitlines())
    assert [(line["key"], line["status"]) for line in lines] == [("b", "passed"), ("a", "passed")]
    (tmp_path / "plain").write_text("")
    assert (tmp_path / RESULTS).stat().st_mode == (tmp_path / "plain").stat().st_mode, "others may read it, as any file"


def test_one_command_works_in_a_folder(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path)
    with pytest.raises(UsageError, match="another"):
        BatchFolder(tmp_path)
    folder.close()
    BatchFolder(tmp_path).close()


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be used"):
        BatchFolder(tmp_path / "file")


def test_files_are_named_by_keys_and_never_meet(tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path)
    keys = ["plain", "a/b", "a b", "../../etc/passwd", "Plain", "CON", "", "k" * 200, ".hidden", "x\u202ey"]
    folder.name_files(keys)
    paths = [folder.paths(key, ("md",))[0] for key in keys]
    assert paths[0].name == "plain.md"
    assert all(p.parent == tmp_path for p in paths)
    assert len({p.name.casefold() for p in paths}) == len(keys)
    assert not any(p.name.startswith(".") for p in paths)
    folder.close()


def request(row: Row, **fields: object) -> Request:
    return Request.model_validate({"question": row.question, **fields})


def test_what_is_done_is_skipped_and_what_is_not_is_not() -> None:
    rows = [
        Row(question=f"{key}?", key=key)
        for key in ("done", "halted", "new", "changed", "lost", "wrong", "gone", "refused")
    ]
    asked = {row.key: asked_of(request(row)) for row in rows}
    results = {
        "done": result("done", asked=asked["done"]),
        "halted": result("halted", "halted", asked=asked["halted"]),
        "changed": result("changed", asked="something else"),
        "lost": result("lost", asked=asked["lost"]),
        "wrong": result("wrong", question="it was another then"),
        "gone": result("gone", question="gone?"),
        "refused": result("refused", "insufficient_evidence", sentences=0, asked=asked["refused"]),
    }

    def make(row: Row) -> Request:
        if row.key in ("wrong", "gone"):
            raise UsageError("there is no folder", "check")
        return request(row)

    made = plan(rows, make, results.get, files=lambda r: [Path("/no/such")] if r.key == "lost" else [])
    assert [t.row.key for t in made.todo] == ["halted", "new", "changed", "lost"]
    assert [t.row.key for t in made.todo if t.before] == ["lost"]
    assert [r.key for r in made.done] == ["done", "gone", "refused"]
    assert [p.key for p in made.problems] == ["wrong"]
    assert [r.key for r in made.changed] == ["changed"]
    again = plan(rows, make, results.get, again=["insufficient_evidence"])
    assert [t.row.key for t in again.todo if t.anew] == ["refused"]


def test_who_asks_and_what_it_may_cost_make_no_other_question() -> None:
    row = Row(question="a?")
    plain = asked_of(request(row))
    assert asked_of(request(row, owner="x", limits=Limits(usd=1), priority="batch", fresh=True)) == plain
    assert asked_of(request(row, depth="deep")) != plain
