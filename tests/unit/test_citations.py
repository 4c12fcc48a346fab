from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.grounding.citations import normalise, number_sources
from marg_ray.records import Evidence, Sentence
from tests.shared import case_file

KNOWN = {1, 2, 3, 4, 5}
# CIT-02: line of the file, sources it cites
VARIANTS = {
    1: [1, 2], 2: [1, 2, 3], 3: [1, 2, 3], 4: [1], 5: [1], 6: [2], 7: [2], 8: [3], 9: [1, 3], 10: [4],
    11: [1, 2], 12: [5], 13: [1, 4], 14: [1, 2], 15: [3], 16: [2], 17: [5], 18: [2], 19: [3], 20: [3],
}  # fmt: skip


def cited(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\[(\d+)\]", text)]


def test_cit_02_every_way_of_writing_a_mark_becomes_one() -> None:
    source = case_file("CIT-02", "variants.md").read_text("utf-8")
    done = normalise(source, KNOWN)
    assert done.unknown == ()
    lines = done.text.strip().splitlines()
    assert len(lines) == 20
    for number, line in enumerate(lines, 1):
        assert cited(line) == VARIANTS[number], line
        assert re.fullmatch(rf"L{number:02} (Output rose (\[\d\])+\.|输出上升\[3\]。)", line)
    assert normalise(done.text, KNOWN) == type(done)(done.text, ())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rose [1†L1-L4] and 【3:2†source】.", "rose [1][2]."),
        ("rose [citation:4] [E3][S1].", "rose [4][3][1]."),
        ("rose [1]-[3], fell [1], [2] and [3].", "rose [1][2][3], fell [1][2][3]."),
        ("rose [[1], [2]] <sup>[3]</sup><sup>4</sup>.", "rose [1][2][3][4]."),
        (r"rose \[1\] and 10<sup>6</sup> m².", "rose [1] and 10<sup>6</sup> m²."),
        ("It rose.¹ It fell.²", "It rose.[1] It fell.[2]"),
        ("[Basin yearbook][1] says", "Basin yearbook [1] says"),
        ("rose[1], in 2019[2] (Source 3) (Sources: 1, 2) (ref. 5)", "rose[1], in 2019[2][3][1][2][5]"),
        ("rose [1, p. 12] [see 2] [source 3; source 4] [Source_5]", "rose [1][2][3][4][5]"),
        ("rose ［１，２］［３、４］【来源 5】", "rose [1][2][3][4][5]"),
        ("rose [5](https://example.org/a_(b)) [१]", "rose [5][1]"),
    ],
)
def test_other_forms(text: str, wanted: str) -> None:
    done = normalise(text, KNOWN)
    assert done.text == wanted
    assert normalise(done.text, KNOWN).text == wanted


@pytest.mark.parametrize(
    "text",
    [
        "In [2023] the fee rose.",
        "Then a[1] and x[0] = 3 and arr[2] hold.",
        "Use `levels[1]` and ``a `[2]` b``.",
        "See [the text](https://example.org/a[1]) and [2024](https://example.org).",
        "Values in [0, 1] are legal (Smith, 2020).",
        "Pages [100-300] tell (1) this and (2) that.",
        "- [ ] to do\n- [x] done",
        "![figure 1](a[1].png) https://example.org/x[1]",
        "$E[1] = mc^2$ and \\(a[1]\\)",
        "A footnote[^note] and [sic] and [...] and [a].",
        "1. first\n2. second",
        "at 10⁶ m² and x²",
    ],
)
def test_what_only_looks_like_a_mark_stays(text: str) -> None:
    assert normalise(text, KNOWN) == type(normalise("", ()))(text, ())


def test_cit_01_unknown_numbers_go_and_are_named() -> None:
    text = "The far gate [0] or the side gate [12][3]. Refused [5, 9]. Renewed [7](https://made.up/x)."
    done = normalise(text, KNOWN)
    assert done.text == "The far gate or the side gate [3]. Refused [5]. Renewed."
    assert done.unknown == (0, 12, 9, 7)


@given(st.text(alphabet=st.sampled_from("[]【】(),;-–12 0a^#†`$<sup>:\\and₁¹"), max_size=60))
def test_normalising_twice_changes_nothing_and_never_fails(text: str) -> None:
    once = normalise(text, KNOWN)
    assert set(once.unknown).isdisjoint(KNOWN)
    again = normalise(normalise(once.text, KNOWN).text, KNOWN)
    assert normalise(again.text, KNOWN).text == again.text


@pytest.mark.parametrize(
    "unit", ["[1, ", "[1 , , ", "`", "$", "\\(", "(source ", "[[", "[a](", "<sup>", "[1", "【", " "]
)
def test_hostile_text_takes_no_long_time(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    plain = "word " * 4000 + "[1] "
    start = time.perf_counter()
    for _ in range(5):
        normalise(plain, KNOWN)
    middle = time.perf_counter()
    normalise(text, KNOWN)
    assert time.perf_counter() - middle < 200 * (middle - start)


def evidence(number: int, source: str) -> Evidence:
    return Evidence(id=f"e{number}", source=source, quote="q", start=0, end=1)


def test_references_are_numbered_by_first_use_without_holes() -> None:
    sources = json.loads(case_file("CIT-01", "sources.json").read_text("utf-8"))
    known = {f"e{s['id']}": evidence(s["id"], s["url"]) for s in sources}
    sentences = [
        Sentence(text="a", citations=("e5", "e9")),
        Sentence(text="b"),
        Sentence(text="c", citations=("e1", "e5", "e3")),
    ]
    numbers = number_sources(sentences, known)
    assert list(numbers.values()) == [1, 2, 3]
    assert list(numbers) == [known[i].source for i in ("e5", "e1", "e3")]
