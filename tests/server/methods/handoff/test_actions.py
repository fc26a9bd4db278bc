"""acp/handoff, step by step (acp-canonical §7)."""

from itertools import pairwise
from typing import Any, get_args

import pytest

from schemas.acp import HandoffRejectReason
from server.domain.errors import Conflict, Forbidden, IllegalTransition, InvalidInput, NotFound
from server.store import keys
from tests.support.in_process_node import ANA, BEN, CLEO, DORA, HUMAN, InProcessNode, package
from tests.support.node import AGENT

COORDINATOR = AGENT.removesuffix("@1.0.0")


def steps(desk: InProcessNode, agent: str, handoff_id: str) -> list[tuple[str, str]]:
    history = desk.handoff(agent, "history", handoff_id=handoff_id)["history"]
    return [(one["step"], one["after"]) for one in history]


def types(desk: InProcessNode, agent: str) -> list[str]:
    return [type for type, _ in desk.mail(agent)]


def test_a_whole_handoff(desk: InProcessNode) -> None:
    """§7.2: every state of the path is in the history, and the other side is told of each."""
    handoff_id = desk.offered()
    offered = desk.handoff(ANA, "get", handoff_id=handoff_id)["nextStep"]
    assert offered == "You may now: reject (to withdraw it)."
    assert desk.handoff(BEN, "accept", handoff_id=handoff_id)["nextStep"] == (
        "You may now: activate or complete."
    )
    desk.handoff(BEN, "activate", handoff_id=handoff_id)
    desk.handoff(BEN, "complete", handoff_id=handoff_id, summary="The client is written")
    desk.handoff(ANA, "close", handoff_id=handoff_id)
    assert steps(desk, ANA, handoff_id) == [
        ("draft", "draft"),
        ("propose", "proposed"),
        ("accept", "validating"),
        ("pass", "accepted"),
        ("activate", "activated"),
        ("complete", "completed"),
        ("close", "closed"),
    ]
    assert types(desk, ANA) == ["handoff.accept", "status.update", "handoff.complete"]
    assert types(desk, BEN) == ["handoff.initiate", "status.complete"]


def test_completing_begins_what_was_only_accepted(desk: InProcessNode) -> None:
    handoff_id = desk.accepted()
    desk.handoff(BEN, "complete", handoff_id=handoff_id, summary="done")
    assert steps(desk, BEN, handoff_id)[-2:] == [
        ("activate", "activated"),
        ("complete", "completed"),
    ]


def test_accepting_twice_is_once(desk: InProcessNode) -> None:
    handoff_id = desk.accepted()
    again = desk.handoff(BEN, "accept", handoff_id=handoff_id)
    assert again["handoff"]["status"] == "accepted"
    assert types(desk, ANA) == ["handoff.accept"]


def test_what_was_read_is_what_is_accepted(desk: InProcessNode) -> None:
    handoff_id = desk.offered()
    hash = desk.handoff(BEN, "get", handoff_id=handoff_id)["handoff"]["packageHash"]
    data = desk.refused(Conflict, BEN, "accept", handoff_id=handoff_id, package_hash="0" * 64)
    assert (data["reason"], data["packageHash"]) == ("hash_mismatch", hash)
    assert desk.handoff(BEN, "accept", handoff_id=handoff_id, package_hash=hash)["handoff"]


@pytest.mark.parametrize("code", get_args(HandoffRejectReason))
def test_every_code_of_a_rejection(desk: InProcessNode, code: str) -> None:
    """§7.3: reason and detail, for the sender to read."""
    handoff_id = desk.offered()
    desk.handoff(BEN, "reject", handoff_id=handoff_id, code=code, detail="This is why.")
    (type, payload) = desk.mail(ANA)[0]
    assert type == "handoff.reject"
    assert (payload["handoff_id"], payload["reason"], payload["detail"]) == (
        handoff_id,
        code,
        "This is why.",
    )
    shown = desk.handoff(ANA, "get", handoff_id=handoff_id)["handoff"]
    assert (shown["status"], shown["resolutionNotes"]) == ("rejected", f"{code}: This is why.")


def test_the_wrong_party_takes_no_step(desk: InProcessNode) -> None:
    """§12.1: each step is its party's, as the credential says."""
    handoff_id = desk.offered()
    by_sender = {"accept": {}, "activate": {}, "complete": {"summary": "s"}}
    for action, params in by_sender.items():
        data = desk.refused(Forbidden, ANA, action, handoff_id=handoff_id, **params)
        assert (data["reason"], data["needs"]) == ("wrong_party", ["receiver"])
    data = desk.refused(Forbidden, BEN, "revoke", handoff_id=handoff_id, detail="d")
    assert data["needs"] == ["coordinator"]
    with pytest.raises(Forbidden, match="or a human's key makes a coordinator"):
        desk.handoff(BEN, "revoke", handoff_id=handoff_id, detail="d")
    desk.handoff(BEN, "accept", handoff_id=handoff_id)
    desk.handoff(BEN, "complete", handoff_id=handoff_id, summary="s")
    assert desk.refused(Forbidden, BEN, "close", handoff_id=handoff_id)["reason"] == "wrong_party"


@pytest.mark.parametrize(
    ("action", "params"),
    [
        ("get", {}),
        ("accept", {}),
        ("reject", {"code": "other", "detail": "d"}),
        ("complete", {"summary": "s"}),
        ("close", {}),
        ("history", {}),
    ],
)
def test_for_others_there_is_no_such_handoff(
    desk: InProcessNode, action: str, params: dict[str, str]
) -> None:
    handoff_id = desk.offered()
    given = {"handoff_id": handoff_id, **params}
    assert desk.refused(NotFound, CLEO, action, **given)["reason"] == "not_found"


def test_steps_out_of_order(desk: InProcessNode) -> None:
    handoff_id = desk.offered()
    data = desk.refused(IllegalTransition, BEN, "complete", handoff_id=handoff_id, summary="s")
    assert (data["from"], data["allowed"]) == ("proposed", ["accept", "reject"])
    desk.handoff(BEN, "reject", handoff_id=handoff_id, code="other", detail="no")
    data = desk.refused(IllegalTransition, BEN, "accept", handoff_id=handoff_id)
    assert (data["from"], data["allowed"]) == ("rejected", [])


def test_the_sender_withdraws(desk: InProcessNode) -> None:
    handoff_id = desk.offered()
    desk.handoff(ANA, "reject", handoff_id=handoff_id, code="other", detail="I do it myself")
    assert types(desk, BEN) == ["handoff.initiate", "handoff.reject"]
    assert "withdraws" in desk.mail(BEN)[1][1]["summary"]
    desk.handoff(ANA, "initiate", to=CLEO, reason="r", package=package())


def test_the_coordinator_takes_a_task_back(desk: InProcessNode) -> None:
    """After an escalation there is a way on: the task is free again, for the sender too."""
    handoff_id = desk.accepted()
    desk.handoff(COORDINATOR, "revoke", operator=True, handoff_id=handoff_id, detail="Ben is away")
    assert desk.status(handoff_id) == "closed"
    assert types(desk, ANA)[-1] == types(desk, BEN)[-1] == "status.update"
    again = desk.accepted(ANA, CLEO)
    chain = desk.handoff(CLEO, "get", handoff_id=again)["package"]["provenance"]["handoff_chain"]
    assert chain == [ANA]


def test_after_a_revocation_the_handoff_before_goes_on(desk: InProcessNode) -> None:
    first = desk.accepted()
    second = desk.accepted(BEN, CLEO)
    assert "dueAt" not in desk.handoff(ANA, "get", handoff_id=first)["handoff"]
    desk.handoff(COORDINATOR, "revoke", operator=True, handoff_id=second, detail="Cleo is away")
    assert (desk.status(first), desk.status(second)) == ("activated", "closed")
    assert desk.handoff(BEN, "get", handoff_id=first)["handoff"]["dueAt"]
    desk.handoff(BEN, "complete", handoff_id=first, summary="done")


# --- human approval -----------------------------------------------------------------------------


def gated(desk: InProcessNode) -> str:
    given = package(policy={"requires_human_approval": True})
    return desk.offered(package=given)


def test_a_human_approves_before_it_is_accepted(desk: InProcessNode) -> None:
    handoff_id = gated(desk)
    waiting = desk.handoff(BEN, "accept", handoff_id=handoff_id)["handoff"]
    assert (waiting["status"], waiting["waitsFor"]) == ("validating", ["human_approval"])
    for agent, operator in ((ANA, False), (BEN, False), (COORDINATOR, True)):
        data = desk.refused(Forbidden, agent, "approve", operator=operator, handoff_id=handoff_id)
        assert data["reason"] == "human_needed"
    assert desk.refused(NotFound, CLEO, "approve", handoff_id=handoff_id)
    given = {"action": "approve", "handoff_id": handoff_id}
    done = desk.call("acp/handoff", HUMAN, human=True, **given)["handoff"]
    assert (done["status"], done["waitsFor"]) == ("accepted", [])
    assert ("human_approval", "validating") in steps(desk, ANA, handoff_id)
    assert types(desk, BEN)[-1] == types(desk, ANA)[-1] == "status.update"
    assert desk.rows("SELECT actor, outcome FROM acp_audit WHERE message_id = ?", handoff_id) == [
        (HUMAN, "approved")
    ]


def test_a_human_may_approve_before_the_receiver_accepts(desk: InProcessNode) -> None:
    handoff_id = gated(desk)
    given = {"action": "approve", "handoff_id": handoff_id}
    assert desk.call("acp/handoff", HUMAN, human=True, **given)["handoff"]["status"] == "proposed"
    assert desk.handoff(BEN, "accept", handoff_id=handoff_id)["handoff"]["status"] == "accepted"


def test_a_human_refuses(desk: InProcessNode) -> None:
    handoff_id = gated(desk)
    given = {"action": "reject", "handoff_id": handoff_id, "code": "other", "detail": "no"}
    assert desk.call("acp/handoff", HUMAN, human=True, **given)["handoff"]["status"] == "rejected"
    assert types(desk, ANA) == ["handoff.reject"]


@pytest.mark.parametrize(("decision", "status"), [("approve", "proposed"), ("refuse", "rejected")])
def test_acp_approve_decides_on_handoffs_too(
    desk: InProcessNode, decision: str, status: str
) -> None:
    handoff_id = gated(desk)
    given: dict[str, Any] = {"message_id": handoff_id, "decision": decision, "comment": "why"}
    with pytest.raises(Forbidden):
        desk.call("acp/approve", CLEO, **given)
    done = desk.call("acp/approve", HUMAN, human=True, **given)
    assert done["handoff"]["status"] == status
    assert "human_approval" not in done["handoff"]["waitsFor"]


def test_acp_approve_knows_nothing_of_handoffs_that_need_no_human(desk: InProcessNode) -> None:
    handoff_id = desk.offered()
    with pytest.raises(NotFound):
        desk.call("acp/approve", HUMAN, human=True, message_id=handoff_id)


def test_a_human_coordinates_all_but_what_is_restricted(desk: InProcessNode) -> None:
    restricted = package("t2", policy={"classification": "restricted"})
    hidden: dict[str, Any] = {"handoff_id": desk.accepted(package=restricted)}
    own = {"handoff_id": desk.accepted()}
    for action in ("get", "history", "revoke"):
        more = {"detail": "Ben is away"} if action == "revoke" else {}
        with pytest.raises(NotFound):
            desk.call("acp/handoff", HUMAN, human=True, action=action, **hidden, **more)
        desk.call("acp/handoff", HUMAN, human=True, action=action, **own, **more)
    assert desk.status(own["handoff_id"]) == "closed"
    assert desk.call("acp/handoff", AGENT, operator=True, action="get", **hidden)


# --- in a teamspace -----------------------------------------------------------------------------


def teamed(desk: InProcessNode, **task: Any) -> None:
    """A teamspace of coordinator ana, executor ben, integrator cleo, with task-1, ana's to give."""
    members = [{"agent_id": BEN, "role": "executor"}, {"agent_id": CLEO, "role": "integrator"}]
    desk.team(ANA, "create", team="core", name="Core", members=members)
    desk.team(ANA, "createTask", team="core", task_id="task-1", title="Login", **task)


def test_a_member_accepts_by_its_role(desk: InProcessNode) -> None:
    """§8.4, Accept execution task."""
    teamed(desk)
    desk.team(ANA, "addMember", team="core", agent_id=DORA, role="reviewer")
    data = desk.refused(Forbidden, ANA, "initiate", to=DORA, reason="r", package=package())
    assert data["reason"] == "capability_mismatch"
    handoff_id = desk.offered(ANA, BEN)
    desk.team(ANA, "changeRole", team="core", agent_id=BEN, role="researcher")
    data = desk.refused(Forbidden, BEN, "accept", handoff_id=handoff_id)
    assert data["reason"] == "capability_mismatch"


def test_what_comes_from_outside_is_approved_first(desk: InProcessNode) -> None:
    """§8.4, Approve handoff into team scope."""
    teamed(desk)
    handoff_id = desk.offered(DORA, BEN, package=package("theirs"), team="core")
    waiting = desk.handoff(BEN, "accept", handoff_id=handoff_id)["handoff"]
    assert (waiting["status"], waiting["waitsFor"]) == ("validating", ["team_approval"])
    data = desk.refused(Forbidden, BEN, "approve", handoff_id=handoff_id)
    assert data["needs"] == ["coordinator", "integrator"]
    done = desk.handoff(CLEO, "approve", handoff_id=handoff_id)["handoff"]
    assert done["status"] == "accepted"
    tasks = desk.team(ANA, "get", team="core")["tasks"]
    assert ("theirs", BEN) in [(one["taskId"], one.get("owner")) for one in tasks]


def test_a_reviewer_approves_guarded_classes_only(desk: InProcessNode) -> None:
    teamed(desk)
    desk.team(ANA, "addMember", team="core", agent_id=HUMAN, role="reviewer")
    plain = desk.offered(DORA, BEN, package=package("plain"), team="core")
    assert desk.refused(Forbidden, HUMAN, "approve", handoff_id=plain)["reason"] == "role_authority"
    given = package("secret", policy={"classification": "restricted"})
    restricted = desk.offered(DORA, BEN, package=given, team="core")
    assert desk.handoff(HUMAN, "approve", handoff_id=restricted)["handoff"]["waitsFor"] == []


def test_high_risk_is_closed_by_those_alone_whom_the_table_names(desk: InProcessNode) -> None:
    """§8.4, Mark high-risk closure complete."""
    teamed(desk, high_risk=True)
    first = desk.accepted(ANA, BEN)
    second = desk.accepted(BEN, CLEO)
    desk.handoff(CLEO, "complete", handoff_id=second, summary="done")
    assert desk.status(first) == "closed"
    assert desk.refused(Forbidden, BEN, "close", handoff_id=second)["authority"] == (
        "close_high_risk"
    )
    desk.team(ANA, "addMember", team="core", agent_id=DORA, role="reviewer")
    assert desk.handoff(DORA, "close", handoff_id=second)["handoff"]["status"] == "closed"


def test_blocked_work_is_not_completed(desk: InProcessNode) -> None:
    """§8.4, Block work with reason code."""
    teamed(desk)
    handoff_id = desk.accepted(ANA, BEN)
    desk.team(CLEO, "block", team="core", task_id="task-1", code="security", detail="A leak")
    data = desk.refused(Conflict, BEN, "complete", handoff_id=handoff_id, summary="s")
    assert (data["reason"], data["code"]) == ("task_blocked", "security")
    desk.team(CLEO, "unblock", team="core", task_id="task-1")
    desk.handoff(BEN, "complete", handoff_id=handoff_id, summary="s")
    [task] = desk.team(ANA, "get", team="core")["tasks"]
    assert task["status"] == "completed"


# --- no step is kept from its party ---------------------------------------------------------------


def test_a_full_thread_stops_no_step(desk: InProcessNode) -> None:
    """Who fills the thread neither keeps the work nor keeps it from being taken back."""
    handoff_id = desk.offered()
    desk.db.execute("UPDATE threads SET rounds = 1000 WHERE thread_id = ?", (handoff_id,))
    desk.handoff(BEN, "accept", handoff_id=handoff_id)
    desk.handoff(BEN, "complete", handoff_id=handoff_id, summary="done")
    assert types(desk, ANA) == ["handoff.accept", "handoff.complete"]


@pytest.mark.parametrize("action", ["accept", "reject"])
def test_a_party_whose_key_is_revoked_stops_no_step(desk: InProcessNode, action: str) -> None:
    handoff_id = desk.offered()
    desk.db.execute("UPDATE keys SET revoked_at = 1 WHERE agent_id = ?", (ANA,))
    params = {"code": "other", "detail": "no time"} if action == "reject" else {}
    desk.handoff(BEN, action, handoff_id=handoff_id, **params)
    assert desk.status(handoff_id) == f"{action}ed"
    assert types(desk, ANA) == [f"handoff.{action}"]


def test_restricted_work_of_many_owners_can_be_completed(desk: InProcessNode) -> None:
    owners = [f"aid://example.com/owner-{number}" for number in range(13)]
    for owner in owners:
        keys.add(desk.db, keys.new_key(), agent_id=owner, repo="r", now=desk.now)
    restricted = package(policy={"classification": "restricted"})
    for sender, receiver in pairwise(owners):
        handoff_id = desk.accepted(sender, receiver, package=restricted)
    desk.handoff(owners[-1], "complete", handoff_id=handoff_id, summary="done")
    assert types(desk, owners[0])[-1] == "handoff.complete"


@pytest.mark.parametrize("draft", [False, True])
def test_work_is_not_handed_to_everyone(desk: InProcessNode, draft: bool) -> None:
    given: dict[str, Any] = {"to": "*", "reason": "Anyone", "draft": draft}
    urgent = package(task={"priority": "critical"})
    data = desk.refused(InvalidInput, ANA, "initiate", package=urgent, **given)
    assert data["path"] == "to"
