"""Steps that the node takes by itself, each once (acp-canonical §7.2, §10.4)."""

from dataclasses import replace
from functools import partial

import pytest

from schemas.base import stamp_of
from server.methods.handoff.automatic import (
    escalate,
    expire,
    settle_checked,
    workq_given_up,
    workq_moved,
)
from server.store import handoffs
from tests.support.in_process_node import ANA, BEN, CLEO, DORA, HOUR, InProcessNode, package
from tests.support.node import AGENT

COORDINATOR = AGENT.removesuffix("@1.0.0")


def test_an_escalation_comes_when_it_is_due_and_once(desk: InProcessNode) -> None:
    """§7.2 rule 5."""
    handoff_id = desk.accepted()
    desk.now += 23 * HOUR
    assert desk.run(lambda ctx: escalate(ctx, handoff_id)) is False
    desk.now += 2 * HOUR
    assert desk.run(lambda ctx: handoffs.due(ctx.db, desk.now)) == [handoff_id]
    assert desk.run(lambda ctx: escalate(ctx, handoff_id)) is True
    assert desk.run(lambda ctx: escalate(ctx, handoff_id)) is False
    (told,) = desk.mail(COORDINATOR)
    assert told[0] == "status.blocked"
    assert "not completed within 24 h" in told[1]["blocked_on"]
    assert desk.rows("SELECT outcome FROM acp_audit") == [("accepted",), ("escalated",)]


@pytest.mark.parametrize(("task", "told"), [("low", "high"), ("high", "high"), ("critical",) * 2])
def test_an_escalation_is_pushed_past_the_inbox(desk: InProcessNode, task: str, told: str) -> None:
    """§10.2: it is urgent, however little the task was."""
    handoff_id = desk.accepted(package=package(task={"priority": task}))
    desk.now += 25 * HOUR
    desk.run(lambda ctx: escalate(ctx, handoff_id))
    found = desk.rows("SELECT priority FROM messages WHERE type = 'status.blocked'")
    assert found == [(told,)]


def test_the_teamspaces_coordinator_is_told(desk: InProcessNode) -> None:
    members = [{"agent_id": BEN, "role": "executor"}]
    desk.team(ANA, "create", team="core", name="Core", members=members)
    handoff_id = desk.accepted(team="core")
    desk.now += 25 * HOUR
    desk.run(lambda ctx: escalate(ctx, handoff_id))
    assert desk.mail(ANA)[-1][0] == "status.blocked"
    assert desk.mail(COORDINATOR) == []


def test_a_coordinator_that_nobody_knows_stops_nothing(desk: InProcessNode) -> None:
    handoff_id = desk.accepted()
    rules = replace(desk.node.acp, coordinators=frozenset({"aid://example.com/gone"}))
    desk.node = replace(desk.node, acp=rules)
    desk.now += 25 * HOUR
    assert desk.run(lambda ctx: escalate(ctx, handoff_id)) is True
    assert desk.rows("SELECT outcome FROM acp_audit")[-1:] == [("escalated",)]


def test_an_offer_that_nobody_answers_expires(desk: InProcessNode) -> None:
    """Else its task would be taken for ever; both sides are told."""
    handoff_id = desk.offered()
    due = desk.handoff(ANA, "get", handoff_id=handoff_id)["handoff"]["dueAt"]
    assert stamp_of(due) >= desk.now + 72 * HOUR - 100
    desk.now += 71 * HOUR
    assert desk.run(lambda ctx: expire(ctx, handoff_id)) is False
    desk.now += 2 * HOUR
    assert desk.run(lambda ctx: handoffs.due(ctx.db, desk.now)) == [handoff_id]
    assert desk.run(lambda ctx: escalate(ctx, handoff_id)) is False
    assert desk.run(lambda ctx: expire(ctx, handoff_id)) is True
    assert desk.run(lambda ctx: expire(ctx, handoff_id)) is False
    assert desk.run(lambda ctx: handoffs.due(ctx.db, desk.now)) == []
    for party in (ANA, BEN):
        type, payload = desk.mail(party)[-1]
        assert (type, payload["reason"]) == ("handoff.reject", "timeout_risk")
        assert payload["detail"] == "not accepted within 72 h"
        assert payload["details"]["status"] == "rejected"
    last = desk.handoff(BEN, "history", handoff_id=handoff_id)["history"][-1]
    assert (last["step"], last["role"], last["after"]) == ("expire", "node", "rejected")
    assert desk.rows("SELECT outcome FROM acp_audit WHERE outcome = 'expired'") == [("expired",)]
    desk.offered(DORA, CLEO)


def test_an_offer_that_waits_for_an_approval_expires(desk: InProcessNode) -> None:
    handoff_id = desk.accepted(package=package(policy={"requires_human_approval": True}))
    assert desk.status(handoff_id) == "validating"
    desk.now += 73 * HOUR
    assert desk.run(lambda ctx: expire(ctx, handoff_id)) is True
    assert desk.status(handoff_id) == "rejected"


def test_a_draft_expires_once_it_is_offered(desk: InProcessNode) -> None:
    handoff_id = desk.offered(draft=True)
    desk.now += 100 * HOUR
    assert desk.run(lambda ctx: expire(ctx, handoff_id)) is False
    desk.handoff(ANA, "propose", handoff_id=handoff_id)
    assert desk.run(lambda ctx: expire(ctx, handoff_id)) is False
    desk.now += 73 * HOUR
    assert desk.run(lambda ctx: expire(ctx, handoff_id)) is True


def test_who_handed_on_has_the_task_again_when_the_offer_expires(desk: InProcessNode) -> None:
    first = desk.accepted()
    second = desk.offered(BEN, CLEO)
    desk.now += 73 * HOUR
    assert desk.run(lambda ctx: expire(ctx, second)) is True
    assert desk.status(first) == "activated"
    assert desk.run(lambda ctx: escalate(ctx, first)) is True


def test_what_was_answered_expires_no_more(desk: InProcessNode) -> None:
    for handoff_id in (desk.accepted(), desk.offered(package=package("t2"))):
        if desk.status(handoff_id) == "proposed":
            desk.handoff(BEN, "reject", handoff_id=handoff_id, code="other", detail="no")
        desk.now += 73 * HOUR
        assert desk.run(partial(expire, handoff_id=handoff_id)) is False


def test_a_result_that_comes_late_or_twice_changes_nothing(desk: InProcessNode) -> None:
    desk.node = replace(desk.node, handoffs=replace(desk.node.handoffs, checks_files=True))
    ref = {"type": "file", "path": "/x", "sha256": "0" * 64}
    handoff_id = desk.accepted(package=package(artifacts=[{"artifact_id": "a", "ref": ref}]))
    bad = [{"artifactId": "a", "outcome": "missing_artifact", "detail": "gone"}]
    good = [{"artifactId": "a", "outcome": "verified", "detail": "fine"}]
    desk.run(lambda ctx: settle_checked(ctx, handoff_id, good))
    assert desk.status(handoff_id) == "accepted"
    desk.run(lambda ctx: settle_checked(ctx, handoff_id, bad))
    assert desk.status(handoff_id) == "accepted"


def test_workq_is_done_after_its_last_call(desk: InProcessNode) -> None:
    desk.node = replace(desk.node, handoffs=replace(desk.node.handoffs, workq=True))
    refs = [{"type": "workq_item", "value": "WQ-7"}]
    handoff_id = desk.accepted(package=package(task={"external_refs": refs}))

    def workq() -> str:
        return str(desk.handoff(BEN, "get", handoff_id=handoff_id)["handoff"]["workq"])

    (first,) = handoffs.open_intents(desk.db, desk.now)
    desk.run(lambda ctx: workq_moved(ctx, first))
    assert workq() == "pending"
    (second,) = handoffs.open_intents(desk.db, desk.now)
    desk.run(lambda ctx: workq_given_up(ctx, second, "no"))
    assert workq() == "manual"
    steps = desk.handoff(BEN, "history", handoff_id=handoff_id)["history"]
    assert steps[-1]["detail"] == "workq.claim WQ-7: no"
