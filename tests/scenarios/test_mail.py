"""Mail between nodes: it arrives once, in order, and its receipts come back (issue: across nodes;
acp-canonical §10, §12)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.mail_agent import MailAgent, agent, soon
from tests.support.mesh import Mesh, peers
from tests.support.node import Node, RpcError
from tests.support.waiting import eventually


def two(mesh: Mesh, **settings: object) -> tuple[Node, Node]:
    alpha = mesh.add("alpha", acp_direct_per_minute=10, **settings)
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    return alpha, beta


def knows(node: Node, *agents: MailAgent) -> Callable[[], bool]:
    """Whether a node has heard who they are at home with."""
    marks = ",".join("?" * len(agents))
    query = f"SELECT count(*) FROM homes WHERE agent IN ({marks})"
    return lambda: node.query(query, *(one.address for one in agents)) == [(len(agents),)]


def known_both_ways(one: MailAgent, other: MailAgent) -> None:
    eventually(knows(one.node, other))
    eventually(knows(other.node, one))


def reads(reader: MailAgent, message_id: str) -> None:
    eventually(lambda: message_id in reader.received())
    reader.call("ack", message_ids=[message_id])


def has(sender: MailAgent, message_id: str, **wanted: str) -> Callable[[], bool]:
    return lambda: sorted(sender.receipts(message_id).values()) == sorted(wanted.values())


def test_messages_and_receipts_go_both_ways(mesh: Mesh) -> None:
    alpha, beta = two(mesh)
    ann, bob, carl = agent(alpha, "ann"), agent(beta, "bob"), agent(beta, "carl")
    boss = agent(alpha, "boss", human=True)
    known_both_ways(ann, bob)
    eventually(knows(alpha, carl))

    sent = ann.send(bob, carl)["message"]
    assert ann.receipts(sent["id"]) == {bob.address: "pending", carl.address: "pending"}
    eventually(lambda: sent["id"] in bob.received())
    eventually(lambda: ann.receipts(sent["id"])[bob.address] == "delivered")
    bob.call("ack", message_ids=[sent["id"]])
    eventually(lambda: ann.receipts(sent["id"])[bob.address] == "read")
    assert ann.receipts(sent["id"])[carl.address] == "pending", "carl has not looked"
    assert alpha.query("SELECT count(*) FROM mailboxes WHERE address = ?", bob.address) == [(0,)]

    # The answer goes to all who were written to, wherever they are.
    (got,) = carl.inbox()["messages"]
    assert {name: got[name] for name in ("from", "to", "payload", "thread_id", "created_at")} == {
        name: sent[name] for name in ("from", "to", "payload", "thread_id", "created_at")
    }
    text = carl.inbox(format="markdown")["text"]
    assert "aid://example.com/alpha" in text, "who vouches for the sender is named"
    (found,) = carl.call("query", message_id=sent["id"])["messages"]
    assert found["vouchedBy"] == "aid://example.com/alpha"
    answer = carl.call(
        "respond",
        message_id=sent["id"],
        type="knowledge.push",
        payload={"summary": "aha"},
        to_all=True,
    )["message"]
    assert answer["thread_id"] == sent["thread_id"]
    reads(ann, answer["id"])
    eventually(lambda: carl.receipts(answer["id"])[ann.address] == "read")

    # What waits for a human doesn't leave before it may.
    gated = ann.send(bob, policy={"human_gate": "required"})["message"]
    after = ann.send(bob)["message"]
    eventually(lambda: after["id"] in bob.received())
    assert gated["id"] not in bob.received()
    assert beta.query("SELECT count(*) FROM messages WHERE id = ?", gated["id"]) == [(0,)]
    boss.call("approve", message_id=gated["id"])
    eventually(lambda: gated["id"] in bob.received())

    # Everyone is everyone, once each, and the limit is counted where it is sent.
    shout = boss.send(to=["*"], priority="high")["message"]
    eventually(lambda: shout["id"] in bob.received() and shout["id"] in carl.received())
    eventually(lambda: shout["id"] in ann.received())
    assert {bob.address, carl.address, ann.address} <= set(boss.receipts(shout["id"]))
    assert beta.query("SELECT count(*) FROM send_rates WHERE sender = ?", boss.address) == [(0,)]

    with pytest.raises(RpcError) as unknown:
        ann.call("send", to=["aid://a/none@1.0.0"], type="system.ack", payload={})
    assert unknown.value.reason in ("unknown_recipient", "schema_invalid")


def test_numbered_turns_of_a_thread_go_on_between_nodes(mesh: Mesh) -> None:
    """§12.5: who was sent a turn takes the next one, at whichever node; so do negotiations."""
    alpha, beta = two(mesh)
    ann, bob = agent(alpha, "ann"), agent(beta, "bob")
    known_both_ways(ann, bob)
    place: dict[str, str] = {}
    for sequence in range(1, 5):
        sender, reader = (ann, bob) if sequence % 2 else (bob, ann)
        sent = sender.send(reader, sequence=sequence, **place)["message"]
        place = {"thread_id": sent["thread_id"]}
        reads(reader, sent["id"])


def test_mail_waits_for_a_node_that_is_away(mesh: Mesh) -> None:
    """A peer that is down for long: mail is kept, expires here, and catches up in order."""
    alpha, beta = two(mesh)
    ann, bob = agent(alpha, "ann"), agent(beta, "bob")
    known_both_ways(ann, bob)
    beta.stop()
    first = ann.send(bob)["message"]
    # What has been offered to its node is that node's to let expire.
    eventually(lambda: '"mail_down"' in alpha.log)
    short = ann.send(bob, expires_at=soon(3))["message"]
    rest = [ann.send(bob, thread_id=first["thread_id"])["message"] for _ in range(4)]
    alpha.kill()
    alpha.start()
    eventually(has(ann, short["id"], bob="expired"))
    letters = ann.call("deadLetters")["letters"]
    assert [one["message"]["id"] for one in letters] == [short["id"]]
    [peer] = peers(alpha)
    assert peer["sync"]["mail"] >= 5, "the backlog is shown"
    beta.start()
    wanted = [first["id"], *(one["id"] for one in rest)]
    eventually(lambda: bob.received() == wanted)
    eventually(lambda: peers(alpha)[0]["sync"]["mail"] == 0)
    for message_id in wanted:
        reads(bob, message_id)
    eventually(has(ann, wanted[-1], bob="read"))


def test_a_node_killed_at_any_moment_loses_no_mail_and_doubles_none(mesh: Mesh) -> None:
    """kill -9 between commit and send, and between apply and answer."""
    alpha, beta = two(mesh)
    ann, bob = agent(alpha, "ann"), agent(beta, "bob")
    known_both_ways(ann, bob)
    there, back = [], []
    for number in range(4):
        there.append(ann.send(bob)["message"]["id"])
        back.append(bob.send(ann)["message"]["id"])
        victim = alpha if number % 2 else beta
        victim.kill()
        victim.start()
    eventually(lambda: bob.received() == there)
    eventually(lambda: ann.received() == back)
    for message_id in there:
        bob.call("ack", message_ids=[message_id])
        alpha.kill()
        alpha.start()
    for message_id in there:
        eventually(has(ann, message_id, bob="read"))
    counts: dict[str, Any] = bob.inbox()["counts"]
    assert (counts["received"], counts["read"]) == (4, 4)


def test_mail_goes_to_the_recipients_nodes_and_through_no_other(mesh: Mesh) -> None:
    """Alpha and gamma both know beta only: beta's mail reaches both, theirs not each other."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    gamma = mesh.add("gamma", beta)
    ann, bob, gus = agent(alpha, "ann"), agent(beta, "bob"), agent(gamma, "gus")
    known_both_ways(ann, bob)
    known_both_ways(gus, bob)
    shout = bob.send(to=["*"], priority="high")["message"]["id"]
    for reader in (ann, gus):
        reads(reader, shout)
    eventually(lambda: {bob.receipts(shout)[one.address] for one in (ann, gus)} == {"read"})
    secret = bob.send(ann)["message"]["id"]
    eventually(lambda: secret in ann.received())
    assert gamma.query("SELECT count(*) FROM messages WHERE id = ?", secret) == [(0,)]
    with pytest.raises(RpcError) as refused:
        ann.send(gus)
    assert refused.value.reason == "unknown_recipient"
    # Once they are peers, it goes.
    alpha.stop()
    alpha.settings["peers"] = gamma.url
    alpha.start()
    eventually(knows(alpha, gus))
    direct = ann.send(gus)["message"]["id"]
    reads(gus, direct)
    eventually(lambda: ann.receipts(direct)[gus.address] == "read")
    assert beta.query("SELECT count(*) FROM messages WHERE id = ?", direct) == [(0,)]
