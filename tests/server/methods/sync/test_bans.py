"""Removal is removal: bans, who hears of them, and what they keep out (docs/mesh-trust.md)."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from peers.signing import SigningKey
from schemas.mesh import SignedBan
from server.auth.authenticator import Caller
from server.domain.agents import identity
from server.domain.authorship import statement
from server.domain.bans import BANS_MAX
from server.methods.base import Context
from server.methods.sync import bans
from server.node import Node as Methods
from tests.cli.run import cacp
from tests.support.located import connect
from tests.support.mesh import (
    Mesh,
    agent_of,
    equal,
    holds,
    join,
    peers,
    project,
    propose,
    status,
)
from tests.support.mesh_member import SOME_TIME, TOKEN, MeshMember
from tests.support.node import Node, RpcError, bearer
from tests.support.waiting import eventually

MAL = "aid://example.com/mal@1.0.0"


@pytest.fixture
def alpha(tmp_path: Path) -> Any:
    """A node that knows the mesh token, and takes the bans of `heeded`."""
    heeded = "aid://example.com/heeded@1.0.0"
    with Node(tmp_path, repo="alpha", mesh_token=TOKEN, bans_from=heeded) as node:
        yield node
        assert "Traceback" not in node.log


def run(node: Node, *words: str) -> str:
    done = cacp("peers", *words, db=str(node.db), agent_id=str(node.settings["agent_id"]))
    assert done.exit_code == 0, done.stderr
    return done.stdout


def agent_of_node(node: Node) -> str:
    return str(node.settings["agent_id"])


def listed(node: Node) -> set[str]:
    return {one["agentId"] for one in peers(node)}


def reason(response: Any) -> str:
    return str(response.json()["error"]["data"]["reason"])


def test_who_was_removed_does_not_come_back_by_the_mesh_token(alpha: Node) -> None:
    """Nor with another key, in another version, or under another name with the same key."""
    mal = MeshMember(alpha, "mal").register()
    run(alpha, "remove", mal.agent, "--reason", "it lies")
    assert listed(alpha) == set()
    assert mal.refused("cacp/sync/digest", prefixes=[""]).reason == "banned"
    assert reason(mal.hello()) == "banned"
    assert reason(MeshMember(alpha, "mal").hello()) == "banned", "a new key under the same name"
    upgraded = MeshMember(alpha, "mal")
    upgraded.agent = mal.agent.replace("1.0.0", "2.0.0")
    assert reason(upgraded.hello()) == "banned"
    renamed = MeshMember(alpha, "innocent")
    renamed.signing = mal.signing
    answer = renamed.hello()
    assert (answer.status_code, reason(answer)) == (403, "banned")
    assert "it lies" not in answer.text, "why is the operators' business"
    assert MeshMember(alpha, "other").register().agent in listed(alpha)


def test_who_was_welcomed_before_the_ban_is_not_entered_after_it(alpha: Node) -> None:
    mal = MeshMember(alpha, "mal")
    welcome = mal.hello()
    run(alpha, "ban", mal.agent)
    assert reason(mal.confirm(welcome)) == "banned"
    assert listed(alpha) == set()


def test_no_key_and_no_word_of_one_who_is_banned_is_taken(alpha: Node) -> None:
    agents, peers_ = alpha.key(MAL, "mal"), alpha.key(MAL, "mal", "peer")
    run(alpha, "ban", MAL)
    for key in (agents, peers_):
        with pytest.raises(RpcError) as refused:
            alpha.call("cacp/project/list", key=key)
        assert (refused.value.code, refused.value.reason) == (-32003, "banned")
    body = {"agentId": MAL, "endpoint": "http://127.0.0.1:9", "repoName": "mal"}
    for headers in (bearer(peers_), {"x-agent-id": "aid://example.com/mal@7.0.0"}):
        answer = alpha.http.post("/peers/register", json=body, headers=headers)
        assert answer.status_code in (401, 403)
    assert listed(alpha) == set()


def test_a_foreign_peer_that_is_removed_stays_so(alpha: Node) -> None:
    body = {"agentId": MAL, "endpoint": "http://127.0.0.1:9", "repoName": "mal"}
    headers = {"x-agent-id": MAL}
    assert alpha.http.post("/peers/register", json=body, headers=headers).status_code == 200
    run(alpha, "remove", MAL)
    for given in (headers, {}):
        answer = alpha.http.post("/peers/register", json=body, headers=given)
        assert reason(answer) == "banned"
    assert listed(alpha) == set()


def test_forgetting_bans_nobody(alpha: Node) -> None:
    """For a node that has lost its file."""
    MeshMember(alpha, "lost").register()
    run(alpha, "remove", agent_of("lost"), "--forget")
    assert listed(alpha) == set()
    assert MeshMember(alpha, "lost").register().agent in listed(alpha)


def test_a_ban_is_listed_and_lifted(alpha: Node) -> None:
    mal = MeshMember(alpha, "mal").register()
    run(alpha, "remove", mal.agent, "--reason", "it lies")
    [ban] = json.loads(run(alpha, "bans", "--json"))
    assert ban["agentId"] == identity(mal.agent)
    assert ban["by"] == identity(agent_of_node(alpha))
    assert (ban["holds"], ban["reason"]) == (True, "it lies")
    assert "it lies" in run(alpha, "bans")
    run(alpha, "unban", mal.agent)
    assert json.loads(run(alpha, "bans", "--json")) == []
    assert mal.register().agent in listed(alpha)
    again = cacp("peers", "unban", mal.agent, db=str(alpha.db))
    assert (again.exit_code, "is not banned" in again.stderr) == (1, True)
    own = cacp("peers", "ban", agent_of("alpha"), db=str(alpha.db), agent_id=agent_of("alpha"))
    assert (own.exit_code, "is this node itself" in own.stderr) == (1, True)


# --- what others say ----------------------------------------------------------------------------


def says(peer: MeshMember, agent: str, stamp: int = SOME_TIME, **more: Any) -> dict[str, Any]:
    """A peer's signed word that an agent is banned."""
    ban = {"agent": agent, "public_key": None, "banned": True, "stamp": stamp, "reason": "r"}
    ban |= more
    value = peer.signing.sign(statement("ban", agent, ban))
    return {"ban": ban, "signature": {"node": peer.agent, "value": value}}


def test_a_node_tells_whom_it_has_banned_signed(alpha: Node) -> None:
    run(alpha, "ban", MAL)
    told = MeshMember(alpha, "curious").register().call("cacp/sync/bans")
    [one] = told["bans"]
    assert one["ban"]["agent"] == identity(MAL)
    assert one["signature"]["node"] == alpha.settings["agent_id"]
    curious = MeshMember(alpha, "again").register()
    assert curious.call("cacp/sync/bans", known=told["digest"])["bans"] == []
    with pytest.raises(RpcError) as refused:
        alpha.call("cacp/sync/bans", source_agent=agent_of_node(alpha))
    assert refused.value.reason == "unknown_peer"


def test_bans_converge_among_the_nodes_that_take_them(mesh: Mesh) -> None:
    """gamma heeds alpha and beta does not: one member can't ban for everybody."""
    alpha = mesh.add("alpha", sync_seconds=0.5)
    beta = mesh.add("beta", alpha, sync_seconds=0.5)
    gamma = mesh.add("gamma", alpha, beta, sync_seconds=0.5, bans_from=agent_of("alpha"))
    delta = mesh.add("delta", alpha, beta, gamma, sync_seconds=0.5)
    for node in (alpha, beta, gamma, delta):
        eventually(lambda node=node: len(peers(node)) == 3)  # type: ignore[misc]
    before = project(delta)
    eventually(lambda: holds(alpha, before) and holds(beta, before) and holds(gamma, before))
    run(alpha, "remove", agent_of("delta"), "--reason", "it lies")
    eventually(lambda: agent_of("delta") not in listed(gamma))
    [heard] = json.loads(
        cacp(
            "peers",
            "bans",
            "--json",
            db=str(gamma.db),
            agent_id=agent_of("gamma"),
            bans_from=agent_of("alpha"),
        ).stdout
    )
    assert (heard["by"], heard["holds"], heard["reason"]) == (
        identity(agent_of("alpha")),
        True,
        "it lies",
    )
    eventually(lambda: len(json.loads(run(beta, "bans", "--json"))) == 1)
    assert json.loads(run(beta, "bans", "--json"))[0]["holds"] is False
    assert agent_of("delta") in listed(beta), "beta has not named alpha"
    # delta tries to come back by the mesh token, and can't; what it wrote before stays.
    eventually(lambda: "is banned here since" in delta.log)
    assert agent_of("delta") not in listed(alpha) | listed(gamma)
    assert holds(alpha, before)
    own = project(alpha)
    eventually(lambda: holds(gamma, own) and holds(beta, own))
    run(alpha, "unban", agent_of("delta"))
    eventually(lambda: agent_of("delta") in listed(alpha) and agent_of("delta") in listed(gamma))
    eventually(lambda: equal(alpha, beta, gamma, delta))


def test_what_a_banned_node_signs_later_is_refused_of_whoever_passes_it_on(alpha: Node) -> None:
    """What it signed before the ban stays, and is taken still."""
    mal, relay = MeshMember(alpha, "mal").register(), MeshMember(alpha, "relay").register()
    shared = "0198c0de-0000-7000-8000-000000000001"
    mal.project(shared)
    relay.project(shared)
    run(alpha, "remove", mal.agent)
    [(banned_at,)] = alpha.query("SELECT stamp FROM bans")
    early, late = "c-early", "c-late"
    for contract, stamp in ((early, banned_at), (late, banned_at + 1)):
        fact = mal.fact(contract, mal.version(shared, stamp))
        relay.contract(shared, contract, fact)
    found = alpha.call("cacp/contract/list", projectId=shared)["contracts"]
    assert [one["contractId"] for one in found] == [early]
    assert "after a ban that applies here" in alpha.log


def test_whose_word_is_not_taken(alpha: Node, tmp_path: Path) -> None:
    """A peer that nobody has named, and one that says a named node had said so."""
    known = MeshMember(alpha, "heeded").register()
    hostile = MeshMember(alpha, "hostile").register()
    victim = MeshMember(alpha, "victim").register()
    forged = says(hostile, identity(victim.agent))
    forged["signature"]["node"] = known.agent
    for statements in (
        [says(hostile, identity(victim.agent))],
        [forged],
        [says(known, identity(victim.agent), stamp=9_000_000_000_000_000)],
        [says(known, identity(agent_of_node(alpha)))],
    ):
        take(alpha, hostile, statements)
        assert victim.agent in listed(alpha), statements
    take(alpha, hostile, [says(known, identity(victim.agent))])
    assert victim.agent not in listed(alpha), "passed on, and signed by the node that was named"
    take(alpha, hostile, [says(known, identity(victim.agent), SOME_TIME + 1, banned=False)])
    assert victim.register().agent in listed(alpha)


def test_of_one_node_no_more_is_heard_at_once_than_is_kept(alpha: Node) -> None:
    """Each costs a check of its signature, while all writes wait."""
    known = MeshMember(alpha, "heeded").register()
    victim = MeshMember(alpha, "victim").register()
    said = [
        says(known, identity(victim.agent), SOME_TIME + number, banned=number == BANS_MAX)
        for number in range(BANS_MAX + 1)
    ]
    take(alpha, known, said)
    assert victim.agent in listed(alpha)
    take(alpha, known, said[-1:])
    assert victim.agent not in listed(alpha)


def take(node: Node, source: MeshMember, statements: list[dict[str, Any]]) -> None:
    """What the node does with an answer of `source`, in a transaction on its file."""
    own = str(node.settings["agent_id"])
    heeded = frozenset({str(node.settings["bans_from"])})
    methods = Methods(own, "alpha", True, True, SigningKey(b"k" * 32), bans_from=heeded)
    caller = Caller(source.agent, source.name, "peer", "key")
    with closing(connect(node.db)) as db:
        db.execute("BEGIN IMMEDIATE")
        stamp = SOME_TIME + 10
        ctx = Context(db, caller, methods, "cacp/sync/bans", stamp)
        bans.take(ctx, map(SignedBan.model_validate, statements))
        db.execute("COMMIT")


def test_who_takes_no_part_in_a_ban_has_no_trouble_with_it(mesh: Mesh) -> None:
    """gamma goes on with both; what beta takes up after the ban, alpha lacks until it is lifted."""
    alpha, beta, gamma = mesh.three()
    run(alpha, "remove", agent_of("beta"))
    eventually(lambda: agent_of("beta") not in listed(alpha))
    later = project(gamma)
    for node, name in ((alpha, "alpha"), (beta, "beta"), (gamma, "gamma")):
        join(node, later, name)
    eventually(lambda: all(holds_claims(node, later, 3) for node in (beta, gamma)))
    both, banned = propose(gamma, later), propose(beta, later)
    for node, contract, action in ((beta, both, "agree"), (gamma, banned, "request_change")):
        eventually(lambda n=node, c=contract: status(n, later, c))  # type: ignore[misc]
        node.call("cacp/contract/respond", projectId=later, contractId=contract, action=action)
    beta.call("cacp/context/share", projectId=later, type="decision", content={})
    eventually(lambda: status(gamma, later, both) == "agreed")
    answered = gamma.call("cacp/contract/respond", projectId=later, contractId=both, **SAID)
    eventually(lambda: status(alpha, later, both) == answered["contractStatus"])
    assert status(alpha, later, banned) is None
    eventually(lambda: backlogs(gamma) == {agent_of("alpha"): 0, agent_of("beta"): 0})
    assert gamma.query("SELECT * FROM undelivered") == []
    assert alpha.query("SELECT method, about FROM set_aside") == []
    run(alpha, "unban", agent_of("beta"))
    eventually(lambda: equal(alpha, beta, gamma))


SAID = {"action": "request_change", "comment": "more"}


def holds_claims(node: Node, project_id: str, count: int) -> bool:
    repos = node.call("cacp/project/get", projectId=project_id)["repos"]
    return sum("agent_id" in one for one in repos) == count


def backlogs(node: Node) -> dict[str, int]:
    return {one["agentId"]: one["sync"]["backlog"] for one in peers(node)}
