"""Chromium and what it sees of a page, for tests of the page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, sync_playwright

from helpers.needed import skip_unless

ROOT = Path(__file__).resolve().parent.parent.parent
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
WIDE = 1280
NARROW = 400
LOOKS = (("light", WIDE), ("dark", NARROW))
"""Both themes and both widths: all four pairs would take twice as long."""
PATIENCE_MS = 120_000
"""For a machine whose cores are busy; a page that is ready is not waited for."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium; skips the test where it is not installed."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    skip_unless(program, "no Chromium; scripts/setup browser installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


class Seen:
    """A page, what it asked for, and what went wrong on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.problems: list[str] = []
        self._listeners: dict[Any, Any] = {
            "request": self._requested,
            "console": self._printed,
            "pageerror": self._failed,
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)

    def leave(self) -> None:
        """Leave nothing of the page in its window."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.goto("about:blank")
        self.page.context.clear_cookies()
        self.page.context.clear_permissions()

    def _requested(self, request: Request) -> None:
        self.requests.append(request.url)

    def _printed(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _failed(self, error: Error) -> None:
        self.problems.append(str(error))

    def text(self, selector: str) -> str:
        """Return the text of an element, once it is there."""
        text: str = self.page.locator(selector).first.inner_text()
        return text

    def drawn(self, selector: str) -> str:
        """Return the text of a part of a drawing, once it is there."""
        text: str | None = self.page.locator(selector).first.text_content()
        return text or ""

    def violations(self, within: str = ":root") -> list[str]:
        """Return what axe finds wrong with an element and what is in it, with the elements.

        A part of a page takes a third of the time of the whole.
        """
        if self.page.evaluate("typeof axe") == "undefined":
            self.page.evaluate(f"{AXE.read_text(encoding='utf-8')};0")
        found: Any = self.page.evaluate(
            "(within) => axe.run(within, {resultTypes: ['violations']})", within
        )
        return [
            f"{each['id']}: {node['target']}: {node['failureSummary']}"
            for each in found["violations"]
            for node in each["nodes"]
        ]

    def overflows(self) -> bool:
        """Return whether the page is wider than the window."""
        wide: bool = self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return wide


_IDLE: WeakKeyDictionary[Browser, list[Page]] = WeakKeyDictionary()
"""Windows that have been left; a new one takes more time than what most tests do in it."""


@contextmanager
def opened(
    browser: Browser, url: str, *, width: int = WIDE, theme: str = "light"
) -> Iterator[Seen]:
    """Open a page in a window that knows nothing of other pages."""
    idle = _IDLE.setdefault(browser, [])
    page = idle.pop() if idle else browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.set_viewport_size({"width": width, "height": 900})
    scheme: Any = theme
    page.emulate_media(media="null", color_scheme=scheme, reduced_motion="reduce")
    seen = Seen(page)
    try:
        page.goto(url)
        yield seen
    except BaseException:
        page.context.close()
        raise
    seen.leave()
    idle.append(page)
