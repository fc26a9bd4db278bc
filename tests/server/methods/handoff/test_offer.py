"""Offering work (acp-canonical §7)."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from server.domain.acp import handoff
from server.domain.acp.message_rate import Limit
from server.domain.acp.policy import WAITING_MAX
from server.domain.acp.rules import MailRules
from server.domain.errors import Conflict, Forbidden, InvalidInput, NotFound, RateLimited
from server.store import handoffs, mesh, peers
from tests.support.in_process_node import ANA, BEN, CLEO, DORA, HOUR, HUMAN, InProcessNode, package
from tests.support.node import AGENT

BETA = "aid://example.com/beta"
COORDINATOR = AGENT.removesuffix("@1.0.0")
HANDOFF = "01a200da-b1c9-768b-93df-5ab80da21e23"

TAKEN = {
    "reason": "ownership_conflict",
    "path": "package.task.task_id",
    "ask": [],
}
"""All that who has no part in a task learns of it."""


def test_an_offer_stores_the_package_whole(desk: InProcessNode) -> None:
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


def test_nobody_fills_what_a_human_is_shown(desk: InProcessNode) -> None:
    """One sender's handoffs keep no other's from being seen; a decision makes room."""
    policy = {"classification": "internal", "requires_human_approval": True}

    def given(task_id: str) -> dict[str, Any]:
        return {"to": BEN, "reason": "r", "package": package(task_id, policy=policy)}

    first, *_ = [desk.offered(**given(f"task-{n}")) for n in range(WAITING_MAX)]
    refused = desk.refused(Forbidden, f"{ANA}@2.0.0", "initiate", **given("more"))
    assert refused == {"reason": "approval_limit", "limit": 20, "waiting": 20}
    draft = desk.handoff(ANA, "initiate", draft=True, **given("more"))["handoff"]["handoffId"]
    desk.refused(Forbidden, ANA, "propose", handoff_id=draft)
    desk.offered(CLEO, **given("theirs"))
    desk.offered(package=package("needs no human"))
    desk.call("acp/approve", HUMAN, human=True, message_id=first)
    desk.handoff(ANA, "propose", handoff_id=draft)


def test_a_chain_that_is_given_is_the_derived_one(desk: InProcessNode) -> None:
    """§7.1, §7.2 rule 6: it is checked, never taken; an agent's version makes no difference."""
    given = package(provenance={"handoff_chain": [f"{ANA}@1.0.0"]})
    first = desk.accepted(package=given)
    given["provenance"]["handoff_chain"] = [ANA, BEN]
    second = desk.handoff(BEN, "initiate", to=CLEO, reason="r", package=given)["handoff"]
    stored = desk.handoff(CLEO, "get", handoff_id=second["handoffId"])["package"]
    assert stored["provenance"]["handoff_chain"] == [ANA, BEN]
    shown = desk.handoff(BEN, "get", handoff_id=first)["package"]
    assert shown["provenance"]["handoff_chain"] == [ANA]
    assert desk.offered(package=package("other", provenance={"handoff_chain": []}))


@pytest.mark.parametrize(
    ("chain", "place", "expected"),
    [
        ([CLEO], 0, ANA),
        ([CLEO, BEN], 0, ANA),
        ([ANA], 1, BEN),
        ([ANA, CLEO], 1, BEN),
        ([ANA, BEN, CLEO], 2, None),
    ],
)
def test_a_chain_that_differs_is_told_where(
    desk: InProcessNode, chain: list[str], place: int, expected: str | None
) -> None:
    desk.accepted()
    given = package(provenance={"handoff_chain": chain})
    data = desk.refused(InvalidInput, BEN, "initiate", to=CLEO, reason="r", package=given)
    path = f"package.provenance.handoff_chain.{place}"
    assert data == {
        "reason": "chain_differs",
        "path": path,
        "expected": expected,
        "chain": [ANA, BEN],
    }


def test_a_hash_that_is_given_must_be_right(desk: InProcessNode) -> None:
    right = package() | {"verification": {"schema_version": "1.0.0", "package_hash": "0" * 64}}
    data = desk.refused(InvalidInput, ANA, "initiate", to=BEN, reason="r", package=right)
    assert data["reason"] == "hash_mismatch"
    right["verification"]["package_hash"] = data["expected"]
    assert desk.handoff(ANA, "initiate", to=BEN, reason="r", package=right)["handoff"]


def test_the_same_offer_twice_is_one(desk: InProcessNode) -> None:
    given: dict[str, Any] = {"to": BEN, "reason": "r"}
    given["package"] = package() | {"handoff_id": HANDOFF}
    first = desk.handoff(ANA, "initiate", **given)
    assert desk.handoff(ANA, "initiate", **given) == first
    assert len(desk.mail(BEN)) == 1
    for agent, change in ((ANA, {"reason": "other"}), (CLEO, {})):
        data = desk.refused(Conflict, agent, "initiate", **{**given, **change})
        assert data["reason"] == "handoff_id_taken"


def test_a_task_has_one_handoff_at_a_time(desk: InProcessNode) -> None:
    """§7.2 rule 3."""
    first = desk.offered()
    data = desk.refused(Conflict, ANA, "initiate", to=CLEO, reason="r", package=package())
    assert (data["reason"], data["handoffId"]) == ("ownership_conflict", first)
    data = desk.refused(Conflict, BEN, "initiate", to=DORA, reason="r", package=package())
    assert (data["reason"], data["handoffId"]) == ("ownership_conflict", first)


def test_only_the_owner_hands_on(desk: InProcessNode) -> None:
    desk.handoff(BEN, "complete", handoff_id=desk.accepted(), summary="done")
    data = desk.refused(Conflict, ANA, "initiate", to=DORA, reason="r", package=package())
    assert (data["reason"], data["owner"]) == ("ownership_conflict", BEN)
    assert desk.offered(BEN, CLEO)


def test_a_guess_of_a_task_id_tells_no_stranger_whose_it_is(desk: InProcessNode) -> None:
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
    assert refusals == [TAKEN for _ in refusals]


def test_an_owner_hands_on_what_it_accepted(desk: InProcessNode) -> None:
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


def test_what_was_handed_on_comes_back_when_it_is_rejected(desk: InProcessNode) -> None:
    first = desk.accepted()
    due = desk.rows("SELECT due_at FROM handoff_control WHERE handoff_id = ?", first)
    second = desk.offered(BEN, CLEO)
    desk.handoff(CLEO, "reject", handoff_id=second, code="capacity_unavailable", detail="busy")
    assert (desk.status(first), desk.status(second)) == ("activated", "rejected")
    assert desk.rows("SELECT due_at FROM handoff_control WHERE handoff_id = ?", first) == due
    desk.handoff(BEN, "complete", handoff_id=first, summary="done after all")


@pytest.mark.parametrize("receiver", [ANA, BEN])
def test_no_circles(desk: InProcessNode, receiver: str) -> None:
    """§7.2 rule 6."""
    desk.handoff(CLEO, "accept", handoff_id=_second(desk))
    data = desk.refused(Conflict, CLEO, "initiate", to=receiver, reason="r", package=package())
    assert (data["reason"], data["chain"]) == ("handoff_cycle", [ANA, BEN, CLEO])


def _second(desk: InProcessNode) -> str:
    desk.accepted()
    return desk.offered(BEN, CLEO)


def test_not_to_oneself_nor_to_who_is_unknown(desk: InProcessNode) -> None:
    data = desk.refused(InvalidInput, ANA, "initiate", to=f"{ANA}@9", reason="r", package=package())
    assert data["path"] == "to"
    nobody = "aid://example.com/nobody"
    data = desk.refused(NotFound, ANA, "initiate", to=nobody, reason="r", package=package())
    assert data["reason"] == "unknown_recipient"


def test_export_restrictions_hold_at_once(desk: InProcessNode) -> None:
    given = package(policy={"export_restrictions": [BEN]})
    data = desk.refused(Forbidden, ANA, "initiate", to=BEN, reason="r", package=given)
    assert data["reason"] == "policy_violation"


def test_offers_count_for_the_senders_limit(desk: InProcessNode) -> None:
    """§10.3: 10 a minute; what answers them does not count."""
    desk.node = replace(desk.node, acp=MailRules())
    ids = [desk.offered(package=package(f"task-{number}")) for number in range(10)]
    data = desk.refused(RateLimited, ANA, "initiate", to=BEN, reason="r", package=package("more"))
    assert data["reason"] == "rate_limited"
    for handoff_id in ids:
        desk.handoff(BEN, "accept", handoff_id=handoff_id)
        desk.handoff(BEN, "complete", handoff_id=handoff_id, summary="done")


def test_a_draft_is_nobody_elses(desk: InProcessNode) -> None:
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


def test_a_draft_that_is_proposed_takes_the_place_of_what_its_sender_has(
    desk: InProcessNode,
) -> None:
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


def test_a_draft_may_be_discarded(desk: InProcessNode) -> None:
    given: dict[str, Any] = {"to": BEN, "reason": "r", "package": package(), "draft": True}
    draft = desk.handoff(ANA, "initiate", **given)["handoff"]["handoffId"]
    desk.handoff(ANA, "reject", handoff_id=draft, code="other", detail="not needed")
    assert (desk.status(draft), desk.mail(BEN)) == ("rejected", [])


def test_a_receiver_whose_node_takes_no_mail_is_refused(desk: InProcessNode) -> None:
    mesh.put_home(desk.db, BEN, "aid://example.com/beta")
    data = desk.refused(NotFound, ANA, "initiate", to=BEN, reason="r", package=package())
    assert (data["reason"], data["home"]) == ("no_mailbox", "aid://example.com/beta")


def test_a_task_that_another_node_holds_is_not_handed_on_from_here(desk: InProcessNode) -> None:
    """§7.2 rule 3: one node holds who owns it."""
    elsewhere(desk)
    given: dict[str, Any] = {"to": CLEO, "reason": "r", "package": package()}
    data = desk.refused(Conflict, BEN, "initiate", **given)
    assert data == {"reason": "task_elsewhere", "node": BETA, "handoffId": "h1"}
    assert desk.offered(ANA, CLEO), "who was not offered it may have a task of that name"


def test_a_task_elsewhere_is_free_once_its_handoff_has_ended(desk: InProcessNode) -> None:
    elsewhere(desk)
    assert not handoffs.end_elsewhere(desk.db, "h1", "aid://example.com/other")
    desk.refused(Conflict, BEN, "initiate", to=CLEO, reason="r", package=package())
    assert handoffs.end_elsewhere(desk.db, "h1", BETA)
    assert desk.offered(BEN, CLEO)


def test_a_task_of_a_node_that_is_no_peer_any_more_is_free(desk: InProcessNode) -> None:
    elsewhere(desk)
    peers.remove(desk.db, f"{BETA}@1.0.0")
    assert desk.offered(BEN, CLEO)


def elsewhere(desk: InProcessNode) -> None:
    """Beta, a peer, has offered Ben a handoff of task-1."""
    peers.put(desk.db, f"{BETA}@1.0.0", "http://beta.example", "r", "verified", 1)
    handoffs.put_elsewhere(desk.db, "h1", BEN, "task-1", BETA)


# --- whose a task is (§7.2 rule 3) --------------------------------------------------------------


def test_a_task_that_was_withdrawn_is_anybodys(desk: InProcessNode) -> None:
    """An offer takes the task only while it stands."""
    first = desk.offered()
    data = desk.refused(Conflict, CLEO, "initiate", to=DORA, reason="r", package=package())
    assert data == TAKEN
    desk.handoff(ANA, "reject", handoff_id=first, code="other", detail="withdrawn")
    second = desk.accepted(CLEO, ANA)
    shown = desk.handoff(ANA, "get", handoff_id=second)
    assert shown["package"]["provenance"]["handoff_chain"] == [CLEO]


@pytest.mark.parametrize(
    ("who", "action", "given"),
    [
        (BEN, "reject", {"code": "other", "detail": "no"}),
        (COORDINATOR, "reject", {"code": "other", "detail": "no", "operator": True}),
        (ANA, "reject", {"code": "other", "detail": "withdrawn"}),
    ],
)
@pytest.mark.parametrize("gated", [False, True])
def test_what_was_not_accepted_leaves_the_task_free(
    desk: InProcessNode, who: str, action: str, given: dict[str, str], gated: bool
) -> None:
    one = desk.offered(package=package(policy={"requires_human_approval": gated}))
    if gated:
        desk.handoff(BEN, "accept", handoff_id=one)
    desk.handoff(who, action, handoff_id=one, **given)
    assert desk.status(one) == "rejected"
    assert desk.rows("SELECT * FROM tasks") == []
    assert desk.offered(DORA, CLEO)


def test_what_a_check_failed_leaves_the_task_free(desk: InProcessNode) -> None:
    one = desk.offered()
    [(package_json,)] = desk.rows("SELECT package_json FROM handoffs")
    spoilt = orjson.loads(package_json)
    spoilt["task"]["title"] = ""
    desk.db.execute("UPDATE handoffs SET package_json = ?", (orjson.dumps(spoilt).decode(),))
    assert desk.handoff(BEN, "accept", handoff_id=one)["handoff"]["status"] == "rejected"
    assert desk.offered(DORA, CLEO)


def test_who_accepted_owns_the_task_until_the_work_is_taken(desk: InProcessNode) -> None:
    one = desk.accepted()
    desk.handoff(BEN, "complete", handoff_id=one, summary="done")
    for stranger in (ANA, DORA):
        data = desk.refused(Conflict, stranger, "initiate", to=CLEO, reason="r", package=package())
        assert data["reason"] == "ownership_conflict"
    desk.handoff(ANA, "close", handoff_id=one)
    assert desk.rows("SELECT * FROM tasks") == []
    assert desk.accepted(DORA, BEN), "the work is done: its chain is over"


def test_a_task_that_moved_on_is_its_last_owners(desk: InProcessNode) -> None:
    """Closing what is behind does not free it, and a later revocation does not bring that back."""
    first = desk.accepted()
    desk.handoff(BEN, "complete", handoff_id=first, summary="done")
    second = desk.accepted(BEN, CLEO)
    desk.handoff(ANA, "close", handoff_id=first)
    data = desk.refused(Conflict, BEN, "initiate", to=DORA, reason="r", package=package())
    assert data["reason"] == "ownership_conflict"
    desk.handoff(COORDINATOR, "revoke", operator=True, handoff_id=second, detail="Cleo is away")
    assert desk.offered(DORA, ANA)


def test_a_revocation_gives_the_task_back_to_who_had_accepted_it(desk: InProcessNode) -> None:
    desk.handoff(BEN, "complete", handoff_id=desk.accepted(), summary="done")
    second = desk.accepted(BEN, CLEO)
    desk.handoff(COORDINATOR, "revoke", operator=True, handoff_id=second, detail="Cleo is away")
    data = desk.refused(Conflict, ANA, "initiate", to=DORA, reason="r", package=package())
    assert (data["reason"], data["owner"]) == ("ownership_conflict", BEN)
    assert desk.offered(BEN, DORA)


def test_who_may_retry_a_withdrawn_draft_is_its_sender(desk: InProcessNode) -> None:
    """A draft takes nothing, so another may be faster."""
    draft = desk.offered(draft=True)
    other = desk.offered(CLEO, DORA)
    data = desk.refused(Conflict, ANA, "propose", handoff_id=draft)
    assert data == TAKEN
    desk.handoff(CLEO, "reject", handoff_id=other, code="other", detail="withdrawn")
    desk.handoff(ANA, "propose", handoff_id=draft)


def test_drafts_count_as_what_their_sender_sends(desk: InProcessNode) -> None:
    """§12.4: a package is large, and what is kept without being sent has the same limit."""
    desk.node = replace(desk.node, acp=MailRules(limits={"direct": Limit(2, HOUR)}))
    for task in ("one", "two"):
        desk.offered(package=package(task), draft=True)
    given: dict[str, Any] = {"to": BEN, "reason": "r", "draft": True, "package": package("three")}
    assert desk.refused(RateLimited, ANA, "initiate", **given)["kind"] == "direct"
