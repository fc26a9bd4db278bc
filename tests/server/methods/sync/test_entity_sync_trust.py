"""cacp/*/sync: whose key it takes, and what a peer without one may not say (design §6)."""

import json
from typing import Any
from uuid import UUID

from uuid_utils import uuid7

from server.domain.identifiers import begun_by
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
    sync,
    theirs,
)
from tests.support.node import REPO, Node, bearer
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team

__all__ = ["key", "mesh", "shared"]


def test_an_agents_key_syncs_nothing(shared: Team) -> None:
    """Design §6: by `contract/sync` it took an agreed contract to `proposed`, version 901; by
    `project/sync` it renamed projects."""
    contract = shared.agreed()
    before = shared.contract(contract)
    claimed = before | {"version": 901, "status": "proposed", "content": {"mine": True}}
    project = {"project_id": shared.project, "name": "Mine", "objective": "o", "repos": []}
    given: dict[str, dict[str, Any]] = {
        "contract/sync": {"projectId": shared.project, "contract": claimed},
        "project/sync": {"project": project},
        "context/sync": {"projectId": shared.project, "packet": packet_of(from_repo="x")},
        "repo/sync": {"projectId": shared.project, "repo": theirs(repo_id="x")},
        "sync/digest": {"prefixes": [""], "kinds": []},
        "sync/pull": {"entities": []},
        "peer/announce": {"agentId": FRONTEND_AGENT, "endpoint": "http://127.0.0.1:8085"},
    }
    for method, params in given.items():
        said = {"source_agent": FRONTEND_AGENT} | params
        with refused(-32003, "not_a_peer"):
            send(shared.node, method, headers=bearer(shared.key), **said)
    body = given["peer/announce"]
    answer = shared.node.http.post("/peers/register", json=body, headers=bearer(shared.key))
    assert answer.json()["error"]["data"]["reason"] == "not_a_peer"
    assert shared.contract(contract) == before
    assert shared.backend("project/get")["name"] == "User Auth"


def test_a_peers_key_syncs_once_it_is_registered(mesh: Node, key: str) -> None:
    agent, repo = "aid://example.com/iot@1.0.0", "iot-app"
    team = Team.on(mesh, key)
    team.backend("project/addRepo", repo=theirs() | {"name": repo})
    theirs_ = mesh.key(agent, repo, "peer")
    said = {"name": repo, "role": "r", "language": "c", "repo_id": "x", "agent_id": agent}
    given: dict[str, Any] = {"source_agent": agent, "projectId": team.project, "repo": said}
    with refused(-32003, "unknown_peer"):
        send(mesh, "repo/sync", headers=bearer(theirs_), **given)
    body = {"agentId": agent, "endpoint": "http://127.0.0.1:8084", "repoName": repo}
    assert mesh.http.post("/peers/register", json=body, headers=bearer(theirs_)).status_code == 200
    assert send(mesh, "repo/sync", headers=bearer(theirs_), **given)["status"] == "updated"
    assert team.repo(repo)["agent_id"] == agent
    with refused(-32003, "insufficient_trust"):
        mesh.call("cacp/project/create", key=theirs_, name="n", objective="o")


def test_a_peer_at_its_word_takes_no_other_repos_facts(shared: Team) -> None:
    """The exception of loopback ends at its own repo: what others answered, claimed and proposed
    stays, and no status is jumped to."""
    contract = shared.agreed(parties=[REPO, FRONTEND])
    before = shared.contract(contract)
    assert before["status"] == "agreed"
    sync(shared, before)
    own = shared.repo_id(MOBILE)
    works = [
        {"repo_id": shared.repo_id(name), "agent_id": PEER, "status": "complete"}
        for name in (REPO, FRONTEND)
    ]
    for lie in (
        {"status": "implemented", "implementations": works},
        {"status": "verified", "implementations": works},
        {"status": "proposed"},
        {"version": 901, "status": "proposed", "content": {"a": 1}, "proposed_by": own},
        {"version": 2, "content": {"a": 1}, "proposed_by": shared.repo_id(REPO)},
    ):
        later = {"updated_at": "2999-01-01T00:00:00"}
        sync(shared, before | later | lie)
        assert shared.contract(contract) == before, lie
    for name in (REPO, FRONTEND):
        claim = theirs(repo_id=shared.repo_id(name), agent_id=PEER) | {"name": name}
        send(shared.node, "repo/sync", projectId=shared.project, repo=claim)
        assert shared.repo(name)["agent_id"] != PEER


def test_who_has_joined_since_makes_no_other_version_of_one_that_a_peer_shows(
    shared: Team,
) -> None:
    """A version binds the repos that there were: what a peer tells of it again is no news."""
    contract = shared.proposed()
    sync(shared, shared.contract(contract))
    shared.backend("contract/update", contractId=contract, content={"a": 2})
    seen = shared.contract(contract)
    late = {"name": f"late-{contract}", "role": "service", "language": "go"}
    shared.backend("project/addRepo", repo=late)
    own = shared.repo(MOBILE)["repo_id"]
    for version in (1, 2):
        told = seen | {"version": version, "content": {"a": 2}, "proposed_by": own}
        sync(shared, told)
    bodies = "SELECT body FROM facts WHERE contract_id = ? AND kind = 'version'"
    found = [json.loads(body)["version"] for (body,) in shared.node.query(bodies, contract)]
    assert sorted(found) == [1, 1, 2], "another content of version 1, and no other"


def test_a_peer_begins_no_contract_whose_id_names_a_node(shared: Team) -> None:
    """The node brings it: the other nodes would take it from nobody else."""
    own = shared.repo(MOBILE)["repo_id"]
    fresh = UUID(bytes=uuid7().bytes)
    named = begun_by("aid://example.com/elsewhere@1.0.0", shared.project, fresh)
    said = sync(shared, contract_of(contract_id=named, proposed_by=own))
    assert said["reason"] == "A mesh node created it and will sync it"
    assert sync(shared, contract_of(proposed_by=own))["status"] == "created"
