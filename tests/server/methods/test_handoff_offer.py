"""Offering work (acp-canonical §7)."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from server.domain.acp import handoff
from server.domain.acp.rates import Limit
from server.domain.acp.rules import Rules
from server.domain.errors import Conflict, Forbidden, InvalidInput, NotFound, RateLimited
from server.store import handoffs, mesh
from tests.desk import ANA, BEN, CLEO, DORA, HOUR, Desk, package

HANDOFF = "01a200da-b1c9-768b-93df-5ab80da21e23"


def test_an_offer_stores_the_package_whole(desk: Desk) -> None:
    made = desk.handoff(
        f"{ANA}@1.0.0", "initiate", to=f"{BEN}@2.0.0", reason="r", package=package()
    )
    shown = made["handoff"]
    assert (shown["status"], shown["fromAgent"], shown["toAgent"]) == ("proposed", ANA, BEN)
    got = desk.handoff(BEN, "get", handoff_id=shown["handoffId"])
    stored = got["package"]
    assert stored["task"] == package()["task"]
    assert stored["provenance"] == {"origin_session": "session-1", "handoff_chain": [ANA]}
    assert stored["verification"] == {
        "schema_version": "1.0.0",
        "package_hash": handoff.package_hash(stored),
    }
    assert shown["packageHash"] == stored["verification"]["package_hash"]
    [(type, payload)] = desk.mail(BEN)
    assert type == "handoff.initiate"
    assert payload == {
        "summary": "Move the login to tokens: r",
        "handoff_id": shown["handoffId"],
        "task_id": "task-1",
        "package_hash": shown["packageHash"],
    }


def test_the_chain_is_never_the_callers(desk: Desk) -> None:
    """§7.2 rule 6."""
    given = package(provenance={"handoff_chain": [CLEO]})
    with pytest.raises(ValidationError, match="handoff_chain"):
        desk.handoff(ANA, "initiate", to=BEN, reason="r", package=given)


def test_a_hash_that_is_given_must_be_right(desk: Desk) -> None:
    right = package() | {"verification": {"schema_version": "1.0.0", "package_hash": "0" * 64}}
    data = desk.refused(InvalidInput, ANA, "initiate", to=BEN, reason="r", package=right)
    assert data["reason"] == "hash_mismatch"
    right["verification"]["package_hash"] = data["expected"]
    assert desk.handoff(ANA, "initiate", to=BEN, reason="r", package=right)["handoff"]


def test_the_same_offer_twice_is_one(desk: Desk) -> None:
    given: dict[str, Any] = {"to": BEN, "reason": "r"}
    given["package"] = package() | {"handoff_id": HANDOFF}
    first = desk.handoff(ANA, "initiate", **given)
    assert desk.handoff(ANA, "initiate", **given) == first
    assert len(desk.mail(BEN)) == 1
    for agent, change in ((ANA, {"reason": "other"}), (CLEO, {})):
        data = desk.refused(Conflict, agent, "initiate", **{**given, **change})
        assert data["reason"] == "handoff_id_taken"


def test_a_task_has_one_handoff_at_a_time(desk: Desk) -> None:
    """§7.2 rule 3."""
    first = desk.offered()
    data = desk.refused(Conflict, ANA, "initiate", to=CLEO, reason="r", package=package())
    assert (data["reason"], data["handoffId"]) == ("ownership_conflict", first)
    data = desk.refused(Conflict, BEN, "initiate", to=DORA, reason="r", package=package())
    assert (data["reason"], data["handoffId"]) == ("ownership_conflict", first)


def test_only_the_owner_hands_on(desk: Desk) -> None:
    desk.handoff(BEN, "complete", handoff_id=desk.accepted(), summary="done")
    data = desk.refused(Conflict, ANA, "initiate", to=DORA, reason="r", package=package())
    assert (data["reason"], data["owner"]) == ("ownership_conflict", BEN)
    assert desk.offered(BEN, CLEO)


def test_a_guess_of_a_task_id_tells_no_stranger_whose_it_is(desk: Desk) -> None:
    """§12.3: in whatever state the task is, a stranger gets one and the same refusal."""

    def guessed(task_id: str = "task-1", **given: str) -> Any:
        whole = package(task_id)
        return desk.refused(Conflict, CLEO, "initiate", to=DORA, reason="r", package=whole, **given)

    first = desk.offered()
    refusals = [guessed()]
    desk.handoff(BEN, "accept", handoff_id=first)
    refusals.append(guessed())
    desk.handoff(BEN, "complete", handoff_id=first, summary="done")
    refusals.append(guessed())
    members = [{"agent_id": BEN, "role": "executor"}]
    desk.team(ANA, "create", team="core", name="Core", members=members)
    desk.team(CLEO, "create", team="other", name="Other")
    desk.team(ANA, "createTask", team="core", task_id="free", title="t")
    desk.team(ANA, "createTask", team="core", task_id="taken", title="t", agent_id=BEN)
    refusals += [guessed("free"), guessed("taken"), guessed("taken", team="other")]
    refusals.append(guessed("taken", team="unknown"))
    assert refusals == [
        {"reason": "ownership_conflict", "path": "package.task.task_id"} for _ in refusals
    ]


def test_an_owner_hands_on_what_it_accepted(desk: Desk) -> None:
    first = desk.accepted()
    second = desk.offered(BEN, CLEO)
    assert (desk.status(first), desk.status(second)) == ("closed", "proposed")
    shown = desk.handoff(CLEO, "get", handoff_id=second)
    assert shown["handoff"]["handedOnFrom"] == first
    assert shown["package"]["provenance"]["handoff_chain"] == [ANA, BEN]
    desk.handoff(CLEO, "accept", handoff_id=second)
    desk.handoff(CLEO, "complete", handoff_id=second, summary="done")
    assert ("handoff.complete", "Move the login to tokens: done") in [
        (type, payload["summary"]) for type, payload in desk.mail(ANA)
    ]


def test_what_was_handed_on_comes_back_when_it_is_rejected(desk: Desk) -> None:
    first = desk.accepted()
    due = desk.rows("SELECT due_at FROM handoff_control WHERE handoff_id = ?", first)
    second = desk.offered(BEN, CLEO)
    desk.handoff(CLEO, "reject", handoff_id=second, code="capacity_unavailable", detail="busy")
    assert (desk.status(first), desk.status(second)) == ("activated", "rejected")
    assert desk.rows("SELECT due_at FROM handoff_control WHERE handoff_id = ?", first) == due
    desk.handoff(BEN, "complete", handoff_id=first, summary="done after all")


@pytest.mark.parametrize("receiver", [ANA, BEN])
def test_no_circles(desk: Desk, receiver: str) -> None:
    """§7.2 rule 6."""
    desk.handoff(CLEO, "accept", handoff_id=_second(desk))
    data = desk.refused(Conflict, CLEO, "initiate", to=receiver, reason="r", package=package())
    assert (data["reason"], data["chain"]) == ("handoff_cycle", [ANA, BEN, CLEO])


def _second(desk: Desk) -> str:
    desk.accepted()
    return desk.offered(BEN, CLEO)


def test_not_to_oneself_nor_to_who_is_unknown(desk: Desk) -> None:
    data = desk.refused(InvalidInput, ANA, "initiate", to=f"{ANA}@9", reason="r", package=package())
    assert data["path"] == "to"
    nobody = "aid://example.com/nobody"
    data = desk.refused(NotFound, ANA, "initiate", to=nobody, reason="r", package=package())
    assert data["reason"] == "unknown_recipient"


def test_export_restrictions_hold_at_once(desk: Desk) -> None:
    given = package(policy={"export_restrictions": [BEN]})
    data = desk.refused(Forbidden, ANA, "initiate", to=BEN, reason="r", package=given)
    assert data["reason"] == "policy_violation"


def test_offers_count_for_the_senders_limit(desk: Desk) -> None:
    """§10.3: 10 a minute; what answers them does not count."""
    desk.node = replace(desk.node, acp=Rules())
    ids = [desk.offered(package=package(f"task-{number}")) for number in range(10)]
    data = desk.refused(RateLimited, ANA, "initiate", to=BEN, reason="r", package=package("more"))
    assert data["reason"] == "rate_limited"
    for handoff_id in ids:
        desk.handoff(BEN, "accept", handoff_id=handoff_id)
        desk.handoff(BEN, "complete", handoff_id=handoff_id, summary="done")


def test_a_draft_is_nobody_elses(desk: Desk) -> None:
    made = desk.handoff(ANA, "initiate", to=BEN, reason="r", package=package(), draft=True)
    draft = made["handoff"]["handoffId"]
    assert (made["handoff"]["status"], desk.mail(BEN)) == ("draft", [])
    assert desk.refused(NotFound, BEN, "get", handoff_id=draft)["reason"] == "not_found"
    assert desk.handoff(BEN, "list")["handoffs"] == []
    # It keeps nobody from the task, and is checked anew when it is proposed.
    other = desk.offered(ANA, CLEO)
    data = desk.refused(Conflict, ANA, "propose", handoff_id=draft)
    assert data["handoffId"] == other
    desk.handoff(ANA, "reject", handoff_id=other, code="other", detail="withdrawn")
    desk.handoff(ANA, "propose", handoff_id=draft)
    assert desk.mail(BEN)[0][0] == "handoff.initiate"
    assert desk.handoff(BEN, "accept", handoff_id=draft)["handoff"]["status"] == "accepted"


def test_a_draft_that_is_proposed_takes_the_place_of_what_its_sender_has(desk: Desk) -> None:
    first = desk.accepted()
    given: dict[str, Any] = {"to": CLEO, "reason": "r", "package": package(), "draft": True}
    draft = desk.handoff(BEN, "initiate", **given)["handoff"]["handoffId"]
    assert desk.status(first) == "accepted"
    desk.handoff(BEN, "propose", handoff_id=draft)
    assert desk.status(first) == "closed"
    shown = desk.handoff(CLEO, "get", handoff_id=draft)
    assert shown["package"]["provenance"]["handoff_chain"] == [ANA, BEN]
    assert shown["handoff"]["packageHash"] == handoff.package_hash(shown["package"])
    assert shown["handoff"]["handedOnFrom"] == first


def test_a_draft_may_be_discarded(desk: Desk) -> None:
    given: dict[str, Any] = {"to": BEN, "reason": "r", "package": package(), "draft": True}
    draft = desk.handoff(ANA, "initiate", **given)["handoff"]["handoffId"]
    desk.handoff(ANA, "reject", handoff_id=draft, code="other", detail="not needed")
    assert (desk.status(draft), desk.mail(BEN)) == ("rejected", [])


def test_a_receiver_whose_node_takes_no_mail_is_refused(desk: Desk) -> None:
    mesh.put_home(desk.db, BEN, "aid://example.com/beta")
    data = desk.refused(NotFound, ANA, "initiate", to=BEN, reason="r", package=package())
    assert (data["reason"], data["home"]) == ("no_mailbox", "aid://example.com/beta")


def test_a_task_that_another_node_holds_is_not_handed_on_from_here(desk: Desk) -> None:
    """§7.2 rule 3: one node holds who owns it."""
    handoffs.put_elsewhere(desk.db, "h1", BEN, "task-1", "aid://example.com/beta")
    given: dict[str, Any] = {"to": CLEO, "reason": "r", "package": package()}
    data = desk.refused(Conflict, BEN, "initiate", **given)
    assert (data["reason"], data["node"]) == ("task_elsewhere", "aid://example.com/beta")
    assert desk.offered(ANA, CLEO), "who was not offered it may have a task of that name"


def test_drafts_count_as_what_their_sender_sends(desk: Desk) -> None:
    """§12.4: a package is large, and what is kept without being sent has the same limit."""
    desk.node = replace(desk.node, acp=Rules(limits={"direct": Limit(2, HOUR)}))
    for task in ("one", "two"):
        desk.offered(package=package(task), draft=True)
    given: dict[str, Any] = {"to": BEN, "reason": "r", "draft": True, "package": package("three")}
    assert desk.refused(RateLimited, ANA, "initiate", **given)["kind"] == "direct"
