"""uvicorn's HTTP protocol, with limits on what is read, and a response sent in one piece.

uvicorn reads a head of any size, and waits for the rest of a request for ever. It takes an offer to
upgrade for the end of the request, and its body for another protocol.

It writes a response's head and body apart. Over loopback each write costs a system call and a
wake-up of the reader, which together are more than the node itself spends on a `contract/get`.
"""

import asyncio
from typing import Any

import httptools
import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from schemas import jsonrpc
from schemas.errors import ErrorCode

HEAD_MAX = 64 * 1024
"""Bytes that may come before a head, or the next piece of a body, is whole."""
HEAD_SECONDS = 20.0
"""From its beginning until a head is whole."""
BODY_SECONDS = 30.0
"""Without a byte of a body that is not whole."""


class OnePiece:
    """A transport that keeps what is written until the turn of the event loop ends."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._kept: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._kept:
            self._loop.call_soon(self._send)
        self._kept.append(data)

    def close(self) -> None:
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._kept:
            self._transport.write(b"".join(self._kept))
            self._kept.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HttpProtocol(HttpToolsProtocol):
    """One HTTP connection, that holds a caller to limits before it is known who it is."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._in_body = False
        self._framing = 0
        self._upgrading = False
        self._stopping = False
        self._deadline: asyncio.TimerHandle | None = None

    # --- the connection -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(OnePiece(transport, self.loop))  # type: ignore[arg-type]
        self._expect_within(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        while data and not self.transport.is_closing():
            room = HEAD_MAX - self._framing
            part, data = data[:room], data[room:]
            self._framing += len(part)
            try:
                self.parser.feed_data(part)
            except httptools.HttpParserUpgrade as upgrade:
                if self.parser.get_method() == b"CONNECT":
                    self._refuse(400, "This is no proxy")
                    break
                data = self._head_without_upgrade() + part[upgrade.args[0] :] + data
            except httptools.HttpParserError:
                self._refuse(400, "This is no HTTP/1.1 request")
            if self._framing >= HEAD_MAX:
                self._refuse(431, f"The head of a request may have {HEAD_MAX} bytes at most")
        self._watch()

    def shutdown(self) -> None:
        """Let the request in progress finish; the rest of a body must come in half of the grace.

        The application is told, by the event `stopping` of its state: who waits answers now."""
        super().shutdown()
        self._stopping = True
        stopping = self.app_state.get("stopping")
        if stopping is not None:
            stopping.set()
        if self._in_body and not self.transport.is_closing():
            self._expect_within((self.config.timeout_graceful_shutdown or 0) / 2)

    # --- what the parser finds ----------------------------------------------------------------

    def on_headers_complete(self) -> None:
        self._framing = 0
        self._upgrading = self.parser.should_upgrade()
        if not self._upgrading:
            self._in_body = True
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._framing = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._framing = 0
        if not self._upgrading:
            self._in_body = False
            super().on_message_complete()

    def _head_without_upgrade(self) -> bytes:
        """The head again, without the offer to change the protocol, which a server may ignore
        (RFC 9110, 7.8): the parser takes what follows the offer for the other protocol."""
        self._upgrading = False
        lines = [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        version = self.parser.get_http_version().encode()
        first = b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)
        return b"\r\n".join([first, *lines, b"", b""])

    # --- deadlines ----------------------------------------------------------------------------

    def _watch(self) -> None:
        """A head has one deadline; a body's moves as long as it makes progress."""
        if self._in_body:
            if not self._stopping:
                self._expect_within(BODY_SECONDS)
        elif not self._framing:
            self._expect_nothing()
        elif self._deadline is None:
            self._expect_within(HEAD_SECONDS)

    def _expect_within(self, seconds: float) -> None:
        self._expect_nothing()
        self._deadline = self.loop.call_later(seconds, self._too_slow)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if self.flow.read_paused:
            # It is the node that does not read on.
            self._expect_within(BODY_SECONDS)
        elif self._in_body or self._framing:
            self._refuse(408, "The request did not come whole in time")
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Answer, unless another answer is under way or given, and close."""
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is None or (
            not cycle.response_started if self._in_body else cycle.response_complete
        ):
            body = orjson.dumps(jsonrpc.error(ErrorCode.INVALID_REQUEST, message))
            self.transport.write(
                STATUS_LINE[status] + b"content-type: application/json\r\n"
                b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body)
            )
        self.transport.close()
