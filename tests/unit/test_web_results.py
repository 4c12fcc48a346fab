from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.records import Hit, SourceKind
from marg_ray.sources.web.results import dedupe, normalise
from tests.shared import case_file, needs_shared


@needs_shared
def test_case_odd_entries() -> None:
    entries = json.loads(case_file("SEA-01", "results.json").read_text("utf-8"))
    found = normalise(entries, "ddgs")
    numbers = ["one", "two", "three", "four", "five", "six", "seven"]
    assert [h.location for h in found.hits] == [
        f"https://{n}.test/{c}" for n, c in zip(numbers, "abcdefg", strict=True)
    ]
    assert found.dropped == 9
    assert found.hits[3].title == "four.test"
    assert found.hits[3].snippet == ""
    assert found.hits[2].snippet == "third key names"
    shown = [h.title for h in found.hits] + [h.snippet for h in found.hits]
    assert not {"None", "URL", "null"} & set(shown)
    assert [h.location for h in dedupe(found.hits)] == [h.location for h in found.hits]


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.just("https://a.test/")
keys = st.sampled_from(["title", "href", "url", "link", "body", "content", "snippet", "publishedDate", "other"])
entries = st.lists(scalars | st.dictionaries(keys, scalars | st.lists(scalars)), max_size=8)


@given(entries)
def test_any_entries_are_hits_or_dropped(found: list[object]) -> None:
    result = normalise(found, "x")
    assert len(result.hits) + result.dropped == len(found)
    assert all(h.location.startswith(("http://", "https://")) and h.title for h in result.hits)
    assert all(0 < h.relevance <= 1 for h in result.hits)


def test_texts_are_made_presentable() -> None:
    entry = {
        "title": "<b>Tidal</b>\n\0 power &amp; waves",
        "url": "https://a.test",
        "content": "x < y\u202e",
        "publishedDate": "2024-05-01T10:00:00",
    }
    [hit] = normalise([entry], "searxng").hits
    assert (hit.title, hit.snippet, hit.published) == ("Tidal power & waves", "x < y", "2024-05-01")


def hit(location: str, title: str = "", snippet: str = "") -> Hit:
    return Hit(location=location, title=title or location, kind=SourceKind.WEB, snippet=snippet)


def test_each_page_once() -> None:
    hits = [
        hit("https://a.test/x"), hit("http://www.a.test/x/?utm_source=z#top"), hit("https://a.test/y"), hit("https://m.a.test/y"),
    ]  # fmt: skip
    assert [h.location for h in dedupe(hits)] == ["https://a.test/x", "https://a.test/y"]


LONG = "The tidal plant at the river mouth has run since 1966 and yields about 500 gigawatt hours of energy in a year"


@pytest.mark.parametrize(
    ("other", "kept"),
    [
        (LONG, 1),
        (LONG + ".", 1),
        (LONG.upper(), 1),
        (LONG.replace("1966", "1967"), 2),
        ("Something else entirely " * 4, 2),
    ],
)
def test_the_same_text_elsewhere(other: str, kept: int) -> None:
    hits = [hit("https://a.test/", "Tidal power", LONG), hit("https://b.test/", "Tidal power", other)]
    assert len(dedupe(hits)) == kept


def test_short_texts_are_not_compared() -> None:
    assert len(dedupe([hit("https://a.test/", "Home", "x"), hit("https://b.test/", "Home", "x")])) == 2
