from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marg_ray.grounding.drafts import parse_draft, render_draft
from marg_ray.records import Block, Draft
from tests.shared import case_file

CARDS = {n: f"e{n}" for n in range(1, 7)}
NUMBERS = {v: (k,) for k, v in CARDS.items()}


def read(markdown: str, title: str = "Basin") -> Draft:
    return parse_draft(markdown, CARDS, section="s1", section_title=title, revision=0)


def shape(draft: Draft) -> list[tuple[str, object]]:
    return [(b.kind, [(s.text, *s.citations) for s in b.sentences] or b.text) for b in draft.blocks]


def test_cit_01_sentences_stay_and_unknown_marks_are_listed_with_their_section() -> None:
    one = read(case_file("CIT-01", "section-1.md").read_text("utf-8"))
    two = read(case_file("CIT-01", "section-2.md").read_text("utf-8"))
    assert [(s.text, s.citations) for s in (*one.sentences, *two.sentences)] == [
        ("The basin is filled twice a day.", ("e1",)),
        ("Its gates were renewed in 2019.", ()),
        ("Nobody has measured the far gate or the side gate.", ("e3",)),
        ("The grid accepts all of the output.", ("e3", "e5")),
        ("A second basin was refused.", ("e5",)),
    ]
    assert [(u.mark, u.section) for u in one.unknown_citations] == [("[7]", "s1"), ("[0]", "s1"), ("[12]", "s1")]
    assert [u.mark for u in two.unknown_citations] == ["[9]"]


@pytest.mark.parametrize("name", ["section-1.md", "section-2.md"])
def test_cit_04_the_models_own_reference_list_goes(name: str) -> None:
    draft = read(case_file("CIT-04", name).read_text("utf-8"))
    (sentence,) = draft.sentences
    assert sentence.text.startswith(("The basin was dug by hand", "Every field is listed"))
    assert "http" not in draft.model_dump_json()


@pytest.mark.parametrize(
    "tail",
    [
        "## References\n\n1. A, https://a.example/x\n2. B",
        "### Bibliography:\n- A\n- B, 2019",
        "**References**\n\n[1] A, https://a.example/x\n[2] B",
        "Sources:\n[1] A\n[2] B",
        "Sources: [1] A https://a.example/x",
        "[1]: https://a.example/x\n[2]: https://b.example/y 'B'",
        "[^1]: A, p. 3\n\n[^2]: B",
        "[1] A, https://a.example/x\n[2] B, https://b.example/y",
        "## 参考文献\n\n1. 甲\n2. 乙",
        "## Quellen\n\n* A\n* B",
        "References\n----------\n\n[1] A",
        "Let me know if you need more detail.",
        "*Word count: 231*",
    ],
)
def test_what_a_model_adds_at_the_end_goes(tail: str) -> None:
    assert shape(read(f"The basin is old [1].\n\n{tail}\n")) == [("paragraph", [("The basin is old.", "e1")])]


@pytest.mark.parametrize(
    "head",
    [
        "# Basin",
        "## 2. Basin",
        "**Basin**",
        "Basin\n=====",
        "---\ntitle: x\ntags:\n  - a\n---",
        "## Table of Contents\n\n- [A](#a)\n- [B](#b)",
        "Here is the revised section:",
        "<!-- plan: a, b -->",
        "<style>p { color: red }</style>",
    ],
)
def test_what_a_model_adds_at_the_start_goes(head: str) -> None:
    assert shape(read(f"{head}\n\nThe basin is old [1].\n")) == [("paragraph", [("The basin is old.", "e1")])]


def test_a_heading_named_sources_over_prose_stays() -> None:
    draft = read("## Sources\n\nMost of its water comes from springs [2].")
    assert shape(draft) == [("heading", "Sources"), ("paragraph", [("Most of its water comes from springs.", "e2")])]


@pytest.mark.parametrize(
    ("markdown", "sentences"),
    [
        ("It rose. [1] It fell.[2] It lay", [("It rose.", "e1"), ("It fell.", "e2"), ("It lay",)]),
        ("It rose.\n[1]", [("It rose.", "e1")]),
        ("It rose.\n\n[1][2]", [("It rose.", "e1", "e2")]),
        ("It rose. It fell.\n\nSource: [3]", [("It rose.", "e3"), ("It fell.", "e3")]),
        ("It rose [1]. It fell.\n\nSources: [3], [4]", [("It rose.", "e1"), ("It fell.", "e3", "e4")]),
        ("[1] It rose.", [("It rose.", "e1")]),
        (
            "According to [1], output rose. [2] reports that it fell.",
            [("Output rose.", "e1"), ("One source reports that it fell.", "e2")],
        ),
        (
            "It rose ([1]; [2]) and fell (see [3]), as stated in [4].",
            [("It rose and fell, as stated in a source.", "e1", "e2", "e3", "e4")],
        ),
        ("**It rose [1]. It fell.**", [("**It rose.**", "e1"), ("**It fell.**",)]),
        ("输出上升。[1]它下降了【2】。", [("输出上升。", "e1"), ("它下降了。", "e2")]),
        (
            "It is at https://a.example/b.c. [1] See `x. Y` too.",
            [("It is at https://a.example/b.c.", "e1"), ("See `x. Y` too.",)],
        ),
        ("See [the notes. Part 2](https://a.example/x) now.", [("See [the notes. Part 2](https://a.example/x) now.",)]),
    ],
)
def test_a_mark_belongs_to_its_sentence(markdown: str, sentences: list[tuple[str, ...]]) -> None:
    draft = read(markdown)
    assert [(s.text, *s.citations) for s in draft.sentences] == sentences
    assert read(render_draft(draft, NUMBERS)).blocks == draft.blocks


def test_list_items_cite_what_their_lead_in_cites() -> None:
    draft = read("It has two parts [1]:\n\n- a gate\n- a wall [2]\n\nNext.\n\n- a door")
    assert [(s.text, *s.citations) for s in draft.sentences] == [
        ("It has two parts:", "e1"),
        ("a gate", "e1"),
        ("a wall", "e2"),
        ("Next.",),
        ("a door",),
    ]


def test_layout_is_kept() -> None:
    draft = read(
        "# Other\n\n### Deep\n\n**Costs**\n\n- a\n    - b\n        1. c\n\n  more of a\n\n> said [1]\n\n"
        "$$\nx\n=\ny\n$$\n\n```py\n# [1]\n```\n\n| Site | MW [2] | Source |\n|:--|--|--|\n"
        "| A | `x|y` | [1] |\n| B \\| C | 3 | |\n"
    )
    assert [(b.kind, b.level, b.text, b.language) for b in draft.blocks] == [
        ("heading", 1, "Other", ""),
        ("heading", 2, "Deep", ""),
        ("label", 0, "Costs", ""),
        ("bullet", 0, "", ""),
        ("bullet", 1, "", ""),
        ("ordered", 2, "", ""),
        ("bullet", 0, "", ""),
        ("quote", 0, "", ""),
        ("formula", 0, "x\n=\ny", ""),
        ("code", 0, "# [1]", "py"),
        ("table", 0, "| Site | MW |", ""),
    ]
    assert [(s.text, *s.citations) for s in draft.blocks[-1].sentences] == [
        ("| A | `x|y` |", "e1"),
        ("| B \\| C | 3 |", "e2"),
    ]


def rep_01() -> list[dict[str, str]]:
    return list(json.loads(case_file("REP-01", "sections.json").read_text("utf-8")))


def test_rep_01_sections_keep_their_text_and_lose_what_is_not_theirs() -> None:
    sections = [read(s["body"], s["title"]) for s in rep_01()]
    headings = [b.text for d in sections for b in d.blocks if b.kind == "heading"]
    assert headings == ["Method", "Setext heading", "Method", "Method", "Deep heading"]
    assert all(b.level == 1 for d in sections for b in d.blocks if b.kind == "heading")
    fee = sections[0].sentences[0].text
    assert "from $100 to $200" in fee
    assert "~5%" in fee
    assert "~silt~" in fee
    assert "$E = mc^2$ and \\(a_b\\)" in sections[0].sentences[1].text
    table = next(b for b in sections[1].blocks if b.kind == "table")
    assert [s.text for s in table.sentences] == [
        "| Alpha | a | b |",
        "| Beta | uses `x | y` and [a](https://example.org/a|b) |",
        "| Gamma |",
    ]
    assert [b.text for b in sections[1].blocks if b.kind == "code"] == ["# still code"]
    assert shape(sections[2])[-1] == ("paragraph", [("Text after the comment mark.",)])
    assert [b.kind for b in sections[3].blocks] == ["code", "code", "paragraph", "paragraph", "heading", "quote"]
    assert shape(sections[4]) == [("paragraph", [("The last paragraph must be plain text.",)])]


def test_rep_01_reading_what_was_written_changes_nothing() -> None:
    for section in rep_01():
        draft = read(section["body"], section["title"])
        assert read(render_draft(draft, NUMBERS), section["title"]).blocks == draft.blocks


PIECES = st.sampled_from(
    [
        "It rose [1]. ",
        "It fell by 3.5 %",
        " [2]",
        "[9]",
        "\n",
        "\n\n",
        "- ",
        "    - ",
        "1. ",
        "# ",
        "### T",
        "> ",
        "**",
        "**B** ",
        "`a|b[1]`",
        "| a | b [1] |\n|---|---|\n| c | d | e [2] |\n",
        "```py\nx[1]\n```\n",
        "$$x$$\n",
        "$5",
        " (see [3])",
        "Sources: [4]\n",
        "According to [1], it",
        "---",
        "\\",
        "<b>x</b>",
        "<!--",
        "输出。",
        "[t](https://a.example/x_(y)) ",
        "## References\n\n[1] x",
        "*",
        ":",
        "Dr. A. B. ",
        "[1] - x",
        "~~~",
        "=",
        "|",
        "$",
        "e.g. ",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=14))
def test_writing_and_reading_settles(pieces: list[str]) -> None:
    draft = read("".join(pieces))
    again = read(render_draft(draft, NUMBERS))
    final = read(render_draft(again, NUMBERS))
    assert final.blocks == again.blocks
    assert not again.unknown_citations


def test_evidence_without_a_number_is_not_marked() -> None:
    block = Block(kind="paragraph", sentences=read("It rose [1].").sentences)
    draft = read("x").model_copy(update={"blocks": (block,)})
    assert render_draft(draft, {}) == "It rose."
    assert render_draft(draft, {"e1": (3, 4)}) == "It rose [3][4]."
