"""What `cacp doctor` says of the node's port."""

import os
import socket
from pathlib import Path

import pytest

from server.store.file_lock import lock
from tests.cli.doctoring import examined, new_database
from tests.support.node import Node
from tests.support.team import AGENT, REPO


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return new_database(tmp_path)


def test_a_port_that_another_program_has(db: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        status, found = examined(db, port=str(other.getsockname()[1]))
    assert status == 1
    assert "another program listens on" in found["port"]["found"]


def test_a_node_of_this_database_on_another_port(db: Path) -> None:
    held = lock(db)
    assert held is not None
    status, found = examined(db)
    os.close(held)
    assert (status, found["port"]["state"]) == (0, "warning")
    assert "on another port" in found["port"]["found"]


def test_a_node_that_runs(node: Node) -> None:
    who = {"agent_id": AGENT, "repo": REPO}
    _, found = examined(node.db, port=str(node.port), **who)
    assert found["port"]["found"].startswith("the node answers")
    status, found = examined(node.db, port=str(node.port))
    assert (status, found["port"]["state"]) == (1, "broken")
    assert AGENT in found["port"]["found"]
