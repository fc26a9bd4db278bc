"""What `cacp doctor` says of the port where a node would listen."""

import socket
from pathlib import Path

import pytest

from tests.cli.doctoring import examined, new_database
from tests.support.node import Node
from tests.support.team import AGENT, REPO

pytestmark = pytest.mark.sqlite


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return new_database(tmp_path)


def test_a_port_that_another_program_has(db: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        status, checks = examined(db, port=str(other.getsockname()[1]))
    assert status == 1
    assert "another program listens on" in checks["port"]["found"]


def test_a_port_that_the_node_of_another_database_has(db: Path, node: Node) -> None:
    """Also when it has the same agent id: the lock shows whose database it is."""
    who = {"agent_id": AGENT, "repo": REPO}
    status, checks = examined(db, port=str(node.port), **who)
    assert (status, checks["port"]["state"]) == (1, "broken")
    assert checks["node"]["found"] == "no node runs on this database"
    assert f"{AGENT}, a node of another database, listens on" in checks["port"]["found"]
