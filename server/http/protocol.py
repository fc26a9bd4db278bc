"""uvicorn's HTTP protocol, with limits on what is read, and a response sent in one piece.

uvicorn reads a head of any size, and waits for the rest of a request for ever. It takes an offer to
upgrade for the end of the request, and its body for another protocol.

It writes a response's head and body apart. Over loopback each write costs a system call and a
wake-up of the reader, which together are more than the node itself spends on a `contract/get`.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import httptools
import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from schemas import jsonrpc
from schemas.errors import ErrorCode
from server.http.connections import Connections

HEAD_MAX = 64 * 1024
"""Bytes that may come before a head, or the next piece of a body, is whole."""
HEAD_SECONDS = 20.0
"""From its beginning until a head is whole."""
BODY_SECONDS = 30.0
"""Without a byte of a body that is not whole."""
BODY_RATE = 1_000
"""Bytes of a body in a second that a caller must send, after the first `BODY_SECONDS`."""
SEND_SECONDS = 30.0
"""A caller may keep the node waiting so long, over a whole answer, before it takes it."""
SEND_RATE = 64 * 1024
"""Bytes of an answer in a second that it must take, after the first `SEND_SECONDS`."""
LINGER_SECONDS = 2.0
"""A caller has so long to read the answer behind which the connection ends. What it still sends is
thrown away: to close on that would reset the connection, answer and all (RFC 9112, 9.6)."""


class OnePiece:
    """A transport that keeps what is written until the turn of the event loop ends."""

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        lingers: Callable[[], bool] = lambda: False,
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._lingers = lingers
        self._kept: list[bytes] = []
        self._ended = False
        self._written = 0

    @property
    def taken(self) -> int:
        """Bytes that were written and have left this process."""
        return self._written - self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if self._ended:
            return
        if not self._kept:
            self._loop.call_soon(self._send)
        self._kept.append(data)

    def close(self) -> None:
        """Close; behind an answer, end what is sent, where `lingers` says that the caller is given
        time to read it. To whoever asks it is closing then."""
        answered = bool(self._kept)
        self._send()
        if answered and not self._ended and self._lingers():
            self._ended = True
            self._transport.write_eof()
        else:
            self._transport.close()

    def is_closing(self) -> bool:
        return self._ended or self._transport.is_closing()

    def _send(self) -> None:
        kept, self._kept = self._kept, []
        # A caller that reset the connection reads nothing any more.
        if kept and not self._transport.is_closing():
            data = b"".join(kept)
            self._written += len(data)
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HttpProtocol(HttpToolsProtocol):
    """One HTTP connection, that holds a caller to limits before it is known who it is."""

    def __init__(self, *given: Any, admission: Connections | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self._admission = admission
        self._entered: str | None = None
        self._lingers = False
        self._in_body = False
        self._answered_early = False
        self._body_began = 0.0
        self._body_bytes = 0
        self._framing = 0
        self._upgrading = False
        self._stopping = False
        self._deadline: asyncio.TimerHandle | None = None
        self._taken_before = 0
        self._waited = 0.0
        self._waits_since = 0.0
        self._send_deadline: asyncio.TimerHandle | None = None

    # --- the connection -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._one_piece = OnePiece(transport, self.loop, self._linger)
        super().connection_made(self._one_piece)  # type: ignore[arg-type]
        self._expect_within(HEAD_SECONDS)
        if self._admission is not None:
            address = self.client[0] if self.client else ""
            refusal = self._admission.enter(address)
            if refusal is None:
                self._entered = address
            else:
                self._refuse(503, refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        self._wait_no_more()
        if self._admission is not None and self._entered is not None:
            self._admission.leave(self._entered)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._lingers:
            return
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

    def on_header(self, name: bytes, value: bytes) -> None:
        # What stands behind a chunked body is no header: nobody has looked at it as one.
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._framing = 0
        self._upgrading = self.parser.should_upgrade()
        if not self._upgrading:
            self._in_body = True
            self._answered_early = False
            self._body_began, self._body_bytes = self.loop.time(), 0
            self._taken_before, self._waited = self._one_piece.taken, 0.0
            self._heed_absolute_target()
            super().on_headers_complete()

    def _heed_absolute_target(self) -> None:
        """The host of a target that is a whole URL counts in place of Host (RFC 9112, 3.2.2)."""
        if self.url[:1] in (b"/", b"*"):
            return
        target = httptools.parse_url(self.url)
        host = target.host or b""
        authority = b"%s:%d" % (host, target.port) if target.port else host
        self.headers[:] = [one for one in self.headers if one[0] != b"host"]
        self.headers.append((b"host", authority))

    def on_body(self, body: bytes) -> None:
        self._framing = 0
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._framing = 0
        if not self._upgrading:
            self._in_body = False
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._in_body and self.cycle.response_complete and not self.transport.is_closing():
            # Nobody reads the rest of this body: it may come soon, but not keep the connection.
            self._answered_early = True
            self._expect_within(LINGER_SECONDS)

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
        if self._lingers:
            # Begun just now: this deadline is the connection's last.
            return
        if self._in_body:
            if not (self._stopping or self._answered_early):
                owed = self._body_began + BODY_SECONDS + self._body_bytes / BODY_RATE
                self._expect_within(min(BODY_SECONDS, owed - self.loop.time()))
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

    def pause_writing(self) -> None:
        """The connection is full: its caller must take what is in it."""
        super().pause_writing()
        self._waits_since = self.loop.time()
        self._take_within()

    def resume_writing(self) -> None:
        self._waited += self.loop.time() - self._waits_since
        self._wait_no_more()
        super().resume_writing()

    def _take_within(self) -> None:
        """End the connection of a caller that is too slow to take its answer: there is no other way
        to have back what the answer takes."""
        taken = self._one_piece.taken - self._taken_before
        waited = self._waited + self.loop.time() - self._waits_since
        left = SEND_SECONDS + taken / SEND_RATE - waited
        if left > 0:
            self._send_deadline = self.loop.call_later(left, self._take_within)
            return
        self._send_deadline = None
        if self._admission is not None:
            self._admission.not_taken(self._entered or "")
        self.transport.abort()

    def _wait_no_more(self) -> None:
        if self._send_deadline is not None:
            self._send_deadline.cancel()
            self._send_deadline = None

    def _linger(self) -> bool:
        """Whether a connection that is to be closed stays, to be closed a little later."""
        if self._lingers or self.transport.is_closing():
            return False
        if self._stopping and not self._in_body:
            # Nothing more is to come, and the node is waited for.
            return False
        self._lingers = True
        self.flow.resume_reading()
        self._expect_within(LINGER_SECONDS)
        return True

    def _too_slow(self) -> None:
        self._deadline = None
        if self._lingers:
            self.transport.close()
        elif self.flow.read_paused:
            # It is the node that does not read on.
            self._body_began = self.loop.time()
            self._expect_within(BODY_SECONDS)
        elif self._in_body or self._framing:
            self._refuse(408, "The request did not come whole in time")
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Answer, unless another answer is under way or given, and close."""
        if self._lingers or self.transport.is_closing():
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
