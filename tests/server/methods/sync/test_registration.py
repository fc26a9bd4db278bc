"""cacp/peer/announce (design §5, §6)."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from server.store.mesh import put_home
from tests.cli.run import cacp
from tests.server.methods.refusals import refused
from tests.support.foreign_peer import ForeignPeerDouble, card_of
from tests.support.located import connect
from tests.support.node import AGENT, REPO, Node, RpcError

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
    key = mesh.key(peer["agentId"], peer["repoName"], "peer")
    assert announce(mesh, peer, key) == {
        "status": "acknowledged",
        "myAgentId": AGENT,
        "myRepoName": REPO,
    }
    [found] = listed(mesh, peer)
    assert found == peer | {
        "trust": "verified",
        "kind": "foreign",
        "registeredAt": found["registeredAt"],
        "lastSeen": found["registeredAt"],
    } | ({"sync": found["sync"]} if "sync" in found else {})


def test_announcing_again_renews_the_peer(mesh: Node, peer: Peer) -> None:
    announce(mesh, peer)
    announce(mesh, peer, endpoint="http://127.0.0.1:1", other="ignored")
    [found] = listed(mesh, peer)
    assert found["endpoint"] == "http://127.0.0.1:1"
    assert found["lastSeen"] > found["registeredAt"]


def test_an_agent_announces_only_itself(mesh: Node, peer: Peer) -> None:
    """Design §6: an agent id is pinned to its key."""
    key = mesh.key(peer["agentId"], peer["repoName"], "peer")
    with refused(-32003, "other_agent"):
        announce(mesh, peer, key, agentId="aid://example.com/mobile@1.0.0")
    with refused(-32003, "key_needed"):
        announce(mesh, peer)
    with refused(-32003, "own_agent"):
        announce(mesh, peer, agentId=AGENT)
    assert listed(mesh, peer) == []


@pytest.mark.parametrize("version", ["1.0.0", "9.9.9"])
def test_no_id_that_is_known_is_registered_without_its_key(
    mesh: Node, peer: Peer, version: str
) -> None:
    """The node's own, one that has a key here, and one whose home is another node; in any
    version, by announcement and by registration."""
    mesh.key(peer["agentId"], peer["repoName"])
    elsewhere = f"aid://example.com/{uuid4()}"
    with closing(connect(mesh.db)) as db:
        put_home(db, elsewhere, "aid://example.com/beta")
    own = AGENT.rpartition("@")[0]
    taken = {own: "own_agent", elsewhere: "key_needed", peer["agentId"][:-6]: "key_needed"}
    for agent, reason in taken.items():
        given = peer | {"agentId": f"{agent}@{version}"}
        with refused(-32003, reason):
            announce(mesh, given)
        answer = mesh.http.post("/peers/register", json=given)
        assert (answer.status_code, answer.json()["error"]["data"]["reason"]) == (403, reason)
        assert listed(mesh, given) == []


def test_no_id_that_only_looks_like_a_known_one_is_registered(mesh: Node, peer: Peer) -> None:
    """By announcement and by registration; the answer says how it would be written."""
    name = peer["agentId"]
    mesh.key(name, peer["repoName"])
    for odd in (name.upper()[:17] + name[17:], f" {name}", f"\uff41{name[1:]}"):
        given = peer | {"agentId": odd}
        with refused(-32602, "agent_id_not_canonical"):
            announce(mesh, given)
        answer = mesh.http.post("/peers/register", json=given)
        assert answer.json()["error"]["data"]["canonical"] == name
        assert listed(mesh, given) == []
    shouted = f"AID://Example.com/{uuid4()}@1.0.0"
    mesh.key(shouted, "r")
    given = peer | {"agentId": shouted.lower()}
    with refused(-32003, "looks_like_another"):
        announce(mesh, given)
    assert listed(mesh, given) == []


def test_a_key_takes_an_id_back_from_who_registered_it_first(mesh: Node, peer: Peer) -> None:
    """While the node runs: no more at its word, and its mail is in its box."""
    name = peer["agentId"]
    answer = mesh.http.post("/peers/register", json=peer, headers={"x-agent-id": name})
    assert answer.status_code == 200
    sender = mesh.key(f"aid://example.com/{uuid4()}", "r")
    letter = {"to": [name], "type": "knowledge.push", "payload": {"summary": "hello"}}
    with refused(-32602, "no_mailbox"):
        mesh.call("acp/send", key=sender, **letter)
    made = cacp("keys", "create", name, "--repo", "r", "--db", str(mesh.db), "--json")
    body = json.loads(made.stdout)
    (ended,) = body["registrationsEnded"]
    assert (ended["agentId"], ended["endpoint"]) == (name, peer["endpoint"])
    mesh.call("acp/send", key=sender, **letter)
    assert mesh.call("acp/inbox", key=body["key"])["counts"]["unread"] == 1
    assert listed(mesh, peer) == []
    said = mesh.http.post(
        "/",
        json={"jsonrpc": "2.0", "method": "cacp/project/list", "params": {}, "id": 1},
        headers={"x-agent-id": name},
    )
    assert said.status_code == 401
    with refused(-32003, "unknown_peer"):
        repo = {"repo_id": "r", "name": "r", "role": "r", "language": "l"}
        mesh.call("cacp/repo/sync", source_agent=name, projectId="p", repo=repo)
    with refused(-32003, "key_needed"):
        announce(mesh, peer)


def test_who_registers_with_its_key_ends_what_came_without(mesh: Node, peer: Peer) -> None:
    other = peer | {"agentId": peer["agentId"].replace("1.0.0", "2.0.0")}
    announce(mesh, other)
    key = mesh.key(peer["agentId"], peer["repoName"], "peer")
    announce(mesh, peer, key)
    assert listed(mesh, other) == []
    assert [one["trust"] for one in listed(mesh, peer)] == ["verified"]


def test_an_agent_of_another_major_version_is_refused(mesh: Node, peer: Peer) -> None:
    """CACP 2.0, Versioning."""
    with ForeignPeerDouble(card=card_of("3.0")) as double:
        with refused(-32602, "unsupported_version"):
            announce(mesh, peer, endpoint=double.url)
        with refused(-32003, "own_agent"):
            announce(mesh, peer, agentId=AGENT, endpoint=double.url)
    assert listed(mesh, peer) == []


@pytest.mark.parametrize("endpoint", ["http://169.254.169.254/", "file:///etc", "http://[::]/"])
def test_an_endpoint_is_checked(mesh: Node, peer: Peer, endpoint: str) -> None:
    """Design §6: SSRF rules for registered endpoints."""
    with pytest.raises(RpcError) as error:
        announce(mesh, peer, endpoint=endpoint)
    assert error.value.code in (-32602, -32003)
    assert listed(mesh, peer) == []


def test_an_unkeyed_peer_is_taken_at_its_word_for_sync_only(mesh: Node, peer: Peer) -> None:
    """Design §6: foreign peers have no keys."""
    announce(mesh, peer)

    def call(method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        return mesh.http.post("/", json=body, headers={"x-agent-id": peer["agentId"]}).json()

    assert "result" in call("cacp/project/list")
    assert "result" in call("cacp/peer/announce", **peer)
    renamed = peer | {"repoName": "another-app"}
    assert "result" in call("cacp/peer/announce", **renamed)
    assert listed(mesh, peer)[0]["repoName"] == "another-app"
    error = call("cacp/project/create", name="n", objective="o")["error"]
    assert (error["code"], error["data"]["reason"]) == (-32003, "insufficient_trust")
