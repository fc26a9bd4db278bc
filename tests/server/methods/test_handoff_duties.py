"""Steps that the node takes by itself, each once (acp-canonical §7.2, §10.4)."""

from dataclasses import replace

from server.methods.handoff_duties import escalate, settle_checked, workq_given_up, workq_moved
from server.store import handoffs
from tests.desk import ANA, BEN, HOUR, Desk, package
from tests.node import AGENT

COORDINATOR = AGENT.removesuffix("@1.0.0")


def test_an_escalation_comes_when_it_is_due_and_once(desk: Desk) -> None:
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
    assert desk.rows("SELECT outcome FROM acp_audit") == [("escalated",)]


def test_the_teamspaces_coordinator_is_told(desk: Desk) -> None:
    members = [{"agent_id": BEN, "role": "executor"}]
    desk.team(ANA, "create", team="core", name="Core", members=members)
    handoff_id = desk.accepted(team="core")
    desk.now += 25 * HOUR
    desk.run(lambda ctx: escalate(ctx, handoff_id))
    assert desk.mail(ANA)[-1][0] == "status.blocked"
    assert desk.mail(COORDINATOR) == []


def test_a_coordinator_that_nobody_knows_stops_nothing(desk: Desk) -> None:
    handoff_id = desk.accepted()
    rules = replace(desk.node.acp, coordinators=frozenset({"aid://example.com/gone"}))
    desk.node = replace(desk.node, acp=rules)
    desk.now += 25 * HOUR
    assert desk.run(lambda ctx: escalate(ctx, handoff_id)) is True
    assert desk.rows("SELECT outcome FROM acp_audit") == [("escalated",)]


def test_a_result_that_comes_late_or_twice_changes_nothing(desk: Desk) -> None:
    desk.node = replace(desk.node, handoffs=replace(desk.node.handoffs, checks_files=True))
    ref = {"type": "file", "path": "/x", "sha256": "0" * 64}
    handoff_id = desk.accepted(package=package(artifacts=[{"artifact_id": "a", "ref": ref}]))
    bad = [{"artifactId": "a", "outcome": "missing_artifact", "detail": "gone"}]
    good = [{"artifactId": "a", "outcome": "verified", "detail": "fine"}]
    desk.run(lambda ctx: settle_checked(ctx, handoff_id, good))
    assert desk.status(handoff_id) == "accepted"
    desk.run(lambda ctx: settle_checked(ctx, handoff_id, bad))
    assert desk.status(handoff_id) == "accepted"


def test_workq_is_done_after_its_last_call(desk: Desk) -> None:
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
