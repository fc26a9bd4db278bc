"""Whose cacp/*/sync calls are taken (design §6)."""

from typing import Any
from uuid import uuid4

from tests.server.methods.refusals import refused
from tests.server.methods.sync.foreign_peer import (
    MOBILE,
    PEER,
    contract_of,
    key,
    mesh,
    packet_of,
    send,
    shared,
    theirs,
)
from tests.support.node import REPO, Node, bearer
from tests.support.team import Team

__all__ = ["key", "mesh", "shared"]


def test_a_sync_is_taken_from_its_source_agent_only(shared: Team) -> None:
    """Design §6: source_agent must be the authenticated peer."""
    packet = packet_of(from_repo="x")
    headers = bearer(shared.node.key("aid://example.com/keyed@1.0.0", "keyed", "peer"))
    with refused(-32003, "source_agent_mismatch"):
        send(shared.node, "context/sync", headers=headers, projectId=shared.project, packet=packet)
    with refused(-32003, "unknown_peer"):
        send(
            shared.node,
            "context/sync",
            source_agent="aid://example.com/nobody@1.0.0",
            projectId=shared.project,
            packet=packet,
        )


def test_a_sync_by_its_agent_id_header(shared: Team) -> None:
    headers = {"x-agent-id": PEER}
    repo = theirs(repo_id="theirs-1")
    result = send(shared.node, "repo/sync", headers=headers, projectId=shared.project, repo=repo)
    assert result == {"status": "skipped", "reason": "nothing new"}


def test_neither_a_keyed_agent_nor_a_look_alike_is_taken_at_its_word(shared: Team) -> None:
    given: dict[str, Any] = {"projectId": shared.project, "repo": theirs(repo_id="x")}
    with refused(-32003, "unknown_peer"):
        send(shared.node, "repo/sync", source_agent="aid://example.com/frontend@1.0.0", **given)
    with refused(-32602, "agent_id_not_canonical"):
        send(shared.node, "repo/sync", source_agent=f" {PEER}", **given)


def test_nor_one_whose_id_was_registered_before_its_key_was_made(mesh: Node, shared: Team) -> None:
    early = {"agentId": "aid://example.com/early@1.0.0", "endpoint": "http://127.0.0.1:8083"}
    assert mesh.http.post("/peers/register", json=early).status_code == 200
    mesh.key(early["agentId"], "early")
    repo = theirs(repo_id="x")
    with refused(-32003, "unknown_peer"):
        source = early["agentId"]
        send(mesh, "repo/sync", source_agent=source, projectId=shared.project, repo=repo)


def test_where_unkeyed_peers_are_not_trusted_none_syncs(tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("strict")
    with Node(folder, trust_unkeyed_peers=False) as node:
        peer = {"agentId": PEER, "endpoint": "http://127.0.0.1:8082"}
        assert node.http.post("/peers/register", json=peer).status_code == 403
        operator = bearer(node.operator)
        made = node.http.post("/peers/register", json=peer, headers=operator)
        assert made.status_code == 200
        with refused(-32003, "unknown_peer"):
            send(node, "repo/sync", projectId="p", repo=theirs(repo_id="x"))


def test_a_sync_for_a_project_that_is_not_here_waits_for_it(mesh: Node) -> None:
    """Design §8: pull the project from the sender, and only then apply."""
    result = send(mesh, "contract/sync", projectId=str(uuid4()), contract=contract_of())
    assert (result["status"], "fetched" in result["reason"]) == ("skipped", True)


def test_an_alias_never_stands_for_a_repo_of_the_project(shared: Team) -> None:
    backend = shared.repo_id(REPO)
    repo = theirs(repo_id=backend, agent_id=PEER)
    send(shared.node, "repo/sync", projectId=shared.project, repo=repo)
    packet = packet_of(from_repo=shared.repo_id(MOBILE))
    synced = send(shared.node, "context/sync", projectId=shared.project, packet=packet)
    assert synced["status"] == "created"
    stolen = packet_of(from_repo=backend)
    result = send(shared.node, "context/sync", projectId=shared.project, packet=stolen)
    assert result["status"] == "skipped"
