"""Who may speak for whom (design §7)."""

from typing import Any

import pytest

from schemas.mesh import Signature
from server.domain import authorship
from server.domain.authorship import (
    check_record,
    check_sendable,
    may_speak,
    statement,
    written_at,
)
from server.domain.canonical import MAX_DEPTH, digest
from server.domain.errors import InvalidInput, TooLarge
from server.domain.lifecycle import Lifecycle
from server.domain.registers import ClaimRelease, RepoClaim

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


# --- what is accepted can be said ---------------------------------------------------------------


def nested(levels: int) -> Any:
    content: Any = []
    for _ in range(levels - 1):
        content = [content]
    return content


@pytest.mark.parametrize("member", ["content", "suggested_change", "details"])
def test_content_as_deep_as_may_be_can_be_signed_where_it_stands(member: str) -> None:
    deepest = nested(MAX_DEPTH)
    assert check_sendable(deepest) == digest(deepest)
    assert statement("fact", "p", {member: deepest})
    with pytest.raises(InvalidInput, match=r"^content(\[0\]){64} is nested deeper than 64 levels"):
        check_sendable(nested(MAX_DEPTH + 1))
    with pytest.raises(InvalidInput, match=rf"^fact\[2\]\.{member}.* nested deeper than 66 levels"):
        statement("fact", "p", {member: nested(MAX_DEPTH + 1)})


def test_a_number_that_has_no_canonical_form_is_told_with_its_place() -> None:
    with pytest.raises(InvalidInput, match=r"^suggestedChange\.max is 9007199254740992"):
        check_sendable({"max": 2**53}, "suggestedChange")


def test_what_is_too_large_to_be_sent_is_told_with_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authorship, "SENT_MAX", 100)
    assert check_sendable({"a": "x" * 92})
    with pytest.raises(TooLarge) as error:
        check_sendable({"a": "x" * 93})
    assert error.value.message == (
        "content takes 101 bytes when sent to other nodes, and 100 are allowed"
    )
    assert error.value.data == {"reason": "too_large", "limit": 100, "path": "content"}
    check_record({"a": ["x" * 40] * 2}, "params")
    with pytest.raises(TooLarge, match=r"^params takes"):
        check_record({"a": ["x" * 40] * 3}, "params")


@pytest.mark.parametrize(
    ("body", "stamp"),
    [
        ({"timestamp": "1970-01-01T00:00:00.000007Z"}, 7),
        (RepoClaim(AGENT, None, 5, 6).body(), 6),
        (ClaimRelease(AGENT, ALPHA, 8).body(), 8),
        (Lifecycle("archived", "Shop", ALPHA, 9).body(), 9),
    ],
)
def test_when_a_signed_body_was_written(body: dict[str, Any], stamp: int) -> None:
    assert written_at(body) == stamp
