"""cacp/peer/announce (design §5, §7)."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.node import AGENT, REPO, Node, RpcError
from tests.server.methods.refusals import refused

Peer = dict[str, str]


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node at which peers may register."""
    with Node(tmp_path_factory.mktemp("mesh")) as node:
        yield node


@pytest.fixture
def peer() -> Peer:
    """A peer that is registered nowhere yet."""
    return {
        "agentId": f"aid://example.com/{uuid4()}@1.0.0",
        "endpoint": "http://127.0.0.1:8081",
        "repoName": "frontend-app",
    }


def announce(node: Node, peer: Peer, key: str | None = None, **more: str) -> Any:
    return node.call("cacp/peer/announce", key=key, **peer | more)


def listed(node: Node, peer: Peer) -> list[Any]:
    """What the node lists of a peer."""
    peers = node.get("/peers").json()["peers"]
    return [one for one in peers if one["agentId"] == peer["agentId"]]


def test_announce(mesh: Node, peer: Peer) -> None:
    key = mesh.key(peer["agentId"], peer["repoName"])
    assert announce(mesh, peer, key) == {
        "status": "acknowledged",
        "myAgentId": AGENT,
        "myRepoName": REPO,
    }
    [found] = listed(mesh, peer)
    assert found == peer | {
        "trust": "verified",
        "registeredAt": found["registeredAt"],
        "lastSeen": found["registeredAt"],
        "sync": found["sync"],
    }


def test_announcing_again_renews_the_peer(mesh: Node, peer: Peer) -> None:
    announce(mesh, peer)
    announce(mesh, peer, endpoint="http://127.0.0.1:1", other="ignored")
    [found] = listed(mesh, peer)
    assert found["endpoint"] == "http://127.0.0.1:1"
    assert found["lastSeen"] > found["registeredAt"]


def test_an_agent_announces_only_itself(mesh: Node, peer: Peer) -> None:
    """Design §7: an agent id is pinned to its key."""
    key = mesh.key(peer["agentId"], peer["repoName"])
    with refused(-32003, "other_agent"):
        announce(mesh, peer, key, agentId="aid://example.com/mobile@1.0.0")
    with refused(-32003, "key_needed"):
        announce(mesh, peer)
    with refused(-32003, "own_agent"):
        announce(mesh, peer, agentId=AGENT)
    assert listed(mesh, peer) == []


@pytest.mark.parametrize("endpoint", ["http://169.254.169.254/", "file:///etc", "http://[::]/"])
def test_an_endpoint_is_checked(mesh: Node, peer: Peer, endpoint: str) -> None:
    """Design §7: SSRF rules for registered endpoints."""
    with pytest.raises(RpcError) as error:
        announce(mesh, peer, endpoint=endpoint)
    assert error.value.code in (-32602, -32003)
    assert listed(mesh, peer) == []


def test_an_unkeyed_peer_is_taken_at_its_word_for_sync_only(mesh: Node, peer: Peer) -> None:
    """Design §7: peers of other makes have no keys."""
    announce(mesh, peer)

    def call(method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        return mesh.http.post("/", json=body, headers={"x-agent-id": peer["agentId"]}).json()

    assert "result" in call("cacp/project/list")
    assert "result" in call("cacp/peer/announce", **peer)
    error = call("cacp/project/create", name="n", objective="o")["error"]
    assert (error["code"], error["data"]["reason"]) == (-32003, "insufficient_trust")
