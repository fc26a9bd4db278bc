"""The client's errors, against a node and against what is none."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from cli.client import CallRefused, NodeClient, NodeUnanswered, NodeUnreachable
from tests.support.node import Node
from tests.support.scripted_http import ScriptedHttp, answer, silent


class _Stranger(BaseHTTPRequestHandler):
    """Some other web server: answers with what its path asks for."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._answer(b"[]")

    def do_GET(self) -> None:
        self._answer(b"<html>")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def stranger() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Stranger) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_another_web_server_is_no_node(stranger: str) -> None:
    with NodeClient(stranger) as client:
        with pytest.raises(NodeUnreachable, match="not as a CACP node"):
            client.get("/health")
        with pytest.raises(NodeUnreachable, match=r"is it a CACP node\?"):
            client.call("cacp/project/list")


def test_a_call_may_have_been_carried_out_once_it_was_sent() -> None:
    """So agents are not told that nothing was changed (`server.mcp_tools.calls`)."""
    with (
        ScriptedHttp(silent) as broken,
        NodeClient(broken.url) as client,
        pytest.raises(NodeUnanswered, match="broke off") as unanswered,
    ):
        client.call("cacp/context/share")
    assert unanswered.value.reason == "unanswered"
    with NodeClient("http://127.0.0.1:9") as client, pytest.raises(NodeUnreachable) as unsent:
        client.call("cacp/context/share")
    assert unsent.value.reason == "unreachable"


def test_many_calls_keep_their_order(node: Node) -> None:
    with NodeClient(node.url) as client:
        answers = list(client.call_each("cacp/project/list", [{"limit": 1}] * 150))
    assert len(answers) == 150
    assert all("projects" in answer for answer in answers)


def test_one_of_many_that_is_refused_raises(node: Node) -> None:
    with NodeClient(node.url) as client, pytest.raises(CallRefused) as refused:
        list(client.call_each("cacp/project/get", [{"projectId": "nope"}]))
    assert refused.value.code == -32602
    assert refused.value.data["reason"] == "not_found"


def test_refusals_of_a_whole_request_are_refusals_too(node: Node) -> None:
    with (
        NodeClient(node.url, "cacp_sk_" + "y" * 32) as client,
        pytest.raises(CallRefused) as refused,
    ):
        client.get("/peers")
    assert refused.value.code == -32001


@pytest.mark.parametrize("key", ["abc", "a b", "é", "x\n", "cacp_sk_" + "x" * 15])
def test_a_malformed_key_is_not_sent(key: str) -> None:
    with pytest.raises(ValueError, match="the key is malformed: it should be cacp_sk_"):
        NodeClient("http://127.0.0.1:1", key)


@pytest.mark.parametrize("trusted", [True, False])
def test_over_tls_a_node_must_be_trusted(
    trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Authorities are read for https, on this machine too."""
    issuer, other = trustme.CA(), trustme.CA()
    certificate = tmp_path / "node.pem"
    issuer.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    (issuer if trusted else other).cert_pem.write_to_path(str(tmp_path / "trusted.pem"))
    monkeypatch.setattr("certifi.where", lambda: str(tmp_path / "trusted.pem"))
    with ScriptedHttp(answer({"result": 1}), certificate) as node, NodeClient(node.url) as client:
        if trusted:
            assert client.call("x") == 1
        else:
            with pytest.raises(NodeUnreachable):
                client.call("x")
