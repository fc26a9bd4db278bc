"""Cookies of the page: names, attributes, messages, and whose form it is."""

from typing import Any

import pytest
from starlette.requests import Request

from server.domain.errors import Forbidden
from server.page.cookies import MESSAGE_MAX, PageCookies
from server.page.viewer import PageMessage
from server.settings import Settings

TOKEN = "t" * 43
NEAR = PageCookies(Settings(port=8080), b"secret")
BEHIND_TLS = PageCookies(Settings(public_url="https://cacp.example"), b"secret")


def request(path: str = "/ui", **headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "path": path, "query_string": b"", "headers": raw})


def pair(cookie: str) -> str:
    return cookie.partition(";")[0]


def test_behind_tls_a_cookie_is_for_this_host_and_tls_only() -> None:
    cookie = BEHIND_TLS.with_token(TOKEN, 60)
    assert cookie == (
        f"__Host-cacp_page={TOKEN}; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure"
    )
    assert BEHIND_TLS.token_of(request(cookie=pair(cookie))) == TOKEN
    assert "Max-Age=0;" in BEHIND_TLS.without_token()


def test_without_tls_two_nodes_of_a_host_have_a_cookie_each() -> None:
    other = PageCookies(Settings(port=8081), b"secret")
    assert (NEAR.session, other.session) == ("cacp_page_8080", "cacp_page_8081")
    assert "Secure" not in NEAR.with_token(TOKEN, 60)
    assert other.token_of(request(cookie=pair(NEAR.with_token(TOKEN, 60)))) is None


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "cacp_page_8080=",
        f"cacp_page_8080={TOKEN}x",
        "cacp_page_8080=../../etc",
        "=;=;;",
        f"cacp_page_8080={TOKEN}; cacp_page_8080={'u' * 43}",
    ],
)
def test_what_is_no_token_does_not_count(cookie: str) -> None:
    assert NEAR.token_of(request(cookie=cookie)) is None


def test_a_message_shows_on_its_page_and_in_its_session_only() -> None:
    message = PageMessage("bad", 'The node said: "no"; ä')
    shown = {"cookie": pair(NEAR.with_message(message, "/ui/mail?after=1", "session"))}
    assert NEAR.message_for(request("/ui/mail", **shown), "session") == message
    assert NEAR.message_for(request("/ui", **shown), "session") is None
    assert NEAR.message_for(request("/ui/mail", **shown), "other session") is None
    forged = {"cookie": f"{NEAR.message}=WyJnb29kIl0=.{'0' * 64}"}
    assert NEAR.message_for(request("/ui", **forged), "session") is None
    assert NEAR.message_for(request("/ui", cookie=f"{NEAR.message}=ä.ä"), "session") is None


def test_a_long_message_is_cut() -> None:
    cookie = NEAR.with_message(PageMessage("bad", "ä" * 5_000), "/ui", "session")
    assert len(cookie) < 4_000
    message = NEAR.message_for(request(cookie=pair(cookie)), "session")
    assert message is not None
    assert len(message.text) == MESSAGE_MAX
    assert message.text.endswith("…")


HOST = {"host": "cacp.internal:8080"}


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://cacp.internal:8080"},
        {"origin": "https://cacp.example"},
        {"origin": "https://cacp.example:443"},
        {"origin": "null", "sec_fetch_site": "same-origin"},
        {"sec_fetch_site": "same-origin"},
    ],
)
def test_a_form_of_this_node_is_taken(headers: dict[str, Any]) -> None:
    BEHIND_TLS.check_origin(request(**HOST, **headers))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "http://cacp.internal"},
        {"origin": "http://cacp.internal:8081"},
        {"origin": "https://cacp.example:8443"},
        {"origin": "https://cacp.example/"},
        {"origin": "https://x@cacp.example"},
        {"origin": "file://"},
        {"origin": "https://cacp.example", "sec_fetch_site": "cross-site"},
    ],
)
def test_a_form_of_elsewhere_is_refused(headers: dict[str, Any]) -> None:
    with pytest.raises(Forbidden):
        BEHIND_TLS.check_origin(request(**HOST, **headers))
