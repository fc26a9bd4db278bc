"""Mail from other nodes, and what hostile ones try (acp-canonical §10, §12.1, §12.3, §12.5)."""

import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from uuid_utils import uuid7

from server.store import mailboxes, messages
from tests.server.methods.refusals import refused
from tests.support.located import connect
from tests.support.mail_agent import MailAgent, agent
from tests.support.mesh_member import ALPHA, BOB, GUS, TOKEN, MeshMember
from tests.support.node import Node, RpcError


@pytest.fixture(scope="module")
def beta(alpha: Node) -> MeshMember:
    """A peer at which Bob is at home."""
    beta = MeshMember(alpha, "beta").register()
    beta.lists(beta.agent, BOB)
    return beta


def reached(answer: Any) -> dict[str, str]:
    assert answer["error"] is None, answer
    return {one["recipient"]: one["status"] for one in answer["reached"]}


def count(node: Node, message_id: str) -> int:
    return int(node.query("SELECT count(*) FROM messages WHERE id = ?", message_id)[0][0])


def test_what_a_peer_brings_is_counted_letter_by_letter(tmp_path: Path) -> None:
    """A call may carry a hundred: counted as one, it let a peer bring a hundred times its rate."""
    settings = {"repo": "alpha", "agent_id": ALPHA, "mesh_token": TOKEN, "rate_limit": 20}
    with Node(tmp_path, **settings) as node:
        beta = MeshMember(node, "beta").register()
        ann = agent(node, "ann")
        letters = [beta.carried(beta.letter(BOB, ann.id)) for _ in range(100)]

        def bring(times: int) -> None:
            for _ in range(times):
                beta.call("acp/sync/mail", messages=letters)

        bring(2)
        with pytest.raises(RpcError) as told:
            # On a slow machine the rate lets some in again before the third call.
            bring(20)
        assert (told.value.code, told.value.data["retryAfter"] > 0) == (-32005, True)


def test_a_letter_arrives_once_however_often_it_is_brought(
    beta: MeshMember, ann: MailAgent
) -> None:
    """§12.5: what came before is a no-op, and is answered with how far it is."""
    letter = beta.letter(BOB, ann.id)
    assert reached(beta.brings(letter)) == {ann.address: "pending"}
    assert ann.received() == [letter["message"]["id"]]
    assert reached(beta.brings(letter)) == {ann.address: "delivered"}
    ann.call("ack", message_ids=[letter["message"]["id"]])
    assert reached(beta.brings(letter)) == {ann.address: "read"}
    assert ann.inbox(show="all")["counts"]["received"] == 1


@pytest.mark.parametrize("status", ["read", "delivered", "pending"])
def test_what_is_in_the_archive_by_now_is_answered_from_there(
    alpha: Node, beta: MeshMember, ann: MailAgent, status: str
) -> None:
    """A sender whose node comes back late learns that it was read, not that it is lost."""
    letter = beta.letter(BOB, ann.id)
    message_id = letter["message"]["id"]
    beta.brings(letter)
    if status != "pending":
        ann.received()
    if status == "read":
        ann.call("ack", message_ids=[message_id])
    with closing(connect(alpha.db)) as db:
        told = [mailboxes.receipt(one) for one in mailboxes.deliveries(db, message_id)]
        kept = orjson.dumps({"message": {"from": BOB}, "receipts": told})
        messages.archive(db, message_id, kept, letter["message"]["created_at"])
    assert count(alpha, message_id) == 0
    assert reached(beta.brings(letter)) == {ann.address: status}
    letter["message"]["from"] = beta.agent
    assert "another message" in beta.brings(letter)["error"]


def test_a_node_speaks_for_its_own_agents_only(
    alpha: Node, beta: MeshMember, gamma: MeshMember, ann: MailAgent
) -> None:
    """§12.1: neither for agents here, nor for those of a third node, nor for a node."""
    for sender in (ann.id, GUS, ALPHA, gamma.agent):
        letter = beta.letter(sender, ann.id)
        assert "is not the home node of" in beta.brings(letter)["error"]
        assert count(alpha, letter["message"]["id"]) == 0
    assert ann.received() == []
    outcomes = alpha.query("SELECT outcome FROM acp_audit WHERE actor = ?", beta.agent)
    assert ("refused",) in outcomes


def test_what_is_not_signed_for_this_node_is_refused(
    alpha: Node, beta: MeshMember, gamma: MeshMember, ann: MailAgent
) -> None:
    """No relay passes mail on, none is replayed from elsewhere, and none is changed on its way."""
    letter = beta.letter(BOB, ann.id)
    good = beta.carried(letter)
    changed = good | {"text": good["text"].replace("hello", "HELLO")}
    elsewhere = beta.carried(letter, "aid://example.com/delta")
    for peer, carried in ((gamma, good), (beta, changed), (beta, elsewhere)):
        (answer,) = peer.call("acp/sync/mail", messages=[carried])["answers"]
        assert "has not signed this message" in answer["error"]
    assert count(alpha, letter["message"]["id"]) == 0


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"payload": {"summary": "x" * 4096}}, "the limit is 4096"),
        ({"payload": {}}, "payload.summary"),
        ({"type": "task.offer"}, "reserved"),
        ({"version": "2.0.0"}, "major version"),
        ({"id": "1"}, "UUIDv7"),
        ({"id": "01890000-0000-7000-8000-000000000000"}, "must be close to created_at"),
        ({"to": ["aid://example.com/nobody@1.0.0"]}, "must name every recipient"),
        ({"to": ["*", BOB]}, "cannot be combined"),
        ({"created_at": (datetime.now(UTC) + timedelta(days=2)).isoformat()}, "ahead"),
        ({"created_at": "yesterday"}, "an RFC 3339 time in UTC"),
        ({"policy": {}}, "policy.visibility"),
        (
            {"policy": {"visibility": "team", "sensitivity": "low", "human_gate": "none"}},
            "needs a team",
        ),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_a_message_may_be_is_checked_again(
    alpha: Node, beta: MeshMember, ann: MailAgent, change: dict[str, Any], error: str
) -> None:
    """§12.2, §12.3: whatever another node let through."""
    answer = beta.brings(beta.letter(BOB, ann.id, **change))
    assert error in answer["error"]
    assert ann.received() == []


def test_a_letter_for_nobody_here_fails(alpha: Node, beta: MeshMember, ann: MailAgent) -> None:
    """Those who are here get it all the same; for those whose home is elsewhere, no node here."""
    letter = beta.letter(BOB, ann.id, "aid://example.com/nobody@1.0.0", GUS)
    assert reached(beta.brings(letter)) == {
        ann.address: "pending",
        "aid://example.com/nobody": "failed",
        "aid://example.com/gus": "failed",
    }
    late = beta.letter(BOB, ann.id, expires_at="2026-01-01T00:00:00Z")
    assert reached(beta.brings(late)) == {ann.address: "expired"}


def test_numbers_in_a_thread_never_go_back(beta: MeshMember, ann: MailAgent) -> None:
    """§12.5: one may be skipped here, for it went elsewhere; a lower one is refused after it."""
    thread = str(uuid7())
    for sequence, error in ((1, None), (4, None), (3, "taken"), (4, "taken"), (5, None)):
        letter = beta.letter(BOB, ann.id, thread_id=thread, sequence=sequence)
        answer = beta.brings(letter)
        assert (error in answer["error"]) if error else (answer["error"] is None)
    assert len(ann.received()) == 3


def test_answers_by_the_threads_name_are_counted_here_too(
    alpha: Node, beta: MeshMember, ann: MailAgent
) -> None:
    """§12.4: whatever another node says of how many replies are before a message."""
    thread = str(uuid7())
    begins = beta.letter(BOB, ann.id, id=thread, thread_id=thread)
    assert beta.brings(begins)["error"] is None
    ann.send(to=[ann.id, BOB], thread_id=thread)
    for said, hop in ((0, 2), (0, 2), (64, 64)):
        letter = beta.letter(BOB, ann.id, thread_id=thread) | {"hop": said}
        assert beta.brings(letter)["error"] is None
        kept = alpha.query("SELECT hop FROM messages WHERE id = ?", letter["message"]["id"])
        assert kept == [(hop,)]
    anns = "SELECT said, heard, sent FROM thread_parties WHERE thread_id = ? AND address = ?"
    assert alpha.query(anns, thread, ann.address) == [(1, 64, 1)]
    again = ann.send(to=[ann.id, BOB], thread_id=thread)["message"]["id"]
    kept = alpha.query("SELECT hop FROM messages WHERE id = ?", again)
    assert kept == [(3,)], "what another node says uses up no thread"


def test_a_thread_is_not_spoiled_by_who_has_no_part_in_it(beta: MeshMember, ann: MailAgent) -> None:
    """What it sends by the thread's name is of a thread of its own."""
    begun = ann.send(ann, sequence=1)["message"]["thread_id"]
    before = ann.node.query("SELECT * FROM threads WHERE thread_id = ?", begun)
    for more in ({"sequence": 2**53 - 1}, {}, {"reply_to": begun}):
        letter = beta.letter(BOB, ann.id, thread_id=begun, **more)
        assert beta.brings(letter)["error"] is None
    assert ann.node.query("SELECT * FROM threads WHERE thread_id = ?", begun) == before
    ann.send(ann, thread_id=begun, sequence=2)


def test_no_number_from_elsewhere_is_the_last(beta: MeshMember, ann: MailAgent) -> None:
    """§12.5: nor does a party leave the others none."""
    begins = beta.letter(BOB, ann.id, sequence=2**53 - 1)
    assert beta.brings(begins)["error"] is None
    thread = begins["message"]["id"]
    with refused(-32004, "sequence_taken", next=1001):
        ann.send(to=[ann.id, BOB], thread_id=thread, sequence=2)
    ann.send(to=[ann.id, BOB], thread_id=thread, sequence=1001)
    beyond = beta.letter(BOB, ann.id, thread_id=thread, sequence=2**63)
    assert "sequence" in beta.brings(beyond)["error"]


def test_what_waited_for_a_number_from_elsewhere_comes_after_it(
    beta: MeshMember, ann: MailAgent
) -> None:
    begins = beta.letter(BOB, ann.id, sequence=1)
    beta.brings(begins)
    thread = begins["message"]["id"]
    third = ann.send(to=[ann.id, BOB], thread_id=thread, sequence=3)
    overtaken = ann.send(to=[ann.id, BOB], thread_id=thread, sequence=5)["message"]["id"]
    assert third["held"] == "quarantine"
    second = beta.letter(BOB, ann.id, thread_id=thread, sequence=2)
    sixth = beta.letter(BOB, ann.id, thread_id=thread, sequence=6)
    assert beta.brings(second)["error"] is None
    assert beta.brings(sixth)["error"] is None
    letters = [begins["message"]["id"], second["message"]["id"], third["message"]["id"]]
    assert ann.received() == [*letters, sixth["message"]["id"], overtaken]
    (found,) = ann.call("query", message_id=overtaken)["messages"]
    assert found["message"]["sequence"] == 7, "it gets the next, and is lost to nobody"


def test_who_began_a_thread_goes_on_in_it(beta: MeshMember, ann: MailAgent) -> None:
    """Also when it was answered by nobody, or not to itself."""
    thread = str(uuid7())
    begins = beta.letter(BOB, ann.id, id=thread, thread_id=thread, sequence=1)
    assert beta.brings(begins)["error"] is None
    ann.send(ann, thread_id=thread, sequence=2)
    goes_on = beta.letter(BOB, ann.id, thread_id=thread, sequence=3)
    assert beta.brings(goes_on)["error"] is None


def test_only_a_recipients_home_says_how_far_a_message_is(
    alpha: Node, beta: MeshMember, gamma: MeshMember, ann: MailAgent
) -> None:
    """Neither a third node, nor the home before it was sent the message (beta can't be reached)."""
    sent = ann.send(to=[BOB])["message"]["id"]
    reads = {"recipient": "aid://example.com/bob", "status": "read"}
    receipts = [{"message_id": sent, "reached": [reads]}]
    for peer in (gamma, beta):
        peer.call("acp/sync/mail", receipts=receipts)
        assert ann.receipts(sent) == {"aid://example.com/bob": "pending"}
    with pytest.raises(RpcError) as refused:
        gamma.call("acp/sync/mail", receipts=receipts, source_agent=beta.agent)
    assert refused.value.reason == "unknown_peer"
    # Another's message is not taken over by its id.
    letter = beta.letter(BOB, ann.id, id=sent)
    assert "another message" in beta.brings(letter)["error"]


def test_who_is_at_home_at_two_nodes_stays_where_it_was_first(
    alpha: Node, beta: MeshMember, gamma: MeshMember, ann: MailAgent
) -> None:
    """Until that one names it no more; a directory is taken once, and only from its node."""
    zoe = "aid://example.com/zoe"
    stamp = time.time_ns() // 1000
    beta.lists(beta.agent, BOB, zoe, ann.id, stamp=stamp)
    gamma.lists(gamma.agent, GUS, zoe, stamp=stamp)

    def home(of: str) -> str:
        return str(alpha.query("SELECT node FROM homes WHERE agent = ?", of)[0][0])

    assert home(zoe) == "aid://example.com/beta"
    assert home(ann.address) == "aid://example.com/alpha", "who holds a key here lives here"
    assert "is not the home node of" in gamma.brings(gamma.letter(zoe, ann.id))["error"]
    key = alpha.key(zoe, "mail")
    with pytest.raises(RpcError) as visitor:
        alpha.call("acp/inbox", key=key)
    assert visitor.value.reason == "home_elsewhere"
    alpha.call("cacp/project/list", key=key)
    beta.lists(beta.agent, BOB, stamp=stamp + 1)
    assert home(zoe) == "aid://example.com/gamma"
    assert gamma.brings(gamma.letter(zoe, ann.id))["error"] is None
    beta.lists(beta.agent, BOB, zoe, stamp=stamp)
    assert home(zoe) == "aid://example.com/gamma", "an older directory changes nothing"
    with pytest.raises(RpcError) as forged:
        gamma.call("acp/sync/agents", listed=signed_by(beta))
    assert forged.value.reason == "wrong_signature"


def signed_by(peer: MeshMember) -> dict[str, Any]:
    body = {"agents": [GUS], "stamp": time.time_ns() // 1000, "epoch": "e"}
    signature = peer.signed("directory", "aid://example.com/gamma", body)
    return {"directory": body, "signature": signature}
