"""Agent ids (CACP 2.0, Agent ID)."""

import pytest

from server.domain.agents import identity, same_agent


@pytest.mark.parametrize(
    ("agent_id", "known_as"),
    [
        ("aid://example.com/backend-agent@1.0.0", "aid://example.com/backend-agent"),
        ("aid://mycompany.io/frontend-react@2.1.0-rc.1", "aid://mycompany.io/frontend-react"),
        ("aid://example.com/backend-agent", "aid://example.com/backend-agent"),
        ("aid://user@example.com/backend", "aid://user@example.com/backend"),
        ("backend@host", "backend@host"),
        ("", ""),
    ],
)
def test_the_identity_is_the_id_without_its_version(agent_id: str, known_as: str) -> None:
    assert identity(agent_id) == known_as


def test_an_upgraded_agent_is_the_same_one() -> None:
    assert same_agent("aid://example.com/api@1.0.0", "aid://example.com/api@2.0.0")
    assert same_agent("aid://example.com/api", "aid://example.com/api@2.0.0")
    assert not same_agent("aid://example.com/api@1.0.0", "aid://example.com/web@1.0.0")
    assert not same_agent("aid://example.com/api@1.0.0", "aid://example.org/api@1.0.0")


def test_ids_that_are_no_aid_are_compared_whole() -> None:
    """Not every deployed agent id is an AID (design §5)."""
    assert not same_agent("backend@1", "backend@2")
