"""Every page, in a real browser, over a memory that is hostile wherever something can be written: nothing of it runs or
leaves the machine, nothing is wider than the window, and axe-core has no serious complaint, by day and by night."""

import json
from contextlib import closing
from urllib.parse import quote

import pytest

from axe import axe_source, violations
from browser import Watched
from conftest import HandClock, fresh_plane
from console_pages import (
    ADAPTER,
    HEBREW,
    LABEL,
    NO_PAGES,
    NOT_SHOWN,
    ROOT,
    VISITS,
    furnish,
    signed_in,
    visited,
)
from http_server import serving

WIDE, NARROW = 1_280, 400

# Text nodes with right-to-left words in them that nothing keeps from turning around what stands beside them.
_LOOSE = """(word) => {
  const kept = (node) => ["isolate", "plaintext"].includes(getComputedStyle(node).unicodeBidi);
  const loose = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const parent = walk.currentNode.parentElement;
    const holder = parent.closest("mark") ? parent.closest("mark").parentElement : parent;
    if (walk.currentNode.data.includes(word) && !kept(holder) && !["OPTION", "TEXTAREA"].includes(parent.tagName))
      loose.push(parent.outerHTML.slice(0, 200));
  }
  return loose;
}"""

# What a page of this width cannot show without being scrolled sideways; what scrolls by itself may be as wide as it likes.
_TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll("body *")]
    .filter((node) => node.getBoundingClientRect().right > width + 1)
    .map((node) => node.outerHTML.slice(0, 160)).slice(0, 5).concat("wide");
}"""

# Whatever can be pressed and cannot be reached: of no size, or under nothing that brings it into view.
_SMALL = """() => [...document.querySelectorAll("main button, main input:not([type=hidden]), main select, main textarea")]
  .filter((node) => node.checkVisibility() && !["checkbox", "radio", "range"].includes(node.type))
  .filter((node) => { const box = node.getBoundingClientRect(); return box.width < 24 || box.height < 24; })
  .map((node) => node.outerHTML.slice(0, 160))"""


class Site:
    """A server over one hostile memory, and a page of a browser that is signed in to it."""

    def __init__(self, console, identity, names, browser):
        self.console = console
        self.names = {name: f"@{quote(value, safe='')}" for name, value in names.items()}
        context = browser.new_context(base_url=console.url, viewport={"width": WIDE, "height": 900})
        context.add_cookies([signed_in(identity, console.url)])
        self.watched = Watched(context.new_page(), console.url)

    @property
    def page(self):
        return self.watched.page

    def visit(self, visit):
        self.page.emulate_media(color_scheme="light", reduced_motion="reduce")
        self.page.set_viewport_size({"width": WIDE, "height": 900})
        self.watched.errors.clear()
        answer = self.page.goto(f"{ROOT}{visit.route.format_map(self.names)}{visit.query}")
        assert answer.status in (200, 404)
        if visit.press:
            if visit.route == "/keys":
                self.page.fill("#name", LABEL)
                self.page.click(visit.press)
                self.page.wait_for_selector(".notice pre")
                return self.page
            with self.page.expect_navigation():
                self.page.click(visit.press)
        return self.page


@pytest.fixture(scope="module")
def site(browser):
    clock = HandClock()
    with fresh_plane(clock, recall_work_ms=60_000) as plane, closing(plane.identity()) as identity:
        names = furnish(plane, identity, clock)
        with serving(plane, keys=identity) as console:
            yield Site(console, identity, names, browser)
        assert console.faults == []


@pytest.fixture(scope="module")
def axe():
    return axe_source()


def test_no_page_is_left_out(site):
    """
    Whatever the door shows is looked at here.
    """
    shown = {
        route.path.removeprefix(ROOT)
        for adapter in site.console.app.adapters
        if adapter.name == ADAPTER
        for route in adapter.routes
        if "GET" in route.methods
    }

    assert shown - NO_PAGES - visited() == set()


@pytest.mark.parametrize("visit", VISITS, ids=str)
def test_content_is_text(site, visit):
    """
    Nothing of it runs, is fetched, hides, or turns around what stands beside it; the page is as wide as the window.
    """
    page = site.visit(visit)
    expected = ["404"] if visit.route.endswith("{nothing}") else []
    assert page.evaluate("window.pwned") is None
    assert [error for error in site.watched.errors if not any(code in error for code in expected)] == []
    assert site.watched.foreign == []
    assert page.locator("main script, main img, main svg[onload], main a[href^='javascript:' i]").count() == 0
    assert [mark for mark in NOT_SHOWN if mark in page.inner_text("body")] == []
    assert page.evaluate(_LOOSE, HEBREW) == []
    assert page.evaluate(_TOO_WIDE) == []
    page.set_viewport_size({"width": NARROW, "height": 900})
    assert page.evaluate(_TOO_WIDE) == []
    assert page.evaluate(_SMALL) == []


@pytest.mark.parametrize("visit", VISITS, ids=str)
def test_accessible(site, axe, visit):
    """
    Nothing serious or critical in the rules of WCAG 2 A and AA, in light and dark.
    """
    page = site.visit(visit)
    page.evaluate(axe)
    assert json.dumps(violations(page), indent=1, ensure_ascii=False) == "[]"
    page.emulate_media(color_scheme="dark")
    assert json.dumps(violations(page, rules=["color-contrast"]), indent=1, ensure_ascii=False) == "[]"
