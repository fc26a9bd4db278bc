"""The outermost middleware: answers exceptions that no route has caught."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import orjson
from starlette.types import Message, Receive, Scope, Send

from schemas import jsonrpc
from server.http.responses import respond
from server.rpc.error_codes import server_error


class LastResort:
    """Logs an unhandled exception with an id, and answers with the id.

    When a response was begun already, the exception goes on to the server.
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
