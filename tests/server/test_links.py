"""How entities reach a peer (design §6)."""

from pathlib import Path

from server.links import as_foreign
from tests.double import AGENT, REPO, Double
from tests.node import Node
from tests.scenarios.mesh import eventually, holds, peers, project, propose, status


def test_a_peer_of_another_make_is_written_to_as_it_writes() -> None:
    """Design §6: no offsets, strings where we would send null, `assigned_agent`."""
    ours = {
        "updated_at": "2026-01-01T00:00:00.000000+00:00",
        "proposed_by": None,
        "content": {"default": None, "at": "2026-01-01T00:00:00+00:00"},
        "repos": [{"agent_id": "a", "agent_endpoint": None}],
        "started_at": None,
    }
    assert as_foreign(ours) == {
        "updated_at": "2026-01-01T00:00:00.000000",
        "proposed_by": "",
        "content": {"default": None, "at": "2026-01-01T00:00:00+00:00"},
        "repos": [{"agent_id": "a", "agent_endpoint": "", "assigned_agent": "a"}],
        "started_at": None,
    }


def test_a_project_that_is_unknown_is_fetched_from_who_speaks_of_it(tmp_path: Path) -> None:
    """Design §6: a sync for a project that we don't have is not lost."""
    contract = {
        "contract_id": "c1",
        "type": "custom",
        "name": "Theirs",
        "version": 1,
        "status": "proposed",
        "content": {"a": 1},
        "proposed_by": "theirs",
        "implementations": [],
        "updated_at": "2026-01-01T00:00:00",
    }
    repo = {"repo_id": "theirs", "name": REPO, "role": "m", "language": "l"}
    whole = {
        "project_id": "p1",
        "name": "Theirs",
        "repos": [repo | {"assigned_agent": AGENT}],
        "contracts": [],
        "context_history": [],
    }
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        double.projects["p1"] = whole
        told = double.send(node.url, "cacp/contract/sync", projectId="p1", contract=contract)
        assert told["result"]["status"] == "skipped"
        eventually(lambda: holds(node, "p1") and status(node, "p1", "c1") == "proposed")
        assert "Traceback" not in node.log


def test_work_with_a_peer_of_another_make_goes_both_ways(tmp_path: Path) -> None:
    """Issue: projects, contracts, responses, context, implementations."""
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        shared = project(node)
        own = {"name": REPO, "role": "mobile", "language": "swift"}
        node.call("cacp/project/addRepo", projectId=shared, repo=own)
        repo = own | {"repo_id": "theirs"}
        eventually(lambda: shared in double.projects)
        double.send(
            node.url, "cacp/repo/sync", projectId=shared, repo=repo | {"assigned_agent": AGENT}
        )
        contract = propose(node, shared)
        eventually(lambda: double.contract(shared, contract) is not None)
        eventually(lambda: node.query("SELECT count(*) FROM exchanged") >= [(1,)])
        taken = double.change(node.url, shared, contract, status="agreed")
        assert taken["result"]["status"] == "updated", taken
        assert status(node, shared, contract) == "agreed"
        node.call("cacp/implementation/complete", projectId=shared, contractId=contract, files=[])

        def implemented() -> bool:
            theirs = double.contract(shared, contract)
            return bool(theirs and theirs["implementations"])

        eventually(implemented)
        node.call("cacp/context/askQuestion", projectId=shared, question="Which path?")
        eventually(lambda: len(double.projects[shared]["context_history"]) >= 1)
        assert "Traceback" not in node.log
