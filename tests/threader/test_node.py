"""Reports to a node, over real HTTP; a node that is away costs the run nothing."""

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from tests.threader.projects import Bench, heal_block, result_block, write
from threader.doctor import examine
from threader.drive import drive
from threader.errors import NotReady, RunLocked
from threader.events import RunEvent
from threader.load import load_project
from threader.node import NodeReporter, Port
from threader.outbox import Outbox
from threader.session import resume_run, start_run


class Node(ThreadingHTTPServer):
    """Keeps what it takes. The first `fails` calls get a 503, `refusals` are errors by method."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.heard: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.methods = ["cacp/context/share"]
        self.fails = 0
        self.stranger = False
        self.key: str | None = None
        self.refusals: dict[str, list[dict[str, Any]]] = {}
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
        if self.server.stranger:
            self._answer(404, {"detail": "Not Found"})
            return
        self._answer(200, self.server.methods)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.stranger:
            self._answer(404, {"detail": "Not Found"})
            return
        if self.server.fails:
            self.server.fails -= 1
            self._answer(503, {"error": "busy"})
            return
        if self.server.key and self.headers["Authorization"] != f"Bearer {self.server.key}":
            error = {"code": -32001, "message": "This key is not valid"}
            self._answer(200, {"jsonrpc": "2.0", "id": 1, "error": error})
            return
        if refusals := self.server.refusals.get(body["method"]):
            error = refusals.pop(0)
            self._answer(200, {"jsonrpc": "2.0", "id": 1, "error": error})
            return
        self.server.heard.append(body)
        self.server.headers.append(dict(self.headers.items()))
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
    summary = Outbox(bench.state_dir).summary()
    assert (summary["delivered"], summary["waiting"], summary["refused"]) == (6, 0, 2)
    assert summary["problems"] == [
        "2 reports were finally refused: the node does not offer acp/send"
    ]
    assert "cacp_sk_test" not in (bench.state_dir / "outbox.jsonl").read_text()


def test_acp_messages_go_out_where_the_node_offers_them(tmp_path: Path, node: Node) -> None:
    node.methods.append("acp/send")
    run(make(tmp_path, node.server_port))
    messages = [body for body in node.heard if body["method"] == "acp/send"]
    assert [body["params"]["topic"] for body in messages] == [
        "task B escalated",
        "run run-1 completed",
    ]
    assert {body["params"]["type"] for body in messages} == {"status.blocked"}


def test_a_node_that_offers_it_is_told_how_the_run_stands(tmp_path: Path, node: Node) -> None:
    """The last report is of the end, and says the same as the run's own state."""
    node.methods.append("cacp/run/report")
    bench = make(tmp_path, node.server_port)
    run(bench)
    reports = [body["params"] for body in node.heard if body["method"] == "cacp/run/report"]
    assert reports[-1]["status"] == "COMPLETED"
    assert reports[-1]["counts"] == {"ESCALATED": 1, "DONE": 1}
    assert {report["runId"] for report in reports} == {"run-1"}
    assert next(task for task in reports[-1]["tasks"] if task["id"] == "A")["contractId"] == "c-1"


def test_a_refused_report_of_the_run_is_a_problem_that_is_shown(tmp_path: Path, node: Node) -> None:
    node.methods.append("cacp/run/report")
    refusal = {"code": -32003, "message": "You hold no repo", "data": {"reason": "not_a_member"}}
    node.refusals = {"cacp/run/report": [refusal] * 99}
    bench = make(tmp_path, node.server_port)
    run(bench)
    summary = Outbox(bench.state_dir).summary()
    assert summary["waiting"] == 0
    assert any("cacp/run/report: You hold no repo" in text for text in summary["problems"])


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
    assert (len(outbox.calls), len(outbox.pending())) == (8, 8)
    later = Node(port)
    try:
        opened, _ = resume_run(load_project(bench.save()))
        drive(opened, plain=True, compat=None, as_json=False)
        assert len(told(later)) == 6
    finally:
        later.stop()


def test_what_is_no_node_has_taken_nothing(tmp_path: Path, node: Node) -> None:
    """Such as a proxy that has lost it: an answer without a result delivers no report."""
    node.stranger = True
    bench = make(tmp_path, node.server_port)
    run(bench)
    summary = Outbox(bench.state_dir).summary()
    assert (summary["delivered"], summary["waiting"], summary["refused"]) == (0, 8, 0)
    assert summary["problems"] == ["8 reports wait: the server at its address is not a node"]


EARLY = {
    "code": -32602,
    "message": "every party must complete its implementation first",
    "data": {"reason": "illegal_transition", "from": "agreed"},
}


def test_what_comes_too_early_is_sent_again_in_order(tmp_path: Path, node: Node) -> None:
    node.refusals = {"cacp/implementation/complete": [EARLY], "cacp/implementation/verify": [EARLY]}
    bench = make(tmp_path, node.server_port)
    run(bench)
    opened, _ = resume_run(load_project(bench.save()))
    drive(opened, plain=True, compat=None, as_json=False)
    contract = [name for name in told(node) if "implementation" in name]
    assert [name.rpartition("/")[2] for name in contract] == ["start", "complete", "verify"]
    assert Outbox(bench.state_dir).summary()["waiting"] == 0


def test_a_rejected_key_loses_nothing_and_is_told(
    tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node.methods.append("acp/send")
    node.key = "right"
    monkeypatch.setenv("THREADER_TEST_KEY", "wrong")
    bench = make(tmp_path, node.server_port)
    run(bench)
    wait = "8 reports wait: the node responds: This key is not valid"
    assert wait in capsys.readouterr().err
    assert wait in (bench.state_dir / "report.md").read_text()
    project = load_project(bench.save())
    assert any(wait in finding.text for finding in examine(project) if not finding.ok)
    monkeypatch.setenv("THREADER_TEST_KEY", "right")
    drive(resume_run(project)[0], plain=True, compat=None, as_json=False)
    assert len(told(node)) == 8
    assert Outbox(bench.state_dir).summary()["problems"] == []
    assert all(finding.ok for finding in examine(project) if "node" in finding.text)


def test_a_run_that_waits_long_is_mailed_once(tmp_path: Path, node: Node) -> None:
    node.methods.append("acp/send")
    bench = make(tmp_path, node.server_port)
    manifest = load_project(bench.save()).manifest
    assert manifest.node is not None
    opened = bench.open()
    opened.store.prepare()
    port = cast(Port, None)
    reporter = NodeReporter(manifest, manifest.node, opened.store.folder, port, "")
    for kind in ("paused", "blocked", "blocked"):
        reporter(RunEvent(kind, "rate limited"), opened.state)
    (call,) = reporter.outbox.pending()
    assert call.params["topic"] == "run run-1 waits for its provider"


def test_a_run_that_stops_in_its_midst_is_mailed(tmp_path: Path, node: Node) -> None:
    node.methods.append("acp/send")
    bench = make(tmp_path, node.server_port)
    bench.manifest["isolation"] = "worktree"
    for command in ("init -q", "-c user.name=t -c user.email=t@t commit -q --allow-empty -m start"):
        subprocess.run(["git", *command.split()], cwd=bench.workspace, check=True)
    bench.script("A", f"git -C {bench.workspace} checkout -q --detach")
    with pytest.raises(NotReady, match="merges into"):
        run(bench)
    mails = [body["params"] for body in node.heard if body["method"] == "acp/send"]
    (mail,) = (mail for mail in mails if mail["topic"] == "run run-1 stopped")
    assert "merges into" in mail["payload"]["summary"]


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
