"""The node's side of the mesh on a real node; tests/scenarios tells what it does for a mesh."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from peers.client import CallError, Refused, Unreachable
from server.domain.errors import Forbidden, InvalidInput, RateLimited, Unavailable
from server.mesh import may_pass
from server.methods.peer import PEERS_MAX
from server.store.database import connect
from tests.double import AGENT, Double
from tests.node import Node, free_port
from tests.scenarios.mesh import Meshed, agent_of, equal, holds, peers, project
from tests.stranger import TOKEN, Stranger
from tests.waiting import eventually


def test_a_peer_says_how_its_exchange_goes(mesh: Meshed) -> None:
    """GET /peers: health, lag, backlog, last contact, last error."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: bool(peers(beta)) and peers(beta)[0].get("sync", {}).get("health") == "up")
    [found] = peers(beta)
    assert (found["agentId"], found["trust"]) == (agent_of("alpha"), "verified")
    assert found["sync"] | {"lastContact": None, "digestRounds": 0} == {
        "health": "up",
        "backlog": 0,
        "undelivered": 0,
        "mail": 0,
        "lagSeconds": 0.0,
        "lastContact": None,
        "retries": 0,
        "digestRounds": 0,
    }
    eventually(lambda: peers(beta)[0].get("clockAheadSeconds") == 0)
    project(beta)
    eventually(lambda: equal(alpha, beta))
    metrics = beta.get("/metrics").text
    names = ("up", "backlog", "undelivered", "lag_seconds", "retries_total", "conflicts_total")
    for name in (*names, "digest_rounds_total"):
        assert f'cacp_peer_{name}{{peer="{agent_of("alpha")}"}}' in metrics


def test_a_peer_that_is_gone_for_good_costs_nothing(tmp_path: Path) -> None:
    with Node(tmp_path, repo="alpha", mesh_token=TOKEN, log_format="json") as node:
        Stranger(node, "gone").register()
        eventually(lambda: '"peer_down"' in node.log)
        for _ in range(20):
            project(node)
        [found] = peers(node)
        assert (found["sync"]["health"], found["sync"]["backlog"]) == ("down", 20)
        assert node.log.count('"peer_down"') == 1
    assert "Traceback" not in node.log


def test_who_registers_again_is_found_at_its_new_endpoint(mesh: Meshed) -> None:
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: equal(alpha, beta) and len(peers(alpha)) == 1)
    beta.stop()
    beta.port = free_port()
    beta.settings["port"] = beta.port
    beta.restart()
    project(alpha)
    eventually(lambda: peers(alpha)[0]["endpoint"] == beta.url)
    eventually(lambda: equal(alpha, beta))


def test_a_flood_of_registrations_is_cut_off(tmp_path: Path) -> None:
    """Issue: 10,000 registrations are refused, named once, and harm nobody."""
    with Node(tmp_path, repo="alpha", mesh_token=TOKEN, log_format="json") as node:
        assert flood(node, range(120)) == {200: PEERS_MAX, 403: 20}
        assert strangers(node, 50) == {401: 50}
        check_unharmed(node)


@pytest.mark.soak
def test_ten_thousand_registrations_leave_a_node_as_it_was(tmp_path: Path) -> None:
    """Memory stays flat: 32 MiB more would be 3 kB for each."""
    with Node(tmp_path, repo="alpha", mesh_token=TOKEN, log_format="json") as node:
        flood(node, range(1_000))
        strangers(node, 1_000)
        before = memory(node)
        assert flood(node, range(1_000, 6_000)) == {403: 5_000}
        assert strangers(node, 5_000) == {401: 5_000}
        assert memory(node) - before < 32 * 1024 * 1024
        check_unharmed(node)


# --- what is deferred ---------------------------------------------------------------------------


def test_a_deferred_message_outlasts_what_may_pass(tmp_path: Path) -> None:
    """Its peer can't say what the project is: it is told once, and asked again."""
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        shared = unheard_of(node, double)
        double.refuses["cacp/project/get"] = {"code": -32000, "message": "Server error: busy"}
        tell(node, double, shared)
        eventually(lambda: "deferred_waits" in node.log)
        hurry(node)
        eventually(lambda: double.calls.count("cacp/project/get") >= 2)
        assert node.get("/mesh").json()["deferred"] == 1
        assert node.log.count("deferred_waits") == 1
        double.refuses.clear()
        hurry(node)
        eventually(lambda: holds(node, shared))
        eventually(lambda: node.get("/mesh").json()["deferred"] == 0)
        listed = node.call("cacp/contract/list", projectId=shared)["contracts"]
        assert [one["name"] for one in listed] == ["Theirs"]


def test_a_deferred_message_is_dropped_when_it_is_refused_for_good(tmp_path: Path) -> None:
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        tell(node, double, "nowhere")
        eventually(lambda: "deferred_refused" in node.log)
        eventually(lambda: node.get("/mesh").json()["deferred"] == 0)
        assert "cacp_deferred_dropped_total 1.0" in node.get("/metrics").text
        assert f'"peer": "{AGENT}"' in node.log


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (Unreachable("down"), True),
        (Refused("refuses (HTTP 503)", status=503), True),
        (Refused("refuses: Server error", status=200, code=-32000), True),
        (Refused("refuses: no key", status=401), True),
        (Refused("refuses: Project p not found", status=200, code=-32602), False),
        (Unavailable("The disk is full"), True),
        (RateLimited("Too many calls"), True),
        (InvalidInput("no"), False),
        (Forbidden("no"), False),
        (ValueError("no"), False),
    ],
)
def test_what_may_pass(error: CallError, passes: bool) -> None:
    assert may_pass(error) is passes


def unheard_of(node: Node, double: Double) -> str:
    """A project of the peer that this node has not heard of."""
    refused = node.url + "/nowhere"
    return double.create(refused, "alpha")


def tell(node: Node, double: Double, project_id: str) -> None:
    contract = double.contract_of()
    told = double.send(node.url, "cacp/contract/sync", projectId=project_id, contract=contract)
    assert told["result"]["status"] == "skipped"


def hurry(node: Node) -> None:
    """Have what waits be due now."""
    db = connect(node.db)
    db.execute("UPDATE set_aside SET due = 0")
    db.close()


def flood(node: Node, numbers: Iterable[int]) -> Counter[int]:
    """How many registrations of agents that nobody knows got which status."""
    answers = (
        node.http.post(
            "/peers/register",
            json={"agentId": f"peer-{number}", "endpoint": "http://127.0.0.1:1"},
        )
        for number in numbers
    )
    return Counter(answer.status_code for answer in answers)


def strangers(node: Node, count: int) -> Counter[int]:
    """The same, of nodes that don't know the mesh token, each with a key of its own."""
    answers = (Stranger(node, f"s{number}").hello("not the token") for number in range(count))
    return Counter(answer.status_code for answer in answers)


def memory(node: Node) -> float:
    found = re.search(r"^process_resident_memory_bytes (\S+)$", node.get("/metrics").text, re.M)
    assert found is not None
    return float(found[1])


def check_unharmed(node: Node) -> None:
    """It names each kind of refusal once, takes no more peers than it may, and goes on."""
    refused = [
        line["reason"]
        for line in map(json.loads, node.log.splitlines())
        if line["event"] == "registration_refused" and "left_out" not in line
    ]
    assert sorted(refused) == ["peer_limit", "unknown_secret"]
    assert len(peers(node)) == PEERS_MAX
    project(node)
    assert node.get("/health").json()["status"] == "healthy"
    assert "Traceback" not in node.log
