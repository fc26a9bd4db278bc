"""What a handoff's messages look like (acp-canonical §5.1, §7.3)."""

import json

from server.methods.handoff.notify import shortened
from tests.support.in_process_node import ANA, BEN, InProcessNode, package


def test_messages_are_of_the_handoffs_thread_and_priority(desk: InProcessNode) -> None:
    handoff_id = desk.offered(package=package(task={"priority": "high"}) | {"thread_id": "th-1"})
    desk.handoff(BEN, "accept", handoff_id=handoff_id)
    rows = desk.rows("SELECT thread_id, priority, from_agent FROM messages ORDER BY id")
    assert rows == [("th-1", "high", ANA), ("th-1", "high", BEN)]


def test_what_is_restricted_stays_private(desk: InProcessNode) -> None:
    desk.offered(package=package(policy={"classification": "restricted"}))
    ((policy,),) = desk.rows("SELECT policy_json FROM messages")
    assert json.loads(policy) == {
        "visibility": "private",
        "sensitivity": "high",
        "human_gate": "none",
    }


def test_a_message_fits_however_long_the_texts_are(desk: InProcessNode) -> None:
    """§12.3: 4096 bytes."""
    long = "ü" * 20_000
    task = {"title": "T" * 500, "task_id": "i" * 200}
    handoff_id = desk.offered(reason=long, package=package(task=task))
    desk.handoff(BEN, "reject", handoff_id=handoff_id, code="other", detail=long)
    sizes = [size for (size,) in desk.rows("SELECT payload_bytes FROM messages")]
    assert len(sizes) == 2
    assert max(sizes) <= 4096
    assert desk.handoff(ANA, "get", handoff_id=handoff_id)["handoff"]["reason"] == long


def test_shortened() -> None:
    assert (shortened("abc", 3), shortened("abcd", 3)) == ("abc", "ab…")
