"""Chromium without a window, and what no page of a node may do in it."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
)
PATIENCE_MS = 60_000
AXE = Path(__file__).parents[1] / "page" / "vendor" / "axe.min.js"
WORST = ("serious", "critical")
RUN_AXE = """
async (rules) => {
  const options = {resultTypes: ["violations"]};
  if (rules.length) options.runOnly = {type: "rule", values: rules};
  const {violations} = await axe.run(document, options);
  return violations.map(({id, impact, nodes}) =>
    ({id, impact, html: nodes.slice(0, 5).map((node) => node.html.slice(0, 300))}));
}
"""
WIDER = """
() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const scrolls = (each) => each && each !== document.body &&
    (getComputedStyle(each).overflowX !== "visible" || scrolls(each.parentElement));
  const wide = [...document.querySelectorAll("body *")].filter(
    (each) => each.getBoundingClientRect().right > width + 1 && !scrolls(each.parentElement));
  return [`${document.documentElement.scrollWidth} > ${width}`,
          ...wide.slice(0, 8).map((each) => each.outerHTML.slice(0, 200))];
}
"""


def chromium() -> str | None:
    """The browser's program: what CHROMIUM names, or that of the system. None: there is none."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def launched() -> "Iterator[Browser]":
    """A browser. While it is there, this thread can't run an event loop of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=[*ARGUMENTS])
        yield browser
        browser.close()


class Visitor:
    """Somebody at a browser who has looked at nothing before.

    At the end it raises AssertionError for what no page may do: errors and warnings on the console,
    among them what the Content-Security-Policy forbids; exceptions; dialogs; and any request to
    another origin.
    """

    def __init__(self, browser: "Browser", url: str, **options: Any) -> None:
        self.url = url
        self.faults: list[str] = []
        self._tolerated: list[re.Pattern[str]] = []
        self.context = browser.new_context(base_url=url, **options)
        self.context.set_default_timeout(PATIENCE_MS)
        self.context.on("console", self._console)
        self.context.on("weberror", lambda error: self._note(f"exception: {error.error}"))
        self.context.on("dialog", self._dialog)
        self.context.on("request", lambda request: self._request(request.url))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        self.context.close()
        if failure is None:
            self.check()

    def check(self) -> None:
        """Raises AssertionError if a page has done what none may do since the last check."""
        faults, self.faults = self.faults, []
        assert not faults, faults

    def tolerates(self, pattern: str) -> None:
        """Errors on the console that this test provokes are none of the page's."""
        self._tolerated.append(re.compile(pattern))

    def open(self, path: str) -> "Page":
        """Go to a page, which must be there. A window costs more than a page, so it is reused."""
        return self.tab(path, self.context.pages[0] if self.context.pages else None)

    def tab(self, path: str, page: "Page | None" = None) -> "Page":
        """A page in a window of its own."""
        page = page or self.context.new_page()
        response = page.goto(path)
        assert response is not None
        assert response.status == 200, (path, response.status, page.content()[:2000])
        return page

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self._note(f"console: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self._note(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "data" and f"{parts.scheme}://{parts.netloc}" != self.url:
            self._note(f"request to {url[:200]}")

    def _note(self, fault: str) -> None:
        if not any(pattern.search(fault) for pattern in self._tolerated):
            self.faults.append(fault)


def accessible(page: "Page", *rules: str) -> None:
    """Raises AssertionError if axe finds anything serious; `rules` are all that it looks at."""
    if page.evaluate("typeof axe") == "undefined":
        # By the debugger, which no Content-Security-Policy binds.
        page.evaluate(AXE.read_text() + "; 0")
    violations = page.evaluate(RUN_AXE, list(rules))
    worst = [each for each in violations if each["impact"] in WORST]
    assert not worst, worst


def fits(page: "Page") -> None:
    """Raises AssertionError if the page is wider than its window."""
    wide = page.evaluate(WIDER)
    assert not wide, wide


def shown_in(page: "Page", scheme: Literal["light", "dark"], *, width: int, height: int) -> None:
    """Show a page in this colour scheme and size."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": height})
