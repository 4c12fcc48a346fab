"""The report as one HTML file: offline, safe, and every citation opens what it rests on."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from urllib.parse import unquote

import pytest
from lxml import html as lxml_html

from marg_ray.records import Block, Draft, Plan, RequestClass, Section, Source, SourceKind, Verdict
from marg_ray.report.assemble import build_report
from marg_ray.report.html import to_html
from tests.report_sample import E1, EVIDENCE, NOW, SOURCES, inputs, said
from tests.shared import case_file
from tests.unit.test_report_markdown import TITLES, cited_sources, written

ATTACK = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><b>"


def page(markup: str) -> lxml_html.HtmlElement:
    return lxml_html.document_fromstring(markup)


@pytest.fixture(scope="module")
def sample() -> lxml_html.HtmlElement:
    return page(to_html(build_report(inputs())))


def words(element: lxml_html.HtmlElement) -> str:
    return " ".join(element.text_content().split())


def test_nothing_is_loaded_from_anywhere(sample: lxml_html.HtmlElement) -> None:
    assert not sample.xpath("//*[@src] | //iframe | //object | //embed | //img | //base | //form[@action]")
    assert [link.get("href") for link in sample.xpath("//link")] == ["data:,"]
    for sheet in sample.xpath("//style"):
        assert not re.search(r"url\(|@import", sheet.text)


def test_the_policy_allows_our_own_style_and_script_only(sample: lxml_html.HtmlElement) -> None:
    policy = sample.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")[0]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for element in sample.xpath("//style | //script"):
        digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not sample.xpath("//@style")
    assert not [name for e in sample.iter() for name in e.attrib if str(name).startswith("on")]


def test_every_mark_opens_a_box_of_its_own_with_passage_source_verdict_and_reason(
    sample: lxml_html.HtmlElement,
) -> None:
    report = build_report(inputs())
    marks = sample.xpath("//button[contains(@class, 'mark')]")
    targets = [m.get("popovertarget") for m in marks]
    assert len(targets) == len(set(targets)) > 10
    titles = {r.number: next(s.title for s in report.sources if s.id == r.source) for r in report.references}
    for mark in marks:
        box = sample.get_element_by_id(mark.get("popovertarget"))
        assert box.get("popover") is not None
        assert titles[int(mark.text)] in words(box)
        assert box.xpath(".//blockquote")
        assert box.xpath(".//*[contains(@class, 'badge')]")
        assert box.xpath(".//*[contains(@class, 'reason')]")
        assert mark.get("aria-label")


def test_a_box_quotes_what_its_sentence_cites_from_that_source_only(sample: lxml_html.HtmlElement) -> None:
    cell = next(td for td in sample.xpath("//td") if words(td).startswith("240 MW"))
    box = sample.get_element_by_id(cell.xpath(".//button/@popovertarget")[0])
    quotes = [words(q) for q in box.xpath(".//blockquote")]
    assert quotes == [E1.quote, "The Rance station near Saint-Malo opened in 1966."]


def test_an_unsupported_sentence_without_citations_can_be_asked_why() -> None:
    bare = said("It costs 5.", verdict=Verdict.UNSUPPORTED, reason="nothing is cited for 5")
    draft = Draft(section="s1", revision=1, blocks=(Block(kind="paragraph", sentences=(bare,)),))
    tree = page(to_html(build_report(inputs(drafts={"s1": draft}, summary=None))))
    mark = tree.xpath("//section[@id='section--s1']//button[contains(@class, 'mark')]")[0]
    assert mark.text == "!"
    assert "nothing is cited for 5" in words(tree.get_element_by_id(mark.get("popovertarget")))


def test_each_sentence_carries_its_verdict(sample: lxml_html.HtmlElement) -> None:
    report = build_report(inputs())
    in_main = sample.xpath("//main//*[contains(concat(' ', @class, ' '), ' s ')]/@class")
    assert {c.split("v-")[1] for c in in_main} == {v.value for v in Verdict}
    in_tables = sum(b.end - b.start for s in report.sections for b in s.blocks if b.kind == "table")
    assert len(in_main) == len(report.sentences()) - in_tables


def test_ids_are_unique_and_every_inner_link_leads_somewhere(sample: lxml_html.HtmlElement) -> None:
    ids = sample.xpath("//@id")
    assert len(ids) == len(set(ids))
    for href in sample.xpath("//a/@href[starts-with(., '#')]"):
        assert unquote(href[1:]) in ids
    for target in sample.xpath("//@popovertarget"):
        assert target in ids


def test_text_from_anywhere_is_text() -> None:
    source = Source(id=SOURCES["rance"].id, title=ATTACK, location=ATTACK, kind=SourceKind.WEB, fetched_at=NOW)
    sources = {s.id: s for s in SOURCES.values()} | {source.id: source}
    plan = Plan(
        title=ATTACK,
        request_class=RequestClass.FULL_RESEARCH,
        language='en"><script>',
        sections=(Section(id='s1"><script>', title=ATTACK, weight=1, queries=()),),
    )
    evil = said(ATTACK + " [x](javascript:alert(1)) <a href='javascript:alert(1)'>", E1, reason=ATTACK)
    draft = Draft(
        section='s1"><script>',
        revision=1,
        blocks=(
            Block(kind="paragraph", sentences=(evil,)),
            Block(kind="heading", text=ATTACK, level=1),
            Block(kind="code", text=ATTACK, language=ATTACK),
            Block(kind="formula", text=ATTACK),
            Block(kind="table", text=f"| {ATTACK} |", sentences=(said(f"| {ATTACK} |", E1),)),
        ),
    )
    report = build_report(
        inputs(
            plan=plan,
            sources=sources,
            drafts={draft.section: draft},
            gaps={},
            summary=None,
            verdict=ATTACK,
            model=ATTACK,
            session_id=ATTACK,
        )
    )
    tree = page(to_html(report))
    assert len(tree.xpath("//script")) == 1
    assert not tree.xpath("//img | //*[@onerror]")
    assert not [h for h in tree.xpath("//@href") if h.lower().startswith("javascript")]
    assert tree.xpath("//h1")[0].text_content() == ATTACK
    assert ATTACK in tree.xpath("//pre")[0].text_content()


def test_addresses_are_links_only_where_a_reader_can_follow_them(sample: lxml_html.HtmlElement) -> None:
    links = {words(a): a.get("href") for a in sample.xpath("//section[@id='references']//a")}
    assert unquote(links["Rance | a *working* tidal station"]) == SOURCES["rance"].location
    assert unquote(links["Survey of tidal plants"]) == f"file://{SOURCES['survey'].location}"
    provided = SOURCES["rance"].model_copy(update={"kind": SourceKind.PROVIDED, "location": "data:text/html,<b>"})
    sources = {s.id: s for s in SOURCES.values()} | {provided.id: provided}
    tree = page(to_html(build_report(inputs(sources=sources))))
    assert not [h for h in tree.xpath("//a/@href") if h.startswith("data:")]


def test_scripts_that_run_from_right_to_left_do_so() -> None:
    report = build_report(inputs())
    assert page(to_html(report)).get("dir") == "ltr"
    arabic = report.model_copy(update={"language": "ar"})
    tree = page(to_html(arabic))
    assert (tree.get("dir"), tree.get("lang")) == ("rtl", "ar")
    assert all(p.get("dir") == "auto" for p in tree.xpath("//main/section[starts-with(@id, 'section')]/p[.//button]"))


def test_sentences_without_blanks_between_them_get_none() -> None:
    tree = page(to_html(build_report(inputs())))
    text = words(tree.get_element_by_id("section--s3").xpath("./p")[0])
    assert text == "该站总装机容量为4.1兆瓦。4它于1980年开始发电。4"


def test_sources_that_disagree_show_their_passages(sample: lxml_html.HtmlElement) -> None:
    box = sample.get_element_by_id("disagreements")
    assert [words(v) for v in box.xpath(".//*[@class='value']")] == ["about 540 GWh", "close to 500 GWh"]
    assert len(box.xpath(".//blockquote")) == 2


def test_a_source_with_instructions_in_it_is_marked(sample: lxml_html.HtmlElement) -> None:
    entry = sample.get_element_by_id("ref-3")
    assert "instruction-like text was cut out" in words(entry)


def test_nested_lists_are_nested(sample: lxml_html.HtmlElement) -> None:
    inner = sample.xpath("//section[@id='section--s2']/ul/li/ul/li")
    assert [words(i) for i in inner] == ["No fish died at Rance.3"]


def test_rep01_sections_stay_apart() -> None:
    cases = json.loads(case_file("REP-01", "sections.json").read_text("utf-8"))
    tree = page(to_html(written([(c["title"], c["body"]) for c in cases])))
    assert [words(a) for a in tree.xpath("//ol[@class='toc']//a")] == TITLES
    anchors = [h[1:] for h in tree.xpath("//ol[@class='toc']//a/@href")]
    assert len(set(anchors)) == 5
    assert [words(tree.get_element_by_id(a).xpath("./h2")[0]) for a in anchors] == TITLES
    methods = [h.get("id") for h in tree.xpath("//h3[.='Method']")]
    assert len(methods) == len(set(methods)) >= 2
    assert "The last paragraph must be plain text." in [words(p) for p in tree.xpath("//section/p")]
    code = " ".join(p.text_content() for p in tree.xpath("//pre"))
    for line in ("# not a heading", "# still code", "# inside tildes", "# indented code"):
        assert line in code
    everything = words(tree.xpath("//main")[0])
    assert "from $100 to $200 in a year, about ~5% of it for ~silt~ removal" in everything
    assert [words(f) for f in tree.xpath("//span[@class='formula']")] == ["E = mc^2", "a_b"]
    rows = [[words(td) for td in tr.xpath("./td")] for tr in tree.xpath("//tbody/tr")]
    assert ["Alpha", "a", "b"] in rows
    assert any(row[0] == "Beta" and "x | y" in row[1] for row in rows)
    assert any(row[0] == "Gamma" for row in rows)
    assert "https://example.org/a|b" in [unquote(h) for h in tree.xpath("//td//a/@href")]
    assert tree.xpath("//title")[0].text == "The report"


def test_cit04_every_address_is_whole() -> None:
    report = cited_sources("CIT-04")
    tree = page(to_html(report))
    sources = {s.id: s for s in report.sources}
    entries = tree.xpath("//ol[@class='references']/li")
    assert len(entries) == len(report.references) == 6
    for entry, reference in zip(entries, report.references, strict=True):
        source = sources[reference.source]
        link = entry.xpath(".//a")[0]
        assert unquote(link.get("href")) == unquote(source.location)
        assert words(link) == (" ".join(source.title.split()) or source.location)
        assert not entry.xpath(".//em")
    fields = next(h for h in tree.xpath("//a/@href") if "field0" in h)
    assert fields.count("=") == 50


def test_a_long_report_stays_small_and_quick_to_read() -> None:
    many = tuple(said(f"Sentence {n} of many.", EVIDENCE[i]) for n, i in enumerate(sorted(EVIDENCE) * 30))
    draft = Draft(section="s1", revision=1, blocks=(Block(kind="paragraph", sentences=many),))
    markup = to_html(build_report(inputs(drafts={"s1": draft})))
    assert len(markup) < 3000 * len(many)
