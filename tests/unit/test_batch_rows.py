"""Rows of a file: three forms, what is wrong by line, keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.batch.rows import Form, Row, form_of, key_of, located, read_rows
from marg_ray.errors import UsageError
from marg_ray.kinds import Depth, RequestClass

FULL = {
    "id": "q-1",
    "question": "How do tides make power?",
    "docs": "papers",
    "depth": "deep",
    "web": False,
    "class": "quick_research",
    "focus": ["cost"],
    "section": "Costs: lagoon cost",
    "lang": "en",
    "owner": "ann",
    "max_usd": 0.5,
    "limits": {"tokens": 1000},
    "deadline": "20m",
    "topic": "tides",
}


def of(*rows: object) -> bytes:
    return "\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows).encode()


def test_a_row_says_what_differs_from_the_command() -> None:
    (row,) = read_rows(of(FULL), Form.JSONL).rows
    assert (row.key, row.docs, row.depth, row.web) == ("q-1", ("papers",), Depth.DEEP, False)
    assert (row.request_class, row.focus, row.sections) == (
        RequestClass.QUICK_RESEARCH,
        ("cost",),
        ("Costs: lagoon cost",),
    )
    assert (row.language, row.owner) == ("en", "ann")
    assert (row.limits.usd, row.limits.tokens, row.limits.deadline) == (0.5, 1000, "20m")
    assert row.meta == {"topic": "tides"}
    assert row.line == 1


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "no JSON"),
        ("[1]" * 1, "one JSON list"),
        ("3", "no object"),
        ({}, "has no question"),
        ({"question": 7}, "question: "),
        ({"question": "a?", "depth": "abyss"}, "depth: "),
        ({"question": "a?", "dept": "deep"}, "is depth meant"),
        ({"question": "a?", "Docs": "x"}, "is docs meant"),
        ({"question": "a?", "max_usdd": 1}, "is max_usd meant"),
        ({"question": "a?", "limits": {"usd": "much"}}, "limits.usd: "),
        ({"question": "a?", "limits": 3}, "limits: "),
        ({"question": "a?", "limits": {"euros": 3}}, "limits.euros: "),
        ({"question": "a?", "model": "x:y"}, "--model"),
        ({"question": "a?", "offline": True}, "--offline"),
        ({"question": "a?", "topic": "\ud800"}, "not UTF-8"),
        ({"question": "a?", "key": "a", "id": "b"}, "gives key twice"),
        ({"question": "a?", "key": "k" * 201}, "key: "),
        ({"question": "a?", "web": "perhaps"}, "web: "),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_the_others_stay(row: object, said: str) -> None:
    data = of({"question": "before?"}, row, {"question": "after?"})
    if said == "one JSON list":
        with pytest.raises(UsageError, match=said):
            read_rows(of(row), Form.JSONL)
        return
    reading = read_rows(data, Form.JSONL)
    (problem,) = reading.problems
    assert problem.line == 2
    assert said in str(problem)
    assert [r.question for r in reading.rows] == ["before?", "after?"]


def test_bytes_that_are_no_utf8_cost_their_row() -> None:
    data = b'{"question": "fine?"}\n{"question": "caf\xe9?"}\n'
    reading = read_rows(data, Form.JSONL)
    assert [r.question for r in reading.rows] == ["fine?"]
    assert "line 2: is not UTF-8" in str(reading.problems[0])
    assert read_rows("What?".encode("utf-16"), Form.TEXT).rows[0].question == "What?"
    assert read_rows(b"\xef\xbb\xbfWhat?", Form.TEXT).rows[0].question == "What?"


def test_a_line_ends_at_a_newline_only() -> None:
    question = "one\u2028and\u0085the same?"
    (row,) = read_rows(json.dumps({"question": question}, ensure_ascii=False).encode(), Form.JSONL).rows
    assert row.question == question


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_rows_keep_their_lines_and_their_cells(delimiter: str) -> None:
    head = ["Question", "id", "docs", "web", "max_usd", "topic"]
    cells = [
        ['"one,\ntwo; three?"', "a", '"x;y"', "no", "0.5", "tides"],
        [],
        ["second?", "b", "", "", "", ""],
        ["third?", "c", "", "maybe", "", ""],
    ]
    data = "\r\n".join(delimiter.join(c) for c in [head, *cells]).encode()
    reading = read_rows(data, Form.CSV)
    one, two = reading.rows
    assert one.question == "one,\ntwo; three?"
    assert (one.key, one.docs, one.web, one.limits.usd, one.meta) == ("a", ("x", "y"), False, 0.5, {"topic": "tides"})
    assert (two.key, two.docs, two.web, two.line) == ("b", None, None, 5)
    assert [p.line for p in reading.problems] == [6]


def test_a_csv_row_with_more_cells_than_columns_is_named() -> None:
    reading = read_rows(b"question,key\nWhy, oh why?,a\nHow?,b\n", Form.CSV)
    assert [r.key for r in reading.rows] == ["b"]
    assert "3 cells" in str(reading.problems[0])


def test_a_csv_file_names_its_columns() -> None:
    with pytest.raises(UsageError, match="no column"):
        read_rows(b"How?,a\n", Form.CSV)


def test_plain_text_is_one_question_a_line() -> None:
    reading = read_rows(b"# a remark\n\n  How?  \nWhy?\n", Form.TEXT)
    assert [(r.line, r.question) for r in reading.rows] == [(3, "How?"), (4, "Why?")]


@pytest.mark.parametrize(
    ("name", "data", "form"),
    [
        ("a.jsonl", b"", Form.JSONL),
        ("a.NDJSON", b"", Form.JSONL),
        ("a.csv", b"{", Form.CSV),
        ("a.tsv", b"", Form.CSV),
        ("a.txt", b"How?", Form.TEXT),
        ("-", b'\xef\xbb\xbf\n {"question": 1}', Form.JSONL),
        ("-", b"How?", Form.TEXT),
    ],
)
def test_what_a_file_holds_is_seen(name: str, data: bytes, form: Form) -> None:
    assert form_of(name, data) is form


def test_a_key_that_comes_twice_is_wrong_and_a_question_that_comes_twice_is_asked_once() -> None:
    reading = read_rows(
        of({"question": "a?", "key": 1}, {"question": "b?", "key": "1"}, '"c?"', {"question": "c?", "max_usd": 1}),
        Form.JSONL,
    )
    assert [r.question for r in reading.rows] == ["a?", "c?"]
    assert "is on line 1 already" in str(reading.problems[0])
    assert reading.problems[0].key == "", "it must not stand in the place of the row that has the key"
    assert [(p.line, p.what) for p in reading.repeats] == [(4, "asks what line 3 asks")]


def test_keys_follow_from_what_is_asked() -> None:
    row = Row(question="Why was the Swansea Bay tidal lagoon rejected?")
    key = key_of(row)
    assert key.startswith("why-was-the-swansea-bay-tidal-lagoon-rej")
    assert key_of(row.model_copy(update={"owner": "x", "line": 9})) == key
    assert key_of(row.model_copy(update={"depth": Depth.DEEP})) != key
    assert key_of(row.model_copy(update={"question": "Why was the Swansea Bay tidal lagoon rejected"})) != key
    assert key_of(Row(question="潮汐 🌊?")).startswith("潮汐-")


def test_paths_are_relative_to_the_file() -> None:
    assert located(Path("/data"), "papers") == Path("/data/papers")
    assert located(Path("/data"), "/papers") == Path("/papers")
    assert located(Path("/data"), "~/papers") == Path("~/papers").expanduser()


@given(st.binary(max_size=300), st.sampled_from(Form))
def test_no_file_breaks_the_reader(data: bytes, form: Form) -> None:
    try:
        reading = read_rows(data, form)
    except UsageError:
        return
    keys = [r.key for r in reading.rows]
    assert len(keys) == len(set(keys))
    assert all(r.line >= 1 for r in (*reading.rows, *reading.problems))


@given(st.dictionaries(st.text(max_size=12), st.none() | st.booleans() | st.text(max_size=5) | st.integers()))
def test_no_row_breaks_the_reader(found: dict[str, object]) -> None:
    reading = read_rows(json.dumps({"question": "a?", **found}).encode(), Form.JSONL)
    assert len(reading.rows) + len(reading.problems) == 1
