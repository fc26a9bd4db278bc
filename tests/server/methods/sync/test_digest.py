"""cacp/sync/digest and cacp/sync/pull, as a peer calls them (design §7)."""

import re
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from peers import digest
from peers.digest import Name
from tests.server.methods.refusals import refused
from tests.support.located import connect
from tests.support.mesh import project, propose
from tests.support.mesh_member import TOKEN, MeshMember
from tests.support.node import Node, check_result


@pytest.fixture(scope="module")
def alpha(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("alpha")
    with Node(folder, repo="alpha", mesh_token=TOKEN) as node:
        yield node
        assert set(re.findall(r"(\w+Error): ", node.log)) <= {"JSONDecodeError"}


@pytest.fixture(scope="module")
def beta(alpha: Node) -> MeshMember:
    return MeshMember(alpha, "beta").register()


def test_one_descends_to_what_is_there(alpha: Node, beta: MeshMember) -> None:
    shared = project(alpha)
    name = Name("project", shared, shared)
    place = digest.place_of(name)
    for length in range(digest.DEPTH):
        found = beta.call("cacp/sync/digest", prefixes=[place[:length]])
        check_result("cacp/sync/digest", found)
        assert place[: length + 1] in found["sums"]
    found = beta.call("cacp/sync/digest", prefixes=[place])
    assert shared in {leaf["entity_id"] for leaf in found["leaves"]}
    assert abs(found["time"] - time.time_ns() // 1000) < 5_000_000


def test_what_is_asked_for_comes_as_the_calls_that_carry_it(alpha: Node, beta: MeshMember) -> None:
    shared = project(alpha)
    contract = propose(alpha, shared)
    wanted = [
        {"entity": "project", "project_id": shared, "entity_id": shared},
        {"entity": "contract", "project_id": shared, "entity_id": contract},
        {"entity": "contract", "project_id": shared, "entity_id": "unknown"},
    ]
    found = beta.call("cacp/sync/pull", entities=wanted)
    check_result("cacp/sync/pull", found)
    assert [one["method"] for one in found["messages"]] == [
        "cacp/project/sync",
        "cacp/contract/sync",
    ]
    assert found["messages"][1]["params"]["contract"]["contract_id"] == contract
    assert found["rest"] == 0


def test_a_large_answer_ends_early_and_says_what_is_left(alpha: Node, beta: MeshMember) -> None:
    shared = project(alpha)
    big = {"text": "x" * 900_000}
    made = [propose(alpha, shared, content=big | {"n": number}) for number in range(4)]
    wanted = [{"entity": "contract", "project_id": shared, "entity_id": one} for one in made]
    found = beta.call("cacp/sync/pull", entities=wanted)
    assert 0 < len(found["messages"]) < 4
    assert len(found["messages"]) + found["rest"] == 4


def test_a_contract_is_fetched_in_parts(alpha: Node, beta: MeshMember) -> None:
    shared = project(alpha)
    contract = propose(alpha, shared)
    both: dict[str, Any] = {"projectId": shared, "contractId": contract}
    for version in range(2, 6):
        large: Any = {"version": version, "text": "x" * 900_000}
        alpha.call("cacp/contract/respond", **both, action="request_change", suggestedChange=large)
        alpha.call("cacp/contract/update", **both, content={"version": version})
    wanted = [
        {"entity": "contract", "project_id": shared, "entity_id": one}
        for one in (contract, propose(alpha, shared))
    ]
    facts, piece, answers = [], 0, 0
    while True:
        found = beta.call("cacp/sync/pull", entities=wanted, piece=piece)
        check_result("cacp/sync/pull", found)
        of_first = [
            one["params"]
            for one in found["messages"]
            if one["params"]["contract"]["contract_id"] == contract
        ]
        facts += [fact["fact"] for one in of_first for fact in one["facts"]]
        answers += 1
        if found["rest"] < 2:
            break
        assert found["nextPiece"] > piece
        piece = found["nextPiece"]
    assert answers > 1
    assert sorted(fact["kind"] for fact in facts) == ["response"] * 4 + ["version"] * 5

    older = beta.call("cacp/sync/pull", entities=wanted)
    assert "nextPiece" not in older, "an earlier release knows no such member"
    assert older["rest"] == 1, "it goes on with the next, and compares again"


def test_what_can_not_be_sent_is_left_out_and_noted(alpha: Node, beta: MeshMember) -> None:
    shared = project(alpha)
    bad, good = propose(alpha, shared), propose(alpha, shared)
    with closing(connect(alpha.db)) as db:
        db.execute("UPDATE facts SET body = '{' WHERE contract_id = ?", (bad,))
    wanted = [{"entity": "contract", "project_id": shared, "entity_id": one} for one in (bad, good)]
    found = beta.call("cacp/sync/pull", entities=wanted, piece=0)
    assert [one["params"]["contract"]["contract_id"] for one in found["messages"]] == [good]
    assert found["rest"] == 0
    [(peer, reason)] = alpha.query("SELECT peer, reason FROM undelivered WHERE entity_id = ?", bad)
    assert (peer, reason.split(",")[0]) == (beta.agent, "can't be composed: JSONDecodeError")


def test_only_a_peer_with_keys_compares(alpha: Node, beta: MeshMember) -> None:
    name = "aid://example.com/agent@1.0.0"
    agent_key, peer_key = alpha.key(name, "agent"), alpha.key(name, "agent", "peer")
    for method, params in (
        ("cacp/sync/digest", {"prefixes": [""]}),
        (
            "cacp/sync/pull",
            {"entities": [{"entity": "project", "project_id": "p", "entity_id": "p"}]},
        ),
    ):
        for key, reason in ((agent_key, "not_a_peer"), (peer_key, "unknown_peer")):
            with refused(-32003, reason):
                alpha.call(method, key=key, source_agent=name, **params)
        assert beta.refused(method, source_agent="another", **params).reason == "unknown_peer"
