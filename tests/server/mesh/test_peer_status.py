"""What GET /peers and the metrics say of the exchange with each peer."""

from tests.support.mesh import Mesh, agent_of, equal, peers, project
from tests.support.waiting import eventually


def test_a_peer_says_how_its_exchange_goes(mesh: Mesh) -> None:
    """GET /peers: health, lag, backlog, last contact, last error."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: bool(peers(beta)) and peers(beta)[0].get("sync", {}).get("health") == "up")
    eventually(lambda: peers(beta)[0]["sync"].get("isEqual") is True)
    [peer] = peers(beta)
    assert (peer["agentId"], peer["trust"]) == (agent_of("alpha"), "verified")
    assert peer["kind"] == "mesh"
    assert peer["sync"].pop("comparedAt") > "2020"
    assert peer["sync"] | {"lastContact": None, "digestRounds": 0} == {
        "health": "up",
        "backlog": 0,
        "undelivered": 0,
        "mail": 0,
        "lagSeconds": 0.0,
        "lastContact": None,
        "retries": 0,
        "digestRounds": 0,
        "isEqual": True,
    }
    verdict = beta.get("/peers").json()["mesh"]
    assert verdict["sentence"] == "The mesh is equal: alpha holds the same"
    assert verdict["comparedAt"] > "2020"
    eventually(lambda: peers(beta)[0].get("clockAheadSeconds") == 0)
    project(beta)
    eventually(lambda: equal(alpha, beta))
    metrics = beta.get("/metrics").text
    names = ("up", "backlog", "undelivered", "lag_seconds", "retries_total", "conflicts_total")
    for name in (*names, "digest_rounds_total"):
        assert f'cacp_peer_{name}{{peer="{agent_of("alpha")}"}}' in metrics
