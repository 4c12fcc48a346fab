"""A connection that breaks: the page says so, comes back by itself, shows each event once. Keys, where needed."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.host import Host, Proxy
from tests.browser.test_research import Open, ask


def test_it_comes_back_and_doubles_nothing(host: Host, visit: Open) -> None:
    proxy = Proxy(host)
    v = visit(proxy.url, expected="net")
    page = v.page
    ask(page, plan=True)
    expect(page.get_by_role("region", name="The plan waits for you")).to_be_visible()
    for _ in range(3):
        proxy.cut()
        expect(page.locator(".link-state")).to_have_attribute("data-state", "live")
    proxy.cut(stay_away=True)
    expect(page.locator(".link-state")).to_contain_text("The connection broke off")
    v.picture("reconnecting", whole=False)
    before = proxy.connections
    proxy.again()
    expect(page.locator(".link-state")).to_have_attribute("data-state", "live")
    assert proxy.connections > before
    host.hold("DraftSection")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".stage").first).to_have_attribute("data-state", "drafting")
    proxy.cut()
    host.let_go()
    page.wait_for_url("**/report")
    page.get_by_role("link", name="Progress").click()
    expect(page.locator(".event").filter(has_text="report ready")).to_be_visible()
    seqs = page.locator(".event").evaluate_all("all => all.map(e => Number(e.dataset.seq))")
    assert seqs == list(range(len(seqs), 0, -1))
    proxy.close()


def test_each_event_is_drawn_once_while_connections_break(host: Host, visit: Open) -> None:
    proxy = Proxy(host)
    v = visit(proxy.url, expected="net")
    page = v.page
    host.hold("DraftSection", "ReviewReport")
    ask(page)
    for held in (("ReviewReport",), ()):
        expect(page.locator(".event").nth(4)).to_be_visible()
        proxy.cut()
        host.hold(*held)
    page.wait_for_url("**/report")
    proxy.close()


def test_a_key_is_asked_for_and_kept_for_this_tab(tmp_path: Path, visit: Open) -> None:
    from marg_ray.api.keys import new_key

    host = Host(tmp_path, service={"auth": "on", "per_minute": 1000})
    try:
        secret, row = new_key("reader")
        host.run(host.world.store.put_api_key(row))
        v = visit(f"{host.url}/runs", expected="401")
        page = v.page
        dialog = page.get_by_role("dialog", name="API key")
        dialog.get_by_label("Key", exact=True).fill("marg_wrong")
        dialog.get_by_role("button", name="Use this key").click()
        expect(page.get_by_text("This key was not accepted.")).to_be_visible()
        v.picture("key", whole=False)
        page.get_by_label("Key", exact=True).fill(secret)
        page.get_by_role("button", name="Use this key").click()
        expect(page.get_by_text("No runs yet")).to_be_visible()
        page.reload()
        expect(page.get_by_text("No runs yet")).to_be_visible()
        assert page.evaluate("() => JSON.stringify(localStorage)").count(secret) == 0
    finally:
        host.stop()
