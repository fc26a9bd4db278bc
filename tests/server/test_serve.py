"""Start and stop of a node process (issue: SIGTERM drains; design §6: no credential, no start)."""

import asyncio
import json
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette

from server.auth import operator_key
from server.serve import admission, http_server, listen_on
from server.settings import Settings
from tests.acceptance.ledger import check_file
from tests.cli.run import ROOT
from tests.support.node import Node, bearer
from tests.support.waiting import PATIENCE, eventually


def refusal(node: Node) -> str:
    """What a node says that does not start: one or two lines, without a traceback."""
    node.start(wait=False)
    assert node.process is not None
    status = node.process.wait(20)
    node.process = None
    assert status == 1
    assert "Traceback" not in node.log
    return node.log


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A node that is not running yet."""
    return Node(tmp_path)


def test_a_start_imports_nothing_that_only_some_calls_need() -> None:
    """Imports take most of a start: this bounds it on any machine."""
    some = {"httpcore", "httpx", "jinja2", "jsonrpcserver", "jsonschema", "jwt", "mcp"}
    some |= {"contracts.compare", "contracts.recognise", "graphql", "yaml"}
    code = f"import sys, server.serve; print(*({some} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"


def test_a_cold_start_is_healthy(node: Node) -> None:
    with node:
        assert node.get("/health").json()["status"] == "healthy"


@pytest.mark.sqlite
def test_it_says_that_it_is_ready_in_one_structured_line(node: Node) -> None:
    with node:
        made, line = node.log.splitlines()
    entry = json.loads(line)
    assert (entry["event"], entry["level"], entry["url"]) == ("ready", "info", node.url)
    assert json.loads(made)["event"] == "operator_key_made"
    assert str(node.folder) not in node.log


@pytest.mark.sqlite
def test_without_a_usable_operator_key_file_it_runs_and_has_no_operator(node: Node) -> None:
    """It says why. The next start makes a file that was removed."""
    with node:
        key = node.operator
        assert node.get("/peers", key=key).status_code == 200
        file = operator_key.path_beside(node.db)
        file.chmod(0o644)
        node.restart()
        assert node.get("/peers", key=key).status_code == 401
        logged = {entry["event"]: entry for entry in map(json.loads, node.log.splitlines())}
        assert logged["operator_key_refused"]["level"] == "error"
        assert "open to others" in logged["operator_key_refused"]["problem"]
        file.unlink()
        node.restart()
        assert node.get("/peers", key=node.operator).status_code == 200
        assert node.get("/peers", key=key).status_code == 401


def test_port_0_takes_a_free_one_and_says_which(tmp_path: Path) -> None:
    node = Node(tmp_path, port=0)
    node.start(wait=False)
    try:
        eventually(lambda: re.search(r'"url": "http://127.0.0.1:[1-9]\d*"', node.log))
    finally:
        node.stop()
        node.http.close()


def test_a_port_that_is_taken_is_said(node: Node) -> None:
    with socket.create_server(("127.0.0.1", node.port)):
        assert f"127.0.0.1:{node.port}" in refusal(node)


def test_a_port_is_free_again_at_once() -> None:
    for _ in range(2):
        [first] = listen_on("127.0.0.1", 0)
        port = first.getsockname()[1]
        first.close()
        [again] = listen_on("127.0.0.1", port)
        again.close()
    with pytest.raises(ValueError, match="Can't listen on"):
        listen_on("192.0.2.1", 0)


@pytest.mark.sqlite
def test_what_is_no_database_is_said(node: Node) -> None:
    node.db.write_text("Dear all, " * 1000)
    assert "Can't use the database" in refusal(node)
    assert node.db.read_text().startswith("Dear all")


@pytest.mark.sqlite
def test_two_nodes_do_not_share_a_file(node: Node) -> None:
    with node:
        (node.folder / "second").mkdir()
        said = refusal(Node(node.folder / "second", db=node.db))
        assert "another node or program uses it" in said
        assert len(said.splitlines()) == 1
        node.kill()
        node.restart()


@pytest.mark.sqlite
def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    node = Node(tmp_path, db=tmp_path / "file" / "node.db")
    assert "node.db" in refusal(node)


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    node = Node(tmp_path, durability="SOMETIMES")
    node.start(wait=False)
    assert node.process is not None
    assert node.process.wait(20) == 2
    node.process = None
    assert "CACP_DURABILITY" in node.log


def test_exposed_and_without_a_credential_it_does_not_start(tmp_path: Path) -> None:
    """Design §6: otherwise it refuses, with the command that makes one."""
    assert "cacp keys create" in refusal(Node(tmp_path, host="0.0.0.0"))


def test_exposed_with_a_bootstrap_key_file_it_starts_and_takes_its_key(tmp_path: Path) -> None:
    """Design §6: made on first start with mode 0600 if absent."""
    file = tmp_path / "secrets" / "key"
    with Node(tmp_path, host="0.0.0.0", bootstrap_key_file=file) as node:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        key = file.read_text().strip()
        assert node.call("cacp/project/list", key=key) == {"projects": [], "total": 0}
        assert node.raw("{}").status_code == 401
        assert key not in node.log
        node.restart()
        assert file.read_text().strip() == key
        assert node.get("/peers", key=key).status_code == 200


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    except OSError:
        return False
    return True


def test_sigterm_lets_an_open_request_finish(node: Node) -> None:
    body = b'{"jsonrpc":"2.0","method":"cacp/project/create","id":1,"params":'
    body += b'{"name":"n","objective":"o"}}'
    head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with node, socket.create_connection(("127.0.0.1", node.port), timeout=PATIENCE) as slow:
        slow.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:-5])
        assert node.get("/health").status_code == 200, "what came before it is there, too"
        assert node.process is not None
        node.process.terminate()
        eventually(lambda: not listens(node.port))
        slow.sendall(body[-5:])
        answer = b"".join(iter(lambda: slow.recv(65536), b""))
        assert b" 200 OK" in answer
        assert b'"created"' in answer
        node.process.wait(PATIENCE)
        assert node.query("SELECT count(*) FROM projects") == [(1,)]
        assert '"stopped"' in node.log
        node.start()


@pytest.mark.anyio
async def test_it_is_told_of_a_stop_and_does_not_look_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle node wakes for nothing, and one that is told to stop begins at once."""
    settings = Settings(db=tmp_path / "a.db")
    server = http_server(Starlette(), settings, admission(settings))
    monkeypatch.setattr(asyncio, "sleep", pytest.fail)
    waiting = asyncio.create_task(server.main_loop())
    done, _ = await asyncio.wait([waiting], timeout=0.1)
    assert not done
    server.handle_exit(signal.SIGTERM, None)
    async with asyncio.timeout(PATIENCE):
        await waiting
        await server.main_loop()


def test_a_stop_folds_the_log_into_the_database(node: Node) -> None:
    with node:
        node.call("cacp/project/create", name="n", objective="o")
        node.stop()
        assert not node.db.with_name("node.db-wal").exists()
        node.start()
        assert len(node.call("cacp/project/list")["projects"]) == 1


def test_what_was_answered_is_there_after_a_crash(node: Node) -> None:
    """Issue: on restart, everything acknowledged is there."""
    with node:
        made = [
            node.call("cacp/project/create", name=f"n{number}", objective="o")["projectId"]
            for number in range(50)
        ]
        node.kill()
        node.restart()
        check_file(node.db)
        listed = node.call("cacp/project/list", summary=True)["projects"]
        assert [one["projectId"] for one in listed] == made[::-1]


def test_two_starts_continue_one_sequence_and_epoch(node: Node) -> None:
    with node:
        node.call("cacp/project/create", name="n", objective="o")
        with node.events(after="0") as events:
            first = next(events)["id"]
        node.restart()
        node.call("cacp/project/create", name="n", objective="o")
        with node.events(last_event_id=first) as events:
            second = next(events)["id"]
    epoch, _, number = first.partition(":")
    assert second == f"{epoch}:{int(number) + 1}"


def test_a_debug_log_holds_no_key(tmp_path: Path) -> None:
    """Design §6: secrets appear in no log."""
    with Node(tmp_path, log_level="debug") as node:
        key = node.key("aid://example.com/frontend@1.0.0", "frontend-app")
        node.call("cacp/project/list", key=key)
        node.raw("{", bearer(key))
        node.raw("{}", bearer("cacp_sk_" + "wrong" * 8))
        assert key not in node.log
        assert "wrongwrong" not in node.log


def test_logs_are_json_when_nobody_looks_on(node: Node) -> None:
    with node:
        node.stop()
        for line in node.log.splitlines():
            assert json.loads(line)["timestamp"]
        node.start()
