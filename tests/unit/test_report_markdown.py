"""The report as Markdown, read back with a CommonMark reader: what was typed is what is seen."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from marg_ray.grounding.drafts import parse_draft
from marg_ray.grounding.snapshots import text_id
from marg_ray.records import (
    Analysis,
    Answerability,
    Draft,
    Evidence,
    Plan,
    ReportStatus,
    Request,
    RequestClass,
    Section,
    Source,
    SourceKind,
    Verdict,
    Zone,
)
from marg_ray.report.assemble import ReportInputs, build_report
from marg_ray.report.cautions import BESIDE
from marg_ray.report.html import to_html
from marg_ray.report.inline import code_span, escape, line_start, parse, plain
from marg_ray.report.inline import to_markdown as inline_markdown
from marg_ray.report.labels import ENGLISH, LANGUAGES, labels
from marg_ray.report.markdown import to_markdown
from marg_ray.report.model import Report
from marg_ray.report.refusal import refusal_text
from tests.report_sample import NOW, inputs, said, take
from tests.shared import case_file

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def tokens(markdown: str) -> list[Token]:
    return READER.parse(markdown)


def text_of(token: Token) -> str:
    return "".join(c.content if c.type in ("text", "code_inline", "html_inline") else "" for c in token.children or [])


def headings(markdown: str) -> list[tuple[str, str]]:
    found = tokens(markdown)
    return [(t.tag, text_of(found[i + 1])) for i, t in enumerate(found) if t.type == "heading_open"]


def paragraphs(markdown: str) -> list[str]:
    found = tokens(markdown)
    return [text_of(found[i + 1]) for i, t in enumerate(found) if t.type == "paragraph_open" and t.level == 0]


def contents(markdown: str) -> list[tuple[str, str]]:
    """The entries of the contents: title and anchor."""
    inside = markdown.split("\n## Contents\n")[1].split("\n<a id=")[0]
    found = [t for t in tokens(inside) if t.type == "inline"]
    return [(text_of(t), str((t.children or [])[0].attrs["href"])) for t in found]


def written(sections: list[tuple[str, str]], sources: list[tuple[str, str]] | None = None) -> Report:
    """A report from section bodies as models write them; `sources` (title, address) are cited as [1], [2] ..."""
    made = {}
    for number, (title, address) in enumerate(sources or [("Source", "https://example.org/1")], 1):
        text = f"Text of source {number}."
        made[number] = Source(id=text_id(text), title=title, location=address, kind=SourceKind.WEB, fetched_at=NOW)
    evidence = {
        n: Evidence(id=f"e{n}", source=s.id, quote=f"Text of source {n}.", start=0, end=17) for n, s in made.items()
    }
    plan = tuple(
        Section(id=f"s{n}", title=title, weight=1, queries=(title,)) for n, (title, _) in enumerate(sections, 1)
    )
    drafts = {
        s.id: parse_draft(body, {n: e.id for n, e in evidence.items()}, section=s.id, section_title=s.title, revision=1)
        for s, (_, body) in zip(plan, sections, strict=True)
    }
    return build_report(
        ReportInputs(
            session_id="r1",
            request=Request(question="What?"),
            plan=Plan(title="The report", request_class=RequestClass.FULL_RESEARCH, language="en", sections=plan),
            model="openai:gpt-test",
            status=ReportStatus.QUALITY_WARNING,
            drafts=drafts,
            evidence={e.id: e for e in evidence.values()},
            sources={s.id: s for s in made.values()},
            created_at=NOW,
            finished_at=NOW,
        )
    )


# ---- the sample


def test_the_parts_stand_in_order() -> None:
    names = [text for tag, text in headings(to_markdown(build_report(inputs()))) if tag == "h2"]
    assert names[:3] == ["In brief", "Contents", "Which plants run, and since when?"]
    assert names[-5:] == [
        "Where the sources disagree",
        "Not answered by the documents",
        "References",
        "How this report was checked",
        "Notes",
    ]


def test_disclosure_names_the_model_or_says_that_there_was_none() -> None:
    assert "**AI-generated** by openai:gpt-test. Sources read: 6, cited: 5." in to_markdown(build_report(inputs()))
    assert "**Composed without a language model** from verbatim quotations." in to_markdown(
        build_report(inputs(model="extractive"))
    )


def test_sentences_that_show_the_same_marks_show_them_once_at_the_last() -> None:
    body = to_markdown(build_report(inputs()))
    assert "Annapolis Royal had 20 MW. It was shut in 2019 for want of money. [2]" in body
    assert "该站总装机容量为4.1兆瓦。它于1980年开始发电。[4]" in body


def test_a_sentence_that_does_not_hold_is_marked_on_its_own() -> None:
    body = to_markdown(build_report(inputs()))
    assert "a kilowatt. *(not supported)* [1]" in body
    assert "No fish died at Rance. *(contradicted)* [3]" in body


def test_a_sentence_whose_source_calls_for_caution_is_named_with_the_checks() -> None:
    report = build_report(inputs())
    first = report.sections[0]
    marked = (first.sentences[0].model_copy(update={"caution": BESIDE}), *first.sentences[1:])
    sections = (first.model_copy(update={"sentences": marked}), *report.sections[1:])
    text = to_markdown(report.model_copy(update={"sections": sections}))
    assert f"” {BESIDE}" in text
    assert to_markdown(report).count(BESIDE) == 0


def test_labels_run_into_their_paragraph() -> None:
    assert "**Korea.** Sihwa Lake has 254 MW" in to_markdown(build_report(inputs()))


def test_nearest_material_says_which_words_are_nowhere() -> None:
    assert "Found in no document: kilowatt price." in to_markdown(build_report(inputs()))
    assert "Nearest material" not in to_markdown(build_report(inputs(answerability=None)))


def test_near_material_that_holds_is_not_called_a_failed_check() -> None:
    sound = {k: d for k, d in inputs().drafts.items() if k in ("s3", "s4")}
    body = to_markdown(build_report(inputs(drafts=sound, section_evidence={})))
    assert "did not pass" not in body
    assert "**Nearest material.**" in body
    assert "did not pass" in to_markdown(build_report(inputs()))
    assert "did not pass" in to_markdown(build_report(inputs(drafts=sound, answerability=None)))


def test_a_disagreement_shows_each_value_with_its_source() -> None:
    body = to_markdown(build_report(inputs()))
    assert "> - about 540 GWh: Rance | a \\*working\\* tidal station (2021) [1]" in body
    assert "> - close to 500 GWh: Survey of tidal plants (2019) [2]" in body


def test_a_source_of_a_disagreement_that_no_sentence_cites_gets_no_number() -> None:
    report = build_report(inputs(summary=None, drafts={"s4": inputs().drafts["s4"]}, section_evidence={}))
    assert len(report.references) == 1
    assert "tidal station (2021)\n" in to_markdown(report)


def test_every_mark_has_one_entry_and_every_entry_a_mark() -> None:
    body, references = to_markdown(build_report(inputs())).split("## References")
    used = {int(n) for n in re.findall(r"(?<!\\)\[(\d+)\]", body)}
    listed = [int(n) for n in re.findall(r"^(\d+)\. ", references, re.M)]
    assert listed == sorted(used)


def test_a_refusal_says_why_what_is_nowhere_and_what_is_nearest() -> None:
    found = Answerability(zone=Zone.NOTHING, missing_terms=("zeppelin", "1893"), nearest=("Tides", "A *b*"))
    text = refusal_text("When\nwas it?", "no document speaks of zeppelins", found)
    assert text == (
        "No report: no document speaks of zeppelins.\nQuestion: When was it?\n"
        "Found in no document: zeppelin, 1893\nNearest material:\n  - Tides\n  - A *b*\n"
    )
    report = build_report(
        inputs(
            status=ReportStatus.INSUFFICIENT_EVIDENCE,
            drafts={},
            section_evidence={},
            summary=None,
            analysis=Analysis(),
            verdict="no document speaks of zeppelins",
            answerability=found,
        )
    )
    page = to_markdown(report)
    assert "No document speaks of zeppelins." in page
    assert "- A \\*b\\*" in page
    assert "References" not in page
    html = to_html(report)
    assert "zeppelin, 1893" in html
    assert '<li dir="auto">A *b*</li>' in html
    assert "Prices" not in html


# ---- REP-01: Markdown inside sections


@pytest.fixture(scope="module")
def rep01() -> str:
    cases = json.loads(case_file("REP-01", "sections.json").read_text("utf-8"))
    return to_markdown(written([(c["title"], c["body"]) for c in cases]))


TITLES = ["Overview", "Cost & <b>risk</b>", "Overview", "潮汐", "Last section"]


def test_contents_list_the_section_titles_in_order_and_nothing_else(rep01: str) -> None:
    assert [title for title, _ in contents(rep01)] == TITLES


def test_each_entry_leads_to_one_anchor_of_its_own(rep01: str) -> None:
    anchors = [unquote(href)[1:] for _, href in contents(rep01)]
    assert len(set(anchors)) == 5
    for name in anchors:
        assert rep01.count(f'<a id="{name}"></a>') == 1


def test_no_body_heading_is_on_the_level_of_a_section_or_above(rep01: str) -> None:
    own = ["Contents", "How this report was checked"]
    assert [text for tag, text in headings(rep01) if tag == "h2" and text not in own] == TITLES
    assert [text for tag, text in headings(rep01) if tag == "h1"] == ["The report"]
    assert ("h3", "Method") in headings(rep01)


def test_code_comments_are_code(rep01: str) -> None:
    code = "".join(t.content for t in tokens(rep01) if t.type == "fence")
    for line in ("# not a heading", "# still code", "# inside tildes", "# indented code"):
        assert line in code
        assert line.lstrip("# ") not in [text for _, text in headings(rep01)]
    assert any("#no-space-no-heading" in p for p in paragraphs(rep01))


def test_an_unclosed_fence_or_comment_swallows_nothing_that_follows(rep01: str) -> None:
    assert "The last paragraph must be plain text." in paragraphs(rep01)
    assert "Second section with the same title." in paragraphs(rep01)
    assert "Text after the comment mark." in paragraphs(rep01)


def test_prices_and_tildes_are_readable_as_typed_and_formulas_stay(rep01: str) -> None:
    assert any("from $100 to $200 in a year, about ~5% of it for ~silt~ removal" in p for p in paragraphs(rep01))
    assert "\\$100" in rep01  # so that no reader takes the two prices for a formula
    assert "$E = mc^2$" in rep01
    assert "$a_b$" in rep01


def test_tables_keep_their_rows_and_every_cell(rep01: str) -> None:
    found = tokens(rep01)
    rows = [
        [text_of(c) for c in found[i : i + 20] if c.type == "inline"]
        for i, t in enumerate(found)
        if t.type == "tr_open"
    ]
    cells = [row[:3] for row in rows]
    assert ["Alpha", "a", "b"] in cells
    assert any(row[0] == "Beta" and "x | y" in row[1] for row in cells)
    assert any(row[0] == "Gamma" for row in cells)
    links = [c.attrs["href"] for t in found for c in t.children or [] if c.type == "link_open"]
    assert any(unquote(str(href)) == "https://example.org/a|b" for href in links)


def test_the_bodys_own_contents_and_front_matter_change_nothing(rep01: str) -> None:
    assert sum(text in ("Contents", "Table of Contents") for _, text in headings(rep01)) == 1
    assert rep01.startswith("# The report\n")


# ---- CIT-01, CIT-04: references


def cited_sources(case: str) -> Report:
    sources = json.loads(case_file(case, "sources.json").read_text("utf-8"))
    bodies = [(f"Part {n}", case_file(case, f"section-{n}.md").read_text("utf-8")) for n in (1, 2)]
    return written(bodies, [(s["title"], s["url"]) for s in sources])


@pytest.mark.parametrize("case", ["CIT-01", "CIT-04"])
def test_numbers_follow_one_rule_in_all_sections_without_holes(case: str) -> None:
    report = cited_sources(case)
    body, references = to_markdown(report).split("## References")
    marks = [int(n) for n in re.findall(r"(?<!\\)\[(\d+)\]", body)]
    assert list(dict.fromkeys(marks)) == list(range(1, len(report.references) + 1))
    assert [int(n) for n in re.findall(r"^(\d+)\. ", references, re.M)] == sorted(set(marks))
    source_of = {e.id: e.source for e in report.evidence}
    by_source: dict[str, set[int]] = {}
    for s in report.sentences():
        for c in s.citations:
            by_source.setdefault(source_of[c], set()).update(n for n in s.numbers if len(s.numbers) == 1)
    assert all(len(numbers) <= 1 for numbers in by_source.values())


def test_one_reference_list_and_none_of_the_models() -> None:
    body = to_markdown(cited_sources("CIT-04"))
    assert [text for _, text in headings(body)].count("References") == 1
    assert "exmaple.org" not in body
    assert "Sources:" not in body
    assert "Every field is listed" in body
    assert "one page has no title" in body


def test_each_reference_is_one_item_on_one_line_whatever_its_title() -> None:
    report = cited_sources("CIT-04")
    sources = {s.id: s for s in report.sources}
    references = to_markdown(report).split("## References\n\n")[1].split("\n\n")[0]
    lines = references.split("\n")
    assert len(lines) == len(report.references) == 6
    for line, reference in zip(lines, report.references, strict=True):
        source = sources[reference.source]
        inline = next(t for t in tokens(line) if t.type == "inline")
        kinds = {c.type for c in inline.children or []}
        link = next(c for c in inline.children or [] if c.type == "link_open")
        assert unquote(str(link.attrs["href"])) == unquote(source.location)
        assert "em_open" not in kinds
        title = " ".join(source.title.split()) or source.location
        assert text_of(inline).startswith(title)


# ---- any text at all


def seen(markdown: str) -> str:
    return "".join(text_of(t) for t in tokens(markdown) if t.type == "inline")


SIGNS = st.text(st.sampled_from(list("ab1 .#>-+*_`~[]()<>!|\\$&;:=/\"'é潮")), max_size=30).map(
    lambda s: " ".join(s.split())
)


@settings(max_examples=400, deadline=None)
@given(SIGNS)
def test_escaped_text_is_seen_as_typed_wherever_it_stands(text: str) -> None:
    assert seen(line_start(escape(text))) == text
    if text:
        assert seen(f"- {line_start(escape(text))}") == text
        assert next(t.type for t in tokens(line_start(escape(text)))) == "paragraph_open"


@settings(max_examples=200, deadline=None)
@given(SIGNS)
@example("_1_*1*")
@example("__1__**1**")
@example("_*1*1_")
@example("_**_1_1**_")
def test_a_sentence_written_out_and_read_again_has_the_same_words(text: str) -> None:
    nodes = parse(text)
    assert plain(parse(inline_markdown(nodes))).split() == plain(nodes).split()


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("a` "), min_size=1, max_size=8))
def test_code_spans_hold_any_backticks(text: str) -> None:
    inline = next((t for t in tokens(f"x {code_span(text)}") if t.type == "inline"), None)
    code = [c.content for c in (inline.children if inline else None) or [] if c.type == "code_inline"]
    assert code == [text] or not text.strip()


@pytest.mark.parametrize("lead", ["", "**Calls.** "])
def test_quoted_words_are_shown_letter_by_letter(lead: str) -> None:
    quote = take("rance", "The Rance station")
    starred = quote.model_copy(update={"quote": "Use *args and __init__ or $x$ [sic]"})
    sentence = said(f"{lead}Use *args and __init__ or $x$ [sic]", starred)
    draft = Draft.model_validate(
        {"section": "s1", "revision": 1, "blocks": [{"kind": "paragraph", "sentences": [sentence.model_dump()]}]}
    )
    report = build_report(inputs(drafts={"s1": draft}, summary=None, evidence={starred.id: starred}))
    assert any("Use *args and __init__ or $x$ [sic]" in p for p in paragraphs(to_markdown(report)))
    assert "Use *args and __init__ or $x$ [sic]" in " ".join(re.sub("<[^>]+>", "", to_html(report)).split())
    assert ("<strong>Calls.</strong>" in to_html(report)) is bool(lead)


PLACES = re.compile(r"\{\w+\}")


@pytest.mark.parametrize("code", LANGUAGES)
def test_labels_of_every_language_have_the_same_places(code: str) -> None:
    assert set(labels(code)) == set(ENGLISH)
    for key, text in labels(code).items():
        assert sorted(PLACES.findall(text)) == sorted(PLACES.findall(ENGLISH[key])), key
        assert text.strip()


@pytest.mark.parametrize("code", LANGUAGES)
def test_headings_follow_the_reports_language(code: str) -> None:
    report = build_report(inputs()).model_copy(update={"language": code})
    own = labels(code)
    names = [text for tag, text in headings(to_markdown(report)) if tag == "h2"]
    for key in ("in_brief", "contents", "disagree", "unanswered", "references", "checked", "notes"):
        assert own[key] in names
    html = to_html(report)
    assert all(own[key] in html for key in ("in_brief", "quality_warning", "contradicted", "nearest"))


def test_a_language_without_labels_has_english_ones() -> None:
    assert labels("eo") is labels("en-GB") is ENGLISH


def test_a_verdict_of_every_kind_is_counted() -> None:
    line = next(t for t in to_markdown(build_report(inputs())).split("\n") if " sentences: " in t)
    assert line.count(",") == len(Verdict) - 1
