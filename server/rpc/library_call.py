"""Calls that jsonrpcserver runs: the members of batches, and notifications."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from jsonrpcserver import JsonRpcError, Result, Success
from jsonrpcserver.async_dispatcher import call as run_call
from jsonrpcserver.dispatcher import to_response
from jsonrpcserver.request import Request
from jsonrpcserver.response import to_serializable_one
from jsonrpcserver.sentinels import NOID

from schemas import jsonrpc
from server.rpc.error_codes import MethodError

Run = Callable[[Any, dict[str, Any]], Awaitable[Any]]
"""A method, by the context of its request and its params. Raises MethodError."""


async def answered(call: jsonrpc.Call, context: Any, run: Run) -> dict[str, Any] | None:
    """The response to a call of the method that `run` runs; None to a notification."""
    request = Request(call.method, call.params, NOID if call.notification else call.id)
    result = await run_call(request, context, _callable(run))
    if call.notification:
        return None
    return cast(dict[str, Any], to_serializable_one(to_response(request, result)))


def _callable(run: Run) -> Callable[..., Awaitable[Result]]:
    """The method as jsonrpcserver calls it, with params as keywords."""

    async def call(context: Any, /, **given: Any) -> Result:
        try:
            return Success(await run(context, given))
        except MethodError as error:
            raise JsonRpcError(int(error.code), error.message, error.data) from None

    return call
