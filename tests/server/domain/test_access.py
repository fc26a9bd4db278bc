"""Trust levels (CACP 2.0, Trust Levels; design §6)."""

from typing import get_args

import pytest

from server.domain.access import GRANTS, Access, Trust, check_trust
from server.domain.errors import Forbidden

ALLOWED: list[tuple[Trust, Access]] = [
    ("verified", "read"),
    ("verified", "write"),
    ("verified", "record"),
    ("runner", "read"),
    ("runner", "record"),
    ("known", "read"),
    ("peer", "read"),
    ("peer", "sync"),
    ("visitor", "read"),
    ("unkeyed", "read"),
    ("unkeyed", "sync"),
]
REFUSED: list[tuple[Trust, Access]] = [
    ("known", "write"),
    ("peer", "write"),
    ("unkeyed", "write"),
    ("runner", "write"),
    ("known", "record"),
    ("peer", "record"),
    ("unkeyed", "record"),
]
NO_PEERS: list[tuple[Trust, Access]] = [
    ("verified", "sync"),
    ("known", "sync"),
    ("runner", "sync"),
]
AT_HOME_ELSEWHERE: list[tuple[Trust, Access]] = [
    ("visitor", "write"),
    ("visitor", "sync"),
    ("visitor", "record"),
]


@pytest.mark.parametrize(("trust", "access"), ALLOWED)
def test_grants(trust: Trust, access: Access) -> None:
    check_trust(trust, access)


@pytest.mark.parametrize(("trust", "access"), REFUSED)
def test_refuses_and_says_what_is_missing(trust: Trust, access: Access) -> None:
    with pytest.raises(Forbidden, match="verified key") as refusal:
        check_trust(trust, access)
    assert refusal.value.data == {
        "reason": "insufficient_trust",
        "trust": trust,
        "access": access,
    }


@pytest.mark.parametrize(("trust", "access"), NO_PEERS)
def test_an_agents_key_does_not_sync(trust: Trust, access: Access) -> None:
    """Design §6: `*/sync` only with a peer's key; an agent's key is none."""
    with pytest.raises(Forbidden, match="--trust peer") as refusal:
        check_trust(trust, access)
    assert refusal.value.data["reason"] == "not_a_peer"


def test_the_nodes_own_agent_carries_what_a_peer_without_a_key_sends() -> None:
    check_trust("verified", "sync", is_own=True)


@pytest.mark.parametrize(("trust", "access"), AT_HOME_ELSEWHERE)
def test_a_visitor_is_told_where_to_write(trust: Trust, access: Access) -> None:
    with pytest.raises(Forbidden, match="Your home is another node") as refusal:
        check_trust(trust, access)
    assert refusal.value.data["reason"] == "home_elsewhere"


def test_every_level_and_access_is_decided() -> None:
    decided = {*ALLOWED, *REFUSED, *NO_PEERS, *AT_HOME_ELSEWHERE}
    assert {(trust, access) for trust in GRANTS for access in get_args(Access)} == decided
