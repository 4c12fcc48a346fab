"""From a question to a checked sentence: ask, decide on the plan, watch, read, look a citation up, take it home."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.host import Host

QUESTION = "How much power do tidal stations produce?"
Open = Callable[..., Visit]


def ask(page: Page, question: str = QUESTION, *, plan: bool = False, gate: str = "never") -> str:
    """Asks from the page's first view; returns the run's id."""
    page.get_by_label("Question", exact=True).fill(question)
    page.get_by_text("Overview", exact=True).click()
    page.get_by_label("Let me approve the plan").set_checked(plan)
    page.get_by_label("When the draft is written").select_option(gate)
    page.get_by_text("More: outline").click()
    page.get_by_label("Research anew").check()
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile("/runs/."))
    return page.url.split("/runs/")[1].split("/")[0]


def test_from_question_to_passage(host: Host, visit: Open) -> None:
    v = visit(host.url)
    page = v.page
    host.hold("DraftSection")
    ask(page, plan=True)

    gate = page.get_by_role("region", name="The plan waits for you")
    gate.get_by_label("Title of the section").first.fill("Power of tidal stations")
    gate.get_by_role("button", name="Move down").first.click()
    gate.get_by_role("button", name="Approve").click()
    expect(gate).to_be_hidden()

    rows = page.locator("table.sections tbody tr")
    expect(rows.nth(1)).to_contain_text("Power of tidal stations")
    expect(rows.nth(1)).to_contain_text("writing")
    expect(page.locator(".agent.r-synthesizer")).to_have_attribute("data-busy", "yes")
    expect(page.locator(".event").filter(has_text="plan approved by")).to_be_visible()
    v.picture("progress")

    host.let_go()
    page.wait_for_url("**/report")
    text = page.locator("article.report-text")
    expect(text).to_contain_text("capacity of 240 megawatts")
    expect(page.get_by_role("navigation", name="Contents of the report")).to_contain_text("Power of tidal stations")

    mark = text.get_by_role("button", name=re.compile("Reference 1, supported")).first
    mark.click()
    panel = page.get_by_role("complementary", name="Reference 1")
    expect(panel).to_contain_text("Supported")
    expect(panel.locator("mark").first).not_to_be_empty()
    expect(panel.locator(".around").first).not_to_be_empty()  # what stands around it came from the server
    v.picture("passage", whole=False)
    panel.get_by_role("button", name="Read it in the whole text").first.click()
    whole = page.get_by_role("dialog")
    expect(whole.locator("mark")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(mark).to_be_focused()


def test_a_report_is_saved_under_a_name(host: Host, visit: Open, tmp_path: Path) -> None:
    host.plant("20260314-0926-save")
    page = visit(f"{host.url}/runs/20260314-0926-save").page
    for name, ending in (("Markdown", ".md"), ("JSON", ".json"), ("Word", ".docx"), ("BibTeX", ".bib")):
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as saved:
            page.get_by_role("menuitem", name=re.compile(f"^{name}")).click()
        assert saved.value.suggested_filename.endswith(ending)
        assert "tidal" in saved.value.suggested_filename.lower()
        saved.value.save_as(tmp_path / f"report{ending}")
    assert json.loads((tmp_path / "report.json").read_text())["session_id"] == "20260314-0926-save"
    assert "240 MW" in (tmp_path / "report.md").read_text()


def test_a_chart_is_drawn_and_read(host: Host, visit: Open) -> None:
    host.plant("20260314-0926-chart")
    page = visit(f"{host.url}/runs/20260314-0926-chart/report").page
    picture = page.get_by_role("img", name="Chart: Capacity of tidal plants")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    figure = page.locator("figure.chart")
    figure.get_by_text("Figures").click()
    expect(figure.get_by_role("row", name="Sihwa Lake 254")).to_be_visible()
    figure.get_by_role("link", name="Reference 2").click()
    expect(page.locator("#ref-2")).to_be_in_viewport()


def test_what_is_wrong_stands_beside_its_field(host: Host, visit: Open) -> None:
    page = visit(host.url, expected="422").page
    page.get_by_role("button", name="Research this").click()
    expect(page.get_by_text("Ask something first.")).to_be_visible()
    expect(page.get_by_label("Question", exact=True)).to_be_focused()
    page.get_by_label("Question", exact=True).fill(QUESTION)
    page.get_by_text("More: outline").click()
    page.get_by_label("Language").fill("e1")
    page.get_by_text("More: outline").click()  # closed again: it opens where something is wrong in it
    page.get_by_role("button", name="Research this").click()
    expect(page.get_by_label("Language")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Language")).to_be_focused()


def test_nothing_from_outside_becomes_markup(host: Host, visit: Open) -> None:
    page = visit(host.url).page
    nasty = "How much power do <b>tidal</b> stations produce & <img src=x onerror=\"document.title='run'\">?"
    ask(page, nasty)
    page.wait_for_url("**/report")
    expect(page.get_by_role("heading", level=1)).to_have_text(nasty)
    assert page.locator("main img[src=x]").count() == 0
    assert page.title() != "run"


def test_a_run_is_played_back(host: Host, visit: Open) -> None:
    v = visit(host.url)
    page = v.page
    run = ask(page)
    page.wait_for_url("**/report")
    page.get_by_role("link", name="Replay").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    moment = page.get_by_role("slider", name="Moment of the run")
    moment.press("End")
    expect(page.locator(".now")).to_contain_text("report ready")
    v.picture("replay")
    moment.press("Home")
    expect(page.locator(".event")).to_have_count(1)
    page.get_by_role("radio", name="16×").check()
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".now")).to_contain_text("report ready")
    seqs = page.locator(".event").evaluate_all("all => all.map(e => Number(e.dataset.seq))")
    assert seqs == list(range(len(seqs), 0, -1))
    assert run in page.url


def test_past_runs_are_found_again(host: Host, visit: Open) -> None:
    host.plant("20260314-0926-past")
    page = visit(f"{host.url}/runs").page
    page.get_by_label("Search the questions").fill("birds fish")
    expect(page.locator(".runs .row").first).to_contain_text("birds and fish")
    page.get_by_label("Status").select_option("cancelled")
    expect(page.get_by_text("Nothing fits")).to_be_visible()
    page.get_by_label("Status").select_option("quality_warning")
    page.locator(".runs .row").first.click()
    page.wait_for_url("**/runs/20260314*/report")
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_a_refusal_says_why_and_what_may_help(host: Host, visit: Open) -> None:
    v = visit(host.url)
    page = v.page
    ask(page, "Who won the football cup of 1954?")
    page.wait_for_url("**/report")
    expect(page.get_by_text("The sources do not answer the question.")).to_be_visible()
    v.picture("refusal", whole=False)
    page.get_by_role("link", name="See what was searched").click()
    expect(page.locator(".event").filter(has_text="no report")).to_be_visible()
