"""Plain text, Markdown and delimited files."""

from __future__ import annotations

import gzip

import pytest

from marg_ray.errors import Unreadable
from marg_ray.grounding.snapshots import Document
from marg_ray.sources.parse import SUPPORTED_SUFFIXES, media_type_of, parse


def read(text: str, name: str) -> Document:
    return parse(text.encode(), name=name)


def outline(document: Document) -> list[tuple[str, int, str]]:
    return [(p.kind, p.level, document.text[p.start : p.end]) for p in document.parts]


# -- plain text ------------------------------------------------------------------------------------------------


def test_lines_become_paragraphs() -> None:
    document = read("The gate was opened at noon,\nand it was shut at post-\nponed hours.\n\nNext day.\n", "a.txt")
    assert document.text == "The gate was opened at noon, and it was shut at postponed hours.\n\nNext day."


def test_underlined_headings_rank_by_first_use() -> None:
    document = read("Tides\n*****\n\nOne.\n\nEbb\n---\n\nTwo.\n\nFlood\n-----\nThree.\n", "a.rst")
    headings = [(level, text) for kind, level, text in outline(document) if kind == "heading"]
    assert headings == [(1, "Tides"), (2, "Ebb"), (2, "Flood")]
    assert document.title == "Tides"
    assert "Three." in document.text


def test_numbered_headings() -> None:
    document = read(
        "Report\n\n1. Gates\n\nText one.\n\n1.1. South gate\n\nText two.\n\n2. Pumps\n\nText three.\n", "a.txt"
    )
    headings = [(level, text) for kind, level, text in outline(document) if kind == "heading"]
    assert headings == [(1, "Report"), (1, "1. Gates"), (2, "1.1. South gate"), (1, "2. Pumps")]


def test_numbered_lists_are_no_headings() -> None:
    document = read("Editors\n=======\n\nThe editors are:\n\n1. Russ Miller\n\n2. Ann Smith\n\nThey meet.\n", "a.txt")
    assert [kind for kind, _, _ in outline(document)] == ["heading", "paragraph", "list_item", "list_item", "paragraph"]


def test_list_items_go_on_over_lines() -> None:
    document = read("Kinds:\n\n* ebb, which is\n  falling water\n* flood\n   - inner one\n", "a.txt")
    assert outline(document)[1:] == [
        ("list_item", 0, "ebb, which is falling water"),
        ("list_item", 0, "flood"),
        ("list_item", 1, "inner one"),
    ]


def test_terms_above_deeper_lines() -> None:
    document = read("Words of the harbour are these.\n\nEbb\n   The fall of water after it\n   was high.\n", "a.txt")
    assert [(p.kind, p.term) for p in document.parts][1:] == [("list_item", ""), ("paragraph", "Ebb")]


def test_drawn_tables_and_code() -> None:
    table = "|Site |Output|\n|-----+------|\n|Alpha|240 kW|\n|-----+------|\n|Beta |320 kW|\n|-----+------|\n"
    document = read(f"Sites.\n\n{table}\nRun:\n\n$ make install\n\n    for (;;) {{\n      go();\n    }}\n", "a.txt")
    assert "Site: Alpha; Output: 240 kW\nSite: Beta; Output: 320 kW" in document.text
    assert [kind for kind, _, _ in outline(document)][-2:] == ["code", "code"]


def test_marks_in_plain_text_stay() -> None:
    assert "as shown [12] and [update] here" in read("It rose, as shown [12] and [update] here.", "a.txt").text


def test_east_asian_lines_get_no_space() -> None:
    assert read("潮汐能是一种可再\n生能源。\n", "a.txt").text == "潮汐能是一种可再生能源。"


def test_packed_text_is_unpacked_within_limits() -> None:
    assert parse(gzip.compress(b"Hello harbour."), name="a.txt.gz").text == "Hello harbour."
    with pytest.raises(Unreadable, match="too large"):
        parse(gzip.compress(bytes(70_000_000)), name="a.gz")
    with pytest.raises(Unreadable, match="truncated"):
        parse(gzip.compress(b"Hello harbour." * 50)[:-9], name="a.gz")


# -- Markdown --------------------------------------------------------------------------------------------------


def test_markdown_structure() -> None:
    text = (
        "---\ntitle: Of tides\ndate: 2024-05-01\nlang: en\n---\n# Tides\n\n"
        "Some *bold* [link](http://x) text\nover lines.\n\n"
        "- one\n  - two\n\n| Site | kW |\n|---|---|\n| Alpha | 240 |\n\n"
        "```py\nrun()\n```\n\n> said so\n"
    )
    document = read(text, "a.md")
    assert (document.title, document.published, document.language) == ("Of tides", "2024-05-01", "en")
    assert outline(document) == [
        ("heading", 1, "Tides"),
        ("paragraph", 0, "Some bold link text over lines."),
        ("list_item", 0, "one"),
        ("list_item", 1, "two"),
        ("table_row", 0, "Site: Alpha; kW: 240"),
        ("code", 0, "run()"),
        ("quote", 0, "said so"),
    ]


def test_html_inside_markdown_is_text() -> None:
    assert (
        read("# T\n\n<div align=center>Inside <b>it</b></div>\n\nOutside<br>it.\n", "a.md").text.split("\n\n")[1]
        == "Inside it"
    )


# -- delimited -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(delimiter: str) -> None:
    rows = [["Site", "Output", "Note"], ["Alpha", "240", '"kept, open; always"'], ["Beta", "", "shut"]]
    document = read("\r\n".join(delimiter.join(row) for row in rows), "a.csv")
    assert document.text.split("\n") == [
        "Site: Alpha; Output: 240; Note: kept, open; always",
        "Site: Beta; Note: shut",
    ]
    assert {p.kind for p in document.parts} == {"table_row"}


def test_decimal_commas_do_not_part_cells() -> None:
    assert "Höhe: 6,4" in read("Ort;Höhe\nHafen;6,4\nKai;7,1\n", "a.csv").text


def test_file_without_a_header() -> None:
    assert read("1,2,3\n4,5,6\n", "a.csv").text == "1 | 2 | 3\n4 | 5 | 6"


def test_rows_beyond_the_limit_are_counted() -> None:
    document = read("a,b\n" + "".join(f"{i},x\n" for i in range(20_100)), "a.csv")
    assert document.warnings == ("100 rows beyond the first 20,000 were left out",)


def test_quotes_that_never_close() -> None:
    assert "Alpha" in read('Site,Note\nAlpha,"never closed\nBeta,x\n', "a.csv").text


# -- what is what ----------------------------------------------------------------------------------------------


def test_content_decides_over_the_name() -> None:
    page = "<!DOCTYPE html><html><body><main><p>High water at noon, 6.4 metres today.</p></main></body></html>"
    assert read(page, "a.txt").media_type == "text/html"
    assert read("No markup <b>at</b> all", "a.txt").media_type == "text/plain"
    assert parse(b"# T\n\ntext", name="https://x.org/README.md?raw=1").media_type == "text/markdown"
    assert parse(b"a,b\n1,2\n", name="download", media_type="text/csv; charset=utf-8").media_type == "text/csv"


def test_suffixes() -> None:
    assert {".html", ".pdf", ".docx", ".md", ".txt", ".csv"} <= set(SUPPORTED_SUFFIXES)
    assert media_type_of("/a/b.PDF") == "application/pdf"
    assert media_type_of("https://x.org/a.html?q=b.pdf") == "text/html"
    assert media_type_of("Makefile") == ""
