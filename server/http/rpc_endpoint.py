"""Bytes in, bytes out: content type, limits, who calls, HTTP status (design §3, §5)."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import orjson
import structlog
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from schemas import jsonrpc
from schemas.errors import ErrorCode
from server.auth.authenticator import Authenticator, Caller
from server.domain.errors import (
    Forbidden,
    InvalidInput,
    InvalidRequest,
    NotFound,
    RateLimited,
    Refusal,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from server.http.rate_limit import RateLimit
from server.rpc.dispatch import Answer, Dispatcher, Origin, error_of, server_error
from server.util.log_once import LogOnce

log = structlog.get_logger()

STATUS: dict[type[Refusal], int] = {
    Unauthenticated: 401,
    Forbidden: 403,
    TooLarge: 413,
    RateLimited: 429,
    InvalidInput: 400,
    NotFound: 404,
    Unavailable: 503,
}
"""HTTP status where a whole request is refused; everything else that JSON-RPC answers is 200."""

UNSUPPORTED = (
    b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"Send Content-Type: application/json"},'
    b'"id":null}'
)
JSON = (b"application/json", b"application/json-rpc")
ONCE_ONLY = (b"authorization", b"host", b"x-agent-id", b"x-project-token", b"idempotency-key")
IDEMPOTENCY_KEY_MAX = 200
PIECE = 64 * 1024
"""Bytes of a large body that are written at once."""
PEER_SHARE = 10
"""A peer carries what so many callers write at their full rate."""


class Disconnected(Exception):
    """The caller went away before its body was whole."""


class RpcEndpoint:
    """POST /: one JSON-RPC request or batch (CACP 2.0, Transport)."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        gate: "Admission",
        body_limit: int,
        large_body_limit: int,
    ) -> None:
        self._dispatcher = dispatcher
        self._gate = gate
        self._body_limit = body_limit
        self._large_body_limit = large_body_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers, caller = self._gate.enter(scope)
            if not is_json(headers.get(b"content-type")):
                await respond(send, 415, UNSUPPORTED)
                return
            body = await read_body(receive, headers, self._large_body_limit)
            key = headers.get(b"idempotency-key")
            origin = Origin(
                caller,
                idempotency_key=None if key is None else idempotency_key(key),
                large=len(body) > self._body_limit,
                charge=partial(self._gate.charge, caller),
                check_still=partial(self._gate.check_still, scope, caller),
            )
        except Disconnected:
            return
        except Refusal as refusal:
            await respond(send, *refusal_response(refusal))
            return
        try:
            await self._answer(body, origin, send)
        finally:
            if origin.share is not None:
                origin.share.release()

    async def _answer(self, body: bytes, origin: Origin, send: Send) -> None:
        try:
            answer = await self._dispatcher.answer(body, origin)
        except Refusal as refusal:
            await respond(send, *refusal_response(refusal))
            return
        await respond(send, *((204, b"") if answer is None else (200, answer)))


class Admission:
    """Lets a request in: finds out who calls, and holds each caller to its rate."""

    def __init__(
        self,
        identity: Authenticator,
        limits: RateLimit,
        notices: LogOnce,
        heard_from: Callable[[str], None] = lambda agent_id: None,
        mismatched: Callable[[str, str | None, str | None, str], None] = lambda *about: None,
    ) -> None:
        """`mismatched` is told who called, whom it named, from which address, and the refusal."""
        self._identity = identity
        self._limits = limits
        self._carried = limits.times(PEER_SHARE)
        self._notices = notices
        self._heard_from = heard_from
        self._mismatched = mismatched

    def enter(self, scope: Scope, *, registers: bool = False) -> tuple[dict[bytes, bytes], Caller]:
        """The request's headers and its caller. Who `registers` need not be known yet.

        Raises Unauthenticated, Forbidden, RateLimited, or InvalidRequest for a header given twice.
        """
        raw = scope["headers"]
        headers: dict[bytes, bytes] = dict(raw)
        if len(headers) != len(raw):
            _check_twice(raw)
        address = address_of(scope)
        try:
            caller = self._identity.identify(headers, address, registers=registers)
        except Unauthenticated as refusal:
            self._limits.check(f"address {address}", time.monotonic())
            reason = refusal.data["reason"]
            self._notices.refused(
                "unauthenticated", (reason, address), reason=reason, address=address
            )
            raise
        except Forbidden as refusal:
            known = refusal.data.get("agentId")
            self._limits.check(known or f"address {address}", time.monotonic())
            if known is not None:
                claimed = headers.get(b"x-agent-id")
                named = None if claimed is None else claimed.decode(errors="replace")
                self._mismatched(known, named, address, refusal.message)
            raise
        self._limits.check(caller.agent_id, time.monotonic())
        if caller.via != "local":
            self._heard_from(caller.agent_id)
        return headers, caller

    def check_still(self, scope: Scope, caller: Caller) -> None:
        """Raise Unauthenticated or Forbidden when a caller that was let in would be no more, or not
        as who it was."""
        now = self._identity.identify(dict(scope["headers"]), address_of(scope))
        # A peer without a key says itself which repo it has, also by what it has just called.
        if replace(now, repo=caller.repo) != caller:
            raise Forbidden("What you may do has changed meanwhile: ask again", reason="changed")

    def check_stranger(self, scope: Scope) -> None:
        """Hold whoever shows no credentials to a rate by its address. Raises RateLimited."""
        self._limits.check(f"address {address_of(scope)}", time.monotonic())

    def charge(self, caller: Caller, more: int) -> None:
        """Count `more` requests of a caller that was let in for one.

        A peer's batch carries what callers were counted for elsewhere, and a peer that were held to
        an agent's rate would never catch up: it has one of its own, for what it sends in batches.
        Raises RateLimited when that is used up; nothing of the batch was taken.
        """
        if caller.trust != "peer":
            self._limits.charge(caller.agent_id, more)
            return
        self._carried.check(caller.agent_id, time.monotonic())
        self._carried.charge(caller.agent_id, more)


def address_of(scope: Scope) -> str | None:
    """The address that a request comes from."""
    client = scope.get("client")
    return client[0] if client else None


def _check_twice(raw: list[tuple[bytes, bytes]]) -> None:
    names = [name for name, _ in raw]
    for name in ONCE_ONLY:
        if names.count(name) > 1:
            raise InvalidRequest(f"The header {name.decode()} is given twice")


def is_json(content_type: bytes | None) -> bool:
    """Whether a body of this type is read as JSON."""
    if content_type == b"application/json":
        return True
    return content_type is not None and content_type.partition(b";")[0].strip().lower() in JSON


def idempotency_key(value: bytes) -> str:
    """The Idempotency-Key header (design §3): 1 to 200 printable ASCII characters."""
    if not 1 <= len(value) <= IDEMPOTENCY_KEY_MAX or not all(32 < byte < 127 for byte in value):
        raise InvalidInput("Idempotency-Key must be 1 to 200 printable ASCII characters")
    return value.decode("ascii")


async def read_body(receive: Receive, headers: dict[bytes, bytes], limit: int) -> bytes:
    """The request's body. Raises TooLarge as soon as it is known to be over the limit."""
    length = headers.get(b"content-length")
    if length is not None and length.isdigit() and int(length[:20]) > limit:
        raise _body_too_large(limit)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise _body_too_large(limit)
        return body
    return await _read_rest(receive, message, limit)


async def _read_rest(receive: Receive, message: Message, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] != "http.request":
            raise Disconnected
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _body_too_large(limit)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()


def _body_too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body may have {limit} bytes at most", limit=limit)


def refusal_response(refusal: Refusal) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
    """A refusal of the whole request: status, JSON-RPC error body, headers."""
    if isinstance(refusal, InvalidRequest):
        error = jsonrpc.error(ErrorCode.INVALID_REQUEST, refusal.message, refusal.data)
    else:
        error = jsonrpc.error(*error_of(refusal))
    extra: list[tuple[bytes, bytes]] = []
    if isinstance(refusal, Unauthenticated):
        extra.append((b"www-authenticate", b'Bearer realm="cacp"'))
        # Who nobody knows keeps no connection.
        extra.append((b"connection", b"close"))
    if isinstance(refusal, RateLimited):
        extra.append((b"retry-after", str(refusal.data["retryAfter"]).encode()))
    return STATUS.get(type(refusal), 400), orjson.dumps(error), extra


async def respond(
    send: Send,
    status: int,
    body: Answer,
    extra: list[tuple[bytes, bytes]] | None = None,
) -> None:
    """Send a JSON response; without a body when the status is 204."""
    size = len(body) if isinstance(body, bytes) else sum(len(part) for part in body)
    headers = [(b"content-length", b"%d" % size), (b"content-type", b"application/json")]
    if status == 204:
        headers = []
    if extra:
        headers += extra
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send_body(send, body)


async def send_body(send: Send, body: Answer) -> None:
    """Send a body; a large one a piece at a time, each when the reader has taken the one before:
    no connection keeps more of it, and others get their turns in between."""
    if isinstance(body, bytes) and len(body) <= PIECE:
        await send({"type": "http.response.body", "body": body})
        return
    written = 0
    for part in [body] if isinstance(body, bytes) else body:
        view = memoryview(part)
        for at in range(0, len(view), PIECE):
            piece = view[at : at + PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            written += len(piece)
            if written >= PIECE:
                # It is written at the end of the turn; the next waits while the connection is full.
                written = 0
                await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


class InPieces(Response):
    """A response that is sent as `send_body` does."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        await send_body(send, bytes(self.body))


class LastResort:
    """Around the routes: what none of them caught is logged with an id, and the caller gets the id.

    What can't be answered any more, because an answer has begun, is raised to the server.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if scope["type"] != "http" or started:
                raise
            code, message, data = server_error(error, scope.get("path", ""))
            with suppress(OSError):
                await respond(send, 500, orjson.dumps(jsonrpc.error(code, message, data)))
