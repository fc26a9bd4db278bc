"""Coming in and going out: by a key, by a link that works once, and when a session ends while its
page is open."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.cli.run import cacp
from tests.page.test_live import comes, live
from tests.support.chromium import Visitor
from tests.support.mail_agent import MailAgent, agent
from tests.support.skewed_clock import HOUR, SkewedNode

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.needs("chromium")

HUGH = "aid://example.com/hugh"
FORM = "**/ui/sign-in?next=*"
MINUTE = 60


@pytest.fixture(scope="module")
def key(away: SkewedNode) -> str:
    return away.key(HUGH, "", human=True)


@pytest.fixture(scope="module")
def ann(away: SkewedNode) -> MailAgent:
    return agent(away, "ann")


@pytest.fixture
def stranger(browser: "Browser", away: SkewedNode) -> Iterator[Visitor]:
    """Somebody who is not signed in."""
    with Visitor(browser, away.url) as stranger:
        stranger.tolerates("status of 401")
        yield stranger


def sign_in(page: "Page", key: str) -> None:
    page.fill("#key", key)
    page.get_by_role("button", name="Sign in", exact=True).click()


def critical(ann: MailAgent, topic: str) -> None:
    """Write something that a person's page shows."""
    ann.send(ann, topic=topic, policy={"human_gate": "required"})


def token_of(visitor: Visitor) -> str:
    (token,) = [each for each in visitor.context.cookies() if each["name"].startswith("cacp_page")]
    assert token["httpOnly"]
    assert token["sameSite"] == "Strict"
    return token["value"]


def test_a_key_signs_in_and_whoever_signs_out_is_out_in_each_tab(
    stranger: Visitor, key: str, ann: MailAgent
) -> None:
    page = stranger.open("/ui/mail?after=")
    page.wait_for_url(FORM)
    sign_in(page, f"cacp_sk_{'x' * 43}")
    assert page.get_by_role("alert").inner_text() == "This node does not know that key"
    sign_in(page, key)
    page.wait_for_url("**/ui/mail?after=")
    assert page.locator("details.session summary").inner_text() == "hugh"
    other = stranger.tab("/ui/attention")
    live(other)
    page.locator("details.session summary").click()
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.wait_for_url("**/ui/sign-in")
    assert stranger.context.cookies() == []
    critical(ann, "after signing out")
    other.wait_for_url(FORM)


def test_a_link_signs_in_once(stranger: Visitor, away: SkewedNode, key: str) -> None:
    printed = cacp("open", "mail", "--print", url=away.url, key=key)
    link = printed.stdout.strip()
    assert link.startswith(f"{away.url}/ui/enter#")
    page = stranger.open(link)
    page.wait_for_url("**/ui/mail")
    assert page.locator("details.session summary").inner_text() == "hugh"
    first = token_of(stranger)
    page.goto(link)
    page.get_by_text("This link was opened before").wait_for()
    assert token_of(stranger) == first, "a used link ends nobody's session"


@pytest.mark.sqlite
def test_an_open_page_follows_its_session(
    stranger: Visitor, away: SkewedNode, key: str, ann: MailAgent
) -> None:
    """It is renewed unnoticed; and when it ends for want of use, with its time or with its key, the
    page leads to the form, and from there back."""
    page = stranger.open("/ui/attention?show=person")
    sign_in(page, key)
    page.wait_for_url("**/ui/attention?show=person")
    live(page)
    first = token_of(stranger)
    page.evaluate("window.stays = true")
    away.pass_time(20 * MINUTE)
    critical(ann, "while it was renewed")
    comes(page, "while it was renewed")
    assert page.evaluate("window.stays")
    assert token_of(stranger) != first
    away.pass_time(2 * HOUR + MINUTE)
    critical(ann, "after two hours without use")
    _back_by_the_form(page, key, "after two hours without use")
    for part in ("first", "second"):
        away.pass_time(80 * MINUTE)
        critical(ann, f"in its {part} hours")
        comes(page, f"in its {part} hours")
    away.pass_time(30 * MINUTE)
    critical(ann, "after its three hours")
    _back_by_the_form(page, key, "after its three hours")
    assert away.call("cacp/agent/revokeKeys", key=away.operator, agentId=HUGH)["keyIds"]
    critical(ann, "without a key")
    page.wait_for_url(FORM)
    sign_in(page, key)
    assert page.get_by_role("alert").inner_text() == "That key is revoked"


def _back_by_the_form(page: "Page", key: str, shown: str) -> None:
    page.wait_for_url(FORM)
    sign_in(page, key)
    page.wait_for_url("**/ui/attention?show=person")
    comes(page, shown)
    live(page)
