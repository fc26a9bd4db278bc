"""The one outgoing client, against real servers that misbehave (design §7)."""

import asyncio
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from peers.client import Client, Refused, Unreachable, result_of

Behave = Callable[[socketserver.StreamRequestHandler], None]


@contextmanager
def server(behave: Behave) -> Iterator[str]:
    """A TCP server that reads a request's head and then does as it is told."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            try:
                behave(self)
            except OSError:
                return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


def answers(*lines: str, body: str = "") -> Behave:
    head = "\r\n".join([*lines, f"content-length: {len(body)}", "", body])

    def behave(handler: socketserver.StreamRequestHandler) -> None:
        handler.wfile.write(head.encode())

    return behave


def get(url: str, problem: str | None = None, **how: Any) -> Any:
    async def run() -> Any:
        client = Client(lambda url: None, lambda address: problem, **how)
        try:
            return await client.get(url)
        finally:
            await client.close()

    return asyncio.run(run())


def test_an_answer_is_json() -> None:
    with server(answers("HTTP/1.1 200 OK", body='{"a": 1}')) as url:
        assert get(url) == {"a": 1}


@pytest.mark.parametrize("where", ["http://169.254.169.254/", "/elsewhere"])
def test_a_redirect_is_not_followed(where: str) -> None:
    """Design §7: no redirects to elsewhere, endless ones neither."""
    with (
        server(answers("HTTP/1.1 302 Found", f"location: {where}")) as url,
        pytest.raises(Unreachable, match="redirects"),
    ):
        get(url)


def test_an_address_that_must_not_be_called_is_not() -> None:
    """Checked after the name is resolved; the connection goes to what was checked."""
    called: list[object] = []
    with server(lambda handler: called.append(handler)) as url:
        with pytest.raises(Unreachable, match="metadata"):
            get(url, problem="a metadata service's")
        assert called == []


def test_an_answer_that_never_ends_is_cut_off() -> None:
    def endless(handler: socketserver.StreamRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            handler.wfile.write(b"x" * 65536)

    with server(endless) as url, pytest.raises(Unreachable, match="longer than"):
        get(url, size_max=1_000_000)


def test_an_answer_that_trickles_is_given_up() -> None:
    def trickle(handler: socketserver.StreamRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(200):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            threading.Event().wait(0.05)

    with server(trickle) as url, pytest.raises(Unreachable, match="no whole answer"):
        get(url, seconds=0.5)


def test_nobody_there_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        get("http://127.0.0.1:1/")


@pytest.mark.parametrize("body", ["", "<html>", '{"error": 7}'])
def test_an_error_without_json_rpc_is_refused_with_its_status(body: str) -> None:
    with (
        server(answers("HTTP/1.1 401 Unauthorized", body=body)) as url,
        pytest.raises(Refused) as refused,
    ):
        get(url)
    assert refused.value.status == 401


def test_a_json_rpc_error_keeps_its_reason() -> None:
    error = {"code": -32602, "message": "no", "data": {"reason": "not_found"}}
    with pytest.raises(Refused) as refused:
        result_of({"jsonrpc": "2.0", "error": error, "id": 1})
    assert (refused.value.code, refused.value.reason) == (-32602, "not_found")
    assert result_of({"result": 5}) == 5
    odds: list[Any] = [None, [], {"id": 1}, "x"]
    for odd in odds:
        with pytest.raises(Refused):
            result_of(odd)
