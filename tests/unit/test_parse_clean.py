"""Text hygiene: what must go, what must stay, and that doing it twice is doing it once."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.text import _PRINTED, clean_text, one_line
from tests.shared import case_file

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=40)
TROUBLE = st.text(
    st.sampled_from(
        "a\u0628\u0915e\u0301\u200d\u200c\ufe0f\U000e0100\x1b[0m;\r\n\x00\u2028\ufb01\ud83c\udf0a\U0001f3f4\U000e0067\U000e007f\u00a0"
    ),
    max_size=24,
)


def test_strings_that_broke_stores() -> None:
    for case in json.loads(case_file("PAR-06", "strings.json").read_text("utf-8")):
        wanted = [case["after"]] if "after" in case else case["after_any"]
        assert clean_text(case["text"]) in wanted, case["name"]


def test_queries_lose_controls_and_nothing_else() -> None:
    for case in json.loads(case_file("SEA-04", "odd-queries.json").read_text("utf-8")):
        cleaned = one_line(case["query"])
        assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in cleaned), case["name"]
        if case["name"] in ("emoji", "chinese", "arabic", "html", "percent"):
            assert cleaned == case["query"]


@given(ANY_TEXT | TROUBLE)
def test_cleaning_is_idempotent_and_storable(s: str) -> None:
    once = clean_text(s)
    assert clean_text(once) == once
    assert once.encode("utf-8").decode("utf-8") == once
    assert "\x00" not in once
    assert "\r" not in once
    assert unicodedata.is_normalized("NFC", once)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("\x1b[1;31mred\x1b[0m and \x1b]0;title\x07plain", "red and plain"),
        ("speci\ufb01c o\ufb03ce", "specific office"),
        ("non\u00a0breaking\u202f5\u3000kg", "non breaking 5 kg"),
        ("co\u00adoper\u200bate", "cooperate"),
        ("user\u202etxt.exe", "usertxt.exe"),
        ("hi\U000e0069\U000e0067\U000e006e", "hi"),
        ("A\ufe0f\ufe01\ufe02", "A\ufe0f"),
        ("e\u0301", "\u00e9"),
        ("\ud83c\udf0a", "\U0001f30a"),
        ("10\u00b2", "10\u00b2"),
    ],
)
def test_rules(raw: str, clean: str) -> None:
    assert clean_text(raw) == clean


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # the flag of England
        "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, with a non-joiner
        "\u0915\u094d\u200d\u0937",  # Devanagari
        "tab\tand\nline",
    ],
)
def test_what_shapes_letters_stays(text: str) -> None:
    assert clean_text(text) == text


def test_joiners_in_latin_words_go() -> None:
    assert clean_text("pass\u200dword") == "password"


def test_one_line() -> None:
    assert one_line("  a \n\n b\t c\u00a0 ") == "a b c"


def test_what_may_be_left_alone_is_known_by_one_look() -> None:
    """Whatever is not cleaned letter by letter would come out of that as it is."""
    left_alone = "".join(c for c in map(chr, range(sys.maxunicode + 1)) if c.isprintable() and not _PRINTED.match(c))
    assert len(left_alone) > 100_000
    spaced = "\n".join(left_alone)
    assert clean_text(spaced) == unicodedata.normalize("NFC", spaced)
    with_a_control = spaced + "\n\0"
    assert clean_text(with_a_control) == clean_text(spaced) + "\n"


@pytest.mark.parametrize("kept", ["a\tb", "two\nlines", "“é” – 潮汐", "", " "])
def test_clean_text_is_left_alone(kept: str) -> None:
    assert clean_text(kept) == kept
