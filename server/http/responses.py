"""JSON responses: the HTTP status of refusals, and sending large bodies in pieces (design §5)."""

import asyncio
from typing import Protocol

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from schemas import jsonrpc
from server.domain.errors import (
    Forbidden,
    NotFound,
    RateLimited,
    Refusal,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from server.rpc.dispatch import Answer
from server.rpc.error_codes import error_of

STATUS: dict[type[Refusal], int] = {
    Unauthenticated: 401,
    Forbidden: 403,
    TooLarge: 413,
    RateLimited: 429,
    NotFound: 404,
    Unavailable: 503,
}
"""The HTTP status when a whole request is refused; all other JSON-RPC responses have 200."""

PIECE = 64 * 1024
"""Bytes of a large body per write."""


class Respond(Protocol):
    """Sends a JSON response."""

    async def __call__(
        self, status: int, body: Answer, extra: list[tuple[bytes, bytes]] | None = None, /
    ) -> None: ...


def refusal_response(refusal: Refusal) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
    """The status, JSON-RPC error body and headers that refuse a whole request."""
    error = jsonrpc.error(*error_of(refusal))
    extra: list[tuple[bytes, bytes]] = []
    if isinstance(refusal, Unauthenticated):
        extra.append((b"www-authenticate", b'Bearer realm="cacp"'))
        # An unauthenticated caller may not keep its connection open.
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
    """Send a JSON response; one with status 204 has no body."""
    size = len(body) if isinstance(body, bytes) else sum(len(part) for part in body)
    headers = [(b"content-length", b"%d" % size), (b"content-type", b"application/json")]
    if status == 204:
        headers = []
    if extra:
        headers += extra
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send_body(send, body)


async def send_body(send: Send, body: Answer) -> None:
    """Send a body, a large one in pieces of `PIECE` bytes, each once the reader took the one
    before. So no connection buffers more than a piece, and other tasks get their turns in
    between."""
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
                # The piece is written at the end of this turn; `send` waits while the buffer is
                # full.
                written = 0
                await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


class InPieces(Response):
    """A response that `send_body` sends."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        await send_body(send, bytes(self.body))
