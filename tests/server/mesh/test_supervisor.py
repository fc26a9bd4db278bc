"""The node's side of the mesh on a real node; tests/scenarios tells what it does for a mesh."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from peers.digest import Name
from peers.sender import Sender, UndeliveredEntity
from peers.signing import SigningKey
from server.domain.peer_limits import PEERS_MAX
from server.mesh.supervisor import Supervisor
from server.node import Node as Methods
from server.settings import Settings
from server.store import peers as registered
from server.store.database import Database
from server.util.loops import Loops
from tests.support.located import location_of, prepare
from tests.support.mesh import Mesh, agent_of, equal, peers, project
from tests.support.mesh_member import TOKEN, MeshMember
from tests.support.node import Node, free_port
from tests.support.waiting import eventually


def test_a_peer_that_is_gone_for_good_costs_nothing(tmp_path: Path) -> None:
    with Node(tmp_path, repo="alpha", mesh_token=TOKEN, log_format="json") as node:
        MeshMember(node, "gone").register()
        eventually(lambda: '"peer_down"' in node.log)
        for _ in range(20):
            project(node)
        [found] = peers(node)
        assert (found["sync"]["health"], found["sync"]["backlog"]) == ("down", 20)
        assert node.log.count('"peer_down"') == 1
    assert "Traceback" not in node.log


def test_who_registers_again_is_found_at_its_new_endpoint(mesh: Mesh) -> None:
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
    answers = (MeshMember(node, f"s{number}").hello("not the token") for number in range(count))
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


def test_who_moves_forgets_nothing_that_was_not_taken(tmp_path: Path) -> None:
    """Its sender does not go on between what is written down of it and its end."""
    beta, refused = agent_of("beta"), Name("contract", "p", "c")

    async def run() -> None:
        settings = Settings(db=tmp_path / "node.db", agent_id=agent_of("alpha"), repo="alpha")
        prepare(settings.db)
        database = Database(location_of(settings.db))
        await database.open(1)

        async def register(endpoint: str) -> None:
            await database.write(
                lambda to: registered.put(to.connection, beta, endpoint, None, "unkeyed", 1)
            )

        node = Methods(agent_of("alpha"), "alpha", True, True, SigningKey(b"k" * 32))
        mesh = Supervisor(settings, database, node, Loops())
        await register("http://127.0.0.1:1")
        await mesh.links.begin()
        before, keep = mesh.links.tasks[beta], mesh.links._progress.keep
        running = list(before.running)

        async def keep_while_it_goes_on(senders: Mapping[str, Sender]) -> None:
            await keep(senders)
            if not all(task.done() for task in running):
                senders[beta].cursor, senders[beta].undelivered = (
                    9,
                    {refused: UndeliveredEntity(9, "no")},
                )

        mesh.links._progress.keep = keep_while_it_goes_on  # type: ignore[method-assign]
        await register("http://127.0.0.1:2")
        await mesh.links.match(exchanges=True)
        after = mesh.links.tasks[beta]
        assert after is not before
        assert after.sender.cursor < 9 or refused in after.sender.undelivered
        await mesh.stop()
        await mesh.close()
        await database.close()

    asyncio.run(run())
