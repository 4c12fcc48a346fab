"""A caller's documents: put in by button and by drag and drop, searched, taken out. Questions about a report."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.host import Host
from tests.browser.test_research import Open, ask

TEXT = "# Annapolis Royal\n\nThe Annapolis Royal station had a capacity of 20 megawatts. It was shut in 2019.\n"
DROP = """([name, text]) => {
  const carried = new DataTransfer();
  carried.items.add(new File([text], name, {type: "text/markdown"}));
  const at = document.querySelector(".drop");
  for (const type of ["dragover", "drop"])
    at.dispatchEvent(new DragEvent(type, {dataTransfer: carried, bubbles: true, cancelable: true}));
}"""


def test_documents_come_and_go(host: Host, visit: Open, tmp_path: Path) -> None:
    file = tmp_path / "annapolis.md"
    file.write_text(TEXT)
    v = visit(f"{host.url}/library", expected="422")
    page = v.page
    expect(page.get_by_text("No documents yet")).to_be_visible()
    page.locator("#library-files").set_input_files(file)
    row = page.locator(".document").filter(has_text="annapolis.md")
    expect(row).to_be_visible(timeout=60_000)  # the first one brings the libraries in
    page.evaluate(DROP, ["موجز.md", "# موجز\n\nتبلغ قدرة المحطة 240 ميغاواط منذ عام 1966.\n"])
    expect(page.locator(".document")).to_have_count(2, timeout=60_000)
    page.evaluate(DROP, ["empty.md", ""])
    expect(page.locator(".upload.t-red")).to_contain_text("empty.md")
    page.get_by_role("button", name="Dismiss").click()

    expect(row).not_to_contain_text("being indexed", timeout=60_000)
    page.get_by_label("Search in the documents").fill("Annapolis Royal capacity")
    page.keyboard.press("Enter")
    expect(page.locator(".found blockquote").first).to_contain_text("20 megawatts")
    v.picture("library-full")

    row.get_by_role("button", name="Remove annapolis.md").click()
    page.get_by_role("button", name="Remove", exact=True).last.click()
    expect(row).to_be_hidden()
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.get_by_role("button", name=re.compile("^Remove")).click()
    page.get_by_role("button", name="Remove", exact=True).last.click()
    expect(page.get_by_text("No documents yet")).to_be_visible()


def test_a_report_answers_with_its_passages(host: Host, visit: Open) -> None:
    v = visit(host.url)
    page = v.page
    ask(page)
    page.wait_for_url("**/report")
    box = page.get_by_label("Your question about this report")
    box.fill("What capacity does the Rance station have?")
    box.press("Enter")
    answer = page.locator(".answer").last
    expect(answer).to_contain_text("240 megawatts")
    answer.get_by_role("button", name=re.compile("^Reference")).first.click()
    expect(page.get_by_role("complementary", name=re.compile("^Reference"))).to_be_visible()
    v.picture("answer", whole=False)
    page.keyboard.press("Escape")
    box.fill("Who won the football cup of 1954?")
    box.press("Enter")
    expect(page.locator(".answer")).to_have_count(2, timeout=60_000)
    expect(page.locator(".answer").last).not_to_contain_text("Looking through")
    expect(page.locator(".answer").last).to_contain_text("do not answer")
