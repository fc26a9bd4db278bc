"""A plain call is answered as it would be on the way of every other request."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise
from typing import Any, cast

import orjson
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from server.domain.errors import TooLarge
from server.http import plain_call
from server.http.body import Disconnected, ReadBody, read_body
from server.http.plain_call import PlainCall
from server.http.protocol import HEAD_MAX, SLICE, HttpProtocol
from server.http.responses import PIECE, Respond, refusal_response, respond
from tests.server.http.test_protocol import CALL, HEAD, LENGTH, exchange
from tests.support.node import Node

WHOLE = HEAD + LENGTH + CALL
LIMIT = 5_000


class Endpoint:
    """Answers what it was given; the body says how. Counts the plain calls."""

    def __init__(self) -> None:
        self.plain = 0
        self.hold = asyncio.Event()

    async def serve(self, scope: Scope, read: ReadBody, respond: Respond) -> None:
        self.plain += isinstance(getattr(read, "__self__", None), PlainCall)
        headers = dict(scope["headers"])
        try:
            body = await read(headers, LIMIT)
        except TooLarge as refusal:
            await respond(*refusal_response(refusal))
            return
        except Disconnected:
            return
        if body == b"hold":
            await self.hold.wait()
        elif body == b"turn":
            await asyncio.sleep(0)
        elif body == b"fail":
            raise RuntimeError("secret detail")
        given = [
            [name.decode("latin-1"), value.decode("latin-1")] for name, value in headers.items()
        ]
        answer = orjson.dumps(
            [scope["method"], scope["path"], sorted(given), body.decode("latin-1")]
        )
        if body == b"none":
            await respond(204, b"")
        elif body == b"close":
            await respond(401, answer, [(b"connection", b"close")])
        elif body == b"large":
            await respond(200, b"x" * (3 * PIECE))
        elif body == b"parts":
            await respond(200, [b"[", answer, b"]"])
        else:
            await respond(200, answer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.serve(scope, partial(read_body, receive), partial(respond, send))


class FakeTransport:
    """Stands where asyncio's transport stands, and keeps what is written."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.closed = False
        self.paused = False

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("127.0.0.1", 5000), "sockname": ("127.0.0.1", 80)}.get(name)

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written += data

    def write_eof(self) -> None:
        self.closed = True

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class Connection:
    """A connection of a caller to the protocol, without a network."""

    def __init__(self, endpoint: Endpoint, *, plain: bool) -> None:
        config = uvicorn.Config(endpoint, lifespan="off", log_config=None)
        config.load()
        config.loaded_app = endpoint
        self.protocol = HttpProtocol(
            config, ServerState(), {}, calls=cast(Any, endpoint) if plain else None
        )
        self.wire = FakeTransport()
        self.protocol.connection_made(cast(asyncio.Transport, self.wire))

    async def sends(self, data: bytes) -> None:
        while self.wire.paused and not self.wire.closed:
            await asyncio.sleep(0)
        if not self.wire.closed:
            self.protocol.data_received(data)

    async def is_quiet(self) -> bytes:
        """What came back, once nothing more happens."""
        for _ in range(30):
            await asyncio.sleep(0)
        return bytes(self.wire.written)

    def ends(self) -> None:
        self.protocol.connection_lost(None)


def talk(
    run: Callable[[Connection], Awaitable[bytes]],
    *,
    plain: bool = True,
) -> tuple[bytes, Endpoint]:
    """What a caller gets, and the endpoint that served it."""
    made: list[Endpoint] = []

    async def whole() -> bytes:
        made.append(Endpoint())
        connection = Connection(made[0], plain=plain)
        try:
            return await run(connection)
        finally:
            connection.ends()

    return asyncio.run(whole()), made[0]


def said(*parts: bytes, plain: bool = True) -> tuple[bytes, int]:
    """What comes back for these parts, and how many calls were plain."""

    async def run(connection: Connection) -> bytes:
        for part in parts:
            await connection.sends(part)
        return await connection.is_quiet()

    answer, endpoint = talk(run, plain=plain)
    return answer, endpoint.plain


def post(body: bytes, *more: bytes, target: bytes = b"/", length: bytes | None = None) -> bytes:
    lines = [b"POST %s HTTP/1.1" % target, b"Host: localhost", *more]
    if length != b"":
        lines.append(b"Content-Length: %b" % (b"%d" % len(body) if length is None else length))
    return b"\r\n".join([*lines, b"", body])


def test_a_small_call_in_one_piece_is_plain() -> None:
    answer, plain = said(WHOLE)
    assert plain == 1
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert (answer, 0) == said(WHOLE, plain=False)


UNUSUAL = {
    "another path": post(b"{}", target=b"/mcp"),
    "a query": post(b"{}", target=b"/?a"),
    "a whole url": post(b"{}", target=b"http://localhost/"),
    "an escaped path": post(b"{}", target=b"/%2F"),
    "another method": b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
    "an old version": b"POST / HTTP/1.0\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
    "an unknown header": post(b"{}", b"X-Other: 1"),
    "a header of a proxy": post(b"{}", b"X-Forwarded-For: 10.0.0.1"),
    "another encoding": post(b"{}", b"Content-Encoding: gzip"),
    "a wish for an interim answer": post(b"{}", b"Expect: 100-continue"),
    "an unknown wish": post(b"{}", b"Expect: more"),
    "an end": post(b"{}", b"Connection: close"),
    "no length": post(b"", length=b""),
    "chunks": post(b"2\r\n{}\r\n0\r\n\r\n", b"Transfer-Encoding: chunked", length=b""),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_is_unusual_takes_the_usual_way(name: str) -> None:
    answer, plain = said(UNUSUAL[name])
    assert plain == 0
    assert (answer, 0) == said(UNUSUAL[name], plain=False)


SMUGGLED = {
    "both framings": post(b"0\r\n\r\nGET /x", b"Transfer-Encoding: chunked"),
    "both, chunked last": post(b"{}", b"Transfer-Encoding: gzip, chunked"),
    "chunked hidden by a space": post(b"0\r\n\r\n", b"Transfer-Encoding : chunked"),
    "chunked hidden by a tab": post(b"{}", b"Transfer-Encoding:\tchunked"),
    "chunked spelt wrongly": post(b"{}", b"Transfer-Encoding: xchunked"),
    "two lengths": post(b"{}", b"Content-Length: 10"),
    "the same length twice": post(b"{}", b"Content-Length: 2"),
    "two lengths in one": post(b"{}", length=b"2, 2"),
    "a signed length": post(b"{}", length=b"+2"),
    "a negative length": post(b"{}", length=b"-2"),
    "a length in hex": post(b"{}", length=b"0x2"),
    "a huge length": post(b"{}", length=b"99999999999999999999999"),
    "a length with a line feed": b"POST / HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}",
    "a header with a null byte": post(b"{}", b"Accept: a\0b"),
    "a folded header": post(b"{}", b"Accept: a", b" b"),
    "a second host": post(b"{}", b"Host: evil.example"),
    "a space before the colon": post(b"{}", b"Accept : a"),
    "a length with a zero before it": post(b"{}", length=b"02"),
    "no body": post(b""),
    "a call within a body": post(WHOLE, length=b"2"),
    "an offer to upgrade": post(b"{}", b"Connection: upgrade", b"Upgrade: h2c"),
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_no_request_is_smuggled(name: str) -> None:
    """What is said of framing is taken as on the usual way, and so is what follows."""
    whole = SMUGGLED[name] + WHOLE
    assert said(whole)[0] == said(whole, plain=False)[0]


REQUESTS = [
    WHOLE,
    post(b"turn"),
    post(b"none"),
    post(b"large"),
    post(b"parts"),
    post(b"close"),
    post(b"x" * (LIMIT + 1)),
    post(b"x" * LIMIT, b"Idempotency-Key: a"),
    post(b"{}", b"Connection: keep-alive", b"User-Agent: a", b"Authorization: Bearer b"),
    b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n",
    *UNUSUAL.values(),
    *SMUGGLED.values(),
]


@given(
    st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=4),
    st.lists(st.integers(0, 2_000), max_size=6),
)
def test_however_requests_are_cut_they_are_answered_alike(
    requests: list[bytes], cuts: list[int]
) -> None:
    """Pipelined, in one piece or in several."""
    whole = b"".join(requests)
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    parts = [whole[start:end] for start, end in pairwise(places)]
    assert said(*parts)[0] == said(*parts, plain=False)[0]


def test_it_is_cut_at_every_byte() -> None:
    expected = said(WHOLE + post(b"turn"))[0]
    whole = WHOLE + post(b"turn")
    for cut in range(1, len(whole)):
        assert said(whole[:cut], whole[cut:])[0] == expected, cut


def test_pipelined_calls_are_answered_in_order() -> None:
    answer, plain = said(post(b"turn") + post(b"1") + post(b"turn") + post(b"3"))
    bodies = [json.loads(one.partition(b"\r\n\r\n")[2])[3] for one in _answers(answer)]
    assert bodies == ["turn", "1", "turn", "3"]
    assert plain == 1, "what waits behind a call takes the usual way"


def _answers(data: bytes) -> list[bytes]:
    return [b"HTTP/1.1" + one for one in data.split(b"HTTP/1.1")[1:]]


@pytest.mark.parametrize("request_", [WHOLE, b"GET /live HTTP/1.1\r\nHost: a\r\n\r\n"])
def test_few_requests_of_a_long_pipeline_wait_at_a_time(request_: bytes) -> None:
    """Each takes many times its own bytes, and nobody has looked yet who sends it."""
    count = 2_000
    most = 0

    async def run(connection: Connection) -> bytes:
        nonlocal most
        endpoint, protocol = connection.protocol.app, connection.protocol
        await connection.sends(post(b"hold"))
        # What the system has read already comes even to a connection that has paused reading.
        protocol.data_received(request_ * count)
        protocol.data_received(request_ * count)
        assert connection.wire.paused
        endpoint.hold.set()
        while b"close" not in connection.wire.written:
            most = max(most, len(protocol.pipeline))
            assert connection.wire.paused or not protocol.pipeline
            if not connection.wire.paused:
                await connection.sends(post(b"{}", b"Connection: close"))
            await asyncio.sleep(0)
        return await connection.is_quiet()

    answer, _ = talk(run)
    assert answer.count(b"HTTP/1.1 200 ") == 2 * count + 2
    assert 0 < most <= SLICE / len(request_) + 1


def test_an_idle_connection_keeps_no_body() -> None:
    async def run(connection: Connection) -> bytes:
        await connection.sends(post(b"x" * LIMIT))
        answer = await connection.is_quiet()
        assert connection.protocol._body_at_hand == b""
        assert cast(PlainCall, connection.protocol.cycle)._whole == b""
        return answer

    assert talk(run)[1].plain == 1


def test_a_bad_request_is_not_answered_in_place_of_the_one_before() -> None:
    bad = b"GET http://[::1 HTTP/1.1\r\nHost: a\r\n\r\n"

    async def run(connection: Connection) -> bytes:
        await connection.sends(WHOLE)
        await connection.is_quiet()
        await connection.sends(bad)
        return await connection.is_quiet()

    answer = talk(run)[0]
    assert answer.count(b"HTTP/1.1 200 ") == answer.count(b"HTTP/1.1 400 ") == 1
    assert b"400" not in said(post(b"hold") + bad)[0], "the first is not answered yet"


def test_a_failing_endpoint_is_answered_with_an_id() -> None:
    answer, plain = said(post(b"fail") + WHOLE)
    assert plain == 1
    failed, after = _answers(answer)
    assert failed.startswith(b"HTTP/1.1 500 ")
    assert b"secret" not in answer
    error = json.loads(failed.partition(b"\r\n\r\n")[2])["error"]
    assert (error["code"], error["data"]["reason"]) == (-32000, "internal_error")
    assert after.startswith(b"HTTP/1.1 200 ")


def test_who_is_gone_is_not_answered() -> None:
    async def run(connection: Connection) -> bytes:
        await connection.sends(post(b"hold"))
        await connection.is_quiet()
        connection.ends()
        connection.protocol.app.hold.set()
        written = await connection.is_quiet()
        assert not connection.protocol.tasks
        return written

    answer, endpoint = talk(run)
    assert (answer, endpoint.plain) == (b"", 1)


def test_a_call_in_progress_is_answered_before_the_node_stops() -> None:
    async def run(connection: Connection) -> bytes:
        await connection.sends(post(b"hold"))
        await connection.is_quiet()
        connection.protocol.shutdown()
        assert not connection.wire.closed
        connection.protocol.app.hold.set()
        return await connection.is_quiet()

    answer, endpoint = talk(run)
    assert endpoint.plain == 1
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in answer


def test_a_head_alone_is_no_plain_call_and_may_be_stopped() -> None:
    async def run(connection: Connection) -> bytes:
        await connection.sends(HEAD + LENGTH)
        connection.protocol.shutdown()
        assert not connection.wire.closed, "the rest of its body may still come"
        await connection.sends(CALL)
        return await connection.is_quiet()

    answer, endpoint = talk(run)
    assert endpoint.plain == 0
    assert b"connection: close" in answer


def test_who_does_not_read_is_sent_no_more() -> None:
    async def run(connection: Connection) -> bytes:
        await connection.sends(post(b"turn"))
        connection.protocol.pause_writing()
        assert await connection.is_quiet() == b""
        connection.protocol.resume_writing()
        return await connection.is_quiet()

    assert talk(run)[0].startswith(b"HTTP/1.1 200 ")


def test_known_headers_do_not_frame_a_request() -> None:
    """RFC 9112, 6: `Transfer-Encoding` and `Content-Length` frame; RFC 9110, 7.8 and 10.1.1:
    `Upgrade` and `Expect` change how a request is taken."""
    assert plain_call.HEADERS.isdisjoint({b"transfer-encoding", b"upgrade", b"expect", b"te"})


# --- on a node ----------------------------------------------------------------------------------

CALLS = {
    "a call": CALL,
    "a notification": b'{"jsonrpc":"2.0","method":"cacp/project/list"}',
    "a batch": b"[%b,%b]" % (CALL, CALL),
    "no json": b"{",
    "an unknown method": b'{"jsonrpc":"2.0","method":"none","id":1}',
    "wrong params": b'{"jsonrpc":"2.0","method":"cacp/project/get","params":{},"id":1}',
}
CALLERS = {
    "its own agent": b"",
    "a stranger": b"Authorization: Bearer cacp_sk_wrong\r\n",
    "a web page": b"Origin: https://evil.example\r\n",
    "two keys": b"Idempotency-Key: a\r\nIdempotency-Key: b\r\n",
    "another agent": b"X-Agent-ID: aid://example.com/other@1.0.0\r\n",
}


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("name", CALLS)
def test_a_node_answers_alike(node: Node, name: str, caller: str) -> None:
    """With a header that no plain call has, the same request takes the usual way."""
    body, answers = CALLS[name], []
    for more in (b"", b"X-Other: 1\r\n"):
        head = HEAD + CALLERS[caller] + more + b"Content-Length: %d\r\n\r\n" % len(body)
        last = HEAD.replace(b"POST /", b"GET /live") + b"Connection: close\r\n\r\n"
        answers.append(exchange(node.port, head + body, last))
    assert answers[0] == answers[1]
    assert answers[0].startswith(b"HTTP/1.1 ")


def test_a_large_head_is_431_all_the_same(node: Node) -> None:
    huge = HEAD + b"Accept: " + b"a" * HEAD_MAX
    assert exchange(node.port, huge).startswith(b"HTTP/1.1 431 ")
