"""A mesh of our own make with a peer of another make at one of its nodes (design §6)."""

from tests.double import AGENT, REPO, Double
from tests.scenarios.mesh import (
    Meshed,
    equal,
    eventually,
    holds,
    join,
    peers,
    project,
    propose,
    status,
)


def test_what_a_peer_of_another_make_says_reaches_nodes_that_do_not_know_it(mesh: Meshed) -> None:
    """Alpha takes it at its word and vouches for that; beta takes alpha's."""
    with Double() as double:
        alpha = mesh.add("alpha")
        beta = mesh.add("beta", alpha)
        alpha.stop()
        alpha.settings["peers"] = double.url
        alpha.start()
        eventually(lambda: len(peers(alpha)) == 2)
        shared = project(alpha)
        eventually(lambda: shared in double.projects)
        own = {"name": REPO, "role": "mobile", "language": "swift"}
        alpha.call("cacp/project/addRepo", projectId=shared, repo=own)
        repo = own | {"repo_id": "theirs"}
        claimed = repo | {"assigned_agent": AGENT}
        double.send(alpha.url, "cacp/repo/sync", projectId=shared, repo=claimed)
        join(beta, shared, "beta")
        # Beta binds the repos that it knows.
        eventually(lambda: equal(alpha, beta))
        contract = propose(beta, shared)
        eventually(lambda: double.contract(shared, contract) is not None)
        eventually(
            lambda: bool(alpha.query("SELECT 1 FROM exchanged WHERE entity_id = ?", contract))
        )
        taken = double.change(alpha.url, shared, contract, status="agreed")
        assert taken["result"]["status"] == "updated", taken
        eventually(lambda: status(beta, shared, contract) == "agreed")
        eventually(lambda: holds(beta, shared) and equal(alpha, beta))
        assert len(peers(beta)) == 1
