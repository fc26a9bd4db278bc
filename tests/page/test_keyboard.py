"""The page by keyboard alone."""

import pytest

from tests.page.conftest import Grounds, Visits

pytestmark = pytest.mark.needs("chromium")

NOTE_CLICKS = """
(last) => {
  window.clicked = [];
  addEventListener("click", (event) => {
    const path = event.target.closest("a").pathname;
    if (path === last) return;
    event.preventDefault();
    window.clicked.push(path);
  }, true);
}
"""


def test_keys_search_list_the_keys_and_move(grounds: Grounds, visitor: Visits) -> None:
    page = visitor(grounds("usual")).open("/ui")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.type("jk?g")
    assert page.input_value("#find") == "jk?g", "in a field, keys are text"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("dialog#keys[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    items = page.locator("[data-item]")
    assert items.count() > 1
    at = page.locator("[data-item].at")
    for key, place in (("j", 0), ("j", 1), ("k", 0)):
        page.keyboard.press(key)
        assert at.count() == 1
        assert (
            at.evaluate("(each) => [...document.querySelectorAll('[data-item]')].indexOf(each)")
            == place
        )
        assert at.evaluate("(each) => each.contains(document.activeElement)")


def test_g_and_a_letter_go_to_each_view_of_the_menu(grounds: Grounds, visitor: Visits) -> None:
    page = visitor(grounds("usual")).open("/ui")
    letters = page.eval_on_selector_all(
        "[data-go]", "(links) => links.map((link) => [link.dataset.go, link.pathname])"
    )
    assert len({letter for letter, _ in letters}) == len(letters) > 1
    # All but the last are only noted: to go there costs a page each.
    page.evaluate(NOTE_CLICKS, letters[-1][1])
    for letter, _ in letters:
        page.keyboard.press("g")
        page.keyboard.press(letter)
        if letter != letters[-1][0]:
            assert page.evaluate("window.clicked.at(-1)") == dict(letters)[letter]
    page.wait_for_url(f"**{letters[-1][1]}", wait_until="domcontentloaded")
    assert page.locator(f"[data-go={letters[-1][0]}]").get_attribute("aria-current") == "page"


def test_the_first_tab_skips_to_the_content(grounds: Grounds, visitor: Visits) -> None:
    page = visitor(grounds("usual")).open("/ui")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
