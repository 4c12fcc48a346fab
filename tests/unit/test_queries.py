from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.errors import UsageError
from marg_ray.sources.queries import clean_question, search_query
from marg_ray.text import one_line
from tests.shared import case_file, needs_shared

INVISIBLE = "\0\x1b\u202e\u200b\u200d\ufeff\u2066"


@needs_shared
def test_case_odd_queries() -> None:
    rows = json.loads(case_file("SEA-04", "odd-queries.json").read_text("utf-8"))
    for row in rows:
        if not row["usable"]:
            with pytest.raises(UsageError) as caught:
                clean_question(row["query"])
            assert caught.value.hint
            continue
        question, query = clean_question(row["query"]), search_query(row["query"])
        assert not set(question + query) & set(INVISIBLE), row["name"]
        assert question
        assert query
    by_name = {row["name"]: row["query"] for row in rows}
    for name in ("chinese", "arabic", "emoji", "html", "percent"):
        assert clean_question(by_name[name]) == by_name[name]
        assert search_query(by_name[name]) == by_name[name]
    assert search_query(by_name["escape-codes"]) == "tidal power"
    assert clean_question(by_name["leading-minus"]) == "-power tidal"
    assert search_query(by_name["leading-minus"]) == "power tidal"
    assert search_query(by_name["tilde-and-quotes"]) == '"tidal power"'


@needs_shared
def test_case_long_question() -> None:
    text = case_file("SEA-04", "query-5000.txt").read_text("utf-8")
    assert clean_question(text) == text.strip()
    query = search_query(text)
    assert len(query) <= 400
    assert not text.startswith(query[:40])
    assert {"tidal", "range", "plants", "five", "megawatts", "ten", "years", "cost"} <= set(query.split())
    assert "which" not in query.split()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("  What is\ttidal\npower? ", "What is tidal power?"),
        ("tidal -power +wave", "tidal power wave"),
        ("!g tides", "g tides"),
        ("state-of-the-art C++ and C# in 2020-2024", "state-of-the-art C++ and C# in 2020-2024"),
        ("temperatures below -5 °C", "temperatures below -5 °C"),
        ("¿Qué es la energía mareomotriz?", "¿Qué es la energía mareomotriz?"),
        ("What is C++?", "What is C++?"),
    ],
)
def test_short_texts_stay(text: str, query: str) -> None:
    assert search_query(text) == query


def test_a_long_text_in_a_script_without_spaces() -> None:
    text = "我们镇有一个小港口。" * 60 + "潮汐能发电的成本是多少？"
    query = search_query(text)
    assert "潮汐能发电的成本是多少" in query
    assert not text.startswith(query)


def test_a_question_at_the_end_is_found() -> None:
    text = "Our harbour is small and silts up every winter. " * 40 + "How is silt removed from lagoons?"
    words = search_query(text).split()
    assert {"silt", "removed", "lagoons"} <= set(words)


def test_one_word_of_a_thousand_letters() -> None:
    assert 0 < len(search_query("x" * 1000)) <= 400


def test_the_length_limit_is_named() -> None:
    assert clean_question("tides " * 3000)
    with pytest.raises(UsageError, match="20,000"):
        clean_question("x" * 20_001)


@pytest.mark.parametrize("text", ["42", "π", "🌊", "水"])
def test_one_sign_can_be_a_question(text: str) -> None:
    assert clean_question(text) == text


@pytest.mark.parametrize("text", ["\x1b[31m\x1b[0m", "\ud800", "«»", "……", "\u202e\u202c", "'\"`", "---"])
def test_nothing_to_ask(text: str) -> None:
    with pytest.raises(UsageError):
        clean_question(text)


@given(st.text(min_size=300, max_size=3000), st.integers(80, 400))
def test_any_long_text_gives_a_bounded_line(text: str, limit: int) -> None:
    query = search_query(text, limit)
    assert len(query) <= limit
    assert "\n" not in query
    assert not set(query) & set("\0\x1b\u202e\u200b\ufeff")


@given(st.lists(st.text("abcdefgh ,.?", min_size=1, max_size=12), min_size=150, max_size=300))
def test_a_long_text_is_never_just_cut(words: list[str]) -> None:
    text = " ".join(words)
    line = one_line(text)
    query = search_query(text)
    assert len(query) <= 400
    assert len(line) <= 400 or not query or len(set(line)) < 3 or not line.startswith(query)
