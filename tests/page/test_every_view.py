"""What holds for each view, whatever it shows: nothing, the usual, or what hostile agents wrote."""

import re
from typing import TYPE_CHECKING, Any

import pytest

from server.page.view import View
from server.page.views import VIEWS
from tests.page.conftest import Grounds, Visits
from tests.page.ground import Ground
from tests.support.chromium import accessible, fits, shown_in

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.needs("chromium")

WIDE, PHONE = (1280, 900), (360, 740)
QUERIES = {"search": "?q=profile"}
"""What a view shows something with."""
HTML_MAX = 400_000
"""Characters of a page: a line of a megabyte is cut."""
MAIN, TAGS = re.compile(r"</main>.*", re.S), re.compile(r"<[^>]*>", re.S)
RAN = "a[href^='javascript:' i], [onerror], img[src=x], script:not([src])"
"""What would be there, if what agents wrote were taken for markup."""
HIDING_FIELDS = """[...document.forms].flatMap((form) => [...form.elements])
    .map((field) => field.name).filter((name) => name in HTMLFormElement.prototype)"""
"""The names of fields by which scripts would get a field in place of a property of its form."""
WITHOUT_THINGS = [
    view for view in VIEWS.values() if "{" not in view.path.replace("{project_id}", "")
]
"""The views that are there where nothing is but a project."""
EVERY = pytest.mark.parametrize("view", VIEWS.values(), ids=lambda view: view.name)


def place(view: View, ground: Ground) -> str:
    path = ground.path(view.path)
    assert path is not None, f"tests/page/ground.py has nothing for {view.path}"
    return path


def twin(view: View, ground: Ground) -> Any:
    """The view's `.json`."""
    response = ground.node.get(f"{place(view, ground)}.json{QUERIES.get(view.name, '')}")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    return response.json()


def opened(view: View, ground: Ground, visit: Visits) -> "Page":
    return visit(ground).open(place(view, ground) + QUERIES.get(view.name, ""))


def fits_everywhere(page: "Page") -> None:
    for width, height in (PHONE, WIDE):
        shown_in(page, "light", width=width, height=height)
        fits(page)


@EVERY
def test_a_view_shows_the_usual(view: View, grounds: Grounds, visitor: Visits) -> None:
    ground = grounds("usual")
    page = opened(view, ground, visitor)
    assert (page.locator("h1").count(), page.locator("main").count()) == (1, 1)
    assert page.evaluate(HIDING_FIELDS) == []
    fits_everywhere(page)
    accessible(page)
    shown_in(page, "dark", width=WIDE[0], height=WIDE[1])
    accessible(page, "color-contrast")
    assert isinstance(twin(view, ground), dict)


@pytest.mark.parametrize("view", WITHOUT_THINGS, ids=lambda view: view.name)
def test_a_view_of_nothing_says_so(view: View, grounds: Grounds) -> None:
    """Without a browser, in which the soak looks at it: less is as wide as more."""
    ground = grounds("empty")
    response = ground.node.get(place(view, ground) + QUERIES.get(view.name, ""))
    assert response.status_code == 200
    _, _, below = MAIN.sub("", response.text).partition('class="twin"')
    assert len(TAGS.sub("", below.partition("</p>")[2]).strip()) > 10
    assert isinstance(twin(view, ground), dict)


@EVERY
def test_a_view_needs_nothing_that_may_be_left_out(view: View, grounds: Grounds) -> None:
    ground = grounds("bare")
    response = ground.node.get(place(view, ground))
    assert response.status_code == 200
    assert isinstance(twin(view, ground), dict)


@EVERY
def test_what_hostile_agents_wrote_is_only_text(
    view: View, grounds: Grounds, visitor: Visits
) -> None:
    ground = grounds("hostile")
    page = opened(view, ground, visitor)
    page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")
    fits_everywhere(page)
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.locator(RAN).count() == 0
    text = page.inner_text("body")
    assert "54439" not in text, "what an agent wrote is no template"
    assert len(page.content()) < HTML_MAX
    assert isinstance(twin(view, ground), dict)


@pytest.mark.soak
@EVERY
@pytest.mark.parametrize("name", ["empty", "usual", "hostile"])
def test_all_is_accessible_in_each_scheme(
    view: View, name: str, grounds: Grounds, visitor: Visits
) -> None:
    ground = grounds(name)
    if ground.path(view.path) is None:
        return
    page = opened(view, ground, visitor)
    for width, height in (PHONE, WIDE):
        for scheme in ("light", "dark"):
            shown_in(page, scheme, width=width, height=height)
            fits(page)
            accessible(page)
