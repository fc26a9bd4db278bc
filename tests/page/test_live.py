"""An open page shows what is written without being asked: in each tab, and after a crash."""

from typing import TYPE_CHECKING

import pytest

from tests.page.ground import Ground
from tests.support.chromium import Visitor
from tests.support.team import REPOS

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.needs("chromium")

PARTIES = [repo["name"] for repo in REPOS]
GONE = r"ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE"


def proposed(ground: Ground, name: str) -> None:
    assert ground.team is not None
    ground.team.proposed(name=name, parties=PARTIES)


def comes(page: "Page", text: str) -> None:
    page.get_by_text(text).first.wait_for()


def live(page: "Page") -> None:
    page.locator("#live", has_text="Live").wait_for(state="attached")


def test_what_is_written_comes_by_itself(own: Ground, guest: Visitor) -> None:
    """Two tabs, one of which shows something else of the project; what a reader has opened and
    where it has scrolled stays."""
    board = guest.open(f"/ui/projects/{own.params['project_id']}")
    matrix = guest.tab(f"/ui/projects/{own.params['project_id']}/matrix")
    for page in (board, matrix):
        live(page)
        page.evaluate("window.stays = true")
    board.set_viewport_size({"width": 800, "height": 200})
    board.evaluate("document.documentElement.scrollTop = 100")
    proposed(own, "Sign in by link")
    for page in (board, matrix):
        comes(page, "Sign in by link")
        assert page.evaluate("window.stays"), "it is not loaded again"
    assert board.evaluate("document.documentElement.scrollTop") == 100


def test_nothing_is_missed_over_a_crash(own: Ground, guest: Visitor) -> None:
    """What was written just before the node died, and what is written before the page is back."""
    guest.tolerates(GONE)
    page = guest.open(f"/ui/projects/{own.params['project_id']}")
    live(page)
    page.evaluate("window.stays = true")
    own.node.kill()
    page.locator("#live", has_text="Not live").wait_for(state="attached")
    own.node.restart()
    proposed(own, "After the crash")
    comes(page, "After the crash")
    live(page)
    assert page.evaluate("window.stays")
    proposed(own, "Live again")
    comes(page, "Live again")
