"""How long a sender may take. Time stands still here, but for what a test lets pass."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from server.http.connections import Connections
from server.http.protocol import (
    BODY_RATE,
    BODY_SECONDS,
    HEAD_SECONDS,
    LINGER_SECONDS,
    SEND_RATE,
    SEND_SECONDS,
    HttpProtocol,
)
from server.util.log_once import RateLimitedLog
from tests.server.http.test_protocol import CALL, HEAD, LENGTH, get, refused
from tests.support.waiting import PATIENCE


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers the body, once it is whole; `/early` at once."""
    body, more = b"", scope["path"] != "/early"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        more = message["more_body"]
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Still(asyncio.SelectorEventLoop):
    """A loop whose time passes only as a test says, however busy the machine."""

    now = 0.0

    def time(self) -> float:
        return self.now


class Counting(HttpProtocol):
    """Counts the bytes that it was given."""

    taken = 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.taken += len(data)


class Caller:
    """Calls a server of `echo`, on whose loop time passes only while it `waits`."""

    def __init__(
        self,
        loop: Still,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        other: Counting,
    ) -> None:
        self._loop = loop
        self._reader = reader
        self._writer = writer
        self.other = other
        self._sent = 0

    async def sends(self, data: bytes) -> None:
        """Send, and return once the server has it."""
        self._writer.write(data)
        self._sent += len(data)
        await comes_to(lambda: self.other.taken == self._sent)

    async def waits(self, seconds: float) -> None:
        self._loop.now += seconds
        # What is due then has its turn behind who is awake already.
        for _ in range(3):
            await asyncio.sleep(0)

    @property
    def is_heard(self) -> bool:
        """Whether the server still takes what it sends."""
        return not self.other.transport.is_closing()

    async def hears(self, end: bytes = b"") -> bytes:
        """All that comes up to this, or to the end of the connection."""
        heard = asyncio.ensure_future(self._reader.readuntil(end) if end else self._reader.read())
        await comes_to(heard.done)
        return heard.result()


async def comes_to(holds: Callable[[], bool]) -> None:
    """`eventually`, on a loop whose time stands still."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        await asyncio.sleep(0)


def served(talk: Callable[[Caller], Coroutine[Any, Any, bytes]]) -> bytes:
    """What `talk` makes of a connection to a server of `echo`."""
    config = uvicorn.Config(
        echo, lifespan="off", log_config=None, timeout_graceful_shutdown=1, timeout_keep_alive=60
    )
    made: list[Counting] = []

    def protocol() -> Counting:
        made.append(Counting(config, ServerState(), {}))
        return made[-1]

    async def run() -> bytes:
        loop = cast(Still, asyncio.get_running_loop())
        server: Any = await loop.create_server(protocol, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await comes_to(lambda: bool(made))
        try:
            return await talk(Caller(loop, reader, writer, made[0]))
        finally:
            writer.close()
            server.close()

    with asyncio.Runner(loop_factory=Still) as runner:
        return runner.run(run())


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        (HEAD, HEAD_SECONDS),
        (HEAD + LENGTH, BODY_SECONDS),
        (HEAD + LENGTH + CALL[:5], BODY_SECONDS),
    ],
)
def test_who_stops_in_the_middle_of_a_request_gets_408(sent: bytes, seconds: float) -> None:
    async def stop(caller: Caller) -> bytes:
        await caller.sends(sent)
        await caller.waits(seconds - 1)
        assert caller.is_heard
        await caller.waits(1)
        return await caller.hears()

    assert "in time" in refused(served(stop), 408)


def test_a_head_that_trickles_in_has_one_deadline() -> None:
    async def trickle(caller: Caller) -> bytes:
        for byte in HEAD[: int(HEAD_SECONDS)]:
            assert caller.is_heard
            await caller.sends(bytes([byte]))
            await caller.waits(1)
        return await caller.hears()

    refused(served(trickle), 408)


def test_a_body_may_take_long_while_it_makes_progress() -> None:
    pause = BODY_SECONDS - 1
    part, parts = b"x" * int(BODY_RATE * pause), 5

    async def go_on(caller: Caller) -> bytes:
        head = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (len(part) * parts)
        await caller.sends(HEAD + head)
        for _ in range(parts):
            await caller.waits(pause)
            await caller.sends(part)
        return await caller.hears()

    assert served(go_on).endswith(b"\r\n\r\n" + part * parts)


def test_a_body_that_trickles_in_has_a_deadline() -> None:
    """A byte now and then would keep a connection for as long as its sender likes."""

    async def trickle(caller: Caller) -> bytes:
        await caller.sends(HEAD + b"Content-Length: 1000000\r\n\r\n")
        for _ in range(int(BODY_SECONDS)):
            assert caller.is_heard
            await caller.sends(b"{")
            await caller.waits(1)
        assert caller.is_heard
        await caller.waits(1)
        return await caller.hears()

    assert "in time" in refused(served(trickle), 408)


def test_a_connection_that_says_nothing_is_closed_without_a_word() -> None:
    async def say_nothing(caller: Caller) -> bytes:
        await caller.waits(HEAD_SECONDS - 1)
        assert caller.is_heard
        await caller.waits(1)
        return await caller.hears()

    assert served(say_nothing) == b""


def test_an_answered_connection_is_kept_alive() -> None:
    async def talk(caller: Caller) -> bytes:
        await caller.sends(HEAD + LENGTH + CALL)
        first = await caller.hears(CALL)
        await caller.waits(HEAD_SECONDS + BODY_SECONDS)
        await caller.sends(get(b"/", b"Connection: close\r\n"))
        return first + await caller.hears()

    assert served(talk).count(b"HTTP/1.1 200") == 2


def test_a_connection_whose_request_was_answered_early_is_not_kept_for_ever() -> None:
    """The last byte of a request ends the deadline of its body, and no answer is to come."""

    async def talk(caller: Caller) -> bytes:
        await caller.sends(get(b"/early"))
        await caller.hears(b"\r\n\r\n")
        await caller.waits(59)
        await caller.sends(get(b"/early", b"Content-Length: 1\r\n"))
        await caller.hears(b"\r\n\r\n")
        await caller.waits(1.5)
        assert caller.is_heard
        await caller.sends(b"x")
        await caller.waits(60)
        await caller.waits(LINGER_SECONDS)
        assert not caller.is_heard
        return b""

    served(talk)


def test_an_idle_deadline_does_not_cut_a_last_answer_short() -> None:
    async def talk(caller: Caller) -> bytes:
        await caller.sends(get(b"/"))
        await caller.hears(b"\r\n\r\n")
        await caller.waits(59)
        await caller.sends(get(b"/", b"Connection: close\r\n"))
        await caller.hears(b"\r\n\r\n")
        await caller.waits(1)
        assert not caller.other._coalescing._transport.is_closing(), "it lingers"
        await caller.waits(LINGER_SECONDS)
        assert caller.other._coalescing._transport.is_closing()
        return b""

    served(talk)


def test_a_slow_sender_does_not_keep_the_node_from_stopping() -> None:
    async def trickle(caller: Caller) -> bytes:
        await caller.sends(HEAD + LENGTH)
        caller.other.shutdown()
        for _ in range(5):
            assert caller.is_heard
            await caller.sends(b"{")
            await caller.waits(0.1)
        return await caller.hears()

    refused(served(trickle), 408)


# --- who does not take its answer ---------------------------------------------------------------

LARGE = b"x" * 24_000_000
"""More than the system keeps for a connection."""


async def asks(caller: Caller) -> float:
    """Have the node send `LARGE`, and take none of it; how long the node waits at first."""
    await caller.sends(HEAD + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE)
    await comes_to(lambda: caller.other.flow.write_paused)
    # What the caller's system keeps for it comes to it, and it reads no more.
    for _ in range(1000):
        await asyncio.sleep(0)
    return SEND_SECONDS + caller.other._coalescing.taken / SEND_RATE


def test_who_does_not_take_its_answer_is_not_waited_for() -> None:
    ended = Connections(10, 10, RateLimitedLog())

    async def ask(caller: Caller) -> bytes:
        caller.other._admission = ended
        seconds = await asks(caller)
        await caller.waits(SEND_SECONDS)
        assert caller.is_heard
        await caller.waits(seconds - SEND_SECONDS)
        assert not caller.is_heard
        return b""

    served(ask)
    assert ended.ended == 1


def test_who_takes_its_answer_steadily_has_all_of_it() -> None:
    async def take(caller: Caller) -> bytes:
        await asks(caller)
        heard = b""
        while len(heard) < len(LARGE):
            part = asyncio.ensure_future(caller._reader.read(len(LARGE)))
            await comes_to(part.done)
            heard += part.result()
            await caller.waits(len(part.result()) / SEND_RATE)
        return heard

    assert served(take).endswith(LARGE[:1000])
