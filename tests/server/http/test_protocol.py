"""What uvicorn's own protocol lacks: limits on what is read, a response sent in one piece."""

import asyncio
import json
import re
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

import pytest

from server.http.protocol import HEAD_MAX, CoalescingTransport
from tests.support.node import Node
from tests.support.waiting import PATIENCE, eventually

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CALL = b'{"jsonrpc":"2.0","method":"cacp/project/list","id":1}'


class Wire:
    """Stands where asyncio's transport stands, and keeps each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


async def written(*parts: bytes, then_close: bool = False) -> list[bytes]:
    wire = Wire()
    piece = CoalescingTransport(cast(asyncio.Transport, wire), asyncio.get_running_loop())
    for part in parts:
        piece.write(part)
    if then_close:
        piece.close()
        assert piece.is_closing()
    await asyncio.sleep(0)
    return wire.writes


def test_what_is_written_in_one_turn_goes_out_together() -> None:
    assert asyncio.run(written(b"head", b"body")) == [b"headbody"]


def test_nothing_is_lost_when_the_connection_closes_at_once() -> None:
    assert asyncio.run(written(b"head", b"body", then_close=True)) == [b"headbody"]


def test_nothing_written_sends_nothing() -> None:
    assert asyncio.run(written()) == []


def test_head_and_body_arrive_in_one_read(node: Node) -> None:
    with socket.create_connection(("127.0.0.1", node.port), timeout=PATIENCE) as caller:
        for _ in range(20):
            caller.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert caller.recv(65536).endswith(b'{"status":"live"}')


def test_pipelined_requests_are_answered_in_order(node: Node) -> None:
    ask = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
    with socket.create_connection(("127.0.0.1", node.port), timeout=PATIENCE) as caller:
        caller.sendall(ask % (b"live", b"") + ask % (b"methods", b"Connection: close\r\n"))
        answers = b"".join(iter(lambda: caller.recv(65536), b""))
    assert answers.count(b"HTTP/1.1 200") == 2
    assert answers.index(b'"live"') < answers.index(b'"methods"')


# --- what is read -------------------------------------------------------------------------------


def exchange(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """All that comes back on a connection that sends these parts and then waits for its end."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as caller:
        for part in parts:
            caller.sendall(part)
            time.sleep(pause)
        return b"".join(iter(lambda: caller.recv(65536), b""))


def refused(answer: bytes, status: int) -> str:
    """The message of an answer of this status that refuses the request."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), answer
    assert b"connection: close" in head
    error = json.loads(body)["error"]
    assert (error["code"], error["data"]["reason"]) == (-32600, "invalid_request")
    return str(error["message"])


def get(path: bytes, more: bytes = b"") -> bytes:
    return b"GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (path, more)


@pytest.mark.parametrize("pause", [0.0, 0.05])
def test_a_head_over_64_kib_is_431(node: Node, pause: float) -> None:
    huge = get(b"/live")[:-2] + b"X: " + b"a" * HEAD_MAX
    message = refused(exchange(node.port, huge[:40_000], huge[40_000:], pause=pause), 431)
    assert str(HEAD_MAX) in message


def test_many_headers_are_a_large_head_too(node: Node) -> None:
    refused(exchange(node.port, get(b"/live", b"X: a\r\n" * (HEAD_MAX // 6))), 431)


def test_what_follows_a_chunked_body_is_limited_as_a_head_is(node: Node) -> None:
    answer = exchange(
        node.port,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n",
        b"X: " + b"a" * HEAD_MAX,
        pause=0.05,
    )
    refused(answer, 431)


def test_a_large_head_under_the_limit_is_taken(node: Node) -> None:
    more = b"X: " + b"a" * (HEAD_MAX - 100) + b"\r\nConnection: close\r\n"
    assert exchange(node.port, get(b"/live", more)).startswith(b"HTTP/1.1 200")


def test_each_head_of_a_connection_has_the_limit_to_itself(node: Node) -> None:
    half = b"X: " + b"a" * (HEAD_MAX // 2) + b"\r\n"
    last = get(b"/live", half + b"Connection: close\r\n")
    answer = exchange(node.port, get(b"/live", half), get(b"/live", half) + last)
    assert answer.count(b"HTTP/1.1 200") == 3


def test_a_large_body_is_no_head(tmp_path: Path) -> None:
    body = CALL + b" " * 300_000
    head = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    with Node(tmp_path) as node:
        assert b'"result"' in exchange(node.port, head + body)


def test_what_is_no_http_is_400_in_json(node: Node) -> None:
    assert "HTTP/1.1" in refused(exchange(node.port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400)


@pytest.mark.parametrize("target", [b"example.com:443", b"http://example.com/", b"/"])
def test_a_node_is_no_proxy(node: Node, target: bytes) -> None:
    refused(exchange(node.port, b"CONNECT %s HTTP/1.1\r\nHost: a\r\n\r\n" % target), 400)


# --- targets and trailers -----------------------------------------------------------------------


def test_the_host_of_a_whole_url_counts(node: Node) -> None:
    """RFC 9112, 3.2.2: it stands in place of the Host header, for whom the node takes a call."""
    away = b"GET http://%s/peers HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
    own = b"127.0.0.1:%d" % node.port
    assert exchange(node.port, away % (own, b"evil.example")).startswith(b"HTTP/1.1 200")
    assert exchange(node.port, away % (b"evil.example", own)).startswith(b"HTTP/1.1 401")


def test_trailers_are_no_headers(node: Node) -> None:
    """What comes behind a body has been looked at by nobody."""
    chunked = HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"%x\r\n%s\r\n0\r\n" % (len(CALL), CALL)
    trailers = b"Authorization: Bearer wrong\r\nHost: evil.example\r\nX-Agent-ID: other\r\n\r\n"
    assert b'"result"' in exchange(node.port, chunked + body + trailers)
    assert b'"result"' in exchange(node.port, chunked, body, trailers, pause=0.05)


# --- connections --------------------------------------------------------------------------------

STRANGER = HEAD.replace(b"localhost", b"evil.example")


def test_who_is_refused_keeps_no_connection(node: Node) -> None:
    head = STRANGER + b"Content-Length: 1000000\r\n\r\n"
    for parts in ([head], [STRANGER + LENGTH + CALL], [get(b"/peers").replace(b"localhost", b"e")]):
        answer = exchange(node.port, *parts)
        assert answer.startswith(b"HTTP/1.1 401")
        assert b"connection: close" in answer.lower()


def test_who_is_answered_before_its_body_is_whole_may_go_on(node: Node) -> None:
    """The answer doesn't say that the connection ends, so it doesn't, once the body is whole."""
    early = b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
    with socket.create_connection(("127.0.0.1", node.port), timeout=PATIENCE) as caller:
        for _ in range(3):
            caller.sendall(early)
            assert caller.recv(65536).startswith(b"HTTP/1.1 404")
            caller.sendall(b"x" * 10 + get(b"/live"))
            assert caller.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_byte_does_not_keep_a_connection_that_has_ended(node: Node) -> None:
    """What comes behind a refusal is thrown away, and moves no deadline."""

    def is_cut_off() -> bool:
        try:
            caller.sendall(b"x")
        except OSError:
            return True
        return False

    with socket.create_connection(("127.0.0.1", node.port), timeout=PATIENCE) as caller:
        caller.sendall(STRANGER + LENGTH + CALL)
        assert b"".join(iter(lambda: caller.recv(65536), b"")).startswith(b"HTTP/1.1 401")
        eventually(is_cut_off)


def test_who_never_sends_the_rest_of_its_body_is_cut_off(node: Node) -> None:
    early = b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
    answer = exchange(node.port, early, b"x")
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("pause", [0.0, 0.01])
def test_what_is_sent_behind_the_last_answer_is_thrown_away(node: Node, pause: float) -> None:
    """Nobody answers it: the answer before it ended what is sent."""
    refused_first = STRANGER + LENGTH + CALL
    for last in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", get(b"/live"), refused_first):
        for first in (refused_first, get(b"/live", b"Connection: close\r\n")):
            answer = exchange(node.port, first + last, last, pause=pause)
            assert answer.count(b"HTTP/1.1 ") == 1
    assert "Traceback" not in node.log


def test_a_refusal_reaches_who_goes_on_sending(node: Node) -> None:
    """To close on what it still sends would reset the connection before it reads the answer."""
    rest = [b"x" * 100_000] * 10
    answer = exchange(node.port, STRANGER + b"Content-Length: 1000000\r\n\r\n", *rest, pause=0.01)
    assert answer.startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("pause", [0.0, 0.001, 0.01, 0.05])
def test_connections_that_are_reset_leave_no_traceback(node: Node, pause: float) -> None:
    whole = HEAD + LENGTH + CALL
    for request in (
        get(b"/live"),
        get(b"/events"),
        get(b"/methods?verbose=1"),
        whole,
        whole[:-5],
        HEAD[:40],
        STRANGER + LENGTH + CALL,
        STRANGER + b"Content-Length: 1000000\r\n\r\n{",
    ):
        with socket.create_connection(("127.0.0.1", node.port), timeout=PATIENCE) as caller:
            caller.sendall(request)
            time.sleep(pause)
            # To close resets the connection.
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert node.call("cacp/project/list")
    assert "Traceback" not in node.log
    assert '"level": "error"' not in node.log


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path, connections=20, connections_per_address=8) as node:
        yield node


@contextmanager
def held(port: int, count: int, address: str = "127.0.0.1") -> Iterator[list[bytes]]:
    """Connections that are open side by side; what each is told at once."""
    with ExitStack() as stack:
        told = []
        for _ in range(count):
            caller = socket.create_connection(("127.0.0.1", port), PATIENCE, (address, 0))
            stack.enter_context(caller)
            caller.sendall(get(b"/live"))
            told.append(caller.recv(65536))
        yield told


def test_one_address_has_its_share_of_the_connections(crowded: Node) -> None:
    crowded.http.close()
    with held(crowded.port, 10, "127.0.0.2") as told:
        assert [one[:12] for one in told] == [b"HTTP/1.1 200"] * 8 + [b"HTTP/1.1 503"] * 2
        assert "127.0.0.2 has 8 open connections" in refused(told[-1], 503)
        with held(crowded.port, 1, "127.0.0.3") as others:
            assert others[0].startswith(b"HTTP/1.1 200")
    assert '"connection_refused"' in crowded.log
    eventually(lambda: all_are_taken(crowded, "127.0.0.2"))


def all_are_taken(node: Node, address: str) -> bool:
    with held(node.port, 8, address) as told:
        return all(one.startswith(b"HTTP/1.1 200") for one in told)


def metrics(node: Node) -> str:
    return node.get("/metrics").text


def test_all_together_have_what_the_node_can_afford(crowded: Node) -> None:
    crowded.http.close()
    with ExitStack() as stack:
        for number in range(3):
            told = stack.enter_context(held(crowded.port, 8, f"127.0.0.{number + 2}"))
        assert "20 open connections, its limit" in refused(told[-1], 503)
    crowded.http = crowded._client()
    # The node hears of their ends a moment later.
    eventually(lambda: crowded.get("/live").status_code == 200)
    (refusals,) = re.findall(r"^cacp_connections_refused_total (\d+)", metrics(crowded), re.M)
    assert int(refusals) >= 4


# --- an offer to upgrade ------------------------------------------------------------------------

OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n" % len(CALL)


@pytest.mark.parametrize("cut", [None, 30, 150, -10])
def test_an_offer_to_upgrade_is_passed_over(node: Node, cut: int | None) -> None:
    """As `curl --http2 -d` sends it (RFC 9110, 7.8)."""
    offered = HEAD + OFFER + LENGTH + CALL
    parts = [offered] if cut is None else [offered[:cut], offered[cut:]]
    answer = exchange(node.port, *parts, get(b"/live", b"Connection: close\r\n"), pause=0.05)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert b'"result"' in answer
    assert b'"live"' in answer


def test_offers_of_pipelined_requests_are_passed_over(node: Node) -> None:
    offered = HEAD + OFFER + LENGTH + CALL
    answer = exchange(node.port, offered * 2 + get(b"/live", b"Connection: close\r\n"))
    assert answer.count(b'"result"') == 2
    assert b'"live"' in answer


def test_an_offer_is_no_way_around_who_calls(node: Node) -> None:
    websocket = b"Connection: Upgrade\r\nUpgrade: websocket\r\nOrigin: http://evil.com\r\n"
    answer = exchange(
        node.port, HEAD + websocket + LENGTH + CALL, get(b"/", b"Connection: close\r\n")
    )
    assert answer.startswith(b"HTTP/1.1 401")
    assert "pip install" not in node.log
