"""A handoff between agents of two nodes: the node where it was initiated keeps it (acp-canonical
§7.2 rule 3; issue: Done means)."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_mcp_handoff import PACKAGE, step
from tests.scenarios.test_mail import known_both_ways, knows
from tests.support.mail_agent import MailAgent as Worker
from tests.support.mail_agent import agent
from tests.support.mcp_agent import McpAgent, Refused, fact, over_http, over_stdio, run
from tests.support.mesh import Mesh, agent_of, peers
from tests.support.node import Node, RpcError
from tests.support.waiting import eventually


async def told(reader: McpAgent, wanted: str) -> str:
    """The inbox, once it has what is waited for."""
    for _ in range(20):
        shown = await reader.use("acp_inbox", wait=5)
        if wanted in shown:
            return shown
        await reader.use("acp_inbox", ack=re.findall(r"\bid `([^`]+)`", shown))
    raise AssertionError(f"{wanted} did not come:\n{shown}")


def test_a_whole_handoff_over_two_nodes(mesh: Mesh, tmp_path: Path) -> None:
    """The receiver's node is away while it is offered, and the sender's while a step is tried."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    ana, ben = agent(alpha, "ana"), agent(beta, "ben")
    known_both_ways(ana, ben)

    async def offer() -> str:
        async with over_http(alpha, ana.key) as one:
            return await one.fact(
                "handoff_id",
                "acp_handoff",
                action="initiate",
                to=ben.id,
                reason="I am leaving",
                package=PACKAGE,
            )

    beta.stop()
    handoff = run(offer)
    beta.start()

    async def take_over() -> None:
        async with over_stdio(beta.url, tmp_path, ben.key, era="auto") as two:
            offered = await told(two, "`handoff.initiate`")
            assert handoff in offered
            package = await two.use("acp_handoff", action="get", handoff_id=handoff)
            assert f"Data by `{ana.address}" in package
            assert "Call GET /profile" in package
            with pytest.raises(Refused, match="Only its approver or coordinator or sender"):
                await step(two, "close", handoff)
            alpha.kill()
            with pytest.raises(Refused, match="can't be reached"):
                await step(two, "accept", handoff)
            alpha.start()
            assert "Accept or reject the handoff" in await two.use("cacp_attention")
            read = fact("package_hash", package)
            accepted = await step(two, "accept", handoff, package_hash=read)
            assert accepted in ("validating", "accepted")
            assert await step(two, "activate", handoff) == "activated"
            waiting = await two.use("cacp_attention")
            assert "Complete the handoff" in waiting
            assert "Accept or reject the handoff" not in waiting
            done = await step(two, "complete", handoff, summary="The client is written")
            assert done == "completed"
            assert "the handoff" not in await two.use("cacp_attention")

    run(take_over)

    async def close() -> None:
        async with (
            over_http(alpha, ana.key) as one,
            over_stdio(beta.url, tmp_path, ben.key) as two,
        ):
            mail = await one.use("acp_inbox")
            assert "`handoff.accept`" in mail
            assert "The client is written" in mail
            assert await step(one, "close", handoff) == "closed"
            assert "`status.complete`" in await told(two, "`status.complete`")
            history = await two.use("acp_handoff", action="history", handoff_id=handoff)
            assert f"complete → completed by `{ben.id}`" in history

    run(close)
    assert beta.query("SELECT count(*) FROM handoffs") == [(0,)], "one node holds it"
    ((status,),) = alpha.query("SELECT status FROM handoffs WHERE id = ?", handoff)
    assert status == "closed"


def waiting(ana: Worker, ben: Worker) -> str:
    """A handoff from Ana to Ben at another node, which has accepted it, and waits for a human."""
    policy = {"classification": "internal", "requires_human_approval": True}
    whole = PACKAGE | {"policy": policy}
    given = {"action": "initiate", "to": ben.id, "reason": "r", "package": whole}
    handoff = str(ana.call("handoff", **given)["handoff"]["handoffId"])
    eventually(lambda: "handoff.initiate" in [one["type"] for one in ben.inbox()["messages"]])
    accepted = ben.call("handoff", action="accept", handoff_id=handoff)["handoff"]
    assert (accepted["status"], accepted["waitsFor"]) == ("validating", ["human_approval"])
    return handoff


def test_a_human_approves_at_the_receivers_node(mesh: Mesh) -> None:
    """§12.8: where the node that holds the handoff takes that node's word on who is a human."""
    alpha = mesh.add("alpha", acp_human_nodes=agent_of("beta"))
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    ana, ben, hana = agent(alpha, "ana"), agent(beta, "ben"), agent(beta, "hana", human=True)
    known_both_ways(ana, ben)
    eventually(knows(alpha, hana))
    handoff = waiting(ana, ben)
    (listed,) = ben.call("handoff", action="list")["elsewhere"]
    assert (listed["handoffId"], listed["node"]) == (handoff, "aid://example.com/alpha")
    shown = hana.call("handoff", action="get", handoff_id=handoff)
    assert shown["package"]["task"]["title"] == PACKAGE["task"]["title"]
    with pytest.raises(RpcError) as refused:
        ben.call("approve", message_id=handoff)
    assert refused.value.reason == "not_human"
    done = hana.call("approve", message_id=handoff, comment="fine")
    assert (done["outcome"], done["handoff"]["status"]) == ("approved", "accepted")
    history = ana.call("handoff", action="history", handoff_id=handoff)["history"]
    assert (hana.id, "human", "fine") in [
        (one["actor"], one["role"], one.get("detail")) for one in history
    ]
    assert ben.call("handoff", action="activate", handoff_id=handoff)


def test_a_human_elsewhere_is_told_where_to_approve(mesh: Mesh) -> None:
    """By default no node's word is taken on who is a human; a human of the node itself refuses."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    ana, ben, hana = agent(alpha, "ana"), agent(beta, "ben"), agent(beta, "hana", human=True)
    hugh = agent(alpha, "hugh", human=True)
    known_both_ways(ana, ben)
    eventually(knows(alpha, hana))
    handoff = waiting(ana, ben)
    for decision in ("approve", "refuse"):
        with pytest.raises(RpcError) as refused:
            hana.call("approve", message_id=handoff, decision=decision)
        assert (refused.value.code, refused.value.reason) == (-32003, "human_elsewhere")
        assert refused.value.data["node"] == "aid://example.com/alpha"
    done = hugh.call("approve", message_id=handoff, decision="refuse")
    assert done["handoff"]["status"] == "rejected"


def test_a_member_of_the_teamspace_approves_at_its_own_node(mesh: Mesh) -> None:
    """§8.4: neither party is at home there, so the call names the node that holds the handoff."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    ana, ben, lead = agent(alpha, "ana"), agent(alpha, "ben"), agent(alpha, "lead")
    mia = agent(beta, "mia")
    known_both_ways(lead, mia)
    lead.call("team", action="create", team="crew", name="Crew")
    for member, role in ((ben, "executor"), (mia, "integrator")):
        lead.call("team", action="addMember", team="crew", agent_id=member.id, role=role)
    given = {"action": "initiate", "to": ben.id, "reason": "r", "package": PACKAGE}
    handoff = str(ana.call("handoff", team="crew", **given)["handoff"]["handoffId"])
    waits = ben.call("handoff", action="accept", handoff_id=handoff)["handoff"]["waitsFor"]
    assert waits == ["team_approval"]
    step = {"action": "approve", "handoff_id": handoff}
    with pytest.raises(RpcError) as unknown:
        mia.call("handoff", **step)
    assert unknown.value.reason == "not_found"
    with pytest.raises(RpcError) as no_peer:
        mia.call("handoff", node="aid://example.com/nowhere", **step)
    assert no_peer.value.reason == "node_away"
    done = mia.call("handoff", node=agent_of("alpha"), **step)["handoff"]
    assert (done["status"], done["waitsFor"]) == ("accepted", [])


def test_a_handoff_that_came_to_nothing_leaves_the_task_free_at_both_nodes(mesh: Mesh) -> None:
    """§7.2 rule 3: whoever ended it, and wherever."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    ana, abe = agent(alpha, "ana"), agent(alpha, "abe")
    ben, bea = agent(beta, "ben"), agent(beta, "bea")
    known_both_ways(ana, ben)

    why = {"code": "other", "detail": "no"}
    for rejects in (ben, ana):
        handoff = offered(ana, ben)
        eventually(partial(is_listed, ben, handoff))
        assert not may_offer(ben, bea)
        rejects.call("handoff", action="reject", handoff_id=handoff, **why)
        eventually(lambda: may_offer(ben, bea))
        assert may_offer(abe, ben)


def offered(sender: Worker, receiver: Worker) -> str:
    given = {"action": "initiate", "to": receiver.id, "reason": "r", "package": PACKAGE}
    return str(sender.call("handoff", **given)["handoff"]["handoffId"])


def is_listed(receiver: Worker, handoff: str) -> bool:
    return handoff in str(receiver.call("handoff", action="list"))


def may_offer(sender: Worker, receiver: Worker) -> bool:
    """Whether it may; what it offered is withdrawn."""
    try:
        handoff = offered(sender, receiver)
    except RpcError as refused:
        if refused.reason != "task_elsewhere":
            raise
        return False
    sender.call("handoff", action="reject", handoff_id=handoff, code="other", detail="no")
    return True


# --- evidence -----------------------------------------------------------------------------------

EVIDENCE = {"commands": [{"command": "make test", "commit": "a" * 40, "exit_code": 0}]}


def test_the_receivers_node_asks_for_evidence(mesh: Mesh) -> None:
    """Design-next N2: whichever node holds the handoff, the receiver's decides on what it accepts,
    by the checks that were made there."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha, handoff_evidence="checked")
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    ana, ben = agent(alpha, "ana"), agent(beta, "ben")
    known_both_ways(ana, ben)
    offered_to_ben = {"action": "initiate", "to": ben.id, "reason": "r"}
    made = ana.call("handoff", **offered_to_ben, package=claiming(PACKAGE, EVIDENCE))
    handoff, digest = made["handoff"]["handoffId"], made["handoff"]["packageHash"]
    eventually(partial(is_listed, ben, handoff))
    (item,) = [each for each in attention(beta, ben) if each["kind"] == "handoff"]
    assert "only when its evidence holds" in item["detail"]["waitsFor"]
    shown = ben.call("handoff", action="get", handoff_id=handoff)
    assert (shown["evidence"]["standing"], shown["evidence"]["required"]) == ("claimed", True)
    assert "It can't be accepted yet" in shown["nextStep"]

    accept = {"action": "accept", "handoff_id": handoff}
    for given in (accept, accept | {"package_hash": digest}):
        assert refused(ben, **given) == "evidence_unchecked"
    assert refused(ben, **accept | {"package_hash": "0" * 64}) == "hash_mismatch"
    other = {"handoff_id": handoff, "package_hash": "0" * 64, "commands": [{"exit_code": 0}]}
    ben.call("handoff/check", **other)
    assert refused(ben, **accept) == "evidence_unchecked", "that was of another package"
    assert ana.call("handoff", action="get", handoff_id=handoff)["handoff"]["status"] == "proposed"

    ben.call("handoff/check", **other | {"package_hash": digest})
    checked = ben.call("handoff", action="get", handoff_id=handoff)["evidence"]
    assert (checked["standing"], checked["checkedBy"]) == ("checked", ben.address)
    assert ben.call("handoff", **accept)["handoff"]["status"] == "accepted"
    assert alpha.query("SELECT count(*) FROM handoff_checks") == [(0,)]
    with pytest.raises(RpcError) as stranger:
        agent(beta, "bea").call("handoff/check", **other)
    assert stranger.value.reason == "not_found"


def test_word_of_another_node_is_not_evidence(mesh: Mesh) -> None:
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha, handoff_evidence="checked")
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    ana, ben = agent(alpha, "ana"), agent(beta, "ben")
    known_both_ways(ana, ben)
    offered_to_ben = {"action": "initiate", "to": ben.id, "reason": "r"}
    for evidence, reason in ((None, "evidence_missing"), (UNKNOWN, "evidence_unproven")):
        made = ana.call("handoff", **offered_to_ben, package=claiming(PACKAGE, evidence))
        handoff = made["handoff"]["handoffId"]
        eventually(partial(is_listed, ben, handoff))
        assert refused(ben, action="accept", handoff_id=handoff) == reason
        ben.call("handoff", action="reject", handoff_id=handoff, code="other", detail="no proof")
    handoff = offered(ana, ben)
    eventually(partial(is_listed, ben, handoff))
    taken = ben.call("handoff", action="accept", handoff_id=handoff)["handoff"]
    assert taken["status"] == "accepted", "it claims nothing"


UNKNOWN = {"receipts": [{"contract_id": "c", "signature": "A" * 86 + "=="}]}


def claiming(whole: dict[str, Any], evidence: Any) -> dict[str, Any]:
    """The package, whose tests are said to pass."""
    work = whole["work_state"] | {"test_status": "passing"}
    return whole | {"work_state": work | ({"test_evidence": evidence} if evidence else {})}


def refused(agent: Worker, **call: Any) -> str:
    with pytest.raises(RpcError) as error:
        agent.call("handoff", **call)
    return str(error.value.reason)


def attention(node: Node, agent: Worker) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = node.call("cacp/attention/list", key=agent.key)["items"]
    return items
