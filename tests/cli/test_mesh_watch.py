"""`cacp watch --mesh` on real nodes."""

import json
import queue
from pathlib import Path
from typing import Any

from cli.client import NodeClient
from cli.mesh_watch import look
from tests.cli.run import cacp
from tests.cli.test_watch import watching
from tests.support.mesh import Mesh, agent_of, peers, project
from tests.support.node import Node
from tests.support.waiting import PATIENCE, eventually


def until(lines: "queue.Queue[str]", what: str) -> Any:
    """The next event of this kind."""
    while True:
        event = json.loads(lines.get(timeout=PATIENCE))
        if event["what"] == what:
            return event


def test_a_peer_goes_down_and_catches_up(mesh: Mesh) -> None:
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == 1)
    with watching(alpha, "--mesh", "--json") as lines:
        assert until(lines, "up")["peer"] == agent_of("beta")
        beta.kill()
        project(alpha)
        down = until(lines, "down")
        assert (down["peer"], "waiting" in down["detail"]) == (agent_of("beta"), True)
        beta.start()
        until(lines, "up")


def test_lines_for_people(tmp_path: Path) -> None:
    with Node(tmp_path, repo="alpha") as node, watching(node, "--mesh") as lines:
        body = {"agentId": "aid://h/beta@1.0.0", "endpoint": "http://127.0.0.1:1"}
        node.http.post("/peers/register", json=body)
        assert "beta has joined: at http://127.0.0.1:1" in lines.get(timeout=PATIENCE)
        with NodeClient(node.url) as client:
            assert look(client).name == "alpha"
        node.kill()
        while "does not answer; waiting for it" not in (line := lines.get(timeout=PATIENCE)):
            assert "beta" in line


def test_it_shows_peers_and_not_changes() -> None:
    done = cacp("watch", "--mesh", "--kind", "peer")
    assert done.exit_code == 2
    assert "leave out" in done.stderr
