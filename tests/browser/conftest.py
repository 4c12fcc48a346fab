"""Chromium, driven against the service on loopback. Pictures of what it showed are left in `artefacts/`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.host import Host

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = Path("/usr/bin/chromium")
ARTEFACTS = Path(__file__).parent / "artefacts"
ARGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
WAIT_MS = 60_000  # a busy machine is no failure
NO_ANSWER = re.compile(r"Failed to load resource: (the server responded with a status of (\d+)|net::ERR_)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not CHROMIUM.exists():
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=f"there is no {CHROMIUM}"))


@pytest.fixture(scope="package")  # not longer: while it is there, this thread can run no other event loop
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGS))
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    host = Host(tmp_path_factory.mktemp("served"))
    yield host
    host.stop()


@pytest.fixture(autouse=True)
def nothing_held(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "host" in request.fixturenames:
        request.getfixturevalue("host").let_go()


class Visit:
    """A browser's window on the page, which remembers what its console complained of."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self.complaints: list[str] = []
        self.expected: set[str] = set()  # statuses of answers that the test provokes; "net" for a lost connection
        self.page: Page = context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))

    def _console(self, message: Any) -> None:
        if message.type not in ("error", "warning"):
            return
        lost = NO_ANSWER.match(message.text)
        if lost and (lost[2] or "net") in self.expected:
            return
        self.complaints.append(f"{message.type}: {message.text} ({message.location})")

    def picture(self, name: str, *, whole: bool = True) -> None:
        ARTEFACTS.mkdir(exist_ok=True)
        if whole:
            self.page.evaluate("() => scrollTo(0, 0)")
        self.page.screenshot(path=ARTEFACTS / f"{name}.png", full_page=whole)


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Opens windows: `visit(url, width=360, color_scheme="dark")`. Their consoles must have stayed silent."""
    visits: list[Visit] = []

    def open_at(url: str, *, width: int = 1280, height: int = 860, expected: str = "", **options: Any) -> Visit:
        context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True, **options)
        made = Visit(context)
        made.expected = set(expected.split())
        visits.append(made)
        made.page.goto(url)
        return made

    yield open_at
    for made in visits:
        made.context.close()
    assert [c for made in visits for c in made.complaints] == []


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if ARTEFACTS.exists():
        terminalreporter.write_line(f"pictures of the page: {ARTEFACTS}")
