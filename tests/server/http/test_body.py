"""Reading a request's body: content types and limits (design §6)."""

import socket
from collections.abc import Iterator

import pytest

from server.http.body import is_json
from tests.server.http.json_rpc import LIST, refusal
from tests.support.node import Node


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with tight limits: 2 KiB bodies, 4 KiB with a file, 60 requests a minute."""
    limits = {"body_limit": 2048, "file_body_limit": 4096, "rate_limit": 60}
    with Node(tmp_path_factory.mktemp("limited"), **limits) as node:
        yield node


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=UTF-8",
        "application/json-rpc",
        "application/json ;charset=utf-8",
    ],
)
def test_json_is_taken_under_all_its_names(node: Node, content_type: str) -> None:
    """CACP 2.0, Endpoint: Content-Type: application/json."""
    assert node.raw(LIST, {"content-type": content_type}).status_code == 200


def test_no_content_type_is_415() -> None:
    assert not is_json(None)
    assert is_json(b"application/json")


def test_a_body_over_the_limit_is_413_before_it_is_read(limited: Node) -> None:
    error = refusal(limited.raw("x" * 5000), 413)
    assert (error["code"], error["data"]) == (-32006, {"reason": "too_large", "limit": 4096})


def test_a_body_without_a_length_is_counted_as_it_comes(limited: Node) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(10):
            yield b" " * 1000

    response = limited.http.post(
        "/", content=chunks(), headers={"content-type": "application/json"}
    )
    assert refusal(response, 413)["code"] == -32006


def test_a_body_in_pieces_is_put_together(node: Node) -> None:
    pieces = iter([LIST[:10].encode(), LIST[10:].encode()])
    response = node.http.post("/", content=pieces, headers={"content-type": "application/json"})
    assert "result" in response.json()


def test_a_caller_that_goes_away_does_no_harm(node: Node) -> None:
    with socket.create_connection(("127.0.0.1", node.port)) as half:
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        half.sendall(head + b"Content-Length: 100\r\n\r\n{")
    assert node.get("/live").status_code == 200
