"""uvicorn's HTTP protocol, with limits on what is read and written, and responses in one write.

uvicorn reads heads of any size, waits for the rest of a request without limit, and treats an offer
to upgrade as the end of the request and the body as the other protocol.

It writes a response's head and body separately. Over loopback each write costs a system call and a
wake-up of the reader, together more than the node itself spends on a `contract/get`.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import httptools
import orjson
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from schemas import jsonrpc
from schemas.errors import ErrorCode
from server.http import plain_call
from server.http.connections import Connections
from server.http.plain_call import CallEndpoint, PlainCall

HEAD_MAX = 64 * 1024
"""Bytes of a head, or of framing between two pieces of a body, at most."""
SLICE = 8 * 1024
"""Bytes that are parsed at a time: no more are, while requests wait for their turn. A request that
waits takes many times its own bytes."""
HEAD_SECONDS = 20.0
"""From the first byte of a head until it is complete."""
BODY_SECONDS = 30.0
"""Between two bytes of a body, at most."""
BODY_RATE = 1_000
"""Bytes of a body per second that a caller must send after the first `BODY_SECONDS`."""
SEND_SECONDS = 30.0
"""How long the node waits for a caller to read, summed up over an answer."""
SEND_RATE = 64 * 1024
"""Bytes of an answer per second that a caller must read after the first `SEND_SECONDS`."""
LINGER_SECONDS = 2.0
"""How long a caller may read the last answer of a connection. What it still sends is discarded: to
close with unread data would reset the connection and lose the answer (RFC 9112, 9.6)."""


class CoalescingTransport:
    """A transport that collects what is written until the end of the event loop's turn."""

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        lingers: Callable[[], bool] = lambda: False,
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._lingers = lingers
        self._pending: list[bytes] = []
        self._ended = False
        self._written = 0

    @property
    def taken(self) -> int:
        """Bytes that were written and handed to the kernel."""
        return self._written - self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if self._ended:
            return
        if not self._pending:
            self._loop.call_soon(self._send)
        self._pending.append(data)

    def close(self) -> None:
        """Close. After an answer, and when `lingers` grants the caller time to read it, end only
        the sending side; `is_closing` is true in either case."""
        answered = bool(self._pending)
        self._send()
        if answered and not self._ended and self._lingers():
            self._ended = True
            self._transport.write_eof()
        else:
            self._transport.close()

    def is_closing(self) -> bool:
        return self._ended or self._transport.is_closing()

    def _send(self) -> None:
        pending, self._pending = self._pending, []
        # After a reset by the caller there is nobody to write to.
        if pending and not self._transport.is_closing():
            data = b"".join(pending)
            self._written += len(data)
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class QueueingFlow(FlowControl):
    """Flow control that reads on only once no request waits behind another."""

    def __init__(self, transport: Any, waits: Callable[[], bool]) -> None:
        super().__init__(transport)
        self._waits = waits

    def resume_reading(self) -> None:
        if not self._waits():
            super().resume_reading()


class HttpProtocol(HttpToolsProtocol):
    """One HTTP connection. Its limits hold before the caller is authenticated."""

    def __init__(
        self,
        *given: Any,
        admission: Connections | None = None,
        calls: CallEndpoint | None = None,
        **named: Any,
    ) -> None:
        super().__init__(*given, **named)
        self._admission = admission
        self._calls = calls
        self._is_known = False
        """Whether the head at hand has only headers that plain calls have."""
        self._held = False
        """Whether a request is neither taken as a plain call nor as another one yet."""
        self._body_at_hand = b""
        self._unparsed = b""
        """What was read behind requests that wait for their turn."""
        self._idle_since = 0.0
        self._idle_deadline: asyncio.TimerHandle | None = None
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
        self._sent_before = 0
        self._waited = 0.0
        self._waiting_since = 0.0
        self._send_deadline: asyncio.TimerHandle | None = None

    # --- the connection -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._coalescing = CoalescingTransport(transport, self.loop, self._linger)
        super().connection_made(self._coalescing)  # type: ignore[arg-type]
        self.flow = QueueingFlow(self._coalescing, lambda: bool(self.pipeline or self._unparsed))
        self._set_deadline(HEAD_SECONDS)
        if self._admission is not None:
            address = self.client[0] if self.client else ""
            refusal = self._admission.enter(address)
            if refusal is None:
                self._entered = address
            else:
                self._refuse(503, refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        self._cancel_send_deadline()
        if self._idle_deadline is not None:
            self._idle_deadline.cancel()
        if self._admission is not None and self._entered is not None:
            self._admission.leave(self._entered)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._lingers:
            return
        if self._unparsed:
            self._unparsed += data
            return
        self._parse(data)
        self._watch()

    def _parse(self, data: bytes) -> None:
        at = 0
        while at < len(data) and not self.transport.is_closing():
            if self.pipeline:
                self._unparsed = data[at:]
                return
            part = data[at : at + min(SLICE, HEAD_MAX - self._framing)]
            at += len(part)
            self._framing += len(part)
            try:
                self.parser.feed_data(part)
            except httptools.HttpParserUpgrade as upgrade:
                if self.parser.get_method() == b"CONNECT":
                    self._refuse(400, "This server is not a proxy")
                    break
                data = self._head_without_upgrade() + part[upgrade.args[0] :] + data[at:]
                at = 0
            except httptools.HttpParserError:
                self._refuse(400, "This is not an HTTP/1.1 request")
            if self._held and not self.transport.is_closing():
                self._take_as_usual()
            if self._framing >= HEAD_MAX:
                self._refuse(431, f"The head of a request may have {HEAD_MAX} bytes at most")

    def shutdown(self) -> None:
        """Let the request in progress finish. The rest of its body must arrive in half of the grace
        period. The event `stopping` of the application's state makes waiting calls answer now."""
        super().shutdown()
        self._stopping = True
        stopping = self.app_state.get("stopping")
        if stopping is not None:
            stopping.set()
        if self._in_body and not self.transport.is_closing():
            self._set_deadline((self.config.timeout_graceful_shutdown or 0) / 2)

    # --- what the parser finds ----------------------------------------------------------------

    def on_message_begin(self) -> None:
        # The scope is made once it is known that it is needed.
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._is_known = self._calls is not None

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers of a chunked body are ignored: nothing has checked them as headers.
        if not self._in_body:
            super().on_header(name, value)
            if self._is_known:
                self._is_known = self.headers[-1][0] in plain_call.HEADERS

    def on_headers_complete(self) -> None:
        self._framing = 0
        self._upgrading = self.parser.should_upgrade()
        if self._upgrading:
            return
        self._sent_before, self._waited = self._coalescing.taken, 0.0
        self._held = self._may_be_plain()
        if not self._held:
            self._begin()
        # Not before it has begun: what fails there is no fault of the request before it.
        self._in_body = True
        self._answered_early = False

    def _may_be_plain(self) -> bool:
        """Whether the request is a plain call, if its body follows at once."""
        return (
            self._is_known
            and self.url == b"/"
            and self.parser.get_method() == b"POST"
            and self.parser.get_http_version() == "1.1"
            and self.parser.should_keep_alive()
            and (self.cycle is None or self.cycle.response_complete)
        )

    def _begin(self) -> None:
        """Give a request to the application."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(headers)
        self._body_began, self._body_bytes = self.loop.time(), 0
        self._apply_absolute_target()
        super().on_headers_complete()

    def _take_as_usual(self) -> None:
        """Give a request to the application that was held, with what there is of its body."""
        self._held = False
        self._begin()
        body, self._body_at_hand = self._body_at_hand, b""
        if body:
            self.on_body(body)

    def _apply_absolute_target(self) -> None:
        """The host of an absolute target replaces the Host header (RFC 9112, 3.2.2)."""
        if self.url[:1] in (b"/", b"*"):
            return
        target = httptools.parse_url(self.url)
        host = target.host or b""
        authority = b"%s:%d" % (host, target.port) if target.port else host
        self.headers[:] = [header for header in self.headers if header[0] != b"host"]
        self.headers.append((b"host", authority))

    def on_body(self, body: bytes) -> None:
        self._framing = 0
        if self._held:
            if not self._body_at_hand:
                self._body_at_hand = body
                return
            self._take_as_usual()
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._framing = 0
        if self._upgrading:
            return
        if self._held:
            if self._body_at_hand:
                self._held = self._in_body = False
                self._answer_plain_call()
                return
            self._take_as_usual()
        self._in_body = False
        super().on_message_complete()

    def _answer_plain_call(self) -> None:
        assert self._calls is not None
        body, self._body_at_hand = self._body_at_hand, b""
        call = PlainCall(
            body,
            self.headers,
            self.client,
            self.transport,
            self.flow,
            self.logger,
            self.on_response_complete,
        )
        self.cycle = call
        task = self.loop.create_task(call.run(self._calls))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def on_response_complete(self) -> None:
        """As uvicorn's, with one timer for a connection in place of one after each answer."""
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
            if self._unparsed and not self.pipeline:
                rest, self._unparsed = self._unparsed, b""
                self._parse(rest)
                self._watch()
            self.flow.resume_reading()
            if self.cycle.response_complete:
                self._idle_since = self.loop.time()
                if self._idle_deadline is None:
                    self._await_request(self.timeout_keep_alive)
        if self._in_body and self.cycle.response_complete and not self.transport.is_closing():
            # The rest of this body is discarded, and may not keep the connection open for long.
            self._answered_early = True
            self._set_deadline(LINGER_SECONDS)

    def _head_without_upgrade(self) -> bytes:
        """The head again, without the offer to upgrade, which a server may ignore (RFC 9110, 7.8).
        The parser would read what follows the offer as the other protocol."""
        self._upgrading = False
        lines = [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        version = self.parser.get_http_version().encode()
        first = b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)
        return b"\r\n".join([first, *lines, b"", b""])

    # --- deadlines ----------------------------------------------------------------------------

    def _watch(self) -> None:
        """Set the deadline: fixed for a head, extended by progress for a body."""
        if self._lingers:
            # The deadline of the lingering connection is set already.
            return
        if self._in_body:
            if not (self._stopping or self._answered_early):
                owed = self._body_began + BODY_SECONDS + self._body_bytes / BODY_RATE
                self._set_deadline(min(BODY_SECONDS, owed - self.loop.time()))
        elif not self._framing:
            self._cancel_deadline()
        elif self._deadline is None:
            self._set_deadline(HEAD_SECONDS)

    def _await_request(self, seconds: float) -> None:
        self._idle_deadline = self.loop.call_later(seconds, self._on_idle_deadline)

    def _on_idle_deadline(self) -> None:
        """Close a connection whose caller has not begun a request for long. While a request runs
        there is nothing to do: its answer sets the deadline anew."""
        self._idle_deadline = None
        if self.transport.is_closing() or not self.cycle.response_complete:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if self._in_body or self._framing:
            # What has begun has a deadline of its own, but perhaps no answer to come.
            left = max(left, LINGER_SECONDS)
        if left > 0:
            self._await_request(left)
        else:
            self.transport.close()

    def _set_deadline(self, seconds: float) -> None:
        self._cancel_deadline()
        self._deadline = self.loop.call_later(seconds, self._on_deadline)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def pause_writing(self) -> None:
        """The send buffer is full: the caller must read before more is written."""
        super().pause_writing()
        self._waiting_since = self.loop.time()
        self._check_send_deadline()

    def resume_writing(self) -> None:
        self._waited += self.loop.time() - self._waiting_since
        self._cancel_send_deadline()
        super().resume_writing()

    def _check_send_deadline(self) -> None:
        """Abort the connection of a caller that reads its answer too slowly: nothing else frees the
        memory of the answer."""
        taken = self._coalescing.taken - self._sent_before
        waited = self._waited + self.loop.time() - self._waiting_since
        left = SEND_SECONDS + taken / SEND_RATE - waited
        if left > 0:
            self._send_deadline = self.loop.call_later(left, self._check_send_deadline)
            return
        self._send_deadline = None
        if self._admission is not None:
            self._admission.note_slow_reader(self._entered or "")
        self.transport.abort()

    def _cancel_send_deadline(self) -> None:
        if self._send_deadline is not None:
            self._send_deadline.cancel()
            self._send_deadline = None

    def _linger(self) -> bool:
        """Whether a connection that is about to close stays open for `LINGER_SECONDS`."""
        if self._lingers or self.transport.is_closing():
            return False
        if self._stopping and not self._in_body:
            # No more data is expected, and the stop of the node waits for this connection.
            return False
        self._lingers = True
        self.pipeline.clear()
        self._unparsed = b""
        self.flow.resume_reading()
        self._set_deadline(LINGER_SECONDS)
        return True

    def _on_deadline(self) -> None:
        self._deadline = None
        if self._lingers:
            self.transport.close()
        elif self.flow.read_paused:
            # The node itself has paused reading.
            self._body_began = self.loop.time()
            self._set_deadline(BODY_SECONDS)
        elif self._in_body or self._framing:
            self._refuse(408, "The request did not arrive completely in time")
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Answer, unless an answer was begun or sent, and close."""
        if self._lingers or self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is None or (
            not cycle.response_started if self._in_body else cycle.response_complete
        ):
            body = orjson.dumps(
                jsonrpc.error(ErrorCode.INVALID_REQUEST, message, {"reason": "invalid_request"})
            )
            self.transport.write(
                STATUS_LINE[status] + b"content-type: application/json\r\n"
                b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body)
            )
        self.transport.close()
