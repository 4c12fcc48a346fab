"""How each view looks: rules of accessibility in light and dark, narrow screens, other scripts, the keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from marg_ray.records import Plan, Request
from tests import report_sample
from tests.browser.conftest import Visit
from tests.browser.host import Host
from tests.browser.test_research import Open, ask

SAMPLE = "20260314-0926-look"
VIEWS = {
    "ask": "/",
    "runs": "/runs",
    "library": "/library",
    "report": f"/runs/{SAMPLE}/report",
    "progress-over": f"/runs/{SAMPLE}/progress",
    "replay-over": f"/runs/{SAMPLE}/replay",
}


SETTLED = """() => Promise.allSettled(document.getAnimations()
  .filter(a => a.effect.getTiming().iterations !== Infinity).map(a => a.finished))"""


def settled(v: Visit) -> None:
    v.page.wait_for_load_state("networkidle")
    expect(v.page.locator("main .loading")).to_have_count(0)


def faults(page: Page) -> list[str]:
    """What axe-core finds that is serious or worse. The window is to ask for less motion: what fades in is pale."""
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate(SETTLED)  # what fades in has its full contrast
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['impact']} {rule['id']}: {node['html'][:160]} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.fixture(scope="module")
def furnished(host: Host) -> Host:
    host.plant(SAMPLE)
    return host


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rules_of_accessibility_hold(furnished: Host, visit: Open, scheme: str) -> None:
    v = visit(furnished.url, color_scheme=scheme, reduced_motion="reduce")
    found = {}
    for name, path in VIEWS.items():
        v.page.goto(furnished.url + path)
        settled(v)
        if name == "report":
            v.page.locator(".mark").first.click()
        found[name] = faults(v.page)
        v.picture(f"{name}-{scheme}")
    assert {name: list_ for name, list_ in found.items() if list_} == {}


def test_rules_hold_at_the_gates(host: Host, visit: Open) -> None:
    v = visit(host.url, color_scheme="dark", reduced_motion="reduce")
    ask(v.page, plan=True, gate="always")
    expect(v.page.get_by_role("region", name="The plan waits for you")).to_be_visible()
    found = faults(v.page)
    v.picture("plan-dark")
    v.page.get_by_role("button", name="Steer").click()
    found += faults(v.page)
    v.picture("steer-dark", whole=False)
    v.page.keyboard.press("Escape")
    v.page.get_by_role("button", name="Approve").click()
    expect(v.page.get_by_role("region", name="The draft waits for you")).to_be_visible()
    found += faults(v.page)
    assert found == []


def test_narrow_screens_need_no_sideways_scrolling(furnished: Host, visit: Open) -> None:
    v = visit(furnished.url, width=360, height=740, has_touch=True, is_mobile=True)
    wide = {}
    for name, path in VIEWS.items():
        v.page.goto(furnished.url + path)
        settled(v)
        if over := v.page.evaluate("() => document.documentElement.scrollWidth - innerWidth"):
            wide[name] = over
        v.picture(f"{name}-360")
    v.page.goto(furnished.url + VIEWS["report"])
    v.page.locator(".mark").first.click()
    expect(v.page.locator("aside.passage")).to_be_visible()
    v.picture("passage-360", whole=False)
    assert wide == {}


def test_other_scripts_run_their_own_way(host: Host, visit: Open) -> None:
    made = report_sample.inputs()
    arabic = made.plan.model_copy(update={"language": "ar", "title": "محطات المد والجزر"})
    host.plant("20260314-0926-rtl", plan=arabic, request=Request(question="ما مدى كفاءة محطات المد والجزر؟"))
    v = visit(f"{host.url}/runs/20260314-0926-rtl")
    settled(v)
    assert v.page.locator("article.report-text").evaluate("e => getComputedStyle(e).direction") == "rtl"
    assert v.page.locator("h1").evaluate("e => getComputedStyle(e).direction") == "rtl"
    chinese = v.page.locator("article p").filter(has_text="江厦").or_(v.page.locator("article p", has_text="兆瓦"))
    assert chinese.first.evaluate("e => getComputedStyle(e).direction") == "ltr"
    assert "兆瓦。 它" not in chinese.first.inner_text()  # no blank between sentences of a script that writes none
    v.picture("report-rtl")
    assert isinstance(made.plan, Plan)


def test_the_keyboard_reaches_everything(furnished: Host, visit: Open) -> None:
    page = visit(furnished.url + VIEWS["report"]).page
    expect(page.locator(".mark").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.get_by_role("button", name="Export").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Markdown")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="Web page")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Export")).to_be_focused()
    page.locator(".mark").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("aside.passage h2")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".mark").first).to_be_focused()


def test_colours_are_kept(furnished: Host, visit: Open) -> None:
    page = visit(furnished.url, color_scheme="light").page
    switch = page.get_by_role("button", name="Colours")
    switch.click()
    switch.click()
    assert page.evaluate("() => getComputedStyle(document.body).colorScheme") == "dark"
    page.reload()
    expect(switch).to_have_accessible_name("Colours: Dark")
    assert page.evaluate("() => getComputedStyle(document.body).colorScheme") == "dark"
