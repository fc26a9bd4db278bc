"""kill -9 when it counts: between commit and send, between apply and answer, in a pull."""

from contextlib import ExitStack

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
from tests.support.stalling_proxy import StallingProxy
from tests.support.waiting import eventually

SYNC = b"cacp/contract/sync"


def pair(mesh: Mesh, stack: ExitStack) -> tuple[Node, Node, StallingProxy, str]:
    """Alpha, and beta behind a proxy, with a project that both know."""
    alpha = mesh.add("alpha")
    proxy = stack.enter_context(StallingProxy())
    beta = mesh.add("beta", alpha, public_url=proxy.url)
    proxy.serve(beta.port)
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    assert peers(alpha)[0]["endpoint"] == proxy.url
    shared = project(alpha)
    join(beta, shared, "beta")
    eventually(lambda: equal(alpha, beta) and holds(beta, shared))
    return alpha, beta, proxy, shared


def told(node: Node, contract: str) -> list[tuple[str, str]]:
    """What the followers of a node were told of a contract: (who did it, what came of it)."""
    return node.query(
        "SELECT actor, outcome FROM changes WHERE entity_id = ? ORDER BY seq", contract
    )


def test_a_sender_killed_between_commit_and_send_loses_nothing(mesh: Mesh) -> None:
    """The caller has its answer; the request is made, and no byte of it has reached the peer."""
    with ExitStack() as stack:
        alpha, beta, proxy, shared = pair(mesh, stack)
        with proxy.hold("request", SYNC) as held:
            contract = propose(alpha, shared)
            held.wait()
            alpha.kill()
        assert status(beta, shared, contract) is None
        alpha.start()
        eventually(lambda: status(beta, shared, contract) == "proposed")
        eventually(lambda: equal(alpha, beta))
        assert told(alpha, contract) == told(beta, contract) == [(agent_of("alpha"), "proposed")]


def test_a_receiver_killed_between_apply_and_answer_applies_once(mesh: Mesh) -> None:
    """The peer has applied and said so; the sender never hears it, and sends again."""
    with ExitStack() as stack:
        alpha, beta, proxy, shared = pair(mesh, stack)
        contract = propose(alpha, shared)
        eventually(lambda: status(beta, shared, contract) == "proposed")
        eventually(lambda: waiting(alpha) == 0)
        with proxy.hold("answer", SYNC) as held:
            place = {"projectId": shared, "contractId": contract}
            alpha.call("cacp/contract/update", **place, content={"path": "/second"})
            held.wait()
            beta.kill()
        assert waiting(alpha) == 1, "nothing is taken for sent before it is confirmed"
        before = told(beta, contract)
        beta.start()
        eventually(lambda: waiting(alpha) == 0 and equal(alpha, beta))
        assert told(beta, contract) == before == [(agent_of("alpha"), "proposed")] * 2
        versions = beta.call("cacp/contract/get", **place, includeHistory=True)
        assert (versions["version"], len(versions["history"])) == (2, 1)
        assert beta.call("cacp/contract/conflicts", **place)["conflicts"] == []


def test_a_sender_killed_before_it_hears_the_answer_does_not_say_it_twice(mesh: Mesh) -> None:
    with ExitStack() as stack:
        alpha, beta, proxy, shared = pair(mesh, stack)
        with proxy.hold("answer", b"cacp/context/sync") as held:
            asked = alpha.call("cacp/project/join", projectId=shared, repoName="alpha")
            assert asked["status"] == "joined"
            packet = alpha.call("cacp/context/askQuestion", projectId=shared, question="Why?")
            held.wait()
            alpha.kill()
        alpha.start()
        # What goes after it proves that it went again.
        after = alpha.call("cacp/context/askQuestion", projectId=shared, question="And when?")
        eventually(lambda: len(packets(beta, shared)) == 2)
        eventually(lambda: waiting(alpha) == 0 and equal(alpha, beta))
        assert packets(beta, shared) == [packet["packetId"], after["packetId"]]
        assert len(told(beta, packet["packetId"])) == 1


def test_a_new_node_killed_as_it_joins_gets_all_once(mesh: Mesh) -> None:
    """What was there before goes by digests alone; what is written meanwhile is sent."""
    alpha = mesh.add("alpha")
    shared = project(alpha)
    old = propose(alpha, shared)
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(beta)) == 1)
    beta.kill()
    new = propose(alpha, shared)
    beta.start()
    eventually(lambda: pushed(beta) > 0 and equal(alpha, beta))
    assert pushed(beta) == 1
    for contract in (old, new):
        assert told(beta, contract) == [(agent_of("alpha"), "proposed")]


def test_a_node_killed_before_it_answers_a_pull_is_asked_again(mesh: Mesh) -> None:
    """Who pulls sees at once that it is gone, and doesn't wait for its time to run out."""
    with ExitStack() as stack:
        proxy = stack.enter_context(StallingProxy())
        beta = mesh.add("beta", public_url=proxy.url)
        shared = project(beta)
        proxy.serve(beta.port)
        with proxy.hold("answer", b"cacp/sync/pull") as held:
            alpha = mesh.add("alpha", peers=proxy.url)
            held.wait()
            beta.kill()
        beta.start()
        eventually(lambda: holds(alpha, shared) and equal(alpha, beta))
        assert "did not complete its response" not in alpha.log


def pushed(node: Node) -> float:
    """How many contracts a node was sent since it started."""
    counted = 'cacp_calls_total{method="cacp/contract/sync",outcome="ok"} '
    lines = node.get("/metrics").text.splitlines()
    return sum(float(line.removeprefix(counted)) for line in lines if line.startswith(counted))


def packets(node: Node, project_id: str) -> list[str]:
    listed = node.call("cacp/context/list", projectId=project_id)["packets"]
    return [one["packet_id"] for one in listed]


def waiting(node: Node) -> int:
    """How much waits for the node's one peer; -1 while its exchange has not begun."""
    [peer] = peers(node)
    return int((peer.get("sync") or {"backlog": -1})["backlog"])
