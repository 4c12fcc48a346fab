"""What waits for its owner, from two windows; and what an owner says while it runs."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.host import Host
from tests.browser.test_research import Open, ask


def test_the_second_to_decide_is_told_so(host: Host, visit: Open) -> None:
    first = visit(host.url)
    ask(first.page, plan=True)
    second = visit(first.page.url, expected="409 net")
    gates = [v.page.get_by_role("region", name="The plan waits for you") for v in (first, second)]
    for gate in gates:
        expect(gate).to_be_visible()
    second.page.route("**/events?*", lambda route: route.abort())  # it hears nothing of the first one's decision
    second.page.evaluate("() => dispatchEvent(new Event('offline'))")
    host.hold("DraftSection")
    gates[0].get_by_role("button", name="Approve").click()
    expect(gates[0]).to_be_hidden()
    gates[1].get_by_label("Title of the section").first.fill("Something else")
    gates[1].get_by_role("button", name="Approve").click()
    expect(gates[1].get_by_text("Too late")).to_be_visible()


def test_a_draft_is_sent_back_and_then_approved(host: Host, visit: Open) -> None:
    v = visit(host.url)
    page = v.page
    ask(page, gate="always")
    gate = page.get_by_role("region", name="The draft waits for you")
    expect(gate).to_contain_text("accuracy")
    gate.get_by_text("Read the draft").click()
    expect(gate.locator("article")).to_contain_text("megawatts")
    v.picture("review")
    gate.get_by_role("button", name="Reject with a note").click()
    gate.get_by_role("button", name="Send it back").click()
    expect(gate.get_by_label("What should be different?")).to_be_focused()  # a note is needed
    gate.get_by_label("What should be different?").fill("Say more of Korea")
    gate.get_by_role("button", name="Send it back").click()
    expect(page.locator(".event").filter(has_text="reject by").first).to_be_visible()
    again = page.get_by_role("region", name="The draft waits for you")
    again.get_by_role("button", name="Approve").click()
    page.wait_for_url("**/report")


def test_a_run_is_steered_paused_and_cancelled(host: Host, visit: Open) -> None:
    v = visit(host.url)
    page = v.page
    host.hold("DraftSection")
    ask(page)
    expect(page.locator(".stage").first).to_have_attribute("data-state", "drafting")
    page.get_by_role("button", name="Steer").click()
    dialog = page.get_by_role("dialog", name="Steer the run")
    dialog.get_by_role("button", name="Do it").click()
    expect(dialog.get_by_text("This is missing.")).to_be_visible()
    dialog.get_by_label("Question").fill("What do barrages do to fish?")
    dialog.get_by_role("button", name="Do it").click()
    expect(page.locator("table.sections tbody tr")).to_have_count(4)

    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".run-status")).to_contain_text("Paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".run-status")).to_contain_text("Running")

    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Keep it").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.locator(".run-status")).to_contain_text("Cancelled")
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    v.picture("cancelled")
