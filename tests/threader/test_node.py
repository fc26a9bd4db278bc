"""Reports to a node, over real HTTP; a node that is away costs the run nothing."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.threader.projects import Bench, heal_block, result_block, write
from threader.drive import drive
from threader.errors import RunLocked
from threader.load import load_project
from threader.node import Outbox
from threader.reports import Call
from threader.session import resume_run, start_run


class Node(ThreadingHTTPServer):
    """Keeps what it is told; the first `fails` calls get a 503."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.heard: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.methods = ["cacp/context/share"]
        self.fails = 0
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: Node

    def _answer(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self._answer(200, self.server.methods)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.fails:
            self.server.fails -= 1
            self._answer(503, {"error": "busy"})
            return
        self.server.heard.append(body)
        self.server.headers.append(dict(self.headers.items()))
        if body["method"] == "cacp/implementation/verify":
            error = {"code": -32602, "message": "no", "data": {"reason": "illegal_transition"}}
            self._answer(200, {"jsonrpc": "2.0", "id": 1, "error": error})
        else:
            self._answer(200, {"jsonrpc": "2.0", "id": 1, "result": {}})

    def log_message(self, format: str, *args: object) -> None:
        return None


@pytest.fixture
def node() -> Iterator[Node]:
    server = Node()
    yield server
    server.stop()


def make(tmp_path: Path, port: int) -> Bench:
    bench = Bench(tmp_path / "p", [{"id": "A", "contract_id": "c-1"}, "B"])
    bench.manifest["node"] = {
        "url": f"http://127.0.0.1:{port}/",
        "project_id": "p-1",
        "agent_id": "aid://example.com/me@1.0.0",
        "key_env": "THREADER_TEST_KEY",
        "escalate_to": "aid://example.com/boss@1.0.0",
    }
    bench.answer("A", result_block("A", writes=[write("a.txt", "x")]))
    bench.answer("B", result_block("B", status="FAILED", summary="the same"))
    bench.answer("healer", heal_block(learned_rule="Say how."))
    return bench


def run(bench: Bench) -> int:
    code, _ = drive(bench.open(), plain=True, compat=None, as_json=False)
    return code


def told(node: Node) -> list[str]:
    return [body["method"] for body in node.heard]


def test_a_run_is_told_in_order(
    tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THREADER_TEST_KEY", "cacp_sk_test")
    bench = make(tmp_path, node.server_port)
    assert run(bench) == 1
    assert told(node) == [
        "cacp/implementation/start",
        "cacp/implementation/complete",
        "cacp/implementation/verify",
        "cacp/context/share",
        "cacp/context/share",
        "cacp/context/share",
    ]
    assert node.heard[1]["params"]["files"] == ["a.txt"]
    assert node.headers[0]["Authorization"] == "Bearer cacp_sk_test"
    assert len({headers["Idempotency-Key"] for headers in node.headers}) == len(node.headers)
    refused = (bench.state_dir / "outbox.refused.jsonl").read_text()
    assert "illegal_transition" in refused
    assert "does not offer acp/send" in refused
    assert "cacp_sk_test" not in (bench.state_dir / "outbox.jsonl").read_text()


def test_acp_messages_go_out_where_the_node_offers_them(tmp_path: Path, node: Node) -> None:
    node.methods.append("acp/send")
    run(make(tmp_path, node.server_port))
    messages = [body for body in node.heard if body["method"] == "acp/send"]
    assert [body["params"]["type"] for body in messages] == ["status.blocked"]


def test_a_busy_node_is_asked_again(tmp_path: Path, node: Node) -> None:
    node.fails = 1
    run(make(tmp_path, node.server_port))
    assert told(node)[0] == "cacp/implementation/start"
    assert len(told(node)) == 6


def test_reports_wait_for_a_node_that_is_away(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    bench = make(tmp_path, port)
    assert run(bench) == 1
    outbox = Outbox(bench.state_dir)
    assert (len(outbox.calls), outbox.delivered) == (7, 0)
    later = Node(port)
    try:
        opened, _ = resume_run(load_project(bench.save()))
        drive(opened, plain=True, compat=None, as_json=False)
        assert len(told(later)) == 6
    finally:
        later.stop()


def test_the_outbox_survives_a_torn_line(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    assert outbox.put([Call("a", "m", {}), Call("b", "m", {"x": 1})])
    assert not outbox.put([Call("a", "m", {})])
    outbox.settle()
    with (tmp_path / "outbox.jsonl").open("ab") as file:
        file.write(b'{"key": "torn')
    again = Outbox(tmp_path)
    assert again.next() == Call("b", "m", {"x": 1})
    assert again.put([Call("c", "m", {})])
    assert [call.key for call in Outbox(tmp_path).calls] == ["a", "b", "c"]


def test_a_run_that_starts_over_reports_anew(tmp_path: Path, node: Node) -> None:
    bench = make(tmp_path, node.server_port)
    run(bench)
    (bench.workspace / "a.txt").unlink()
    drive(start_run(load_project(bench.save()), fresh=True), plain=True, compat=None, as_json=False)
    keys = [headers["Idempotency-Key"] for headers in node.headers]
    assert len(keys) > 6
    assert len(set(keys)) == len(keys)


def test_nothing_is_reported_beside_a_process_that_holds_the_run(
    tmp_path: Path, node: Node
) -> None:
    bench = make(tmp_path, node.server_port)
    opened, other = bench.open(), bench.open()
    opened.store.prepare()
    with opened.store.lock.held(), pytest.raises(RunLocked):
        drive(other, plain=True, compat=None, as_json=False)
    assert not (bench.state_dir / "outbox.jsonl").exists()
