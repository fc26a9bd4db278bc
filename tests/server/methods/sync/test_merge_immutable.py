"""Packets, files and requests of peers: of two with one id the earlier stays (design §7)."""

from typing import Any
from uuid import uuid4

from tests.support.mesh_member import MeshMember
from tests.support.node import Node


def packet(beta: MeshMember, shared: str, id: str, second: int, text: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "packet_id": id,
        "from_repo": beta.version(shared)["repo_id"],
        "from_agent": beta.agent,
        "timestamp": f"2024-01-01T00:00:{second:02}.000000+00:00",
        "type": "question",
        "content": {"text": text},
        "related_contracts": [],
        "reply_to": None,
    }
    return {"packet": body, "signature": beta.signed("packet", shared, body)}


def test_of_two_packets_with_one_id_the_earlier_stays(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    one = str(uuid4())

    def send(second: int, text: str) -> tuple[str, Any]:
        given = packet(beta, shared, one, second, text)
        result = beta.call("cacp/context/sync", projectId=shared, **given)
        [shown] = alpha.call("cacp/context/list", projectId=shared)["packets"]
        return result["status"], shown["content"]["text"]

    assert send(5, "b") == ("created", "b")
    assert send(5, "b") == ("skipped", "b")
    assert send(6, "a") == ("skipped", "b")
    assert send(5, "a") == ("updated", "a"), "of equal times the text settles it"
    assert send(4, "c") == ("updated", "c")
    assert send(5, "a") == ("skipped", "c")
