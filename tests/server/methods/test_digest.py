"""cacp/sync/digest and cacp/sync/pull, as a peer calls them (design §6)."""

import time
from collections.abc import Iterator

import pytest

from peers import digest
from peers.digest import Name
from tests.node import Node, check_result
from tests.scenarios.mesh import project, propose
from tests.server.methods.refusals import refused
from tests.stranger import TOKEN, Stranger


@pytest.fixture(scope="module")
def alpha(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("alpha")
    with Node(folder, repo="alpha", mesh_token=TOKEN) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture(scope="module")
def beta(alpha: Node) -> Stranger:
    return Stranger(alpha, "beta").register()


def test_one_descends_to_what_is_there(alpha: Node, beta: Stranger) -> None:
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


def test_what_is_asked_for_comes_as_the_calls_that_carry_it(alpha: Node, beta: Stranger) -> None:
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


def test_a_large_answer_ends_early_and_says_what_is_left(alpha: Node, beta: Stranger) -> None:
    shared = project(alpha)
    big = {"text": "x" * 900_000}
    made = [propose(alpha, shared, content=big | {"n": number}) for number in range(4)]
    wanted = [{"entity": "contract", "project_id": shared, "entity_id": one} for one in made]
    found = beta.call("cacp/sync/pull", entities=wanted)
    assert 0 < len(found["messages"]) < 4
    assert len(found["messages"]) + found["rest"] == 4


def test_only_a_peer_with_keys_compares(alpha: Node, beta: Stranger) -> None:
    key = alpha.key("aid://example.com/agent@1.0.0", "agent")
    for method, params in (
        ("cacp/sync/digest", {"prefixes": [""]}),
        (
            "cacp/sync/pull",
            {"entities": [{"entity": "project", "project_id": "p", "entity_id": "p"}]},
        ),
    ):
        with refused(-32003, "unknown_peer"):
            alpha.call(method, key=key, source_agent="aid://example.com/agent@1.0.0", **params)
        assert beta.refused(method, source_agent="another", **params).reason == "unknown_peer"
