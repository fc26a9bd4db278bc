"""A node's process; tests/cli/test_mesh_nodes.py kills who started one."""

import socket
from pathlib import Path

import httpx
import pytest

from cli.local_process import LocalProcess, check_free
from tests.support.node import START_SECONDS, free_port
from tests.support.waiting import eventually


def lives(url: str) -> bool:
    try:
        return httpx.get(f"{url}/live", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_it_is_killed_and_started_again_on_its_port(tmp_path: Path) -> None:
    port = free_port()
    variables = {"CACP_DB": str(tmp_path / "node.db"), "CACP_PORT": str(port)}
    node = LocalProcess(tmp_path / "one", "one", port, "--repo", "shop", variables=variables)
    assert node.pid is None
    node.toggle()
    try:
        eventually(lambda: lives(node.url), START_SECONDS)
        first = node.pid
        node.toggle()
        assert node.pid is None
        assert not lives(node.url)
        node.toggle()
        assert node.pid not in (None, first)
        eventually(lambda: lives(node.url), START_SECONDS)
        assert httpx.get(f"{node.url}/health", trust_env=False).json()["repo"] == "shop"
    finally:
        node.stop()
        node.wait()
    assert node.pid is None
    assert (tmp_path / "one" / "node.log").stat().st_size > 0


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"listens on port {port}; end it, or name other"):
            check_free(port)
    check_free(port)
