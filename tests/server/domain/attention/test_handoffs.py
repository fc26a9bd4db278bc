"""Handoffs: each state waits for the one who may take its next step, and each step is legal."""

from dataclasses import replace
from typing import Any

import pytest

from schemas.handoff import HandoffStatus
from server.domain.acp.evidence import EvidenceProblem
from server.domain.acp.handoff import Parties, move
from server.domain.attention.derive import attention
from server.domain.attention.handoffs import HandoffSubject
from server.domain.attention.items import Actor, WaitingItem
from server.domain.attention.text import whole

ANA, BEN, CLEO = (f"aid://example.com/{name}" for name in ("ana", "ben", "cleo"))
OFFER = HandoffSubject(
    "h1", "Login", "shift ends", "tokens", "the client", "proposed", ANA, BEN, "normal", "f" * 64, 5
)


def items_of(handoff: HandoffSubject, agent: str, *, human: bool = False) -> list[WaitingItem]:
    return attention([handoff], Actor(agent, {}, human))


@pytest.mark.parametrize(
    ("status", "agent", "actions"),
    [
        ("draft", ANA, ["propose", "reject"]),
        ("proposed", BEN, ["accept", "reject"]),
        ("accepted", BEN, ["activate"]),
        ("activated", BEN, ["complete"]),
        ("completed", ANA, ["close"]),
    ],
)
def test_each_state_waits_for_one_party(
    status: HandoffStatus, agent: str, actions: list[str]
) -> None:
    handoff = replace(OFFER, status=status)
    [item] = items_of(handoff, agent)
    assert [step.params["action"] for step in item.next] == actions
    roles = Parties(ANA, BEN).roles_of(agent)
    for action in actions:
        after, _ = move(status, action, roles)  # type: ignore[arg-type]
        left = items_of(replace(handoff, status=after), agent)
        assert item.id not in [other.id for other in left]
    for other in {ANA, BEN, CLEO} - {agent}:
        assert items_of(handoff, other) == []


@pytest.mark.parametrize("status", ["validating", "rejected", "closed"])
def test_other_states_wait_for_no_party(status: Any) -> None:
    assert [items_of(replace(OFFER, status=status), agent) for agent in (ANA, BEN)] == [[], []]


def test_blocked_work_cannot_be_completed() -> None:
    assert items_of(replace(OFFER, status="activated", blocked=True), BEN) == []


def test_a_humans_approval() -> None:
    gated = replace(OFFER, needs_human=True, human_approves=True)
    [item] = items_of(gated, CLEO, human=True)
    assert (item.kind, item.next[0].params) == ("approve", {"message_id": "h1"})
    assert items_of(gated, CLEO) == []
    assert items_of(replace(gated, needs_human=False), CLEO, human=True) == []


def test_a_teams_approval_waits_for_members_who_may_give_it() -> None:
    members: Any = {CLEO: "integrator", BEN: "executor"}
    gated = replace(OFFER, needs_team=True, members=members)
    [item] = items_of(gated, CLEO)
    assert item.next[0].params == {"action": "approve", "handoff_id": "h1"}
    assert [item.kind for item in items_of(gated, BEN)] == ["handoff"]


def test_high_risk_is_closed_by_a_role_of_the_team() -> None:
    members: Any = {ANA: "coordinator", BEN: "executor", CLEO: "reviewer"}
    done = replace(OFFER, status="completed", members=members, high_risk=True)
    closers = [agent for agent in (ANA, BEN, CLEO) if items_of(done, agent)]
    assert closers == [ANA, CLEO]


def test_a_check_waits_before_the_acceptance() -> None:
    """Its step closes the item, as the next one has another id; what no check can end leaves only
    the refusal."""
    ids = {items_of(OFFER, BEN)[0].id}
    for reason, methods in (
        ("evidence_unchecked", ["acp/handoff/check", "acp/handoff"]),
        ("evidence_failed", ["acp/handoff/check", "acp/handoff"]),
        ("evidence_missing", ["acp/handoff"]),
        ("evidence_unproven", ["acp/handoff"]),
    ):
        [item] = items_of(replace(OFFER, unproven=EvidenceProblem(reason, "it is so")), BEN)
        assert [step.method for step in item.next] == methods
        assert item.next[-1].params["action"] == "reject"
        assert item.detail["waitsFor"] == "it is so"
        ids.add(item.id)
    assert len(ids) == 5


def test_of_a_package_elsewhere_there_is_a_note() -> None:
    [item] = items_of(replace(OFFER, note="if it says so"), BEN)
    assert [step.params["action"] for step in item.next] == ["accept", "reject"]
    assert item.detail["waitsFor"] == "if it says so"
    assert "Before it is accepted: if it says so." in whole(item.wire())
