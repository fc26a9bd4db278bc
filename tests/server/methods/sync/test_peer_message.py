"""What of a mesh peer's message is deferred, and how its stamps count (design §7)."""

import time
from uuid import uuid4

from tests.server.methods.sync.test_merge_contract import proposed
from tests.support.mesh import status
from tests.support.mesh_member import MeshMember, pulled
from tests.support.node import Node
from tests.support.waiting import eventually

HOUR = 3_600_000_000
DAY = 24 * HOUR


def test_a_stamp_from_the_future_waits_until_it_is_due(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    """Design §7: it neither wins at once nor is lost."""
    contract = proposed(beta, shared)
    ahead = beta.response(shared, "beta", beta.agent, stamp=time.time_ns() // 1000 + DAY + HOUR)
    ahead |= {"action": "request_change"}
    result = beta.contract(shared, contract, beta.fact(contract, ahead))
    assert "deferred" in result["reason"]
    assert status(alpha, shared, contract) == "proposed"
    assert alpha.query("SELECT count(*) FROM set_aside") == [(1,)]
    soon = ahead | {"stamp": time.time_ns() // 1000 + DAY + 2_000_000}
    result = beta.contract(shared, contract, beta.fact(contract, soon))
    assert "deferred" in result["reason"]
    eventually(lambda: alpha.query("SELECT count(*) FROM set_aside") == [(1,)])
    assert status(alpha, shared, contract) == "negotiating"


def test_what_is_deferred_holds_up_nothing_else(alpha: Node, beta: MeshMember, shared: str) -> None:
    """Each fact, register and claim is judged alone."""
    contract, now = str(uuid4()), time.time_ns() // 1000
    ahead = beta.response(shared, "beta", beta.agent, stamp=now + 2 * DAY)
    unclaimed = beta.response(shared, "alpha", beta.agent)
    facts = [beta.version(shared), ahead, unclaimed]
    result = beta.contract(shared, contract, *(beta.fact(contract, one) for one in facts))
    assert result["status"] == "created"
    assert {one["kind"] for one in result["skipped"]} == {"claim", "cacp/contract/sync"}
    assert status(alpha, shared, contract) == "proposed"
    claim = beta.claim(shared, now + 2 * DAY)
    repos = pulled(beta, "project", shared, shared)["registers"]["repos"]
    own = next(repo for repo in repos if repo["name"] == "beta")
    beta.project(shared, stamp=now + 2 * DAY, repos=[own | {"claims": [claim]}], status="complete")
    shown = alpha.call("cacp/project/get", projectId=shared)
    assert shown["status"] != "complete"
    [(renewed,)] = alpha.query("SELECT renewed_at FROM repos WHERE repo_id = ?", own["repo_id"])
    assert renewed == now + 2 * DAY
    waits = alpha.query("SELECT count(*) FROM set_aside WHERE params LIKE ?", f"%{shared}%")
    assert waits == [(2,)]
    assert alpha.get("/health").json()["reason"] == "deferred"


def test_what_is_stamped_ahead_is_taken_at_once_and_said_to_be(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    """Whatever explains it: to defer it would hide what others write beside it."""
    contract = proposed(beta, shared)
    now = time.time_ns() // 1000
    for ahead, action in ((3_600, "reject"), (23 * 3_600, "request_change")):
        body = beta.response(shared, "beta", beta.agent, stamp=now + ahead * 1_000_000)
        beta.contract(shared, contract, beta.fact(contract, body | {"action": action}))
    assert status(alpha, shared, contract) == "negotiating"
    beta.project(shared, stamp=now + HOUR, status="implementing")
    alpha.call("cacp/project/updateStatus", projectId=shared, status="integrating")
    beta.project(shared, stamp=now + 23 * HOUR, status="complete")
    [(found,)] = alpha.query("SELECT status FROM projects WHERE project_id = ?", shared)
    assert found == "complete"


def test_what_is_written_after_a_wrong_clock_has_the_time_but_wins(
    alpha: Node, beta: MeshMember, shared: str
) -> None:
    """Issue: one bad clock drags nobody's stamps along; a later word still takes its place."""
    seen = time.time_ns() // 1000 + 290_000_000
    beta.project(shared, stamp=seen, status="implementing")
    made = alpha.call("cacp/project/create", name="n", objective="o")["projectId"]
    [(stamp,)] = alpha.query("SELECT stamp FROM projects WHERE project_id = ?", made)
    assert stamp < seen - 200_000_000
    alpha.call("cacp/project/updateStatus", projectId=shared, status="integrating")
    rows = alpha.query("SELECT stamp, status FROM projects WHERE project_id = ?", shared)
    assert rows == [(seen + 1, "integrating")]


def test_the_clock_is_not_dragged_along(alpha: Node, beta: MeshMember, shared: str) -> None:
    """What is written next is after what was seen, and what was seen is no more than due."""
    seen = time.time_ns() // 1000 + 60_000_000
    beta.project(shared, stamp=seen, status="implementing")
    alpha.call("cacp/project/updateStatus", projectId=shared, status="integrating")
    [(stamp,)] = alpha.query("SELECT stamp FROM projects WHERE project_id = ?", shared)
    assert seen < stamp < seen + 300_000_000
