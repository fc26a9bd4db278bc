"""A small proxy in front of replicas: it gives each new connection to one that is ready, and passes
its bytes on as they are, so also event streams.

What was sent to a replica is never sent to another one: when a replica ends, its connections end,
and the callers decide. Only a connection that no replica has accepted yet is tried on the next.
"""

import asyncio
import json
import socket
import sys
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple, Self, cast

import httptools

from schemas.errors import ErrorCode
from server.http.connections import affordable

CHECK_SECONDS = 1.0
ANSWER_SECONDS = 2.0
CONNECT_SECONDS = 2.0
SILENT_SECONDS = 6.0
"""How long a replica may answer nothing before its connections are closed: one that is stopped
(SIGSTOP), or hangs."""
MAX_CONNECTIONS = 8192
_NOBODY = json.dumps(
    {
        "jsonrpc": "2.0",
        "error": {
            "code": ErrorCode.SERVER_ERROR,
            "message": "No replica answers; retry in a few seconds",
            "data": {"reason": "no_replica_answers"},
        },
        "id": None,
    }
)
NOBODY = (
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    f"Connection: close\r\nContent-Length: {len(_NOBODY)}\r\n\r\n{_NOBODY}"
).encode()
"""What a caller gets while no replica accepts its connection, whatever it asked."""


class UpstreamState(StrEnum):
    """What the last check of a replica has found, the best first."""

    READY = "ready"
    UNREADY = "unready"
    """It answers, but can't read or write: of use while no other is ready, for it says why."""
    SILENT = "silent"
    DOWN = "down"


class Traffic(NamedTuple):
    """A replica as the proxy knows it. `requests` are those since the proxy began."""

    state: UpstreamState
    connections: int
    requests: int
    answer_ms: float | None
    """How long the last check took; None when it had no answer."""


class Upstream:
    """A replica behind the proxy; only the proxy's thread changes it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.state = UpstreamState.DOWN
        self.requests = 0
        self.answer_ms: float | None = None
        self.heard_at = time.monotonic()
        self.open: set[CallerSide] = set()

    @property
    def traffic(self) -> Traffic:
        return Traffic(self.state, len(self.open), self.requests, self.answer_ms)

    async def check(self) -> None:
        """Find its state, and close its connections once it has been silent for long."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                # It answers while its database does not, which /ready waits for.
                await status_of(self.port, "/live")
            self.heard_at = time.monotonic()
            self.answer_ms = (self.heard_at - began) * 1000
            self.state = UpstreamState.READY if await self._is_ready() else UpstreamState.UNREADY
        except TimeoutError:
            self.state, self.answer_ms = UpstreamState.SILENT, None
            if time.monotonic() - self.heard_at > SILENT_SECONDS:
                self.cut()
        except (OSError, ValueError):
            self.state, self.answer_ms = UpstreamState.DOWN, None

    async def _is_ready(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                return await status_of(self.port, "/ready") == 200
        return False

    def cut(self) -> None:
        for caller in list(self.open):
            caller.end()


async def status_of(port: int, path: str) -> int:
    """The status of a GET on loopback. Raises OSError, and ValueError for what is not HTTP."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()
        )
        words = (await reader.readline()).split()
        if len(words) < 2:
            raise ValueError("no status line")
        return int(words[1])
    finally:
        writer.close()


class _Side(asyncio.Protocol):
    """One of the two connections that the proxy joins: what comes in goes out at the other."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _Side | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            # What was read before is still written.
            self.other.transport.close()


class CallerSide(_Side):
    """A caller's connection, until its end with one replica."""

    def __init__(self, proxy: "Proxy") -> None:
        super().__init__()
        self._proxy = proxy
        self._replica: Upstream | None = None
        self._joining = True
        self._early = b""
        """What came before a replica was there to take it."""
        self._ended = False
        self._requests = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._proxy.spawn(self._join())

    async def _join(self) -> None:
        """Connect to the best replica that accepts, and let the bytes flow."""
        assert self.transport is not None
        loop = asyncio.get_running_loop()
        for replica in self._proxy.by_preference():
            # Counted from now on, for the callers that choose meanwhile.
            replica.open.add(self)
            self._replica = replica
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    _, side = await loop.create_connection(_Side, "127.0.0.1", replica.port)
            except OSError:
                replica.state = UpstreamState.DOWN
                replica.open.discard(self)
                self._replica = None
                continue
            self.other, side.other = side, self
            if self.transport.is_closing():
                self.connection_lost(None)
                return
            break
        self._joining = False
        early, self._early = self._early, b""
        if early:
            self.transport.resume_reading()
            self.data_received(early)
        if self._ended and not self.eof_received():
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        if self._joining:
            self._early += data
            self.transport.pause_reading()
            return
        if self._replica is None:
            self.transport.write(NOBODY)
            self.transport.close()
            return
        super().data_received(data)
        # What is no HTTP is the replica's to refuse.
        with suppress(httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._requests.feed_data(data)

    def eof_received(self) -> bool:
        """A caller that sends no more may still wait for its answer. A replica that sends no more
        has ended: then both connections end."""
        self._ended = True
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write_eof()
        return self._joining or self.other is not None

    def on_message_complete(self) -> None:
        if self._replica is not None:
            self._replica.requests += 1

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._replica is not None:
            self._replica.open.discard(self)

    def end(self) -> None:
        """Close it without waiting for either side."""
        for side in (self, self.other):
            if side is not None and side.transport is not None:
                side.transport.abort()


class Proxy:
    """Listens on a port of loopback, within `with`, on a thread of its own. Raises ValueError when
    another program listens there."""

    def __init__(self, port: int, replicas: list[int]) -> None:
        try:
            self._listening = socket.create_server(("127.0.0.1", port), backlog=1024)
        except OSError:
            raise ValueError(
                f"another program listens on port {port}; end it, or name other ports with --port"
            ) from None
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._replicas = [Upstream(each) for each in replicas]
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="cacp-proxy", daemon=True)
        self._loop = _new_loop()
        self._end = asyncio.Event()

    def __enter__(self) -> Self:
        affordable(2 * MAX_CONNECTIONS)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()
        self._listening.close()

    def traffic(self) -> list[Traffic]:
        """What it knows of each replica."""
        return [replica.traffic for replica in self._replicas]

    def by_preference(self) -> list[Upstream]:
        """The replicas in the order in which a new connection tries them: those that are ready
        first, of these the one with the fewest connections."""
        order = list(UpstreamState)
        return sorted(self._replicas, key=lambda each: (order.index(each.state), len(each.open)))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task of the proxy, to the proxy's end at most."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        await asyncio.gather(*(replica.check() for replica in self._replicas))
        server = await self._loop.create_server(partial(CallerSide, self), sock=self._listening)
        for replica in self._replicas:
            self.spawn(self._check(replica))
        await self._end.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        for replica in self._replicas:
            replica.cut()

    async def _check(self, replica: Upstream) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await replica.check()


def _new_loop() -> asyncio.AbstractEventLoop:
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()
