"""Mail on a disk that is full: what was acknowledged is there, the rest is refused by name, reads
go on, and it mends itself (acp-canonical §12.6)."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.disk import full, health, small_disk
from tests.acceptance.test_mcp_handoff import PACKAGE
from tests.scenarios.test_mail import known_both_ways
from tests.support.mail_agent import MailAgent, agent
from tests.support.mcp_agent import Refused, over_http, run
from tests.support.mesh import Mesh, peers
from tests.support.node import Node, RpcError
from tests.support.waiting import eventually

pytestmark = pytest.mark.sqlite

LONG = {"summary": "s", "details": {"text": "x" * 3_000}}
SPARE = 1024 * 1024
"""Bytes that are left for mail that is taken."""
FULL = {"storage_full", "storage_failed"}
"""What a full disk is called: the second where only the size of files is bounded."""


def check_degraded(call: Callable[[], Any]) -> None:
    """A call is refused, by name, with what its caller may do about it."""
    with pytest.raises(RpcError) as refused:
        call()
    error = refused.value
    assert (error.code, error.data["degraded"]) == (-32000, True)
    assert error.reason in FULL
    assert error.data["id"] in error.message
    assert "Go on with your work" in error.message


def fill(sender: MailAgent, to: MailAgent, *, some: bool = False) -> list[str]:
    """Send until it is refused; the ids of what was acknowledged, and at least `some`."""
    sent: list[str] = []
    while len(sent) < 5_000:
        try:
            sent.append(sender.send(to, payload=LONG)["message"]["id"])
        except RpcError:
            check_degraded(lambda: sender.send(to, payload=LONG))
            assert sent or not some
            return sent
    raise AssertionError("the disk never filled up")


def use_up(reader: MailAgent, box: list[str]) -> list[str]:
    """Acknowledge, which takes the least room, until that is refused; the ids of what was."""
    done: list[str] = []
    for one in box:
        try:
            reader.call("ack", message_ids=[one])
        except RpcError:
            check_degraded(lambda one=one: reader.call("ack", message_ids=[one]))  # type: ignore[misc]
            return done
        done.append(one)
    raise AssertionError("the disk never filled up")


def all_of(reader: MailAgent) -> list[str]:
    """The ids of all that is in a box, oldest first, page by page."""
    found, cursor = list[str](), dict[str, str]()
    while True:
        page = reader.inbox(limit=200, **cursor)
        found += [one["id"] for one in page["messages"]]
        cursor = {"cursor": page["cursor"]}
        if not page["more"]:
            return found


def gated(sender: MailAgent, to: MailAgent) -> str:
    return str(sender.send(to, policy={"human_gate": "required"})["message"]["id"])


def offered(sender: MailAgent, to: MailAgent) -> str:
    given = {"action": "initiate", "to": to.id, "reason": "r", "package": PACKAGE}
    return str(sender.call("handoff", **given)["handoff"]["handoffId"])


def test_a_full_disk(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk") as disk,
        Node(tmp_path / "disk", unlimited_senders=True) as node,
    ):
        anna, bert, hugh = agent(node, "anna"), agent(node, "bert"), agent(node, "hugh", human=True)
        handoff, waiting = offered(anna, bert), gated(anna, bert)
        first = anna.send(bert)["message"]["id"]
        with full(node, disk=disk, spare=SPARE):
            sent = fill(anna, bert, some=True)
            with ThreadPoolExecutor(4) as clients:
                for one in [clients.submit(fill, anna, bert) for _ in range(4)]:
                    sent += one.result(60)
            read = use_up(bert, sent)
            assert health(node)[1] in FULL

            # Nothing that writes is taken, and nothing is half taken.
            check_degraded(lambda: anna.send(bert, client_id="later", payload=LONG))
            answer = {"message_id": first, "type": "knowledge.push", "payload": LONG}
            check_degraded(lambda: bert.call("respond", **answer))
            check_degraded(lambda: bert.inbox(ack=sent))
            check_degraded(lambda: hugh.call("approve", message_id=waiting))
            check_degraded(lambda: bert.call("handoff", action="accept", handoff_id=handoff))

            # Reads go on, again and again.
            for _ in range(2):
                box = all_of(bert)
                assert set(box) >= {first, *sent} - set(read)
                assert not set(box) & {waiting, *read}
            found = anna.call("query", message_id=first)["messages"]
            assert [one["message"]["id"] for one in found] == [first]
            shown = bert.call("handoff", action="get", handoff_id=handoff)
            assert shown["handoff"]["status"] == "proposed"
            assert bert.call("handoff", action="list")["handoffs"]
            assert anna.inbox(wait=0.2)["messages"] == []
            run(lambda: as_a_model_sees_it(anna, bert))

        # The same process takes writes again, and what was refused once is sent once.
        again = [anna.send(bert, client_id="later", payload=LONG) for _ in range(2)]
        assert [one["duplicate"] for one in again] == [False, True]
        assert health(node)[0] == 200
        assert hugh.call("approve", message_id=waiting)["outcome"] == "approved"
        accepted = bert.call("handoff", action="accept", handoff_id=handoff)
        assert accepted["handoff"]["status"] == "accepted"
        check_whole(bert, {first, waiting, again[0]["message"]["id"], *sent} - set(read))


async def as_a_model_sees_it(anna: MailAgent, bert: MailAgent) -> None:
    """The MCP tools say what to do, and the session goes on."""
    async with over_http(anna.node, anna.key) as one, over_http(bert.node, bert.key) as two:
        for _ in range(2):
            with pytest.raises(Refused, match="Go on with your work"):
                await one.use("acp_send", to=[bert.id], type="knowledge.push", payload=LONG)
        assert "`handoff.initiate`" in await two.use("acp_inbox", limit=1)


def check_whole(reader: MailAgent, wanted: set[str]) -> None:
    """All that is wanted came, each once; it is acknowledged, and the box empty."""
    box = all_of(reader)
    assert len(box) == len(set(box))
    assert wanted <= set(box)
    for place in range(0, len(box), 100):
        reader.call("ack", message_ids=box[place : place + 100])
    assert all_of(reader) == []


def test_a_node_that_dies_of_it_has_all_that_it_acknowledged(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk") as disk,
        Node(tmp_path / "disk", unlimited_senders=True) as node,
    ):
        anna, bert = agent(node, "anna"), agent(node, "bert")
        with full(node, disk=disk, spare=SPARE):
            sent = fill(anna, bert, some=True)
            if disk:
                node.kill()
                node.start()
                sent += fill(anna, bert)
                assert all_of(bert) == sent
        node.kill()
        node.start()
        assert anna.send(bert).get("held") is None
        check_whole(bert, set(sent))


@pytest.fixture
def beta_disk(tmp_path: Path) -> Iterator[bool]:
    """A small disk in the place of node Beta; whether it is one. It outlives the mesh."""
    with small_disk(tmp_path / "beta") as disk:
        yield disk


def test_mail_waits_for_a_node_whose_disk_is_full(beta_disk: bool, mesh: Mesh) -> None:
    """What another node can't take is kept by the sender's, and arrives once."""
    alpha = mesh.add("alpha", unlimited_senders=True)
    beta = mesh.add("beta", alpha, unlimited_senders=True)
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    ann, bob, carl = agent(alpha, "ann"), agent(beta, "bob"), agent(beta, "carl")
    known_both_ways(ann, bob)
    with full(beta, disk=beta_disk):
        fill(carl, carl)
        sent = [ann.send(bob, payload=LONG)["message"]["id"] for _ in range(5)]
        eventually(lambda: '"mail_down"' in alpha.log)
        assert ann.receipts(sent[-1])[bob.address] == "pending"
        assert sent[-1] not in bob.received()
    eventually(lambda: bob.received() == sent)
