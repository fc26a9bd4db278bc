"""GET and POST routes beside the endpoint (CACP 2.0, Discovery Endpoints; design §6)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from server.methods import METHODS
from tests.support.foreign_peer import ForeignPeerDouble, card_of
from tests.support.node import AGENT, REPO, Node, bearer

PUBLIC = [
    "/.well-known/agent.json",
    "/.well-known/agent-card.json",
    "/health",
    "/live",
    "/ready",
    "/methods",
    "/openrpc.json",
]
CLOSED = ["/mesh", "/peers", "/metrics", "/events"]
LIST = '{"jsonrpc": "2.0", "id": 1, "method": "cacp/project/list"}'
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


def listed(mesh: Node, peer: Peer) -> list[Any]:
    """What the node lists of a peer."""
    peers = mesh.get("/peers").json()["peers"]
    return [one for one in peers if one["agentId"] == peer["agentId"]]


def register(node: Node, body: Any, headers: dict[str, str] | None = None) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body)
    given = {"content-type": "application/json"} | (headers or {})
    return node.http.post("/peers/register", content=content, headers=given)


@pytest.mark.parametrize("path", PUBLIC)
def test_discovery_is_public(node: Node, path: str) -> None:
    response = node.http.get(path, headers={"host": "elsewhere.example", "x-forwarded-for": "1"})
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", CLOSED)
def test_all_else_needs_a_caller(node: Node, path: str) -> None:
    response = node.http.get(path, headers={"host": "elsewhere.example"})
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert response.json()["error"]["code"] == -32001


def test_no_page_of_another_origin_may_read_an_answer(node: Node) -> None:
    """Design §6: no CORS by default."""
    response = node.http.get("/health", headers={"origin": "https://elsewhere.example"})
    assert not [name for name in response.headers if name.startswith("access-control")]


def test_health(mesh: Node, peer: Peer) -> None:
    """CACP 2.0, GET /health."""
    before = mesh.get("/health").json()
    fields = {"status": "healthy", "agentId": AGENT, "repo": REPO}
    assert before | fields == before
    assert register(mesh, peer).status_code == 200
    assert mesh.get("/health").json()["peerCount"] == before["peerCount"] + 1


def test_live_and_ready(node: Node) -> None:
    assert node.get("/live").json() == {"status": "live"}
    assert node.get("/ready").json() == {"status": "ready"}


def test_methods_are_names_as_specified(node: Node) -> None:
    """CACP 2.0, GET /methods."""
    assert node.get("/methods").json() == {"methods": list(METHODS)}


def test_methods_are_described_on_request(node: Node) -> None:
    methods = node.get("/methods", verbose="1").json()["methods"]
    assert [one["name"] for one in methods] == list(METHODS)
    for one in methods:
        assert one["summary"]
        assert one["params"]["type"] == "object"
        assert one["result"]


def test_a_peer_registers_and_is_listed(mesh: Node, peer: Peer) -> None:
    """CACP 2.0, POST /peers/register."""
    assert register(mesh, peer).json() == {
        "status": "registered",
        "agentId": AGENT,
        "repoName": REPO,
        "peerCount": len(mesh.get("/peers").json()["peers"]),
    }
    [found] = listed(mesh, peer)
    assert found | peer | {"trust": "unkeyed"} == found


def test_registering_again_renews_the_endpoint(mesh: Node, peer: Peer) -> None:
    register(mesh, peer)
    register(mesh, peer | {"endpoint": "http://127.0.0.1:9999"})
    [found] = listed(mesh, peer)
    assert found["endpoint"] == "http://127.0.0.1:9999"


def test_a_peer_of_another_major_version_is_refused(mesh: Node, peer: Peer) -> None:
    """CACP 2.0, Versioning: its card is read where it says that it listens."""
    with ForeignPeerDouble(card=card_of("3.0")) as double:
        theirs = peer | {"agentId": "aid://example.com/later@1.0.0", "endpoint": double.url}
        answer = register(mesh, theirs)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["data"]["reason"] == "unsupported_version"
    assert "speaks CACP '3.0', and this node 2.0" in error["message"]
    assert listed(mesh, theirs) == []


def test_a_peer_with_a_key_registers_with_it(mesh: Node, peer: Peer) -> None:
    """Design §6: an agent id is pinned to its key; an operator has made it for a peer."""
    agents = mesh.key(peer["agentId"], peer["repoName"])
    key = mesh.key(peer["agentId"], peer["repoName"], trust="peer")
    assert register(mesh, peer).status_code == 403
    assert register(mesh, peer, bearer(agents)).status_code == 403
    assert listed(mesh, peer) == []
    assert register(mesh, peer, bearer(key)).status_code == 200
    [found] = listed(mesh, peer)
    assert found["trust"] == "verified"
    other = register(mesh, peer | {"agentId": "aid://example.com/other@1.0.0"}, bearer(key))
    assert other.json()["error"]["data"]["reason"] == "other_agent"


@pytest.mark.parametrize(
    "endpoint", ["http://169.254.169.254/", "ftp://peer", "http://0.0.0.0:80", "not a url"]
)
def test_no_endpoint_leads_where_the_node_must_not_call(
    mesh: Node, peer: Peer, endpoint: str
) -> None:
    assert register(mesh, peer | {"endpoint": endpoint}).status_code in (400, 403)
    assert listed(mesh, peer) == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        ([], 400),
        ({}, 400),
        ({"agentId": "peer-7", "endpoint": 5}, 400),
        ({"agentId": AGENT, "endpoint": "http://127.0.0.1:1"}, 403),
        (b" " * 70_000, 413),
    ],
)
def test_a_bad_registration_is_refused(mesh: Node, body: Any, status: int) -> None:
    response = register(mesh, body)
    assert response.status_code == status
    assert response.json()["error"]["message"]


def test_what_is_missing_from_a_registration_is_named(mesh: Node) -> None:
    error = register(mesh, {"agentId": "a"}).json()["error"]
    assert error["code"] == -32602
    assert error["data"]["errors"] == [{"path": "endpoint", "problem": "required"}]


def test_a_registration_is_json(mesh: Node, peer: Peer) -> None:
    assert register(mesh, peer, {"content-type": "text/plain"}).status_code == 415


def test_a_registration_without_a_repo_name(mesh: Node) -> None:
    body = {"agentId": "peer-7", "endpoint": "http://127.0.0.1:1", "repoName": None, "extra": 1}
    assert register(mesh, body).status_code == 200


def test_a_known_caller_registers_nobody(mesh: Node, peer: Peer) -> None:
    key = mesh.key(peer["agentId"], peer["repoName"], trust="known")
    response = register(mesh, peer, bearer(key))
    assert response.json()["error"]["data"]["reason"] == "not_a_peer"


def test_a_peer_of_another_make_registers_itself_by_its_own_name(mesh: Node, peer: Peer) -> None:
    """CACP 2.0, Headers: it says who it is; over loopback, that is enough to begin with."""
    named = {"x-agent-id": peer["agentId"]}
    assert mesh.raw(LIST, named).status_code == 401
    other = register(mesh, peer | {"agentId": "another"}, named)
    assert other.json()["error"]["data"]["reason"] == "other_agent"
    assert register(mesh, peer, named).json()["status"] == "registered"
    assert mesh.raw(LIST, named).status_code == 200
    assert mesh.raw(LIST, {"x-agent-id": "another"}).status_code == 401


def test_who_has_a_key_does_not_register_by_its_name(mesh: Node, peer: Peer) -> None:
    mesh.key(peer["agentId"], peer["repoName"])
    refused = register(mesh, peer, {"x-agent-id": peer["agentId"]})
    assert refused.status_code == 401
    assert refused.json()["error"]["data"]["reason"] == "key_required"


def test_what_a_node_holds_is_one_digest(mesh: Node) -> None:
    before = mesh.get("/mesh").json()
    assert (before["agentId"], before["behind"]) == (AGENT, False)
    mesh.call("cacp/project/create", name="One", objective="o")
    after = mesh.get("/mesh").json()
    assert after["projects"] == before["projects"] + 1
    assert after["digest"] != before["digest"]
    assert mesh.get("/mesh").json() == after


def test_behind_a_proxy_nobody_is_the_nodes_own_agent(tmp_path: Path) -> None:
    """A bare `proxy_pass` gives loopback's address and Host, and no forwarding header."""
    first = tmp_path / "key"
    url = "https://cacp.example.org"
    with Node(tmp_path, public_url=url, bootstrap_key_file=first) as node:
        key = node.key(AGENT, REPO)
        bare = {"Host": f"127.0.0.1:{node.port}"}
        refused = node.http.get("/peers", headers=bare)
        assert refused.status_code == 401
        assert "A key is needed" in refused.json()["error"]["message"]
        assert node.get("/peers", key=key).status_code == 200
        assert node.get("/.well-known/agent.json").json()["url"] == "https://cacp.example.org"
