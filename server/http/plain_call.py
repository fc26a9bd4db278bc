"""The usual call: a small `POST /` whose head and body came together.

It is answered without ASGI's events between the connection and the endpoint, which cost more than a
`contract/get` itself. Everything that is not surely plain takes the way of every other request.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol, cast

import orjson
from starlette.types import Scope
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from schemas import jsonrpc
from server.http.body import ReadBody, check_size
from server.http.responses import PIECE, Respond, respond
from server.rpc.dispatch import Answer
from server.rpc.error_codes import server_error

HEADERS = frozenset(
    {
        b"host",
        b"content-type",
        b"content-length",
        b"accept",
        b"accept-encoding",
        b"accept-language",
        b"user-agent",
        b"connection",
        b"authorization",
        b"origin",
        b"sec-fetch-mode",
        b"idempotency-key",
        b"x-agent-id",
        b"x-project-token",
    }
)
"""The headers of plain calls. None of them changes how a request is framed or taken, but
`Content-Length`, by which the parser finds the end of the body, and `Connection`, which must leave
the connection open."""

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\ncontent-type: application/json\r\n\r\n%b"


class CallEndpoint(Protocol):
    """Where plain calls go."""

    async def serve(self, scope: Scope, read: ReadBody, respond: Respond) -> None:
        """Answer the call of a request. Of its scope there are the method, path, headers and
        client."""


class PlainCall(RequestResponseCycle):
    """A plain call and its answer, in place of uvicorn's cycle of a request."""

    def __init__(
        self,
        body: bytes,
        headers: list[tuple[bytes, bytes]],
        client: tuple[str, int] | None,
        transport: asyncio.Transport,
        flow: FlowControl,
        logger: logging.Logger,
        on_response: Callable[[], None],
    ) -> None:
        self._request: Scope = {
            "type": "http",
            "method": "POST",
            "path": "/",
            "headers": headers,
            "client": client,
        }
        super().__init__(
            scope=cast(Any, self._request),
            transport=transport,
            flow=flow,
            logger=logger,
            access_logger=logger,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=True,
            on_response=on_response,
        )
        self._whole = body

    async def run(self, endpoint: CallEndpoint) -> None:
        """Answer, also when the endpoint fails."""
        try:
            await endpoint.serve(self._request, self._read, self._respond)
        except Exception as error:
            if self.response_started:
                self.logger.exception("A plain call failed in the middle of its answer")
                self.transport.close()
                return
            failure = jsonrpc.error(*server_error(error, "/"))
            await respond(self._send, 500, orjson.dumps(failure))

    async def _read(self, headers: dict[bytes, bytes], limit: int) -> bytes:
        check_size(len(self._whole), limit)
        # An idle connection keeps its last call, which need not keep this.
        body, self._whole = self._whole, b""
        return body

    async def _respond(
        self, status: int, body: Answer, extra: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        if (
            status != 200
            or extra
            or type(body) is not bytes
            or len(body) > PIECE
            or self.flow.write_paused
            or not self.keep_alive
        ):
            await respond(self._send, status, body, extra)
        elif not self.disconnected:
            self.response_started = self.response_complete = True
            self.transport.write(_HEAD % (len(body), body))
            self.on_response()

    async def _send(self, message: Any) -> None:
        await self.send(message)
