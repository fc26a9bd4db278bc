"""What is taken of the packets that foreign peers send (CACP 2.0, Sync Methods; design §8)."""

import json

from tests.server.methods.sync.foreign_peer import (
    MOBILE,
    key,
    mesh,
    packet_of,
    send,
    shared,
)
from tests.support.node import REPO
from tests.support.team import Team

__all__ = ["key", "mesh", "shared"]


def test_a_peers_packet_is_taken_once(shared: Team) -> None:
    """CACP 2.0, cacp/context/sync."""
    packet = packet_of(from_repo=shared.repo_id(MOBILE))
    statuses = [
        send(shared.node, "context/sync", projectId=shared.project, packet=packet)["status"]
        for _ in range(2)
    ]
    assert statuses == ["created", "skipped"]
    [found] = shared.backend("context/list")["packets"]
    assert found == packet | {"timestamp": "2026-01-01T12:00:00.500000+00:00"}


def test_a_packet_that_could_not_be_passed_on_is_passed_over(shared: Team) -> None:
    deep = packet_of(content=json.loads('{"a":' * 64 + "{}" + "}" * 64))
    deep["from_repo"] = shared.repo_id(MOBILE)
    said = send(shared.node, "context/sync", projectId=shared.project, packet=deep)["reason"]
    assert "nested deeper than 64 levels" in said


def test_a_packet_of_another_repo_is_passed_over(shared: Team) -> None:
    packet = packet_of(from_repo=shared.repo_id(REPO))
    sent = send(shared.node, "context/sync", projectId=shared.project, packet=packet)["status"]
    assert (sent, shared.backend("context/list")) == ("skipped", {"packets": []})
