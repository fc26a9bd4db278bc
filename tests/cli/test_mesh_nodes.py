"""The processes of `cacp mesh`: tests/cli/test_mesh.py runs them whole."""

import socket
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cli.mesh_nodes import LocalMesh, LocalNode
from server.settings import load
from tests.cli.run import ROOT
from tests.support.node import free_port, free_ports
from tests.support.waiting import eventually


def test_a_members_file_is_all_that_a_node_needs(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a token that nobody guesses\n")
    member = LocalNode(tmp_path, "mobile", 8083)
    member.configure(token, ["http://127.0.0.1:8081"])
    assert tomllib.loads(member.config.read_text())["repo"] == "mobile-app"
    settings = load(member.config)
    assert (settings.url, settings.peers) == (member.url, ("http://127.0.0.1:8081",))
    assert settings.mesh_tokens == ("a token that nobody guesses",)
    assert settings.db == tmp_path / "mobile" / "cacp.db"


def test_a_port_that_is_taken_is_named_and_nothing_is_left_running(tmp_path: Path) -> None:
    port = free_ports(3)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(ValueError, match=f"listens on port {port}"), LocalMesh(tmp_path, port):
            pass
    token = tmp_path / "token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    before = token.read_text()
    with (
        pytest.raises(ValueError, match="listens on port"),
        socket.create_server(("127.0.0.1", port)),
        LocalMesh(tmp_path, port),
    ):
        pass
    assert token.read_text() == before, "a mesh keeps its secret"


STARTER = """
import sys, time
from pathlib import Path
from cli.mesh_nodes import LocalNode

folder = Path(sys.argv[1])
(folder / "token").write_text("a token that nobody guesses\\n")
member = LocalNode(folder, "mobile", int(sys.argv[2]))
member.configure(folder / "token", [])
member.start()
time.sleep(600)
"""


def test_a_node_ends_with_who_started_it_however_that_ends(tmp_path: Path) -> None:
    port = free_ports(3)

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    starter = subprocess.Popen([sys.executable, "-c", STARTER, str(tmp_path), str(port)], cwd=ROOT)
    try:
        eventually(listens)
    finally:
        starter.kill()
        starter.wait()
    eventually(lambda: not listens())


def test_a_node_that_does_not_run_is_down(tmp_path: Path) -> None:
    member = LocalNode(tmp_path, "mobile", free_port())
    seen = member.look()
    assert (seen.health, seen.pid, seen.held) == ("down", None, None)
    member.stop()
    member.wait()
