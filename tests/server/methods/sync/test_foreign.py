"""cacp/*/sync: what foreign peers send (CACP 2.0, Sync Methods; design §6, §8)."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from server.domain.identifiers import repo_id_for
from tests.node import REPO, Node, bearer, check_result, error_of
from tests.server.methods.refusals import refused
from tests.team import CONTENT, FRONTEND, Team

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


# --- who may sync (design §6) -------------------------------------------------------------------


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
        assert node.http.post("/peers/register", json=peer).status_code == 200
        with refused(-32003, "unknown_peer"):
            send(node, "repo/sync", projectId="p", repo=theirs(repo_id="x"))


def test_unknown_members_are_ignored(shared: Team) -> None:
    """Design §5: other unknown params are ignored in */sync."""
    packet = packet_of(from_repo=shared.repo_id(MOBILE), mood="good")
    result = send(
        shared.node, "context/sync", projectId=shared.project, packet=packet, hops=3, trace=None
    )
    assert result["status"] == "created"


def test_a_sync_for_a_project_that_is_not_here_waits_for_it(mesh: Node) -> None:
    """Design §8: pull the project from the sender, and only then apply."""
    result = send(mesh, "contract/sync", projectId=str(uuid4()), contract=contract_of())
    assert (result["status"], "fetched" in result["reason"]) == ("skipped", True)


# --- cacp/repo/sync -----------------------------------------------------------------------------


def test_a_repo_and_its_claim_are_taken(shared: Team) -> None:
    """CACP 2.0, cacp/project/join broadcasts cacp/repo/sync."""
    repo = shared.repo(MOBILE)
    assert (repo["agent_id"], repo["language"]) == (PEER, "swift")


def test_a_repos_agent_is_read_under_its_other_name_too(mesh: Node, key: str) -> None:
    """Design §8: assigned_agent for a repo's agent."""
    team = invited(mesh, key)
    repo = theirs(repo_id="their-own-id", assigned_agent=PEER, agent_endpoint="http://127.0.0.1:1")
    assert send(mesh, "repo/sync", projectId=team.project, repo=repo)["status"] == "updated"
    assert send(mesh, "repo/sync", projectId=team.project, repo=repo)["status"] == "skipped"
    found = team.repo(MOBILE)
    assert (found["agent_id"], found["agent_endpoint"]) == (PEER, "http://127.0.0.1:1")
    assert found["repo_id"] == repo_id_for(team.project, MOBILE)


def test_a_claim_on_what_another_holds_is_kept_as_a_conflict(shared: Team) -> None:
    """Design §5: of two claims made apart the other becomes a conflict record."""
    repo = theirs(repo_id="x", agent_id=PEER) | {"name": FRONTEND}
    result = send(shared.node, "repo/sync", projectId=shared.project, repo=repo)
    assert result["status"] == "skipped"
    assert result["skipped"][0]["kind"] == "repo"
    assert shared.repo(FRONTEND)["agent_id"] == "aid://example.com/frontend@1.0.0"


def test_an_endpoint_that_must_not_be_called_is_passed_over(mesh: Node, key: str) -> None:
    team = invited(mesh, key)
    repo = theirs(repo_id="x", agent_id=PEER, agent_endpoint="http://169.254.169.254/")
    result = send(mesh, "repo/sync", projectId=team.project, repo=repo)
    assert (result["status"], len(result["skipped"])) == ("updated", 1)
    assert "agent_endpoint" not in team.repo(MOBILE)


# --- cacp/contract/sync -------------------------------------------------------------------------


def sync(team: Team, contract: dict[str, Any]) -> Any:
    return send(team.node, "contract/sync", projectId=team.project, contract=contract)


def test_a_peers_contract_is_taken(shared: Team) -> None:
    """CACP 2.0, cacp/contract/sync."""
    contract = contract_of(proposed_by=shared.repo_id(MOBILE))
    assert sync(shared, contract)["status"] == "created"
    found = shared.contract(contract["contract_id"])
    assert found["content"] == CONTENT
    assert (found["status"], found["proposed_by"]) == ("proposed", shared.repo_id(MOBILE))
    assert found["created_at"] == "2026-01-01T00:00:00.000000+00:00"
    assert sync(shared, contract)["status"] == "skipped", "no difference, no fact"


def test_a_peer_agrees_by_the_status_that_it_sends(shared: Team) -> None:
    """Design §8: each difference becomes a fact authored by that peer's repo."""
    contract = shared.proposed()
    seen = shared.contract(contract)
    assert sync(shared, seen)["status"] == "skipped"
    assert sync(shared, seen | {"status": "agreed"})["status"] == "updated"
    assert shared.contract(contract)["status"] == "agreed"


def test_a_lower_version_that_a_peer_made_apart_is_kept_and_named(shared: Team) -> None:
    """It has lost to ours; the peer's node hears so, and our agents by the stream."""
    contract = shared.proposed()
    seen = shared.contract(contract)
    assert sync(shared, seen)["status"] == "skipped"
    for content in ({"a": 2}, {"a": 3}):
        shared.backend("contract/update", contractId=contract, content=content)
    own = shared.repo(MOBILE)["repo_id"]
    theirs = seen | {"version": 2, "content": {"a": "theirs"}, "proposed_by": own}
    said = sync(shared, theirs)
    assert said["reason"] == "Version 2 is kept as a conflict: it lost to version 3"
    again = sync(shared, theirs | {"updated_at": "2999-01-01T00:00:00"})
    assert (said["status"], again["reason"]) == ("skipped", "nothing new")
    [lost] = shared.backend("contract/conflicts", contractId=contract)["conflicts"]
    assert (lost["content"], lost["proposedBy"]) == ({"a": "theirs"}, own)
    assert shared.contract(contract)["content"] == {"a": 3}


def test_a_peer_rejects_what_was_agreed(shared: Team) -> None:
    """CACP 2.0, cacp/contract/respond: back to proposed, on record, and everybody is told."""
    contract = shared.agreed()
    seen = shared.contract(contract)
    sync(shared, seen)
    assert sync(shared, seen | {"status": "proposed"})["status"] == "updated"
    assert shared.contract(contract)["status"] == "proposed"
    [said] = shared.node.query(
        "SELECT actor, outcome FROM changes WHERE entity_id = ? ORDER BY seq DESC LIMIT 1", contract
    )
    assert said == (PEER, "proposed")


def test_what_a_peer_may_not_say_is_named(shared: Team) -> None:
    """Its node asks for no answer: the log has one line, however often it says so."""
    contract = shared.proposed()
    seen = shared.contract(contract)
    work = {"repo_id": shared.repo_id(MOBILE), "agent_id": PEER, "status": "complete"}
    sync(shared, seen)
    for _ in range(2):
        far = seen | {"version": 5_000, "implementations": [work]}
        assert sync(shared, far)["reason"] == "Its version is too far ahead"
    assert shared.node.log.count(f'"contract": "{contract}"') == 1


def test_a_peer_works_on_what_was_agreed(shared: Team) -> None:
    contract = shared.agreed()
    seen = shared.contract(contract)
    sync(shared, seen)
    work = {
        "repo_id": shared.repo_id(MOBILE),
        "agent_id": PEER,
        "status": "complete",
        "files": ["App/User.swift"],
    }
    assert sync(shared, seen | {"implementations": [work]})["status"] == "updated"
    [found] = shared.contract(contract)["implementations"]
    assert (found["agent_id"], found["status"]) == (PEER, "complete")
    assert found["files"] == ["App/User.swift"]


def test_a_peer_does_not_speak_for_another_repo(shared: Team) -> None:
    """Design §6: for its own repo's facts only."""
    contract = shared.agreed()
    seen = shared.contract(contract)
    work = {"repo_id": shared.repo_id(REPO), "agent_id": "x", "status": "complete"}
    sync(shared, seen)
    sync(shared, seen | {"implementations": [work]})
    assert shared.contract(contract)["implementations"] == []
    other = contract_of(proposed_by=shared.repo_id(REPO))
    assert sync(shared, other)["status"] == "skipped"
    with refused(-32602, "not_found", kind="contract"):
        shared.contract(other["contract_id"])


def test_nothing_that_a_peer_sends_deletes(shared: Team) -> None:
    """Design §8: a merge never deletes."""
    contract = shared.implemented()
    seen = shared.contract(contract)
    sync(shared, seen)
    sync(shared, seen | {"implementations": [], "status": "proposed"})
    found = shared.contract(contract)
    assert len(found["implementations"]) == 2
    assert found["version"] == 1


def test_a_contract_that_has_no_canonical_form_is_skipped(shared: Team) -> None:
    contract = contract_of(proposed_by=shared.repo_id(MOBILE), content={"n": 2**53})
    assert sync(shared, contract)["status"] == "skipped"


def test_a_contract_of_another_project_is_skipped(shared: Team, mesh: Node, key: str) -> None:
    contract = Team.on(mesh, key).proposed()
    result = sync(shared, contract_of(contract_id=contract, proposed_by=shared.repo_id(MOBILE)))
    assert result["status"] == "skipped"


# --- cacp/context/sync --------------------------------------------------------------------------


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


# --- cacp/project/sync --------------------------------------------------------------------------


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


def test_a_peers_project_is_taken_whole(mesh: Node) -> None:
    """CACP 2.0, cacp/project/sync."""
    project = project_of()
    assert send(mesh, "project/sync", project=project)["status"] == "created"
    found = mesh.call("cacp/project/get", projectId=project["project_id"])
    assert (found["name"], found["objective"], found["status"]) == (
        "Theirs",
        "Everything",
        "planning",
    )
    assert found["created_at"] == "2026-01-01T00:00:00.000000+00:00"
    [repo], [contract], [packet] = (
        found["repos"],
        found["contracts"],
        found["context_history"],
    )
    assert repo["repo_id"] == repo_id_for(project["project_id"], MOBILE)
    assert contract["proposed_by"] == packet["from_repo"] == repo["repo_id"]
    assert send(mesh, "project/sync", project=project)["status"] == "skipped"


def test_a_peer_moves_the_header_only_by_what_it_changed(mesh: Node) -> None:
    project = project_of(contracts=[], context_history=[])
    send(mesh, "project/sync", project=project)
    at = {"projectId": project["project_id"]}
    mesh.call("cacp/project/updateStatus", **at, status="implementing")
    send(mesh, "project/sync", project=project)
    assert mesh.call("cacp/project/get", **at)["status"] == "implementing"
    result = send(mesh, "project/sync", project=project | {"name": "Renamed"})
    assert result["status"] == "updated"
    found = mesh.call("cacp/project/get", **at)
    assert (found["name"], found["status"]) == ("Renamed", "implementing")


def test_what_a_peer_leaves_out_of_a_header_stays(mesh: Node) -> None:
    project = project_of(contracts=[], context_history=[])
    send(mesh, "project/sync", project=project | {"objective": "o", "status": "implementing"})
    short = {name: project[name] for name in ("project_id", "repos")} | {"name": "Renamed"}
    assert send(mesh, "project/sync", project=short)["status"] == "updated"
    found = mesh.call("cacp/project/get", projectId=project["project_id"])
    assert [found[name] for name in ("name", "objective", "status")] == [
        "Renamed",
        "o",
        "implementing",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"project_id": ""},
        {"status": "done"},
        {"created_at": "yesterday"},
        {"contracts": [{"contract_id": "x"}]},
        {"repos": "none"},
    ],
)
def test_what_does_not_parse_is_refused_and_changes_nothing(
    mesh: Node, wrong: dict[str, Any]
) -> None:
    before = mesh.query("SELECT count(*) FROM changes")
    with refused(-32602, "invalid_params"):
        send(mesh, "project/sync", project=project_of() | wrong)
    assert mesh.query("SELECT count(*) FROM changes") == before


def test_null_means_absent_in_what_peers_send(mesh: Node) -> None:
    """Design §5: null means absent."""
    nulls = dict.fromkeys(["objective", "contracts", "context_history", "created_at", "updated_at"])
    assert send(mesh, "project/sync", project=project_of() | nulls)["status"] == "created"


# --- who may say what (design §6: a peer speaks for its own repo's facts only) --------------------


def test_an_outsider_changes_nothing_of_a_project(mesh: Node, key: str) -> None:
    team = Team.on(mesh, key)
    before = team.backend("project/get")
    project = {
        "project_id": team.project,
        "name": "Mine now",
        "objective": "",
        "repos": [theirs(repo_id="x", agent_id=PEER)],
        "contracts": [contract_of()],
    }
    for name in ("User Auth", "Mine now"):
        result = send(mesh, "project/sync", project=project | {"name": name})
        assert result["status"] == "skipped"
        assert {one["kind"] for one in result["skipped"]} == {"project", "repo", "contract"}
    assert team.backend("project/get") == before


def test_a_party_does_not_verify_what_nobody_has_built(shared: Team) -> None:
    """Design §5: verified follows implemented."""
    contract_id = shared.backend(
        "contract/propose", type="data_model", name="User", content=CONTENT
    )["contractId"]
    shared.frontend("contract/respond", contractId=contract_id, action="agree")
    forged = shared.backend("contract/get", contractId=contract_id) | {
        "status": "verified",
        "updated_at": "2026-01-01T00:00:00",
    }
    assert sync(shared, forged)["status"] == "skipped"
    assert shared.backend("contract/get", contractId=contract_id)["status"] == "agreed"


def test_a_repo_that_is_no_party_writes_no_version_of_what_is_agreed(shared: Team) -> None:
    parties = [shared.repo_id(REPO), shared.repo_id(FRONTEND)]
    contract_id = shared.backend(
        "contract/propose", type="data_model", name="User", content=CONTENT, parties=parties
    )["contractId"]
    shared.frontend("contract/respond", contractId=contract_id, action="agree")
    before = shared.backend("contract/get", contractId=contract_id)
    evil = before | {"version": 2, "content": {"evil": 1}, "updated_at": "2026-01-01T00:00:00"}
    assert sync(shared, evil)["status"] == "skipped"
    assert sync(shared, before | {"version": 5_000, "content": {}})["status"] == "skipped"
    assert shared.backend("contract/get", contractId=contract_id) == before


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
