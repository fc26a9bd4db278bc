"""acp/handoff/check, and acceptance that waits for it (design-next N2)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from server.domain.acp.handoff import HandoffRules
from server.domain.errors import Conflict, Forbidden, InvalidInput, NotFound, Refusal
from server.methods.handoff.automatic import expire
from tests.support.in_process_node import ANA, BEN, CLEO, HOUR, HUMAN, InProcessNode, package

COMMIT = "a" * 40
RUN = {"command": "make test", "commit": COMMIT, "exit_code": 0}
HELD: list[Any] = [{"exit_code": 0}]
FAILED: list[Any] = [{"exit_code": 1}]
UNTRIED: list[Any] = [{"detail": "no such commit"}]


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[InProcessNode]:
    """A node that asks for evidence."""
    with InProcessNode(tmp_path, rules=HandoffRules(asks_evidence=True)) as desk:
        yield desk


def passing(**evidence: Any) -> dict[str, Any]:
    work_state: dict[str, Any] = {"test_status": "passing"}
    return package(work_state=work_state | ({"test_evidence": evidence} if evidence else {}))


def hash_of(desk: InProcessNode, handoff_id: str, agent: str = BEN) -> str:
    return str(desk.handoff(agent, "get", handoff_id=handoff_id)["handoff"]["packageHash"])


def check(desk: InProcessNode, handoff_id: str, commands: list[Any], agent: str = BEN) -> Any:
    given: Any = {"handoff_id": handoff_id, "package_hash": hash_of(desk, handoff_id)}
    return desk.call("acp/handoff/check", agent, commands=commands, **given)


def evidence(desk: InProcessNode, handoff_id: str, agent: str = BEN) -> Any:
    return desk.handoff(agent, "get", handoff_id=handoff_id).get("evidence")


def waiting(desk: InProcessNode, agent: str = BEN) -> list[Any]:
    items: list[Any] = desk.call("cacp/attention/list", agent)["items"]
    return [item for item in items if item["kind"] == "handoff"]


# --- what accepting asks for --------------------------------------------------------------------


def test_accepting_waits_for_a_check_that_holds(strict: InProcessNode) -> None:
    handoff_id = strict.offered(package=passing(commands=[RUN]))
    data = strict.refused(Conflict, BEN, "accept", handoff_id=handoff_id)
    assert data == {"reason": "evidence_unchecked", "handoffId": handoff_id}
    assert strict.status(handoff_id) == "proposed"
    for commands, reason in ((UNTRIED, "evidence_unchecked"), (FAILED, "evidence_failed")):
        assert check(strict, handoff_id, commands)["holds"] is False
        assert strict.refused(Conflict, BEN, "accept", handoff_id=handoff_id)["reason"] == reason
    assert check(strict, handoff_id, HELD)["holds"] is True
    accepted = strict.handoff(BEN, "accept", handoff_id=handoff_id)["handoff"]
    assert accepted["status"] == "accepted"
    assert strict.handoff(BEN, "accept", handoff_id=handoff_id)["handoff"]["status"] == "accepted"


def test_word_alone_is_not_accepted_and_can_be_rejected(strict: InProcessNode) -> None:
    handoff_id = strict.offered(package=passing())
    data = strict.refused(Conflict, BEN, "accept", handoff_id=handoff_id)
    assert data["reason"] == "evidence_missing"
    strict.handoff(BEN, "reject", handoff_id=handoff_id, code="other", detail="no evidence")
    assert strict.status(handoff_id) == "rejected"


@pytest.mark.parametrize("status", ["failing", "untested", None])
def test_who_claims_nothing_is_accepted_as_before(strict: InProcessNode, status: Any) -> None:
    work_state = {} if status is None else {"test_status": status}
    handoff_id = strict.offered(package=package(work_state=work_state))
    assert evidence(strict, handoff_id) is None
    strict.handoff(BEN, "accept", handoff_id=handoff_id)
    assert strict.status(handoff_id) == "accepted"


def test_other_nodes_accept_word_and_show_what_it_is(desk: InProcessNode) -> None:
    handoff_id = desk.offered(package=passing())
    shown = evidence(desk, handoff_id)
    assert (shown["standing"], shown["required"]) == ("word", False)
    assert "It can't be accepted" not in desk.handoff(BEN, "get", handoff_id=handoff_id)["nextStep"]
    desk.handoff(BEN, "accept", handoff_id=handoff_id)
    assert desk.status(handoff_id) == "accepted"


def test_a_receipt_that_the_node_does_not_know_proves_nothing(strict: InProcessNode) -> None:
    named = {"contract_id": "nothing", "signature": "A" * 86 + "=="}
    handoff_id = strict.offered(package=passing(receipts=[named]))
    (shown,) = evidence(strict, handoff_id)["receipts"]
    assert (shown["outcome"], shown["detail"]) == (
        "unknown",
        "this node does not know the contract",
    )
    data = strict.refused(Conflict, BEN, "accept", handoff_id=handoff_id)
    assert data["reason"] == "evidence_unproven"


def test_the_offer_still_expires(strict: InProcessNode) -> None:
    """Nothing hangs because nobody checks."""
    handoff_id = strict.offered(package=passing(commands=[RUN]))
    strict.now += 73 * HOUR
    assert strict.run(lambda ctx: expire(ctx, handoff_id))
    assert strict.status(handoff_id) == "rejected"


# --- who sees what ------------------------------------------------------------------------------


def test_attention_says_that_the_check_is_what_waits(strict: InProcessNode) -> None:
    handoff_id = strict.offered(package=passing(commands=[RUN]))
    (item,) = waiting(strict)
    assert item["summary"].startswith("Check the evidence of the handoff")
    assert f"cacp handoff check {handoff_id}" in item["detail"]["waitsFor"]
    assert [step["method"] for step in item["next"]] == ["acp/handoff/check", "acp/handoff"]
    assert item["next"][1]["params"]["action"] == "reject"
    check(strict, handoff_id, FAILED)
    (failed,) = waiting(strict)
    assert failed["id"] != item["id"]
    check(strict, handoff_id, HELD)
    (then,) = waiting(strict)
    assert then["summary"].startswith("Accept or reject the handoff")
    assert then["next"][0]["params"]["action"] == "accept"
    assert len({item["id"], failed["id"], then["id"]}) == 3
    strict.handoff(BEN, **then["next"][0]["params"])
    assert strict.status(handoff_id) == "accepted"


def test_a_human_who_receives_is_told_too(strict: InProcessNode) -> None:
    policy = {"requires_human_approval": True}
    handoff_id = strict.offered(
        receiver=HUMAN,
        package=passing(commands=[RUN]) | {"policy": {"classification": "internal"} | policy},
    )
    items = strict.call("cacp/attention/list", HUMAN, human=True)["items"]
    (item,) = [each for each in items if each["kind"] == "handoff"]
    assert f"cacp handoff check {handoff_id}" in item["detail"]["waitsFor"]


def test_without_evidence_only_rejecting_is_left(strict: InProcessNode) -> None:
    strict.offered(package=passing())
    (item,) = waiting(strict)
    assert [step["params"]["action"] for step in item["next"]] == ["reject"]


def test_the_check_is_in_the_history_and_the_view(strict: InProcessNode) -> None:
    with_digest = RUN | {"output_digest": "b" * 64}
    handoff_id = strict.offered(package=passing(commands=[with_digest]))
    before = strict.handoff(BEN, "get", handoff_id=handoff_id)
    assert "You may now: reject. It can't be accepted yet: the package says" in before["nextStep"]
    assert before["evidence"]["commands"] == [
        {"command": "make test", "commit": COMMIT, "outcome": "unchecked"}
    ]
    check(strict, handoff_id, [{"exit_code": 0, "output_digest": "c" * 64}])
    shown = evidence(strict, handoff_id, ANA)
    assert shown["required"] is False, "it is for the receiver"
    assert (shown["standing"], shown["checkedBy"]) == ("checked", BEN)
    assert shown["commands"][0] | {"command": ""} == {
        "command": "",
        "commit": COMMIT,
        "outcome": "held",
        "exitCode": 0,
        "sameOutput": False,
    }
    history = strict.handoff(ANA, "history", handoff_id=handoff_id)["history"]
    last = history[-1]
    assert (last["step"], last["role"], last["detail"]) == (
        "check",
        "receiver",
        "the evidence holds",
    )


# --- who may check what -------------------------------------------------------------------------


def refused(desk: InProcessNode, kind: type[Refusal], agent: str, **params: Any) -> str:
    before = desk.rows("SELECT * FROM handoff_checks")
    with pytest.raises(kind) as error:
        desk.call("acp/handoff/check", agent, **params)
    assert desk.rows("SELECT * FROM handoff_checks") == before
    return str(error.value.data["reason"])


def test_only_the_receiver_or_a_human_checks(strict: InProcessNode) -> None:
    handoff_id = strict.offered(package=passing(commands=[RUN]))
    given = {
        "handoff_id": handoff_id,
        "package_hash": hash_of(strict, handoff_id),
        "commands": HELD,
    }
    assert refused(strict, NotFound, CLEO, **given) == "not_found"
    assert refused(strict, Forbidden, ANA, **given) == "wrong_party"
    assert refused(strict, Forbidden, CLEO, operator=True, **given) == "wrong_party"
    assert refused(strict, Forbidden, ANA, human=True, **given) == "wrong_party"
    strict.call("acp/handoff/check", HUMAN, human=True, **given)
    assert evidence(strict, handoff_id)["checkedBy"] == HUMAN
    strict.handoff(BEN, "accept", handoff_id=handoff_id)
    assert refused(strict, Conflict, BEN, **given) == "not_waiting"


def test_a_check_is_of_the_package_as_it_is(strict: InProcessNode) -> None:
    handoff_id = strict.offered(package=passing(commands=[RUN, RUN]))
    given: dict[str, Any] = {
        "handoff_id": handoff_id,
        "package_hash": hash_of(strict, handoff_id),
        "commands": HELD * 2,
    }
    other = given | {"package_hash": "0" * 64}
    assert refused(strict, Conflict, BEN, **other) == "hash_mismatch"
    for count in (1, 3):
        wrong = given | {"commands": HELD * count}
        assert refused(strict, InvalidInput, BEN, **wrong) == "invalid_params"
    with pytest.raises(ValidationError):
        strict.call("acp/handoff/check", BEN, **given | {"commands": []})


def test_evidence_that_was_edited_after_the_check_is_unchecked(strict: InProcessNode) -> None:
    """And is found out by its hash, where a node lets it pass."""
    handoff_id = strict.offered(package=passing(commands=[RUN]))
    check(strict, handoff_id, HELD)
    strict.db.execute("BEGIN IMMEDIATE")
    strict.db.execute(
        "UPDATE handoffs SET package_json = replace(package_json, 'make test', 'make tost')"
    )
    strict.db.execute("COMMIT")
    data = strict.refused(Conflict, BEN, "accept", handoff_id=handoff_id)
    assert data["reason"] == "evidence_unchecked"
