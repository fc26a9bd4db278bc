"""Machines whose clocks are wrong by hours: no write waits for the hour (design §7)."""

import json
import re
import time
from typing import Any

import pytest

from schemas.base import iso
from tests.cli.run import cacp
from tests.support.mail_agent import agent
from tests.support.mesh import Mesh, equal, holds, join, peers, project, propose, status
from tests.support.node import Node
from tests.support.skewed_clock import HOUR, SkewedNode
from tests.support.waiting import eventually

RIGHT = HOUR / 2
"""Seconds; what is nearer to the time than this was not stamped by the wrong clock."""

# Replicas go by the clock of the database server.
pytestmark = pytest.mark.sqlite


def health(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = node.get("/health").json()
    return found


def reason(node: Node) -> str | None:
    return health(node).get("reason")


def know_each_other(*nodes: Node) -> None:
    for node in nodes:
        eventually(lambda node=node: len(measured(node)) == len(nodes) - 1)  # type: ignore[misc]


def measured(node: Node) -> list[dict[str, Any]]:
    return [one for one in peers(node) if "clockAheadSeconds" in one]


def see_at_once(writer: Node, *others: Node) -> str:
    """A contract, written at one node, that all see within seconds; so for what is said of it."""
    project_id = project(writer)
    name = str(writer.settings["repo"])
    contract = propose(writer, project_id)
    for one in others:
        eventually(lambda one=one: holds(one, project_id))  # type: ignore[misc]
        eventually(lambda one=one: status(one, project_id, contract) == "proposed")  # type: ignore[misc]
    join(others[0], project_id, str(others[0].settings["repo"]))
    others[0].call(
        "cacp/contract/respond", projectId=project_id, contractId=contract, action="reject"
    )
    others[0].call(
        "cacp/contract/respond", projectId=project_id, contractId=contract, action="request_change"
    )
    for one in (writer, *others):
        eventually(lambda one=one: status(one, project_id, contract) == "negotiating")  # type: ignore[misc]
    writer.call("cacp/contract/update", projectId=project_id, contractId=contract, content={"v": 2})
    writer.call("cacp/project/updateStatus", projectId=project_id, status="implementing")
    writer.call("cacp/context/askQuestion", projectId=project_id, question=f"Why, {name}?")
    eventually(lambda: equal(writer, *others))
    return project_id


def off(node: Node, project_id: str) -> float:
    """How many seconds the last that a node itself stamped in a project is from the time."""
    [(stamp,)] = node.query(
        "SELECT max(stamp) FROM (SELECT stamp FROM projects WHERE project_id = ?1 UNION ALL"
        " SELECT stamp FROM facts WHERE project_id = ?1 AND signature IS NULL)",
        project_id,
    )
    return float(stamp / 1e6 - time.time())


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_three_started_together_one_with_a_wrong_clock(mesh: Mesh, ahead: int) -> None:
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha, ahead=ahead)
    early = project(beta)
    gamma = mesh.add("gamma", alpha, beta)
    for node in (alpha, gamma):
        eventually(lambda node=node: holds(node, early))  # type: ignore[misc]
    know_each_other(alpha, beta, gamma)
    eventually(lambda: reason(beta) == "clock_off")
    for writer, *others in ((beta, alpha, gamma), (alpha, beta, gamma), (gamma, beta, alpha)):
        assert abs(off(writer, see_at_once(writer, *others))) < RIGHT
    assert reason(alpha) is reason(gamma) is None
    assert "run NTP" in health(beta)["detail"]
    [shown] = [one for one in peers(alpha) if one["repoName"] == "beta"]
    assert abs(shown["clockAheadSeconds"] - ahead) < RIGHT
    assert abs(beta.get("/mesh").json()["clockCorrectionSeconds"] + ahead) < RIGHT
    assert re.search(r"cacp_clock_correction_seconds -?3[56]\d\d", beta.get("/metrics").text)


def test_one_right_one_ahead_and_one_behind(mesh: Mesh) -> None:
    """No majority: nobody is moved, all say so, and nothing waits."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha, ahead=HOUR)
    gamma = mesh.add("gamma", alpha, beta, ahead=-HOUR)
    know_each_other(alpha, beta, gamma)
    for node in (alpha, beta, gamma):
        eventually(lambda node=node: reason(node) == "clocks_disagree")  # type: ignore[misc]
        assert node.get("/mesh").json()["clockCorrectionSeconds"] == 0
    assert "Run NTP" in health(alpha)["detail"]
    assert "aid://" not in health(alpha)["detail"], "who its peers are is not for everyone"
    assert "aid://example.com/beta" in alpha.get("/mesh").json()["clockTrouble"]["detail"]
    found = {check["name"]: check for check in doctor(alpha)}
    assert "beta@1.0.0 is 1 h ahead of this node" in found["clocks"]["found"]
    assert "Run NTP" in found["clocks"]["mend"]
    assert found["health"]["found"] == "clocks_disagree"
    assert abs(off(alpha, see_at_once(alpha, beta, gamma))) < RIGHT
    see_at_once(gamma, alpha, beta)
    see_at_once(beta, gamma, alpha)


def test_two_an_hour_apart_and_then_set_right(mesh: Mesh) -> None:
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha, ahead=HOUR)
    know_each_other(alpha, beta)
    for node in (alpha, beta):
        eventually(lambda node=node: reason(node) == "clocks_disagree")  # type: ignore[misc]
    see_at_once(beta, alpha)
    see_at_once(alpha, beta)
    repair(beta)
    know_each_other(alpha, beta)
    eventually(lambda: reason(beta) == "stamps_ahead")
    assert "in the future" in health(beta)["detail"]
    eventually(lambda: reason(alpha) == "stamps_ahead")
    for writer, other in ((beta, alpha), (alpha, beta)):
        assert abs(off(writer, see_at_once(writer, other))) < RIGHT
    gamma = mesh.add("gamma", alpha, beta)
    eventually(lambda: equal(alpha, beta, gamma))


def test_a_node_that_worked_alone_an_hour_ahead_and_was_set_right(mesh: Mesh) -> None:
    """It has no peer yet: what it wrote is stamped anew before anybody has it."""
    beta = mesh.add("beta", ahead=HOUR)
    early = project(beta)
    contract = propose(beta, early)
    beta.set_clock(0)
    beta.restart()
    late = project(beta)
    alpha = mesh.add("alpha", beta)
    for one in (early, late):
        eventually(lambda one=one: holds(alpha, one))  # type: ignore[misc]
    eventually(lambda: status(alpha, early, contract) == "proposed")
    eventually(lambda: equal(alpha, beta))
    assert '"restamped"' in beta.log
    assert off(alpha, early) < 0
    assert reason(beta) is reason(alpha) is None


def test_a_jump_of_400_days_for_a_few_seconds(mesh: Mesh) -> None:
    alpha, beta, gamma = mesh.three()
    beta.set_clock(400 * 24 * HOUR)
    during = project(beta)
    eventually(lambda: reason(beta) in ("clock_jumped", "clock_off"))
    beta.set_clock(0)
    after = project(beta)
    for one in (during, after):
        eventually(lambda one=one: holds(alpha, one) and holds(gamma, one))  # type: ignore[misc]
        assert abs(off(beta, one)) < RIGHT
    eventually(lambda: reason(beta) is None)


def test_in_a_line_a_wrong_clock_hides_nothing_from_who_does_not_know_it(mesh: Mesh) -> None:
    """alpha and beta are right; gamma, an hour ahead, knows beta alone."""
    beta = mesh.add("beta")
    alpha = mesh.add("alpha", beta)
    gamma = mesh.add("gamma", beta, ahead=HOUR)
    eventually(lambda: len(measured(beta)) == 2)
    for writer, *others in ((gamma, beta, alpha), (beta, gamma, alpha), (alpha, beta, gamma)):
        see_at_once(writer, *others)


def test_who_joins_late_gets_what_a_wrong_clock_wrote_before_it_was_gone(mesh: Mesh) -> None:
    alpha = mesh.add("alpha")
    gamma = mesh.add("gamma", alpha, ahead=HOUR)
    know_each_other(alpha, gamma)
    theirs = see_at_once(gamma, alpha)
    ours = project(alpha)
    join(gamma, ours, "gamma")
    eventually(lambda: equal(alpha, gamma))
    gamma.kill()
    delta = mesh.add("delta", alpha)
    for one in (ours, theirs):
        eventually(lambda one=one: holds(delta, one))  # type: ignore[misc]
    alpha.call("cacp/project/updateStatus", projectId=ours, status="implementing")
    eventually(lambda: equal(alpha, delta))
    repair(gamma)
    eventually(lambda: equal(alpha, gamma, delta))


def test_two_days_ahead_what_is_deferred_is_named_and_can_be_accepted(mesh: Mesh) -> None:
    alpha = mesh.add("alpha")
    gamma = mesh.add("gamma", alpha, ahead=48 * HOUR)
    know_each_other(alpha, gamma)
    ours, theirs = project(alpha), project(gamma)
    join(gamma, ours, "gamma")
    # Before it has sent anything it would stamp it anew.
    eventually(lambda: alpha.get("/mesh").json()["deferred"] > 0)
    repair(gamma)
    contract = propose(gamma, ours)
    eventually(lambda: status(alpha, ours, contract) == "proposed")
    eventually(lambda: reason(alpha) == "deferred")
    assert "cacp clock accept" in health(alpha)["detail"]
    assert not holds(alpha, theirs)
    assert cacp("clock", "accept", db=str(alpha.settings["db"])).exit_code == 0
    eventually(lambda: equal(alpha, gamma))
    assert holds(alpha, theirs)
    see_at_once(gamma, alpha)


def test_a_wrong_clock_that_wrote_nothing_is_no_trouble_afterwards(mesh: Mesh) -> None:
    alpha, beta, gamma = mesh.three()
    gamma.set_clock(HOUR)
    gamma.restart()
    know_each_other(gamma, alpha, beta)
    eventually(lambda: reason(gamma) == "clock_off")
    time.sleep(2)
    repair(gamma)
    know_each_other(gamma, alpha, beta)
    eventually(lambda: reason(gamma) is None)
    see_at_once(gamma, alpha, beta)
    assert reason(gamma) is reason(alpha) is None


def doctor(node: SkewedNode) -> list[dict[str, Any]]:
    done = cacp("doctor", "--json", **{name: str(one) for name, one in node.settings.items()})
    checks: list[dict[str, Any]] = json.loads(done.stdout)["checks"]
    return checks


def repair(node: SkewedNode) -> None:
    """NTP is set up, and the node started again."""
    node.set_clock(0)
    node.restart()


def test_a_start_a_year_ahead_ends_nothing_before_somebody_stands_by_the_clock(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unread mail, answers for retries and offers outlive a wrong clock; callers are served."""
    node = mesh.add("alpha")
    anna, bert = agent(node, "anna"), agent(node, "bert")
    kept = anna.send(bert, expires_at=in_(HOUR))["message"]["id"]
    write = {"client_id": "once", "payload": {"summary": "once"}}
    once = anna.send(bert, **write)["message"]["id"]
    soon = anna.send(bert, expires_at=in_(5))["message"]["id"]
    node.stop()
    node.set_clock(365 * 24 * HOUR)
    node.start()
    assert reason(node) == "clock_unconfirmed"
    assert "cacp clock confirm" in health(node)["detail"]
    # What is over by the time that is sure ends as ever: the node has looked.
    eventually(lambda: anna.receipts(soon)[bert.address] == "expired")
    assert anna.send(bert, **write)["message"]["id"] == once, "a retry is still known"
    assert {kept, once} <= set(bert.received())
    assert node.query("SELECT count(*) FROM messages_archive") == [(0,)]
    true = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: true() + 365 * 24 * HOUR * 1_000_000_000)
    assert {check["name"]: check for check in doctor(node)}["certainty"]["state"] == "warning"
    assert "confirmed" in cacp("clock", "confirm", db=str(node.settings["db"])).stderr
    eventually(lambda: reason(node) is None)
    node.restart()
    eventually(lambda: node.query("SELECT count(*) FROM messages_archive") == [(3,)])
    dead = {one["message"]["id"] for one in anna.call("deadLetters")["letters"]}
    assert dead == {kept, once, soon}, "what nobody read is a dead letter"


def in_(seconds: int) -> str:
    return iso(time.time_ns() // 1000 + seconds * 1_000_000)
