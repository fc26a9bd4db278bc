"""Who may speak for whom (design §6, Authorship)."""

from schemas.mesh import Signature
from server.domain.authorship import may_speak, statement

ALPHA, BETA = "aid://example.com/alpha@1.0.0", "aid://example.com/beta@2.0.0"
AGENT = "aid://example.com/frontend@1.0.0"


def by(node: str) -> Signature:
    return Signature(node=node, value="x")


def test_a_node_speaks_for_itself_in_every_version() -> None:
    newer = ALPHA.replace("1.0.0", "1.1.0")
    assert may_speak(by(newer), ALPHA, author_is_node=True, home=None)


def test_no_node_speaks_for_another_node() -> None:
    assert not may_speak(by(BETA), ALPHA, author_is_node=True, home=None)
    assert not may_speak(by(BETA), ALPHA, author_is_node=True, home=BETA)


def test_an_agent_is_spoken_for_by_the_node_that_first_did() -> None:
    assert may_speak(by(ALPHA), AGENT, author_is_node=False, home=None)
    assert may_speak(by(ALPHA), AGENT, author_is_node=False, home=ALPHA)
    assert not may_speak(by(BETA), AGENT, author_is_node=False, home=ALPHA)


def test_what_has_no_author_any_node_may_say() -> None:
    assert may_speak(by(BETA), None, author_is_node=False, home=None)


def test_a_statement_is_of_its_kind_and_place() -> None:
    body = {"b": 1, "a": 2}
    made = {statement(kind, place, body) for kind in ("fact", "claim") for place in ("p", "q")}
    assert len(made) == 4
    assert statement("fact", "p", {"a": 2, "b": 1}) == statement("fact", "p", body)
