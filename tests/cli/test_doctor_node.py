"""What `cacp doctor` says of a node that runs: the one of this database, wherever it listens."""

import os
from pathlib import Path

import pytest

from cli.doctor_node import NodeState, call_checks
from server.store.sqlite.file_lock import ListenAddress, announce, lock
from tests.cli.doctoring import examined, new_database
from tests.support.node import Node, free_port
from tests.support.team import AGENT, REPO

pytestmark = pytest.mark.sqlite

KEY = "cacp_sk_" + "z" * 32


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return new_database(tmp_path)


def test_a_node_of_this_database_is_met_on_whatever_port(node: Node) -> None:
    url = f"http://127.0.0.1:{node.port}"
    status, checks = examined(node.db, agent_id=AGENT, repo=REPO, port="0")
    assert checks["node"]["found"] == f"{AGENT} runs on this database and answers at {url}"
    assert status == 0
    assert "port" not in checks
    assert "calls" not in checks


def test_settings_that_are_not_those_of_the_node(node: Node) -> None:
    _, checks = examined(node.db, port="0")
    assert "other settings than these" in checks["settings"]["found"]


def test_commands_that_call_another_node_than_this_databases(node: Node) -> None:
    port = free_port()
    _, checks = examined(node.db, agent_id=AGENT, repo=REPO, port=str(port))
    calls = checks["calls"]
    assert calls["found"].startswith(f"commands call http://127.0.0.1:{port} (CACP_PORT), where")


@pytest.mark.parametrize(
    ("key", "part"),
    [
        (KEY, "refuses the key of CACP_KEY: This key is unknown here"),
        ("secret", "refuses the key of CACP_KEY: the key is malformed"),
    ],
)
def test_a_key_that_the_node_refuses(node: Node, key: str, part: str) -> None:
    status, checks = examined(node.db, agent_id=AGENT, repo=REPO, port="0", key=key)
    assert (status, checks["key"]["state"]) == (0, "warning")
    assert part in checks["key"]["found"]
    assert key not in checks["key"]["found"]


def test_a_process_that_has_the_database_open_and_does_not_answer(db: Path) -> None:
    held = lock(db)
    assert held is not None
    _, silent = examined(db)
    announce(held, ListenAddress("127.0.0.1", free_port()))
    status, checks = examined(db, port="0")
    os.close(held)
    assert "does not say where it listens" in silent["node"]["found"]
    assert (status, checks["node"]["state"]) == (1, "broken")
    assert "no node answers at http://127.0.0.1:" in checks["node"]["found"]


def test_an_address_of_a_node_that_has_ended_does_not_count(db: Path) -> None:
    held = lock(db)
    assert held is not None
    announce(held, ListenAddress("127.0.0.1", free_port()))
    os.close(held)
    status, checks = examined(db, port="0")
    assert status == 0
    assert checks["node"]["found"] == "no node runs on this database"


def test_a_variable_that_is_no_port(tmp_path: Path) -> None:
    state = NodeState(False, None, {})
    [check] = call_checks({"CACP_PORT": "http"}, tmp_path, state)
    assert check.finding == "CACP_PORT should be a port from 0 to 65535, not http"
