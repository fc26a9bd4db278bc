"""Signing in and out, and what an attacker tries."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from server.page.rendering import render
from server.store import keys
from tests.server.page.browsing import BROWSER, Browser
from tests.server.page.conftest import HUGH, behind_tls
from tests.support.located import connect
from tests.support.node import AGENT, Node, bearer

LIST = json.dumps({"jsonrpc": "2.0", "method": "cacp/project/list", "params": {}, "id": 1})
TWIN = "/ui/attention.json"


def link(node: Node, key: str | None) -> httpx.Response:
    headers = {"content-type": "application/json"} | bearer(key)
    return node.http.post("/ui/links", content=b"{}", headers=headers)


def revoke(node: Node, agent: str) -> None:
    with closing(connect(node.db)) as db:
        for key in keys.every(db):
            if key.agent_id == agent:
                keys.revoke(db, key.key_id, now=1)


# --- who comes in ---------------------------------------------------------------------------------


def test_on_loopback_a_browser_sees_the_page_at_once_and_may_not_act(node: Node) -> None:
    browser = Browser(node)
    shown = browser.get("/ui")
    assert shown.status_code == 200
    assert 'href="/ui/sign-in' in shown.text
    assert browser.set == []
    refused = browser.post("/ui/actions/approve", {"message_id": "x"})
    assert refused.status_code == 403
    assert "Sign in with a human&#39;s key first" in refused.text


def test_elsewhere_a_page_leads_to_the_sign_in_form_and_a_twin_is_401(browser: Browser) -> None:
    response = browser.get("/ui/projects/p%201?after=a%26b")
    assert response.status_code == 303
    assert response.headers["location"] == (
        "/ui/sign-in?next=%2Fui%2Fprojects%2Fp%25201%3Fafter%3Da%2526b"
    )
    form = browser.get(response.headers["location"])
    assert 'name="next" value="/ui/projects/p%201?after=a%26b"' in form.text
    twin = browser.get(TWIN)
    assert (twin.status_code, twin.json()["error"]["data"]["reason"]) == (401, "no_credentials")


def test_a_link_on_another_site_is_asked_again_from_here(browser: Browser) -> None:
    """A strict cookie does not come along from there."""
    response = browser.get("/ui/attention", sec_fetch_site="cross-site")
    assert response.status_code == 200
    assert 'http-equiv="refresh" content="0; url=/ui/attention"' in response.text


def test_a_key_is_given_once_and_then_a_cookie_counts(browser: Browser, human_key: str) -> None:
    response = browser.sign_in(human_key, "/ui/attention?after=1")
    assert (response.status_code, response.headers["location"]) == (303, "/ui/attention?after=1")
    [cookie] = browser.set
    assert cookie.startswith("__Host-cacp_page=")
    attributes = {part.strip() for part in cookie.split(";")[1:]}
    assert attributes == {"Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict", "Secure"}
    assert browser.get("/ui").status_code == 200
    assert browser.get(TWIN).status_code == 200
    [(stored,)] = browser.node.query("SELECT count(*) FROM page_sessions WHERE agent = ?", HUGH)
    assert stored >= 1
    dump = str(browser.node.query("SELECT * FROM page_sessions"))
    assert browser.cookies[browser.session] not in dump
    assert human_key not in dump


def test_on_loopback_the_cookie_is_named_by_the_port_and_needs_no_tls(node: Node) -> None:
    browser = Browser(node)
    browser.sign_in(node.key("aid://example.com/lea", "", human=True))
    [cookie] = browser.set
    assert cookie.startswith(f"cacp_page_{node.port}=")
    assert "Secure" not in cookie
    assert browser.csrf


@pytest.mark.parametrize("is_plain", [True, False])
def test_where_the_key_could_be_read_on_its_way_the_form_says_so(is_plain: bool) -> None:
    own = SimpleNamespace(agent_id="aid://example.com/node")
    shown = {"next": "/ui", "problem": None, "local": False, "node": own}
    page = render("sign_in.html", now=0, is_plain=is_plain, **shown)
    assert ("not encrypted" in page) is is_plain


def test_a_header_works_on_pages_and_twins(away: Node, human_key: str) -> None:
    assert away.http.get(TWIN, headers=bearer(human_key)).status_code == 200
    shown = away.http.get("/ui", headers=BROWSER | bearer(human_key))
    assert shown.status_code == 200
    assert 'name="csrf"' not in shown.text


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "Give a key"),
        ("secret", "That is not a key"),
        ("cacp_sk_" + "x" * 43, "does not know that key"),
        ("cacp_sk_" + "ä" * 43, "That is not a key"),
    ],
)
def test_a_wrong_key_is_told_and_begins_nothing(browser: Browser, key: str, words: str) -> None:
    response = browser.post("/ui/sign-in", {"key": key, "next": "//evil.example"})
    assert response.status_code in (400, 401)
    assert words in response.text
    assert 'name="next" value="/ui"' in response.text
    assert browser.set == []


def test_failed_sign_ins_are_limited_by_address(tmp_path: Path) -> None:
    with Node(tmp_path, rate_limit=2, **behind_tls(tmp_path)) as node:
        browser = Browser(node)
        statuses = [browser.sign_in("cacp_sk_" + "x" * 43).status_code for _ in range(3)]
    assert statuses == [401, 401, 429]


def test_all_of_it_has_the_policy_of_pages(person: Browser) -> None:
    for response in (
        person.get("/ui/sign-in"),
        person.get("/ui/enter"),
        person.sign_in("cacp_sk_" + "x" * 43),
        person.act("approve", id="x"),
    ):
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["referrer-policy"] == "same-origin"
        assert response.headers["cache-control"] == "no-store"


# --- signing out ----------------------------------------------------------------------------------


def test_signing_out_ends_this_session_only(person: Browser, human_key: str) -> None:
    other = Browser(person.node)
    other.sign_in(human_key)
    before = dict(person.cookies)
    response = person.post("/ui/sign-out", {"csrf": person.csrf})
    assert (response.status_code, response.headers["location"]) == (303, "/ui/sign-in")
    assert person.cookies == {}
    person.cookies = before
    assert person.get(TWIN).status_code == 401
    assert other.get(TWIN).status_code == 200


def test_signing_out_everywhere_ends_all_of_the_agents_sessions(browser: Browser) -> None:
    key = browser.node.key("aid://example.com/ines", "", human=True)
    stranger = Browser(browser.node)
    stranger.sign_in(browser.node.key("aid://example.com/ines2", "", human=True))
    browser.sign_in(key)
    other = Browser(browser.node)
    other.sign_in(key)
    browser.post("/ui/sign-out", {"csrf": browser.csrf, "everywhere": "1"})
    assert other.get(TWIN).status_code == 401
    assert stranger.get(TWIN).status_code == 200


def test_signing_out_needs_the_token_of_the_session(person: Browser) -> None:
    assert person.post("/ui/sign-out", {"csrf": "0" * 64}).status_code == 403
    assert person.get(TWIN).status_code == 200


# --- attacks --------------------------------------------------------------------------------------


def test_a_planted_token_is_never_taken_over(browser: Browser, human_key: str) -> None:
    """Session fixation."""
    browser.cookies["__Host-cacp_page"] = planted = "A" * 43
    browser.sign_in(human_key)
    assert browser.cookies["__Host-cacp_page"] != planted


def test_signing_in_again_ends_the_session_before(person: Browser, human_key: str) -> None:
    old = dict(person.cookies)
    person.sign_in(human_key)
    person.cookies = old
    assert person.get(TWIN).status_code == 401


def test_of_two_cookies_none_counts(person: Browser) -> None:
    token = person.cookies.pop("__Host-cacp_page")
    person.cookies = {"__Host-cacp_page": f"{'A' * 43}; __Host-cacp_page={token}"}
    assert person.get(TWIN).status_code == 401


def test_a_cookie_does_not_count_for_programs(person: Browser) -> None:
    cookie = {"cookie": f"{person.session}={person.cookies[person.session]}"}
    node = person.node
    assert node.raw(LIST, cookie).status_code == 401
    assert node.http.get("/events", headers=cookie).status_code == 401
    assert node.http.get("/metrics", headers=cookie).status_code == 401
    given = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    assert node.http.post("/mcp", content=LIST, headers=given | cookie).status_code == 401
    assert node.http.post("/ui/links", content=b"{}", headers=cookie).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "https://cacp.example.evil.example"},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
        {"origin": "https://evil.example", "sec_fetch_site": "same-origin"},
    ],
)
def test_a_form_of_another_site_is_refused(person: Browser, headers: dict[str, str]) -> None:
    csrf = person.csrf
    for path in ("/ui/actions/approve", "/ui/sign-out"):
        response = person.post(path, {"csrf": csrf, "message_id": "x"}, **headers)
        assert response.status_code == 403, path
        assert "not sent by a page of this node" in response.text
    assert person.post("/ui/sign-in", {"key": "x"}, **headers).status_code == 403
    assert person.post("/ui/enter", {"code": "x"}, **headers).status_code == 403
    assert person.get(TWIN).status_code == 200


@pytest.mark.parametrize("origin", ["https://cacp.example", "https://CACP.example:443"])
def test_a_form_may_come_from_the_public_url(person: Browser, origin: str) -> None:
    """A proxy with TLS may name another host to the node."""
    assert person.post("/ui/sign-out", {"csrf": person.csrf}, origin=origin).status_code == 303


def test_the_token_of_another_session_is_refused(person: Browser, human_key: str) -> None:
    other = Browser(person.node)
    other.sign_in(human_key)
    response = person.post("/ui/actions/approve", {"csrf": other.csrf, "message_id": "x"})
    assert response.status_code == 403
    assert "earlier session" in response.text


def test_a_revoked_key_ends_the_session_at_once(browser: Browser) -> None:
    agent = "aid://example.com/rita"
    browser.sign_in(browser.node.key(agent, "", human=True))
    assert browser.get(TWIN).status_code == 200
    revoke(browser.node, agent)
    assert browser.get(TWIN).status_code == 401
    assert browser.get("/ui").status_code == 303
    assert browser.node.query("SELECT 1 FROM page_sessions WHERE agent = ?", agent) == []


def test_a_session_sees_what_its_key_may_read(away: Node, browser: Browser) -> None:
    ids = [
        away.call("cacp/project/create", key=away.operator, name=f"n{i}", objective="o")[
            "projectId"
        ]
        for i in range(2)
    ]
    key = keys.new_key()
    with closing(connect(away.db)) as db:
        keys.add(
            db, key, agent_id="aid://example.com/lim", repo="", human=True, projects=ids[:1], now=1
        )
    browser.sign_in(key)
    assert browser.get(TWIN).status_code == 200
    outcome = browser.outcome("revoke", agentId=AGENT)
    assert outcome.startswith("bad: Your key or project token is for project ")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"key=" + b"x" * 70_000, 413),
        (b"key=a%00b", 400),
        (b"key=%ff%fe", 400),
        (b"key=\xff", 400),
        (b"key=a&key=b", 400),
        (b"&".join(b"f%d=1" % number for number in range(60)), 400),
    ],
)
def test_a_malformed_form_is_refused(browser: Browser, body: bytes, status: int) -> None:
    response = browser.post("/ui/sign-in", body)
    assert response.status_code == status
    assert 'role="alert"' in response.text


def test_json_is_no_form(browser: Browser) -> None:
    response = browser.post("/ui/sign-in", b"{}", content_type="application/json")
    assert response.status_code == 400


# --- one-time links -------------------------------------------------------------------------------


def test_a_link_signs_in_once(browser: Browser, human_key: str) -> None:
    made = link(browser.node, human_key).json()
    assert made["path"] == "/ui/enter"
    page = browser.get("/ui/enter")
    assert "enter." in page.text
    opened = browser.post("/ui/enter", {"code": made["code"], "next": "/ui/attention"})
    assert opened.json() == {"next": "/ui/attention"}
    assert browser.get(TWIN).status_code == 200
    assert browser.csrf
    replayed = Browser(browser.node).post("/ui/enter", {"code": made["code"]})
    assert replayed.status_code == 401
    assert replayed.json()["error"]["data"]["reason"] == "unknown_link"
    assert made["code"] not in str(browser.node.query("SELECT * FROM page_links"))


def test_of_two_that_open_a_link_at_once_one_comes_in(away: Node, human_key: str) -> None:
    code = link(away, human_key).json()["code"]
    with ThreadPoolExecutor(8) as threads:
        opened = threads.map(lambda _: Browser(away).post("/ui/enter", {"code": code}), range(8))
    assert sorted(response.status_code for response in opened) == [200] + [401] * 7


def test_a_link_needs_a_key_and_a_revoked_one_opens_nothing(node: Node, browser: Browser) -> None:
    assert link(browser.node, None).status_code == 401
    keyless = link(node, None)
    assert (keyless.status_code, keyless.json()["error"]["data"]["reason"]) == (403, "key_needed")
    agent = "aid://example.com/sven"
    code = link(browser.node, browser.node.key(agent, "")).json()["code"]
    revoke(browser.node, agent)
    assert browser.post("/ui/enter", {"code": code}).status_code == 401
    assert browser.set == []


def test_a_link_does_not_change_whose_browser_it_is(person: Browser) -> None:
    """Login CSRF: a link to somebody else's session, sent to a person."""
    code = link(person.node, person.node.key("aid://example.com/mallory", "")).json()["code"]
    response = person.post("/ui/enter", {"code": code})
    assert response.json()["error"]["data"]["reason"] == "signed_in_as_other"
    assert person.set == []


@pytest.mark.parametrize("next", ["//evil.example", "https://evil.example", "/\\evil", "/ui/\n"])
def test_no_way_leads_off_the_node(browser: Browser, human_key: str, next: str) -> None:
    assert browser.sign_in(human_key, next).headers["location"] == "/ui"
    response = browser.act("approve", id="x", next=next)
    assert response.headers["location"] == "/ui"
    code = link(browser.node, human_key).json()["code"]
    assert browser.post("/ui/enter", {"code": code, "next": next}).json() == {"next": "/ui"}
