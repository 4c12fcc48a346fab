"""Spreadsheets, slides and books."""

from __future__ import annotations

import io
import zipfile

import pytest

from marg_ray.errors import Unreadable
from marg_ray.sources.parse import parse

S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'


def packed(**parts: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name.replace("__", "/").replace("_X", "."), text)
    return out.getvalue()


def sheet(*rows: str) -> str:
    return f"<worksheet {S}><sheetData>{''.join(f'<row>{row}</row>' for row in rows)}</sheetData></worksheet>"


def test_sheets_rows_and_dates() -> None:
    body = packed(
        xl__workbook_Xxml=f'<workbook {S}><sheets><sheet name="Sites"/><sheet name="Notes"/></sheets></workbook>',
        xl__sharedStrings_Xxml=f"<sst {S}><si><t>Site</t></si><si><r><t>Al</t></r><r><t>pha</t></r></si></sst>",
        xl__styles_Xxml=f'<styleSheet {S}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
        xl__worksheets__sheet1_Xxml=sheet(
            '<c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>Opened</t></is></c>'
            '<c r="D1" t="str"><v>kW</v></c>',
            '<c r="A2" t="s"><v>1</v></c><c r="B2" s="1"><v>44197</v></c><c r="D2"><v>0.30000000000000004</v></c>',
        ),
        xl__worksheets__sheet2_Xxml=sheet('<c r="A1" t="inlineStr"><is><t>Kept by hand.</t></is></c>'),
    )
    document = parse(body, name="a.xlsx")
    assert document.text == "Sites\n\nSite: Alpha; Opened: 2021-01-01; kW: 0.3\n\nNotes\n\nKept by hand."


def test_slides_with_titles_tables_and_numbers_of_slides() -> None:
    def shape(kind: str, text: str) -> str:
        place = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
        return f"<p:sp>{place}<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"

    def cell(text: str) -> str:
        return f"<a:tc><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    table = "".join(f"<a:tr>{cell(a)}{cell(b)}</a:tr>" for a, b in (("Site", "kW"), ("Alpha", "240")))
    first = f"{shape('body', 'A point.')}{shape('title', 'Gates')}{shape('sldNum', '1')}"
    second = f"{shape('title', 'Table')}<p:graphicFrame><a:tbl>{table}</a:tbl></p:graphicFrame>"
    body = packed(
        ppt__presentation_Xxml=f"<p:presentation {P}/>",
        ppt__slides__slide1_Xxml=f"<p:sld {P} {A}>{first}</p:sld>",
        ppt__slides__slide2_Xxml=f"<p:sld {P} {A}>{second}</p:sld>",
    )
    document = parse(body, name="a.pptx")
    assert document.text == "Gates\n\nA point.\n\nTable\n\nSite: Alpha; kW: 240"
    assert [p.page for p in document.parts] == [1, 1, 2, 2]


def book(**more: str) -> bytes:
    container = '<container><rootfiles><rootfile full-path="OEBPS/c.opf"/></rootfiles></container>'
    package = (
        '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Of tides</dc:title>'
        "<dc:language>en</dc:language></metadata><manifest>"
        '<item id="n" href="nav.xhtml" properties="nav"/><item id="b" href="two%20b.xhtml"/>'
        '<item id="a" href="one.xhtml"/>'
        '</manifest><spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/></spine></package>'
    )
    chapters = {
        "OEBPS__nav_Xxhtml": "<html><body><p>Contents</p></body></html>",
        "OEBPS__one_Xxhtml": "<html><body><h1>One</h1><p>First chapter.</p></body></html>",
        "OEBPS__two b_Xxhtml": "<html><body><h1>Two</h1><p>Second chapter.</p></body></html>",
    }
    return packed(**{"META-INF__container_Xxml": container, "OEBPS__c_Xopf": package, **chapters, **more})


def test_chapters_in_the_order_of_the_spine() -> None:
    document = parse(book(), name="a.epub")
    assert (document.title, document.language) == ("Of tides", "en")
    assert document.text == "One\n\nFirst chapter.\n\nTwo\n\nSecond chapter."


def test_protected_books_say_so() -> None:
    with pytest.raises(Unreadable, match="protected"):
        parse(book(**{"META-INF__rights_Xxml": "<rights/>"}), name="a.epub")


@pytest.mark.parametrize("name", ["a.xlsx", "a.pptx", "a.epub"])
def test_other_archives_are_refused_by_name(name: str) -> None:
    with pytest.raises(Unreadable, match=r"not an? "):
        parse(packed(a_Xtxt="hello"), name=name)
    with pytest.raises(Unreadable, match=r"not an? "):
        parse(b"just text", name=name)
