"""When a session of the page lives, when its token is renewed, and where a form may lead."""

from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server.domain.page_session import (
    BEHIND,
    GRACE,
    HOME,
    NOTED_EVERY,
    RENEWED_EVERY,
    SECOND,
    PageSession,
    SessionTerms,
    begun,
    is_link_valid,
    is_live,
    local_path,
    step,
)

NOW = 1_800_000_000 * SECOND
HOUR = 3600 * SECOND
YEAR = 365 * 24 * HOUR
TERMS = SessionTerms(longest=12 * HOUR, idle=2 * HOUR)
NEW = begun("s", "key", "ann", "token", NOW, TERMS)


def test_a_session_ends_after_its_longest_time_and_without_use() -> None:
    assert is_live(NEW, NOW + 2 * HOUR - 1, TERMS)
    assert not is_live(NEW, NOW + 2 * HOUR, TERMS)
    used = NEW._replace(used_at=NOW + 12 * HOUR - 1)
    assert is_live(used, NOW + 12 * HOUR - 1, TERMS)
    assert not is_live(used, NOW + 12 * HOUR, TERMS)


def test_a_clock_that_jumps_never_lengthens_a_session() -> None:
    assert not is_live(NEW, NOW + YEAR, TERMS)
    assert is_live(NEW, NOW - BEHIND, TERMS)
    assert not is_live(NEW, NOW - BEHIND - 1, TERMS)
    assert not is_live(NEW, NOW - YEAR, TERMS)


def test_use_is_noted_now_and_then() -> None:
    assert step(NEW, "token", NOW + NOTED_EVERY - 1, TERMS) == "keep"
    assert step(NEW, "token", NOW + NOTED_EVERY, TERMS) == "note"


def renewed() -> PageSession:
    due = NOW + RENEWED_EVERY
    assert step(NEW, "token", due - 1, TERMS) == "note"
    assert step(NEW, "token", due, TERMS) == "renew"
    return NEW.renewed("second", "token", due)


def test_concurrent_requests_with_the_former_token_go_on() -> None:
    session = renewed()
    at = session.renewed_at
    assert step(session, "token", at + GRACE - 1, TERMS) == "keep"
    assert step(session, "second", at + 1, TERMS) == "confirm"


def test_a_lost_response_does_not_sign_anybody_out() -> None:
    session = renewed()
    late = session.renewed_at + GRACE
    assert step(session, "token", late, TERMS) == "renew"
    again = session.renewed("third", "token", late)
    assert step(again, "third", late + 1, TERMS) == "confirm"
    assert step(again, "token", late + 1, TERMS) == "keep"


def test_a_token_that_comes_back_after_its_renewal_was_copied() -> None:
    session = renewed()._replace(confirmed=True)
    assert step(session, "token", session.renewed_at + GRACE - 1, TERMS) == "keep"
    assert step(session, "token", session.renewed_at + GRACE, TERMS) == "end"


def test_a_session_that_is_over_is_not_renewed() -> None:
    assert step(NEW, "token", NOW + 12 * HOUR, TERMS) == "end"


def test_a_link_ends_with_its_time_and_is_not_from_the_future() -> None:
    assert is_link_valid(NOW, NOW + 60, NOW + 59)
    assert not is_link_valid(NOW, NOW + 60, NOW + 60)
    assert not is_link_valid(NOW, NOW + 60, NOW - YEAR)


@pytest.mark.parametrize(
    "path",
    ["/", "/ui", "/ui/", "/?x", "/ui?after=3", "/ui/projects/p%2F1/matrix?a=b&c=%20", "/ui/a//b"],
)
def test_a_form_leads_to_pages_of_this_node(path: str) -> None:
    assert local_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        None,
        "",
        "ui",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "/ui\\..\\evil",
        "\\\\evil.example",
        "/\t/evil.example",
        "/ui/\nSet-Cookie: a=b",
        "/ui/\r\n",
        "/ui/\0",
        "/ui/\u2028",
        "/ui/ä",
        "https://evil.example/ui",
        "javascript:alert(1)",
        "/uiz",
        "/metrics",
        "/ui@evil.example",
        " /ui",
        "/ui/" + "a" * 2_000,
    ],
)
def test_a_form_leads_nowhere_else(path: str | None) -> None:
    assert local_path(path) == HOME


@given(st.text(alphabet="/\\ui?@:.#\t\n%a\0é", max_size=12))
@example("/ui//evil")
def test_whatever_is_given_leads_to_a_path_of_the_page(text: str) -> None:
    path = local_path(text)
    assert path.isascii()
    assert path.isprintable()
    assert "\\" not in path
    assert urlsplit(urljoin("https://node.example/ui", path)).netloc == "node.example"
    assert path.partition("?")[0] in ("/", "/ui") or path.startswith("/ui/")
