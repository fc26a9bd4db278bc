"""Which node is asked about a handoff, and with which call (acp-canonical §7.2 rule 3)."""

from typing import Any

import pytest
from uuid_utils import uuid7

from server.domain.acp.handoff import HeldElsewhere
from server.domain.errors import Conflict, Forbidden, NotFound
from server.store import handoffs
from tests.support.in_process_node import BEN, CLEO, HUMAN, InProcessNode, package
from tests.support.node import AGENT

FAR = "aid://example.com/far"
OTHER = "aid://example.com/other"


def known(desk: InProcessNode, *nodes: str) -> str:
    """A handoff that these nodes have offered, to Ben, Cleo, …"""
    handoff = str(uuid7())
    for node, agent in zip(nodes, (BEN, CLEO), strict=False):
        handoffs.put_elsewhere(desk.db, handoff, agent, "t", node)
    return handoff


def asked(
    desk: InProcessNode, method: str, agent: str, *, human: bool = False, **given: Any
) -> Any:
    result = desk.call(method, agent, human=human, **given)
    assert isinstance(result, HeldElsewhere)
    return result


def test_whom_it_was_offered_to_is_led_there(desk: InProcessNode) -> None:
    handoff = known(desk, FAR)
    call = asked(desk, "acp/handoff", BEN, action="get", handoff_id=handoff)
    assert (call.node, call.agent, call.human) == (FAR, BEN, False)
    assert call.call == {"action": "get", "handoff_id": handoff}
    assert call.result({"handoff": "as it is"}) == {"handoff": "as it is"}
    desk.refused(NotFound, CLEO, "get", handoff_id=handoff)


def test_who_names_the_node_is_led_there(desk: InProcessNode) -> None:
    """The node's name is for this one alone."""
    handoff = str(uuid7())
    named = f"{FAR}@1.0.0"
    call = asked(desk, "acp/handoff", CLEO, action="approve", handoff_id=handoff, node=named)
    assert (call.node, call.call) == (FAR, {"action": "approve", "handoff_id": handoff})
    desk.refused(NotFound, CLEO, "get", handoff_id=handoff, node=AGENT)


def test_a_human_decides_on_what_was_offered_to_others(desk: InProcessNode) -> None:
    handoff = known(desk, FAR)
    call = asked(desk, "acp/handoff", HUMAN, human=True, action="get", handoff_id=handoff)
    assert (call.node, call.human) == (FAR, True)
    call = asked(desk, "acp/approve", HUMAN, human=True, message_id=handoff, comment="  ")
    assert call.call == {"action": "approve", "handoff_id": handoff}
    assert call.result({"handoff": "h"}) == {
        "handoff": "h",
        "receipts": [],
        "outcome": "approved",
    }
    given: dict[str, Any] = {"message_id": handoff, "decision": "refuse"}
    call = asked(desk, "acp/approve", HUMAN, human=True, **given)
    assert call.call == {
        "action": "reject",
        "handoff_id": handoff,
        "code": "other",
        "detail": "refused by a human",
    }
    assert call.result({})["outcome"] == "refused"
    given["comment"] = "not now"
    call = asked(desk, "acp/approve", HUMAN, human=True, **given)
    assert call.call["detail"] == "not now"
    with pytest.raises(Forbidden):
        desk.call("acp/approve", BEN, message_id=handoff)


def test_a_human_says_which_of_several_is_meant(desk: InProcessNode) -> None:
    """A peer that offers the id of another's handoff gets no approval that was not meant for it."""
    handoff = known(desk, OTHER, FAR)
    with pytest.raises(Conflict) as refused:
        desk.call("acp/approve", HUMAN, human=True, message_id=handoff)
    assert refused.value.data == {"reason": "held_at_several", "nodes": [FAR, OTHER]}
    given: dict[str, Any] = {"action": "approve", "handoff_id": handoff, "node": FAR}
    assert asked(desk, "acp/handoff", HUMAN, human=True, **given).node == FAR


def test_what_is_held_here_is_decided_here(desk: InProcessNode) -> None:
    handoff = desk.offered(package=package(policy={"requires_human_approval": True}))
    desk.run(lambda ctx: handoffs.put_elsewhere(ctx.db, handoff, CLEO, "t", FAR))
    done = desk.call("acp/approve", HUMAN, human=True, message_id=handoff, comment=" ")
    assert done["outcome"] == "approved"
