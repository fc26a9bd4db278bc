"""A mock as an ASGI application, which tells what it is asked."""

from collections.abc import Callable

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from proof.exchange import RuleBreach
from proof.messages import WireAnswer, WireRequest
from proof.mock import MOCK_HEADER, OVERSIZED, Mock, Mocked

BODY_MAX = 10 * 2**20
TOO_LARGE = WireAnswer(413, (("Content-Type", "text/plain"),), b"The body is larger than 10 MiB.\n")
REFUSED = Mocked(
    TOO_LARGE, None, None, (RuleBreach(OVERSIZED, "body", "It is larger than 10 MiB."),)
)
Seen = Callable[[WireRequest, Mocked], None]
"""Is told of each exchange."""


def mock_app(mock: Mock, seen: Seen) -> ASGIApp:
    """The application. Pages of any origin may call it, as a consumer in a browser does."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            body = await _body(request)
        except ClientDisconnect:
            return
        asked = _asked(request, body)
        mocked = REFUSED if body is None else mock.answer(asked)
        seen(asked, mocked)
        answer = mocked.answer
        response = Response(answer.body, answer.status)
        for name, value in (*answer.headers, (MOCK_HEADER, "1")):
            response.headers.append(name, value)
        await response(scope, receive, send)

    return CORSMiddleware(
        app,
        allow_origins=["*"],
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["*"],
    )


async def _body(request: Request) -> bytes | None:
    """The whole body; None if it is too large."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > BODY_MAX:
            return None
        parts.append(part)
    return b"".join(parts)


def _asked(request: Request, body: bytes | None) -> WireRequest:
    raw_path = request.scope.get("raw_path") or request.url.path.encode()
    return WireRequest(
        request.method,
        raw_path.decode("ascii", "replace").partition("?")[0],
        request.scope["query_string"].decode("ascii", "replace"),
        tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in request.headers.raw),
        body or None,
    )
