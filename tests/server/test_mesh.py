"""The node's side of the mesh on a real node; tests/scenarios tells what it does for a mesh."""

from pathlib import Path

from tests.node import Node, free_port
from tests.scenarios.mesh import Meshed, agent_of, equal, eventually, peers, project
from tests.stranger import TOKEN, Stranger


def test_a_peer_says_how_its_exchange_goes(mesh: Meshed) -> None:
    """GET /peers: health, lag, backlog, last contact, last error."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: bool(peers(beta)) and (peers(beta)[0]["sync"] or {}).get("health") == "up")
    [found] = peers(beta)
    assert (found["agentId"], found["trust"]) == (agent_of("alpha"), "verified")
    assert found["sync"] | {"lastContact": None} == {
        "health": "up",
        "backlog": 0,
        "mail": 0,
        "lagSeconds": 0.0,
        "lastContact": None,
        "lastError": None,
    }
    project(beta)
    eventually(lambda: equal(alpha, beta))
    metrics = beta.get("/metrics").text
    for name in ("backlog", "lag_seconds", "retries_total", "digest_rounds_total", "up"):
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
    """Issue: 10,000 registrations are refused and harm nobody."""
    with Node(tmp_path, repo="alpha", log_format="json") as node:
        answers = [
            node.http.post(
                "/peers/register",
                json={"agentId": f"peer-{number}", "endpoint": "http://127.0.0.1:1"},
            )
            for number in range(120)
        ]
        assert [one.status_code for one in answers] == [200] * 100 + [403] * 20
        assert answers[-1].json()["error"]["data"]["reason"] == "peer_limit"
        project(node)
        assert node.get("/health").json()["status"] == "healthy"
