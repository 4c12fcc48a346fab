"""Word files in body order; limits and refusals."""

from __future__ import annotations

import io
import resource
import time
import zipfile
from pathlib import Path

import pytest

from marg_ray.errors import Unreadable
from marg_ray.grounding.snapshots import Document
from marg_ray.sources.parse import parse
from tests.shared import case_file

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def word(body: str, **parts: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", f"<w:document {W}><w:body>{body}</w:body></w:document>")
        for name, text in parts.items():
            archive.writestr(f"word/{name}.xml", text)
    return out.getvalue()


def read(body: str, **parts: str) -> Document:
    return parse(word(body, **parts), name="x.docx")


def p(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def test_tables_boxes_and_controls_in_body_order() -> None:
    text = parse(case_file("PAR-05", "tables-box-control.docx").read_bytes(), name="t.docx").text
    line = next(row for row in text.split("\n") if "Beta" in row)
    assert line.index("Beta") < line.index("320 kW") < line.index("2027")
    assert text.index("checked in May") < text.index(line) < text.index("Figures follow the harbour rule")
    for kept in ("pumps are not counted", "gate 5 is spare", "Inserted words stay"):
        assert text.count(kept) == 1
    assert "Deleted words go" not in text


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("14MB-inside.docx", "too large"),
        ("not-a-zip.docx", "not a Word file"),
        ("entities-and-dotdot.docx", "entities"),
    ],
)
def test_refusals_name_the_file_and_stay_within_limits(name: str, why: str, tmp_path: Path) -> None:
    body = case_file("PAR-05", name).read_bytes()
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    with pytest.raises(Unreadable, match=why) as caught:
        parse(body, name=name)
    assert caught.value.name == name
    assert time.perf_counter() - started < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 * 1024
    assert not list(tmp_path.parent.rglob("evil.txt"))
    assert not Path("../../evil.txt").exists()


def test_sizes_that_the_directory_lies_about() -> None:
    body = bytearray(word("<w:p/>" * 2_000_000))
    central = body.rindex(b"PK\x01\x02")
    body[central + 24 : central + 28] = (100).to_bytes(4, "little")  # the size it claims to unpack to
    with pytest.raises(Unreadable):
        parse(bytes(body), name="x.docx")


def test_headings_from_styles_that_inherit_and_from_outline_levels() -> None:
    styles = (
        f'<w:styles {W}><w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Mine"><w:name w:val="My style"/><w:basedOn w:val="H1"/></w:style>'
        '<w:style w:styleId="T1"><w:name w:val="toc 1"/></w:style></w:styles>'
    )
    document = read(
        p("Gates .... 3", '<w:pStyle w:val="T1"/>')
        + p("Gates", '<w:pStyle w:val="Mine"/>')
        + p("Words.")
        + p("South", '<w:outlineLvl w:val="1"/>'),
        styles=styles,
    )
    parts = [(part.kind, part.level, document.text[part.start : part.end]) for part in document.parts]
    assert parts == [("heading", 1, "Gates"), ("paragraph", 0, "Words."), ("heading", 2, "South")]


def test_lists_notes_and_line_breaks() -> None:
    item = '<w:numPr><w:ilvl w:val="1"/><w:numId w:val="3"/></w:numPr>'
    rule = '<w:footnote w:type="separator"><w:p/></w:footnote>'
    notes = f'<w:footnotes {W}>{rule}<w:footnote w:id="2">{p("A note.")}</w:footnote></w:footnotes>'
    document = read(
        p("Item", item) + "<w:p><w:r><w:t>a</w:t><w:br/><w:t>b</w:t><w:tab/><w:t>c</w:t></w:r></w:p>", footnotes=notes
    )
    assert (document.parts[0].kind, document.parts[0].level) == ("list_item", 1)
    assert document.text == "Item\n\na b c\n\nA note."


def test_merged_cells_and_nested_content() -> None:
    def cell(text: str, properties: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{p(text) if text else '<w:p/>'}</w:tc>"

    rows = [
        cell("Site") + cell("Output") + cell("Year"),
        cell("Alpha", '<w:vMerge w:val="restart"/>') + cell("240") + cell("2021"),
        cell("", "<w:vMerge/>") + cell("250") + cell("2022"),
    ]
    table = "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in rows) + "</w:tbl>"
    inserted = f"<w:sdt><w:sdtContent>{table}</w:sdtContent></w:sdt>"
    text = read(p("Before.") + inserted + p("After.")).text
    assert "Site: Alpha; Output: 240; Year: 2021\nSite: Alpha; Output: 250; Year: 2022" in text
    assert text.index("Before.") < text.index("Site: Alpha") < text.index("After.")


def test_alternatives_for_old_and_new_readers_come_once() -> None:
    mc = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    box = f"<w:txbxContent>{p('Boxed.')}</w:txbxContent>"
    text = read(
        f"<w:p {mc}><w:r><w:t>Outside.</w:t><mc:AlternateContent><mc:Choice>{box}</mc:Choice>"
        f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    ).text
    assert text == "Outside.\n\nBoxed."


def test_deep_nesting_ends() -> None:
    assert read("<w:sdt><w:sdtContent>" * 120 + p("deep") + "</w:sdtContent></w:sdt>" * 120 + p("flat")).text == "flat"


def test_cut_short() -> None:
    body = case_file("PAR-05", "tables-box-control.docx").read_bytes()
    for cut in (5, 100, len(body) // 2, len(body) - 10):
        with pytest.raises(Unreadable):
            parse(body[:cut], name="cut.docx")


def test_what_other_archives_are() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", "hello")
    with pytest.raises(Unreadable, match="not a Word file"):
        parse(out.getvalue(), name="x.docx")
    with pytest.raises(Unreadable, match="archive"):
        parse(out.getvalue(), name="x.zip")
