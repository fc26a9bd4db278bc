"""Nodes with equal digests show the same lists, limits and cursors included (design §7)."""

from collections.abc import Iterator
from typing import Any

from tests.support.mesh import Mesh, equal, holds, join, project, propose
from tests.support.node import Node
from tests.support.shared_files import share
from tests.support.waiting import eventually


def every_list(node: Node, project_id: str, packet: str, contract: str) -> Iterator[Any]:
    """What a node shows of a project, list by list."""
    at = {"projectId": project_id}
    yield node.call("cacp/project/get", **at)
    yield node.call("cacp/project/list")
    yield node.call("cacp/project/list", summary=True)
    yield from pages(node, "cacp/project/list", limit=1, summary=True)
    yield node.call("cacp/contract/get", **at, contractId=contract, includeHistory=True)
    yield node.call("cacp/contract/list", **at)
    yield from pages(node, "cacp/contract/list", **at, limit=1)
    yield node.call("cacp/contract/conflicts", **at)
    yield node.call("cacp/contract/timeline", **at, contractId=contract)
    whole = node.call("cacp/context/list", **at)["packets"]
    yield whole
    for number in range(1, len(whole) + 1):
        yield node.call("cacp/context/list", **at, limit=number)
        yield node.call("cacp/context/list", **at, since=whole[number - 1]["timestamp"])
        yield node.call("cacp/context/list", **at, contractId=contract, limit=number)
    yield node.call("cacp/context/getThread", **at, packetId=packet)
    for method in ("cacp/file/list", "cacp/file/listRequests"):
        yield node.call(method, **at)
        yield from pages(node, method, **at, limit=1)


def pages(node: Node, method: str, **params: Any) -> Iterator[Any]:
    """Every page of a list, cursors and all."""
    page = node.call(method, **params)
    yield page
    while "nextCursor" in page:
        page = node.call(method, **params, cursor=page["nextCursor"])
        yield page


def ask(node: Node, project_id: str, question: str, **more: Any) -> str:
    given = {"projectId": project_id, "question": question, **more}
    return str(node.call("cacp/context/askQuestion", **given)["packetId"])


def test_what_was_written_apart_is_listed_alike(mesh: Mesh) -> None:
    """Each node hears of the other's packets after its own: lists go by when they were written."""
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    shared = project(alpha)
    join(beta, shared, "beta")
    contract = propose(alpha, shared)
    root = ask(alpha, shared, "Who?", relatedContracts=[contract])
    eventually(lambda: holds(beta, shared) and equal(alpha, beta))
    beta.stop()
    writing, resting = alpha, beta
    for number in range(4):
        ask(writing, shared, f"{number}?", replyTo=root, relatedContracts=[contract])
        project(writing)
        share(writing, shared, f"{number}".encode())
        writing.call("cacp/file/request", projectId=shared, description=f"{number}")
        writing.stop()
        resting.start()
        writing, resting = resting, writing
    ask(writing, shared, "last?", replyTo=root)
    resting.start()
    eventually(lambda: equal(alpha, beta))
    lists = zip(
        every_list(alpha, shared, root, contract),
        every_list(beta, shared, root, contract),
        strict=True,
    )
    for ours, theirs in lists:
        assert ours == theirs
