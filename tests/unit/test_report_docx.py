"""The report as a Word file: read back as XML and by python-docx."""

from __future__ import annotations

import io
import json
import zipfile
from functools import cache
from typing import Any

import docx
import pytest
from lxml import etree

from marg_ray.records import Block, Draft, ReportStatus, Verdict
from marg_ray.report.assemble import build_report
from marg_ray.report.docx import to_docx
from marg_ray.report.model import ChartSeries, ReportChart
from marg_ray.report.word_parts import stretches
from tests.report_sample import E1, inputs, said
from tests.shared import case_file
from tests.unit.test_report_markdown import TITLES, written

REPORT = build_report(inputs())
CHART = ReportChart(
    id="c1",
    section="s1",
    kind="bar",
    title="Capacity by station, MW",
    x="Station",
    y="Capacity (MW)",
    labels=("La Rance", "Sihwa Lake", "Annapolis Royal"),
    series=(ChartSeries(name="Capacity", values=(240, 254, 20)),),
    numbers=(1,),
    notes=("one row left out",),
)
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


@cache
def sample() -> bytes:
    return to_docx(REPORT)


def part(content: bytes, name: str = "word/document.xml") -> Any:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return etree.fromstring(archive.read(name))


def words(element: Any) -> str:
    return "".join(t.text or "" for t in element.iter(f"{W}t"))


def headings(content: bytes) -> list[tuple[str, str]]:
    document = docx.Document(io.BytesIO(content))
    return [(p.style.name, p.text) for p in document.paragraphs if p.style.name.startswith("Heading")]


def everything(content: bytes) -> str:
    return "\n".join(words(p) for p in part(content).iter(f"{W}p"))


def test_headings_are_headings_in_order() -> None:
    found = headings(sample())
    first = [text for style, text in found if style == "Heading 1"]
    assert first == [
        "In brief",
        *(s.title for s in REPORT.sections),
        "Where the sources disagree",
        "Not answered by the documents",
        "References",
        "Sentences to read with care",
        "How this report was checked",
    ]
    assert ("Heading 2", "Later plants") in found


def test_everything_of_the_report_stands_in_it() -> None:
    text = everything(sample())
    for sentence in REPORT.sentences():
        plain = sentence.text.replace("**", "")
        assert plain in text or sentence.text.startswith("|")
    for cell in ("Sihwa Lake", "254 MW", "about 540 GWh", "no document gives a price", "P = \\rho g A h / 2"):
        assert cell in text
    assert "head = 8.2" in text
    for evidence in REPORT.evidence:
        assert f"“{evidence.quote}”" in text


def test_marks_and_contents_lead_somewhere_and_bookmarks_are_unique() -> None:
    body = part(sample())
    marks = [b.get(f"{W}name") for b in body.iter(f"{W}bookmarkStart")]
    numbers = [b.get(f"{W}id") for b in body.iter(f"{W}bookmarkStart")]
    assert len(set(marks)) == len(marks)
    assert len(set(numbers)) == len(numbers)
    assert sorted(numbers) == sorted(b.get(f"{W}id") for b in body.iter(f"{W}bookmarkEnd"))
    assert all(len(name) <= 40 and name.isidentifier() for name in marks)
    anchors = [h.get(f"{W}anchor") for h in body.iter(f"{W}hyperlink") if h.get(f"{W}anchor")]
    assert set(anchors) <= set(marks)
    for link in body.iter(f"{W}hyperlink"):
        anchor = link.get(f"{W}anchor") or ""
        if anchor.startswith("ref_"):
            assert words(link).strip() == f"[{anchor[4:]}]"
    assert {f"ref_{r.number}" for r in REPORT.references} <= set(anchors)


def test_addresses_are_links_to_the_web_only() -> None:
    body, relations = part(sample()), part(sample(), "word/_rels/document.xml.rels")
    targets = {r.get("Id"): r for r in relations}
    used = [targets[h.get(f"{R}id")] for h in body.iter(f"{W}hyperlink") if h.get(f"{R}id")]
    assert used
    assert all(r.get("TargetMode") == "External" and r.get("Target").startswith("https://") for r in used)


def test_the_contents_are_a_field_that_is_filled_and_closed() -> None:
    body = part(sample())
    kinds = [c.get(f"{W}fldCharType") for c in body.iter(f"{W}fldChar")]
    assert kinds == ["begin", "separate", "end"]
    assert "TOC" in next(body.iter(f"{W}instrText")).text
    document = docx.Document(io.BytesIO(sample()))
    entries = [words(p._p) for p in document.paragraphs if p.style.name == "toc 1"]
    assert entries[: len(REPORT.sections)] == [s.title for s in REPORT.sections]


def test_page_numbers_stand_below_and_the_title_above() -> None:
    section = docx.Document(io.BytesIO(sample())).sections[0]
    for footer in (section.footer, section.first_page_footer):
        told = [t.text.strip() for t in footer._element.iter(f"{W}instrText")]
        assert told == ["PAGE", "NUMPAGES"]
        assert words(footer._element) == "Page 1 of 1"
    assert section.header.paragraphs[0].text == REPORT.title
    assert section.first_page_header.paragraphs[0].text == ""


def test_the_file_says_what_it_is_and_in_which_language() -> None:
    about = docx.Document(io.BytesIO(sample())).core_properties
    assert (about.title, about.subject, about.language) == (REPORT.title, REPORT.question, "en")
    assert about.created == REPORT.finished_at
    chinese = to_docx(REPORT.model_copy(update={"language": "ja"}))
    tongue = next(part(chinese, "word/styles.xml").iter(f"{W}lang"))
    assert tongue.get(f"{W}eastAsia") == "ja-JP"
    assert next(part(chinese, "word/styles.xml").iter(f"{W}rFonts")).get(f"{W}eastAsia") == "Yu Gothic"


def test_long_titles_and_odd_letters_make_no_broken_file() -> None:
    odd = REPORT.model_copy(update={"title": "t\x00\x0b\ud800\ufffe" + "x" * 400, "question": "q" * 5000})
    document = docx.Document(io.BytesIO(to_docx(odd)))
    assert len(document.core_properties.title) == 255


def test_arabic_runs_from_right_to_left_in_a_report_of_any_language() -> None:
    body = part(sample())
    paragraph = next(p for p in body.iter(f"{W}p") if "تبلغ قدرتها" in words(p) and p.find(f"{W}pPr/{W}pStyle") is None)
    assert paragraph.find(f"{W}pPr/{W}bidi") is not None
    run = next(r for r in paragraph.iter(f"{W}r") if "تبلغ" in words(r))
    assert run.find(f"{W}rPr/{W}rtl") is not None
    arabic = part(to_docx(REPORT.model_copy(update={"language": "ar"})))
    assert arabic.find(f".//{W}sectPr/{W}bidi") is not None
    across = [t.find(f"{W}tblPr/{W}bidiVisual") is not None for t in arabic.iter(f"{W}tbl")]
    assert across == [False, True]  # a table of English text runs as it does elsewhere


@pytest.mark.parametrize(
    ("text", "way", "parts"),
    [
        ("abc", "ltr", [("abc", False)]),
        ("", "ltr", []),
        ("1, 2", "rtl", [("1, 2", False)]),
        ("see שלום, עולם. ok", "ltr", [("see ", False), ("שלום, עולם", True), (". ok", False)]),
        ("שלום GPT-4 של 5", "rtl", [("שלום ", False), ("GPT", True), ("-4 של 5", False)]),
        ("שלום", "ltr", [("שלום", True)]),
        ("קרא 2026-03-14.", "rtl", [("קרא ", False), ("\u200e2026-03-14\u200e", True), (".", False)]),
    ],
)
def test_text_is_cut_where_its_direction_turns(text: str, way: str, parts: list[tuple[str, bool]]) -> None:
    assert list(stretches(text, way)) == parts


def test_tables_have_a_header_row_that_repeats_and_no_lost_cell() -> None:
    tables = list(part(sample()).iter(f"{W}tbl"))
    rows = [[words(c) for c in row.iter(f"{W}tc")] for row in tables[0].iter(f"{W}tr")]
    assert rows[0] == ["Plant", "Opened", "Capacity"]
    assert [r[:2] for r in rows[1:]] == [["Rance", "1966"], ["Sihwa Lake", "2011"], ["Annapolis Royal", ""]]
    assert tables[0].find(f"{W}tr/{W}trPr/{W}tblHeader") is not None


def test_lists_are_lists_and_each_numbered_one_starts_at_one() -> None:
    def item(level: int, kind: str, text: str) -> Block:
        return Block(kind=kind, level=level, sentences=(said(text, E1),))  # type: ignore[arg-type]

    draft = Draft(
        section="s1",
        revision=1,
        blocks=(
            item(0, "ordered", "One."),
            item(1, "bullet", "Inner."),
            item(0, "ordered", "Two."),
            Block(kind="paragraph", sentences=(said("Between.", E1),)),
            item(0, "ordered", "One again."),
        ),
    )
    content = to_docx(build_report(inputs(drafts={"s1": draft}, summary=None)))
    found = {}
    for p in part(content).iter(f"{W}p"):
        if (number := p.find(f"{W}pPr/{W}numPr/{W}numId")) is not None:
            found[words(p).split(".")[0]] = (number.get(f"{W}val"), p.find(f"{W}pPr/{W}numPr/{W}ilvl").get(f"{W}val"))
    assert found["One"][0] == found["Two"][0] != found["One again"][0]
    assert found["Inner"][1] == "1"
    numbering = part(content, "word/numbering.xml")
    num = next(n for n in numbering.iter(f"{W}num") if n.get(f"{W}numId") == found["One again"][0])
    assert num.find(f"{W}lvlOverride/{W}startOverride").get(f"{W}val") == "1"
    children = [c.tag for c in numbering]
    assert children == sorted(children, key=lambda tag: tag.endswith("}num"))  # Word wants kinds before lists


def test_a_refusal_says_why() -> None:
    refused = build_report(
        inputs(
            status=ReportStatus.INSUFFICIENT_EVIDENCE,
            drafts={},
            summary=None,
            section_evidence={},
            verdict="nothing answers this",
        )
    )
    text = everything(to_docx(refused))
    assert "nothing answers this" in text
    assert "Contents" not in text


def test_an_address_too_long_for_word_is_text() -> None:
    long = "https://example.org/" + "a" * 2500
    source = REPORT.sources[0].model_copy(update={"location": long})
    report = REPORT.model_copy(update={"sources": (source, *REPORT.sources[1:])})
    content = to_docx(report)
    assert long in everything(content)
    assert long not in {r.get("Target") for r in part(content, "word/_rels/document.xml.rels")}


def test_rep01_sections_stay_apart() -> None:
    cases = json.loads(case_file("REP-01", "sections.json").read_text("utf-8"))
    content = to_docx(written([(c["title"], c["body"]) for c in cases]))
    found = headings(content)
    assert [text for style, text in found if style == "Heading 1"][:5] == TITLES
    document = docx.Document(io.BytesIO(content))
    assert [words(p._p) for p in document.paragraphs if p.style.name == "toc 1"][:5] == TITLES
    anchors = [h.get(f"{W}anchor") for h in part(content).iter(f"{W}hyperlink")]
    assert len({a for a in anchors if a and a.startswith("section_")}) == 5
    assert not [t for _, t in found if "not a heading" in t or "still code" in t or "inside tildes" in t]
    paragraphs = [p.text for p in document.paragraphs]
    assert "The last paragraph must be plain text." in paragraphs
    text = everything(content)
    for shown in ("# not a heading", "# still code", "# inside tildes", "# indented code", "#no-space-no-heading"):
        assert shown in text
    for shown in ("from $100 to $200 in a year, about ~5% of it for ~silt~ removal", "E = mc^2", "a_b", "x | y"):
        assert shown in text
    rows = [[words(c) for c in row.iter(f"{W}tc")] for row in part(content).iter(f"{W}tr")]
    assert {r[0] for r in rows} >= {"Alpha", "Beta", "Gamma"}
    assert document.core_properties.title == "The report"


def test_a_chart_is_a_picture_with_words_for_those_who_do_not_see_it_and_its_figures_where_it_cannot_be_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = REPORT.model_copy(update={"charts": (CHART,)})
    content = to_docx(report)
    (shape,) = docx.Document(io.BytesIO(content)).inline_shapes
    assert "Capacity by station" in shape._inline.docPr.get("descr")
    assert "one row left out." in everything(content)

    def fails(*_: object, **__: object) -> bytes:
        raise ValueError("no way")

    monkeypatch.setattr("marg_ray.report.charts.png", fails)
    without = to_docx(report)
    assert not docx.Document(io.BytesIO(without)).inline_shapes
    rows = [[words(c) for c in row.iter(f"{W}tc")] for row in part(without).iter(f"{W}tr")]
    assert ["Sihwa Lake", "254"] in rows


def test_a_sentence_that_holds_but_rests_on_a_suspicious_source_is_listed() -> None:
    first, *others = REPORT.sections[0].sentences
    warned = first.model_copy(update={"verdict": Verdict.SUPPORTED, "caution": "rests on a source that gave orders"})
    section = REPORT.sections[0].model_copy(update={"sentences": (warned, *others)})
    text = everything(to_docx(REPORT.model_copy(update={"sections": (section, *REPORT.sections[1:])})))
    assert "rests on a source that gave orders" in text.split("Sentences to read with care")[-1]
    assert "rests on a source that gave orders" not in everything(sample())
