"""Whatever a node accepts reaches its peers, and what can't stops nothing else (design §7)."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from server.domain.canonical import MAX_DEPTH
from server.store.connection import Connection
from tests.cli.run import cacp
from tests.server.methods.refusals import refused
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
from tests.support.node import Node
from tests.support.waiting import eventually

LARGE = 950_000


def nested(levels: int) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for _ in range(levels - 1):
        content = {"a": content}
    return content


def two(mesh: Mesh) -> tuple[Node, Node, str]:
    """Alpha and beta, and a project in which both hold their repo."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    shared = project(alpha)
    join(beta, shared, "beta")
    eventually(lambda: equal(alpha, beta) and holds(beta, shared))
    return alpha, beta, shared


def untaken(node: Node) -> list[dict[str, Any]]:
    [peer] = peers(node)
    return peer["sync"].get("undeliveredEntities", [])  # type: ignore[no-any-return]


def reason(node: Node) -> str | None:
    found: str | None = node.get("/health").json().get("reason")
    return found


def test_what_is_as_deep_as_may_be_is_on_both_nodes_and_deeper_is_refused(mesh: Mesh) -> None:
    alpha, beta, shared = two(mesh)
    deepest, deeper = nested(MAX_DEPTH), nested(MAX_DEPTH + 1)
    place = ".a" * MAX_DEPTH
    contract = propose(alpha, shared, content=deepest)
    small = propose(alpha, shared)
    both: dict[str, Any] = {"projectId": shared, "contractId": contract}
    eventually(lambda: status(beta, shared, small) and status(beta, shared, contract))
    asked: dict[str, Any] = {"action": "request_change", "suggestedChange": deepest}
    beta.call("cacp/contract/respond", **both, **asked)
    shared_with: dict[str, Any] = {"projectId": shared, "type": "code_snippet"}
    beta.call("cacp/context/share", **shared_with, content=deepest)
    eventually(lambda: equal(alpha, beta) and status(alpha, shared, contract) == "negotiating")
    writes: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("cacp/contract/propose", "content", {"projectId": shared, "type": "custom", "name": "n"}),
        ("cacp/contract/update", "content", both),
        ("cacp/contract/respond", "suggestedChange", {**both, "action": "request_change"}),
        ("cacp/implementation/verify", "failureDetails", {**both, "result": "failure"}),
        ("cacp/context/share", "content", shared_with),
    )
    for method, member, params in writes:
        given = params | {member: deeper}
        with refused(-32602, "invalid_params", path=f"{member}{place}"):
            alpha.call(method, **given)
    assert untaken(alpha) == untaken(beta) == []


def test_a_contract_of_17_mb_is_on_two_nodes_and_on_one_that_joins(mesh: Mesh) -> None:
    alpha, beta, shared = two(mesh)
    contract = propose(alpha, shared)
    both: dict[str, Any] = {"projectId": shared, "contractId": contract}
    for version in range(2, 20):
        large = {"version": version, "text": "x" * LARGE}
        alpha.call("cacp/contract/respond", **both, action="request_change", suggestedChange=large)
        alpha.call("cacp/contract/update", **both, content={"version": version})
    small = propose(alpha, shared, name="small")
    eventually(lambda: status(beta, shared, small) == "proposed")
    eventually(lambda: equal(alpha, beta))
    gamma = mesh.add("gamma", beta)
    eventually(lambda: equal(alpha, gamma) and holds(gamma, shared))
    assert gamma.call("cacp/contract/get", **both)["version"] == 19
    [size] = gamma.query("SELECT sum(length(body)) FROM facts")
    assert size[0] > 18 * LARGE


@contextmanager
def opened(node: Node) -> Iterator[Connection]:
    with closing(connect(node.db)) as db:
        yield db


@pytest.mark.sqlite
def test_a_row_that_can_not_be_sent_is_set_aside_and_all_else_goes_on(mesh: Mesh) -> None:
    """An earlier release took it, and it stands before everything that is written after it."""
    alpha, beta, shared = two(mesh)
    beta.stop()
    bad = propose(alpha, shared, name="bad")
    alpha.stop()
    with opened(alpha) as db:
        body = "UPDATE facts SET body = json_set(body, '$.content', json(?)) WHERE contract_id = ?"
        db.execute(body, (json.dumps(nested(80)), bad))
        # That release had counted it as it is.
        db.execute("UPDATE meta SET value = '0' WHERE name = 'digest_cursor'")
    alpha.start()
    beta.start()
    good = propose(alpha, shared, name="good")
    eventually(lambda: status(beta, shared, good) == "proposed")
    # The good one may have been fetched by beta, before alpha's sender came to the bad one.
    eventually(lambda: untaken(alpha))
    [one] = untaken(alpha)
    assert (one["entity"], one["entityId"], one["projectId"]) == ("contract", bad, shared)
    assert one["reason"].startswith("can't be signed: fact[2].content")
    eventually(lambda: reason(alpha) == "undelivered")
    shown = f'cacp_peer_undelivered{{peer="{agent_of("beta")}"}} 1.0'
    eventually(lambda: shown in alpha.get("/metrics").text)

    alpha.restart()
    eventually(lambda: untaken(alpha))
    assert [one["entityId"] for one in untaken(alpha)] == [bad], "it is on disk"
    gamma = mesh.add("gamma", alpha)
    eventually(lambda: status_of(gamma, shared, good) == "proposed")
    eventually(lambda: sync(alpha, "gamma").get("undelivered") == 1)

    listed = cacp("peers", url=alpha.url)
    assert (listed.exit_code, bad in listed.stdout) == (0, True), listed.output
    assert "can't be signed" in listed.stdout
    on_disk = {"db": str(alpha.db)}
    tries = sync(alpha, "beta")["retries"]
    assert cacp("peers", "retry", agent_of("beta"), **on_disk).exit_code == 0
    eventually(lambda: sync(alpha, "beta")["retries"] > tries)
    for dropped in ((agent_of("beta"), bad), (agent_of("gamma"),)):
        assert cacp("peers", "drop", *dropped, **on_disk).exit_code == 0
    eventually(lambda: sync(alpha, "beta")["undelivered"] == 0)
    last = propose(alpha, shared, name="last")
    for node in (beta, gamma):
        eventually(lambda node=node: status(node, shared, last) == "proposed")  # type: ignore[misc]


def status_of(node: Node, project_id: str, contract: str) -> str | None:
    return status(node, project_id, contract) if holds(node, project_id) else None


def sync(node: Node, name: str) -> dict[str, Any]:
    found = {one["agentId"]: one.get("sync") for one in peers(node)}
    return found.get(agent_of(name)) or {}
