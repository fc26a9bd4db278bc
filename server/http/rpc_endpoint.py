"""`POST /`: the HTTP side of a JSON-RPC request, around the dispatcher (design §3, §5)."""

from functools import partial

import orjson
from starlette.types import Receive, Scope, Send

from schemas import jsonrpc
from schemas.errors import ErrorCode
from server.domain.errors import InvalidHeader, Refusal
from server.http.admission import Admission
from server.http.body import Disconnected, ReadBody, is_json, read_body
from server.http.responses import Respond, refusal_response, respond
from server.rpc.dispatch import Dispatcher, RequestContext

UNSUPPORTED = orjson.dumps(
    jsonrpc.error(
        ErrorCode.INVALID_REQUEST,
        "Send Content-Type: application/json",
        {"reason": "unsupported_media_type"},
    )
)
IDEMPOTENCY_KEY_MAX = 200


class RpcEndpoint:
    """POST /: one JSON-RPC request or batch (CACP 2.0, Transport)."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        admission: Admission,
        body_limit: int,
        large_body_limit: int,
    ) -> None:
        self._dispatcher = dispatcher
        self._admission = admission
        self._body_limit = body_limit
        self._large_body_limit = large_body_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.serve(scope, partial(read_body, receive), partial(respond, send))

    async def serve(self, scope: Scope, read: ReadBody, respond: Respond) -> None:
        """Answer the call of a request. Of its scope, headers and client count."""
        try:
            headers, caller = await self._admission.enter(scope)
            if not is_json(headers.get(b"content-type")):
                await respond(415, UNSUPPORTED)
                return
            body = await read(headers, self._large_body_limit)
            key = headers.get(b"idempotency-key")
            context = RequestContext(
                caller,
                idempotency_key=None if key is None else idempotency_key(key),
                body_size=len(body),
                body_limit=self._body_limit,
                charge=partial(self._admission.charge, caller),
                recheck_access=partial(self._admission.recheck_access, scope, caller),
            )
        except Disconnected:
            return
        except Refusal as refusal:
            await respond(*refusal_response(refusal))
            return
        try:
            await self._answer(body, context, respond)
        finally:
            if context.share is not None:
                context.share.release()

    async def _answer(self, body: bytes, context: RequestContext, respond: Respond) -> None:
        try:
            answer = await self._dispatcher.answer(body, context)
        except Refusal as refusal:
            await respond(*refusal_response(refusal))
            return
        if answer is None:
            await respond(204, b"")
        else:
            await respond(200, answer)


def idempotency_key(value: bytes) -> str:
    """The Idempotency-Key header (design §3): 1 to 200 printable ASCII characters."""
    if not 1 <= len(value) <= IDEMPOTENCY_KEY_MAX or not all(32 < byte < 127 for byte in value):
        raise InvalidHeader("Idempotency-Key must be 1 to 200 printable ASCII characters")
    return value.decode("ascii")
