"""Policy and broadcasts (acp-canonical §10.3, §12.3, §12.8)."""

from typing import Any

import pytest

from schemas.acp import ACPGivenPolicy
from server.domain.acp.policy import (
    MANY,
    check,
    is_audited,
    is_broadcast,
    is_for_team,
    is_open_to_humans,
    named,
)
from server.domain.errors import Forbidden, InvalidInput, Refusal

FINE: dict[str, Any] = {
    "policy": ACPGivenPolicy(),
    "priority": "normal",
    "broadcast": False,
    "team": None,
    "coordinator": False,
}


def reason(**given: Any) -> str | None:
    try:
        check(**FINE | given)
    except Refusal as refusal:
        return str(refusal.data["reason"])
    return None


def test_everyone_stands_alone() -> None:
    assert is_broadcast(["*"])
    with pytest.raises(InvalidInput):
        is_broadcast(["*", "aid://example.com/a"])


def test_who_is_named() -> None:
    assert named(["*"]) == []
    assert named(["aid://example.com/a@1.0.0", "b"]) == ["aid://example.com/a", "b"]


def test_many_names_are_a_broadcast() -> None:
    names = [f"aid://example.com/{number}" for number in range(MANY + 1)]
    assert is_broadcast(names)
    assert not is_broadcast(names[:MANY])


def test_a_broadcast_needs_authority_or_urgency() -> None:
    assert reason() is None
    assert reason(broadcast=True) == "broadcast_not_allowed"
    assert reason(broadcast=True, priority="low") == "broadcast_not_allowed"
    assert reason(broadcast=True, coordinator=True) is None
    assert reason(broadcast=True, priority="high") is None
    assert reason(broadcast=True, priority="critical") is None
    with pytest.raises(Forbidden):
        check(**FINE | {"broadcast": True})


def test_what_a_policy_may_not_say() -> None:
    team = ACPGivenPolicy(visibility="team")
    assert reason(policy=team) == "policy_violation"
    assert reason(policy=team, team="alpha") is None
    secret = ACPGivenPolicy(sensitivity="high")
    assert reason(policy=secret) is None
    assert reason(policy=secret, broadcast=True, priority="high") == "policy_violation"


def test_what_is_for_a_team_alone() -> None:
    team = ACPGivenPolicy(visibility="team").whole()
    assert is_for_team(team, "knowledge.push")
    assert not is_for_team(team, "handoff.initiate")
    assert not is_for_team(ACPGivenPolicy().whole(), "knowledge.push")


def test_what_is_audited() -> None:
    assert not is_audited(ACPGivenPolicy(), "normal")
    assert is_audited(ACPGivenPolicy(), "high")
    assert is_audited(ACPGivenPolicy(), "critical")
    assert is_audited(ACPGivenPolicy(human_gate="required"), "low")


def test_what_a_human_may_see_without_being_a_party() -> None:
    """§10.2: human audit visibility."""
    assert not is_open_to_humans(ACPGivenPolicy(), "high")
    assert is_open_to_humans(ACPGivenPolicy(), "critical")
    assert is_open_to_humans(ACPGivenPolicy(visibility="human-audit"), "low")
    assert is_open_to_humans(ACPGivenPolicy(human_gate="required"), "low")
