"""A foreign peer without a key, registered at a node, and a team that it is in."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from server.domain.identifiers import repo_id_for
from tests.support.node import Node, check_result, error_of
from tests.support.team import CONTENT, FRONTEND, Team

PEER = "aid://example.com/mobile@1.0.0"
MOBILE = "mobile-app"
Send = Callable[..., Any]


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node at which a peer without a key is registered, for repo mobile-app."""
    with Node(tmp_path_factory.mktemp("mesh")) as node:
        peer = {"agentId": PEER, "endpoint": "http://127.0.0.1:8082", "repoName": MOBILE}
        assert node.http.post("/peers/register", json=peer).status_code == 200
        yield node
        assert "Traceback" not in node.log


@pytest.fixture(scope="module")
def key(mesh: Node) -> str:
    return mesh.key("aid://example.com/frontend@1.0.0", FRONTEND)


@pytest.fixture
def shared(mesh: Node, key: str) -> Team:
    """A project of backend and frontend that the peer has joined with its repo."""
    team = invited(mesh, key)
    repo = theirs(repo_id=repo_id_for(team.project, MOBILE), agent_id=PEER)
    assert send(mesh, "repo/sync", projectId=team.project, repo=repo)["status"] == "updated"
    return team


def invited(mesh: Node, key: str) -> Team:
    """A project whose members have added the peer's repo, which nobody holds yet."""
    team = Team.on(mesh, key)
    team.backend("project/addRepo", repo=theirs())
    return team


def theirs(**more: Any) -> dict[str, Any]:
    """The peer's RepoContext."""
    return {"name": MOBILE, "role": "mobile", "language": "swift"} | more


def send(
    node: Node, method: str, /, *, headers: dict[str, str] | None = None, **params: Any
) -> Any:
    """A sync call as foreign peers make it; at the word of its source_agent by default."""
    given = {"source_agent": PEER} | params
    request = {"jsonrpc": "2.0", "method": f"cacp/{method}", "params": given, "id": 1}
    answer = node.raw(json.dumps(request), headers or {}).json()
    if "error" in answer:
        raise error_of(answer)
    check_result(f"cacp/{method}", answer["result"])
    return answer["result"]


def contract_of(**more: Any) -> dict[str, Any]:
    return {
        "contract_id": str(uuid4()),
        "type": "data_model",
        "name": "User",
        "version": 1,
        "status": "proposed",
        "content": CONTENT,
        "implementations": [],
        "created_at": "2026-01-01T00:00:00",
        "updated_at": "2026-01-01T00:00:00",
    } | more


def packet_of(**more: Any) -> dict[str, Any]:
    return {
        "packet_id": str(uuid4()),
        "from_agent": PEER,
        "timestamp": "2026-01-01T12:00:00.5",
        "type": "question",
        "content": {"question": "Why?"},
        "related_contracts": [],
    } | more


def sync(team: Team, contract: dict[str, Any]) -> Any:
    return send(team.node, "contract/sync", projectId=team.project, contract=contract)


def project_of(**more: Any) -> dict[str, Any]:
    return {
        "project_id": str(uuid4()),
        "name": "Theirs",
        "objective": "Everything",
        "status": "planning",
        "repos": [theirs(repo_id="mobile-id", assigned_agent=PEER)],
        "contracts": [contract_of(proposed_by="mobile-id")],
        "context_history": [packet_of(from_repo="mobile-id")],
        "created_at": "2026-01-01T00:00:00",
        "updated_at": "2026-01-01T00:00:00",
    } | more
