from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marg_ray.grounding.snapshots import Document, Part
from marg_ray.sources.library.passages import called, count_words, cut, name_key, names, rows_of, sketch


def document(*blocks: tuple[str, int, str], title: str = "Storms") -> Document:
    """Blocks are (kind, level, text), joined by blank lines."""
    parts, texts, at = [], [], 0
    for kind, level, text in blocks:
        parts.append(Part(kind=kind, start=at, end=at + len(text), level=level))  # type: ignore[arg-type]
        texts.append(text)
        at += len(text) + 2
    return Document(title=title, text="\n\n".join(texts), parts=tuple(parts))


def sentence(n: int, words: int = 15) -> str:
    return f"Sentence {n} " + "has some words about weather " * ((words - 2) // 5) + "here."


def test_neighbours_fill_a_passage_and_offsets_are_exact() -> None:
    doc = document(("heading", 1, "Storms"), *[("paragraph", 0, sentence(i, 42)) for i in range(9)])
    pieces = cut(doc, 120)
    assert len(pieces) == 3
    assert all(100 <= p.words <= 135 for p in pieces)
    assert doc.text[pieces[0].start : pieces[0].end].startswith("Sentence 0")
    assert " ".join(doc.text[p.start : p.end] for p in pieces).count("Sentence") == 9


def test_passages_never_reach_across_main_headings_and_small_sections_under_one_are_joined() -> None:
    doc = document(
        ("heading", 1, "Storms"),
        ("heading", 2, "Impact"),
        ("heading", 3, "Japan"),
        ("paragraph", 0, "Two people died in Japan."),
        ("heading", 3, "Korea"),
        ("paragraph", 0, "Ten people died in Korea."),
        ("heading", 2, "Response"),
        ("paragraph", 0, "Aid was sent."),
    )
    texts = [doc.text[p.start : p.end] for p in cut(doc, 120)]
    assert texts == ["Two people died in Japan.\n\nKorea\n\nTen people died in Korea.", "Aid was sent."]
    assert [p.heading for p in cut(doc, 120)] == ["Storms > Impact > Japan", "Storms > Response"]


def test_a_long_paragraph_is_split_where_sentences_end() -> None:
    doc = document(("paragraph", 0, " ".join(sentence(i) for i in range(40))))
    texts = [doc.text[p.start : p.end] for p in cut(doc, 120)]
    assert len(texts) > 3
    assert all(t.startswith("Sentence") and t.endswith(".") for t in texts)
    sizes = [count_words(t) for t in texts]
    assert max(sizes) - min(sizes) < 40  # no crumb at the end


def test_text_without_a_stop_is_split_all_the_same() -> None:
    doc = document(("code", 0, "\n".join(f"line {i} of code" for i in range(300))), ("paragraph", 0, "x" * 30_000))
    pieces = cut(doc, 120)
    assert all(p.end - p.start < 2000 for p in pieces)
    assert "".join(doc.text[p.start : p.end] for p in pieces).count("x") >= 30_000


def test_chinese_is_counted_by_characters() -> None:
    doc = document(("paragraph", 0, "台风造成了严重的损失。" * 200), title="台风")
    pieces = cut(doc, 120)
    assert len(pieces) >= 8
    assert all(doc.text[p.start : p.end].endswith("。") for p in pieces)


def test_a_document_of_headings_or_without_parts_still_has_passages() -> None:
    assert len(cut(document(("heading", 1, "One"), ("heading", 1, "Two")), 120)) == 1
    bare = Document(title="", text="First paragraph.\n\nSecond paragraph.", parts=())
    assert [bare.text[p.start : p.end] for p in cut(bare, 120)] == ["First paragraph.\n\nSecond paragraph."]
    assert cut(Document(title="", text="", parts=()), 120) == []


def test_a_defined_term_stands_before_its_text() -> None:
    text = "This declares an absolute dependency."
    part = Part(kind="paragraph", start=0, end=len(text), term="Depends")
    (row,) = rows_of(Document(title="Policy", text=text, parts=(part,)), 120)
    assert row.embedded == "Policy\nDepends: This declares an absolute dependency."
    assert row.label == "Depends"


words_of_many = st.lists(
    st.tuples(
        st.sampled_from(["heading", "paragraph", "list_item", "code"]),
        st.integers(1, 3),
        st.text("ab .。\n台A1?", min_size=1, max_size=400).filter(lambda t: t.strip() == t and "\n\n" not in t),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(words_of_many, st.integers(30, 200))
def test_passages_are_in_order_do_not_overlap_and_lose_no_word(blocks: list[tuple[str, int, str]], size: int) -> None:
    doc = document(*blocks)
    pieces = cut(doc, size)
    assert all(0 <= p.start < p.end <= len(doc.text) for p in pieces)
    assert all(a.end <= b.start for a, b in pairwise(pieces))
    inside = {i for p in pieces for i in range(p.start, p.end)}
    for part in doc.parts:
        if part.kind != "heading":
            assert all(i in inside or doc.text[i].isspace() for i in range(part.start, part.end))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "The American Psychological Association met G. Stanley Hall.",
            ["American Psychological Association", "Stanley Hall"],
        ),
        ("It was built in Journal of Psychotherapy Integration style", ["Journal of Psychotherapy Integration"]),
        ("nothing here is a name", []),
        ("台风", []),
    ],
)
def test_names(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_a_name_is_known_in_all_its_spellings() -> None:
    assert name_key("Lilu (mythology)") == "lilu"
    assert name_key("Hall's") in called("It was G. Stanley Hall, who")
    assert "american psychological association" in called("the (American Psychological Association).")


def test_sketches_show_how_much_of_a_text_stands_in_another() -> None:
    whole = " ".join(f"word{i} and{i} then{i * 7}" for i in range(1500))
    part, other = whole[: len(whole) // 3], " ".join(f"else{i}" for i in range(3000))
    a, b, c = set(sketch(whole)), set(sketch(part)), set(sketch(other))
    assert len(b & a) / len(b) > 0.95
    assert not a & c
