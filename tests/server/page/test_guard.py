"""What every page has: its headers, and the way to the sign-in form."""

import pytest
from starlette.responses import Response

from server.page.guard import HEADERS, POLICY, secured
from tests.server.page.browsing import Browser
from tests.support.node import Node, bearer


def test_no_script_or_style_of_elsewhere_and_no_frame() -> None:
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["form-action"] == "'self'"
    assert "unsafe" not in POLICY
    assert HEADERS.items() <= dict(secured(Response()).headers).items()


def test_the_policy_of_referrers_lets_forms_name_their_origin() -> None:
    """With `no-referrer`, browsers send `Origin: null` with the page's own forms."""
    assert HEADERS["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/ui", "/ui/attention", "/ui/nowhere", "/"])
def test_who_is_not_signed_in_is_led_to_the_form(browser: Browser, path: str) -> None:
    response = browser.get(path)
    assert response.status_code == 303
    assert response.headers["location"].startswith("/ui/sign-in?next=%2F")
    assert "content-security-policy" in response.headers


def test_who_shows_a_wrong_key_is_refused_and_not_led(away: Node) -> None:
    accept = {"accept": "text/html"}
    response = away.http.get("/ui", headers=bearer("cacp_sk_" + "x" * 43) | accept)
    assert response.status_code == 401


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}])
def test_a_page_of_another_site_is_not_led_anywhere(node: Node, headers: dict[str, str]) -> None:
    """DNS rebinding: such a page may read what it gets."""
    response = Browser(node).get("/ui", **headers)
    assert response.status_code == 401


def test_behind_a_proxy_a_loopback_node_asks_for_a_key(node: Node) -> None:
    assert Browser(node).get("/ui", x_forwarded_for="192.0.2.1").status_code == 303
