"""What a node's answer to a forwarded step becomes here."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from peers.errors import CallError, NotConnected, PeerRefused, PeerUnreachable
from server.domain.acp.handoff import HeldElsewhere, package_hash
from server.domain.errors import Conflict, Forbidden, IllegalTransition, NodeAway
from server.mesh.handoff_forwarder import KINDS, accept_checked, forward
from server.mesh.mesh_channel import MeshChannel
from tests.support.in_process_node import package

NODE = "aid://example.com/alpha"
CALL = HeldElsewhere("h1", NODE, "aid://a/ben", {"action": "get"})


class Link:
    """Answers one call, or fails."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def ask(self, method: str, **params: Any) -> Any:
        self.asked.append((method, params))
        if isinstance(self.answer, CallError):
            raise self.answer
        return self.answer


def forwarded(answer: Any) -> Any:
    return asyncio.run(forward(cast(MeshChannel, Link(answer)), CALL))


def refusal(kind: str, message: str = "no", /, **data: Any) -> dict[str, Any]:
    return {"refusal": {"kind": kind, "message": message, "data": data}}


def test_the_answer_is_handed_through() -> None:
    link = Link({"answer": {"nextStep": "Nothing is yours to do."}})
    given = asyncio.run(forward(cast(MeshChannel, link), CALL))
    assert given == {"nextStep": "Nothing is yours to do."}
    asked = {"agent": "aid://a/ben", "call": {"action": "get"}}
    assert link.asked == [("acp/sync/handoff", asked)]


def test_what_another_node_says_of_evidence_is_left_out() -> None:
    """An answer without a package too."""
    worth = {"standing": "proven", "required": False, "commands": [], "receipts": []}
    assert forwarded({"answer": {"nextStep": "n", "evidence": worth}}) == {"nextStep": "n"}


def test_a_human_is_told_of_and_the_caller_has_its_own_result() -> None:
    call = HeldElsewhere("h1", NODE, "aid://a/hugh", {"action": "approve"}, True, "approved")
    link = Link({"answer": {"nextStep": "n"}})
    approved: dict[str, Any] = {"handoff": None, "receipts": [], "outcome": "approved"}
    assert asyncio.run(forward(cast(MeshChannel, link), call)) == approved
    asked = {"agent": "aid://a/hugh", "call": {"action": "approve"}, "human": True}
    assert link.asked == [("acp/sync/handoff", asked)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_is_the_one_that_the_agent_would_have_had_there(kind: str) -> None:
    with pytest.raises(KINDS[kind]) as refused:  # type: ignore[index]
        forwarded(refusal(kind, "It is so", reason="wrong_party", needs=["sender"]))
    assert type(refused.value).__name__ == kind
    assert refused.value.message == "It is so"
    assert refused.value.data == {"reason": "wrong_party", "needs": ["sender"]}


def test_what_another_node_says_is_cleaned_and_bounded() -> None:
    with pytest.raises(Conflict) as refused:
        forwarded(refusal("Conflict", "\x1b[31mred\n" + "x" * 9_000, deep={"a": [[]]}, message="m"))
    assert refused.value.message.startswith("red x")
    assert len(refused.value.message) == 2_000
    assert refused.value.data == {"reason": "conflict", "message": "m"}
    over: dict[str, Any] = {"from": "closed", "allowed": []}
    with pytest.raises(IllegalTransition) as other:
        forwarded(refusal("IllegalTransition", "no", **over))
    assert other.value.data["from"] == "closed"


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (NotConnected("can't be reached"), False),
        (PeerRefused("refuses", status=200, code=-32601), False),
        (PeerRefused("refuses", status=200, code=-32000), False),
        (PeerUnreachable("closed the connection"), True),
        ({"answer": {"what": "ever"}}, True),
        ({"refusal": {"kind": "Refusal", "message": "m", "data": {}}}, True),
        ({}, True),
        ([], True),
    ],
)
def test_no_useful_answer_says_whether_the_step_may_have_been_taken(
    answer: Any, sent: bool
) -> None:
    with pytest.raises(NodeAway) as away:
        forwarded(answer)
    assert (away.value.data["mayHaveHappened"], away.value.data["node"]) == (sent, NODE)
    assert ("Nothing was changed" in away.value.message) is not sent


def test_a_node_that_is_no_peer_is_not_asked() -> None:
    with pytest.raises(NodeAway, match="not a peer"):
        asyncio.run(forward(None, CALL))


def test_a_node_that_does_not_take_our_word_is_named() -> None:
    error = PeerRefused("refuses", status=200, code=-32003, data={"reason": "not_its_home"})
    with pytest.raises(Forbidden) as refused:
        forwarded(error)
    assert refused.value.data == {"reason": "not_its_home", "node": NODE}


# --- accepting what is checked first ------------------------------------------------------------

ACCEPT = HeldElsewhere("h1", NODE, "aid://a/ben", {"action": "accept", "handoff_id": "h1"})
WHOLE = package(work_state={"test_status": "passing"}) | {
    "protocol": "acp",
    "version": "1.0.0",
    "handoff_id": "01a200d3-c0e1-7539-b1a1-fddaebe9d751",
    "thread_id": "t",
    "verification": {"schema_version": "1.0.0", "package_hash": "0" * 64},
}


def accepted(link: Link, call: HeldElsewhere, checked: list[Any], problem: Any = None) -> Any:
    async def check(package: Any) -> None:
        checked.append(package)
        if problem is not None:
            raise problem

    return asyncio.run(accept_checked(cast(MeshChannel, link), call, check))


def test_the_package_is_read_before_it_is_accepted_and_no_other_is() -> None:
    link, checked = Link({"answer": {"package": WHOLE}}), list[Any]()
    accepted(link, ACCEPT, checked)
    assert checked == [WHOLE]
    digest = package_hash(WHOLE)
    assert [asked["call"] for _, asked in link.asked] == [
        {"action": "get", "handoff_id": "h1"},
        {"action": "accept", "handoff_id": "h1", "package_hash": digest},
    ]
    assert digest != WHOLE["verification"]["package_hash"], "what that node says of it is not asked"


def test_what_does_not_pass_is_not_sent_on() -> None:
    for call, problem, reason in (
        (ACCEPT, Conflict("no", reason="evidence_unchecked"), "evidence_unchecked"),
        (replace(ACCEPT, call=ACCEPT.call | {"package_hash": "0" * 64}), None, "hash_mismatch"),
    ):
        link = Link({"answer": {"package": WHOLE}})
        with pytest.raises(Conflict) as refused:
            accepted(link, call, [], problem)
        assert refused.value.data["reason"] == reason
        assert [asked["call"]["action"] for _, asked in link.asked] == ["get"]


def test_without_a_package_nothing_is_accepted() -> None:
    link = Link({"answer": {"nextStep": "n"}})
    with pytest.raises(NodeAway, match="answers without the package"):
        accepted(link, ACCEPT, [])
    assert len(link.asked) == 1
