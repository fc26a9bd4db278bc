"""Sessions and links of the page on a real file."""

from server.domain.page_session import SessionTerms, begun
from server.store import page_sessions
from server.store.connection import Connection
from server.store.page_sessions import PageLink

TERMS = SessionTerms(1_000, 500)


def test_a_session_is_found_by_its_token_and_by_the_one_before(db: Connection) -> None:
    session = begun("s1", "key", "ann", "token", 10, TERMS)
    page_sessions.put(db, session)
    assert page_sessions.find(db, "token") == session == page_sessions.by_id(db, "s1")
    renewed = session.renewed("second", "token", 20)
    page_sessions.put(db, renewed)
    assert page_sessions.find(db, "token") == page_sessions.find(db, "second") == renewed
    assert page_sessions.find(db, "third") is None
    assert page_sessions.end(db, "s1")
    assert not page_sessions.end(db, "s1")
    assert page_sessions.by_id(db, "s1") is None


def test_all_sessions_of_an_agent_end_and_only_its(db: Connection) -> None:
    for number, agent in enumerate(("ann", "ann", "ben")):
        token = f"token {number}"
        page_sessions.put(db, begun(f"s{number}", "key", agent, token, 10, TERMS))
    assert page_sessions.end_all_of(db, "ann") == 2
    assert page_sessions.by_id(db, "s2") is not None


def test_of_an_agent_the_sessions_that_were_used_last_stay(db: Connection) -> None:
    for number in range(4):
        page_sessions.put(db, begun(f"s{number}", "key", "ann", f"{number}", 10 + number, TERMS))
    page_sessions.end_older(db, "ann", 2)
    kept = [number for number in range(4) if page_sessions.by_id(db, f"s{number}")]
    assert kept == [2, 3]


def test_what_has_expired_is_swept(db: Connection) -> None:
    page_sessions.put(db, begun("s", "key", "ann", "token", 10, TERMS))
    page_sessions.put_link(db, "code", PageLink("key", 10, 1_010), 5)
    page_sessions.sweep(db, 1_009)
    assert page_sessions.by_id(db, "s") is not None
    page_sessions.sweep(db, 1_010)
    assert page_sessions.by_id(db, "s") is None
    assert page_sessions.take_link(db, "code") is None


def test_a_link_is_taken_once_and_a_key_has_few(db: Connection) -> None:
    for number in range(4):
        page_sessions.put_link(db, f"code {number}", PageLink("key", number, 100), 3)
    assert page_sessions.take_link(db, "code 0") is None
    assert page_sessions.take_link(db, "code 3") == PageLink("key", 3, 100)
    assert page_sessions.take_link(db, "code 3") is None
