import socket
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from proof.messages import WireRequest, header_of
from proof.sender import ANSWER_MAX, BaseUrl, Halted, NoAnswer, ProbeSender, ProviderGone


class Peer:
    """A server that answers by its path, and keeps what it heard."""

    def __init__(self) -> None:
        heard: list[tuple[str, dict[str, str], bytes]] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                heard.append((self.path, dict(self.headers), body))
                if self.path == "/drop" or (self.path == "/drop-once" and len(heard) == 1):
                    self.close_connection = True
                    return
                if self.path == "/slow":
                    time.sleep(5)
                self.send_response(302 if self.path == "/away" else 200)
                self.send_header("Location", "http://127.0.0.1:9/away")
                if self.path == "/mock":
                    self.send_header("X-CACP-Mock", "1")
                size = ANSWER_MAX + 1 if self.path == "/large" else 2
                self.send_header("Content-Length", str(size))
                self.end_headers()
                self.wfile.write(b"x" * size)

            def log_message(self, *_: object) -> None:
                pass

        self.heard = heard
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def peer() -> Any:
    served = Peer()
    yield served
    served.server.shutdown()
    served.server.server_close()


def sender_to(url: str, **given: Any) -> ProbeSender:
    usual: dict[str, Any] = {"rate": 0, "seconds": 60, "timeout": 10, "allow_mock": False}
    return ProbeSender(BaseUrl(url), given.pop("headers", ()), **(usual | given))


def test_a_request_goes_as_it_is_with_the_headers_of_all(peer: Peer) -> None:
    request = WireRequest("POST", "/a%2Fb", "c=%20d", (("X-Team", "red"), ("X-B", "c")), b"\x00")
    with sender_to(peer.url, headers=(("x-team", "blue"),)) as sender:
        answer = sender.send(request)
    assert (answer.status, answer.body) == (200, b"xx")
    ((path, headers, body),) = peer.heard
    assert (path, body) == ("/a%2Fb?c=%20d", b"\x00")
    named = tuple(headers.items())
    assert (header_of(named, "X-Team"), header_of(named, "X-B")) == ("blue", "c")


def test_redirects_are_not_followed(peer: Peer) -> None:
    with sender_to(peer.url) as sender:
        assert sender.send(WireRequest("POST", "/away")).status == 302


@pytest.mark.parametrize(
    ("path", "rule"), [("/drop", "no_answer"), ("/large", "too_large"), ("/slow", "timeout")]
)
def test_a_request_without_an_answer_says_why(peer: Peer, path: str, rule: str) -> None:
    with sender_to(peer.url, timeout=0.5 if path == "/slow" else 10) as sender:
        with pytest.raises(NoAnswer) as error:
            sender.send(WireRequest("POST", path))
        assert error.value.rule == rule


def test_a_connection_that_broke_off_is_tried_again(peer: Peer) -> None:
    with sender_to(peer.url) as sender:
        assert sender.send(WireRequest("POST", "/drop-once")).status == 200
    assert len(peer.heard) == 2


def test_where_nothing_listens_the_provider_is_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with sender_to(f"http://127.0.0.1:{port}") as sender, pytest.raises(ProviderGone):
        sender.send(WireRequest("POST", "/a"))


def test_a_mock_ends_the_probe_unless_it_is_allowed(peer: Peer) -> None:
    with sender_to(peer.url) as sender:
        with pytest.raises(Halted, match="a probe of a mock proves nothing"):
            sender.send(WireRequest("POST", "/mock"))
        assert sender.saw_mock
    with sender_to(peer.url, allow_mock=True) as sender:
        assert sender.send(WireRequest("POST", "/mock")).status == 200
        assert sender.saw_mock


def test_the_time_ends(peer: Peer) -> None:
    with sender_to(peer.url, seconds=0) as sender, pytest.raises(Halted, match="--time-limit"):
        sender.send(WireRequest("POST", "/a"))
    assert peer.heard == []


def test_requests_keep_their_rate(peer: Peer) -> None:
    started = time.monotonic()
    with sender_to(peer.url, rate=20) as sender:
        for _ in range(5):
            sender.send(WireRequest("POST", "/a"))
    # Four pauses of 50 ms, however fast the machine is.
    assert time.monotonic() - started >= 0.2


@pytest.mark.parametrize(
    ("text", "origin", "path", "is_near"),
    [
        ("http://localhost:8000", "http://localhost:8000", "", True),
        ("https://api.example.com/v1/", "https://api.example.com", "/v1", False),
        ("http://[::1]:80/a/b", "http://[::1]:80", "/a/b", True),
    ],
)
def test_base_urls(text: str, origin: str, path: str, is_near: bool) -> None:
    url = BaseUrl(text)
    assert (url.origin, url.path, url.is_near) == (origin, path, is_near)


@pytest.mark.parametrize(
    "text",
    [
        "", "localhost:8000", "ftp://a", "http://", "http://a?b=c", "http://a/#b", "http://u:p@a",
        "http://a:x", "http://[", "file:///etc",
    ],
)  # fmt: skip
def test_what_is_no_base_url_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a base URL is like http://localhost:8000"):
        BaseUrl(text)
