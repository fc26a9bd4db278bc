"""JSON-RPC: parse, find the method, validate its params, run it, map what it raises to codes.

The only place that knows error codes (design §5). Calls go through jsonrpcserver, member by member
and checked: its own parser and validator answer with exception texts, one bad member would make it
refuse a whole batch, and it takes a method's signature anew on each call (design §4).
"""

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Protocol, cast

import orjson
import structlog
from jsonrpcserver import JsonRpcError, Result, Success
from jsonrpcserver.async_dispatcher import call as run_call
from jsonrpcserver.dispatcher import to_response
from jsonrpcserver.request import Request
from jsonrpcserver.response import to_serializable_one
from jsonrpcserver.sentinels import NOID
from pydantic import ValidationError

from schemas import jsonrpc
from schemas.errors import ErrorCode
from server.domain import access
from server.domain.errors import (
    Conflict,
    Forbidden,
    HeldElsewhere,
    IllegalTransition,
    InvalidInput,
    NodeAway,
    NotFound,
    RateLimited,
    Refusal,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from server.domain.invalid import invalid_input
from server.identity import Caller
from server.incoming import Call, take_together
from server.methods.base import Context, Fetch, Method, Node, Session
from server.store import answers
from server.store.database import Database, Transaction

log = structlog.get_logger()

CODES: dict[type[Refusal], ErrorCode] = {
    InvalidInput: ErrorCode.INVALID_PARAMS,
    NotFound: ErrorCode.INVALID_PARAMS,
    HeldElsewhere: ErrorCode.INVALID_PARAMS,
    IllegalTransition: ErrorCode.INVALID_PARAMS,
    Unauthenticated: ErrorCode.UNAUTHENTICATED,
    Forbidden: ErrorCode.FORBIDDEN,
    Conflict: ErrorCode.CONFLICT,
    RateLimited: ErrorCode.RATE_LIMITED,
    TooLarge: ErrorCode.TOO_LARGE,
    Unavailable: ErrorCode.SERVER_ERROR,
    NodeAway: ErrorCode.SERVER_ERROR,
}


TOGETHER = 25
"""Members of a peer's batch that share a transaction: other writes wait for it, some
milliseconds."""


class Others(Protocol):
    """The other nodes, for what this one does not have."""

    async def forward(self, call: HeldElsewhere) -> Any:
        """Ask the node that holds what a call is about: its answer. Raises its Refusal."""

    @property
    def fetch(self) -> Fetch: ...


@dataclass(slots=True)
class Origin:
    """Where a call comes from: who, and what else its HTTP request says."""

    caller: Caller
    idempotency_key: str | None = None
    large: bool = False
    """The body is over the limit for methods that carry no file."""
    member: int = 0
    may_be_deep: bool = False
    charge: Callable[[int], None] = lambda more: None
    """Counts the further calls of a batch for the caller's rate."""


class Dispatcher:
    """The method table behind JSON-RPC."""

    def __init__(
        self,
        methods: dict[str, Method],
        database: Database,
        node: Node,
        batch_limit: int,
        observe: Callable[[str, str], None],
        stopping: asyncio.Event,
        others: Others,
    ) -> None:
        self._database = database
        self._node = node
        self._batch_limit = batch_limit
        self._observe = observe
        self._stopping = stopping
        self._others = others
        self._callables = {name: self._callable(method) for name, method in methods.items()}
        self._taken_together = {
            name: method
            for name, method in methods.items()
            if method.access == "sync" and method.writes and method.guard is None
        }

    async def answer(self, body: bytes, origin: Origin) -> bytes | None:
        """The response to a request's body; None when it holds notifications only.

        Raises TooLarge for a batch over the limit.
        """
        try:
            request = orjson.loads(body)
        except orjson.JSONDecodeError:
            return orjson.dumps(
                jsonrpc.error(ErrorCode.PARSE_ERROR, "Parse error: the body is not JSON")
            )
        origin.may_be_deep = body.count(b"[") + body.count(b"{") > jsonrpc.DEPTH_MAX
        if type(request) is not list:
            response = await self._answer_one(request, origin)
            return None if response is None else orjson.dumps(response)
        if not request:
            return orjson.dumps(
                jsonrpc.error(ErrorCode.INVALID_REQUEST, "Invalid request: the batch is empty")
            )
        if len(request) > self._batch_limit:
            raise TooLarge(
                f"A batch may have {self._batch_limit} members, this has {len(request)}",
                limit=self._batch_limit,
            )
        origin.charge(len(request) - 1)
        calls = self._synchronises(request, origin)
        if calls:
            return orjson.dumps(await self._answer_together(calls, origin))
        responses = await asyncio.gather(
            *(
                self._answer_one(member, replace(origin, member=place))
                for place, member in enumerate(request)
            )
        )
        given = [response for response in responses if response is not None]
        return orjson.dumps(given) if given else None

    async def _answer_one(self, request: Any, origin: Origin) -> dict[str, Any] | None:
        try:
            call = jsonrpc.check(request)
        except jsonrpc.InvalidRequest as error:
            return jsonrpc.error(
                ErrorCode.INVALID_REQUEST, f"Invalid request: {error.message}", id=error.id
            )
        except jsonrpc.InvalidParams as error:
            if error.notification:
                return None
            return jsonrpc.error(
                ErrorCode.INVALID_PARAMS,
                f"Invalid params: {error.message}",
                {"reason": "invalid_params"},
                error.id,
            )
        if call.method not in self._callables:
            if call.notification:
                return None
            return jsonrpc.error(
                ErrorCode.METHOD_NOT_FOUND,
                f"Method not found: {call.method[:200]}; GET /methods lists them",
                id=call.id,
            )
        asked = Request(call.method, call.params, NOID if call.notification else call.id)
        result = await run_call(asked, origin, self._callables[call.method])
        if call.notification:
            return None
        return cast(dict[str, Any], to_serializable_one(to_response(asked, result)))

    def _synchronises(self, request: list[Any], origin: Origin) -> list[jsonrpc.Call]:
        """The calls of a batch with which a peer tells what it holds; empty for any other batch."""
        if origin.caller.trust != "peer" or origin.idempotency_key is not None:
            return []
        try:
            calls = [jsonrpc.check(member) for member in request]
        except (jsonrpc.InvalidRequest, jsonrpc.InvalidParams):
            return []
        if any(call.notification or call.method not in self._taken_together for call in calls):
            return []
        return calls

    async def _answer_together(
        self, calls: list[jsonrpc.Call], origin: Origin
    ) -> list[dict[str, Any]]:
        """The responses to a peer's batch, taken in a few transactions."""
        take = partial(take_together, self._database, self._node, origin.caller)
        reads = [partial(self._admitted, call, origin) for call in calls]
        parts = [reads[at : at + TOGETHER] for at in range(0, len(reads), TOGETHER)]
        outcomes = chain.from_iterable(await asyncio.gather(*map(take, parts)))
        return [
            self._response(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)
        ]

    def _admitted(self, call: jsonrpc.Call, origin: Origin) -> Call:
        method = self._taken_together[call.method]
        return Call(method, self._admit(method, origin, call.params))

    def _response(self, call: jsonrpc.Call, outcome: Any) -> dict[str, Any]:
        if isinstance(outcome, Refusal):
            self._observe(call.method, "refused")
            return jsonrpc.error(*error_of(outcome), call.id)
        if isinstance(outcome, Exception):
            self._observe(call.method, "failed")
            return jsonrpc.error(*server_error(outcome, call.method), call.id)
        self._observe(call.method, "ok")
        return {"jsonrpc": "2.0", "result": outcome, "id": call.id}

    def _callable(self, method: Method) -> Callable[..., Awaitable[Result]]:
        """The method as jsonrpcserver calls it: params as keywords, refusals as its errors."""
        run = (
            self._write
            if method.writes
            else self._wait
            if method.waits
            else self._read_wide
            if method.wide
            else self._read
        )

        async def call(origin: Origin, /, **given: Any) -> Result:
            try:
                params = self._admit(method, origin, given)
                result = await run(method, params, origin, given)
            except Refusal as refusal:
                self._observe(method.name, "refused")
                refusal = await self._guarded(method, origin, refusal)
                raise _refused(refusal, method.name) from None
            except Exception as error:
                self._observe(method.name, "failed")
                raise _failed(error, method.name) from None
            self._observe(method.name, "ok")
            return Success(result)

        return call

    def _admit(self, method: Method, origin: Origin, given: dict[str, Any]) -> Any:
        """The params, checked. Raises Forbidden, TooLarge or InvalidInput."""
        access.check(origin.caller.trust, method.access)
        if origin.large and not method.large:
            raise TooLarge(f"The body is too large for {method.name}")
        if origin.may_be_deep and jsonrpc.is_deep(given):
            raise InvalidInput(f"They are nested deeper than {jsonrpc.DEPTH_MAX} levels")
        present = {name: value for name, value in given.items() if value is not None}
        try:
            return method.params.model_validate(present, by_alias=True)
        except ValidationError as error:
            reason = method.guard.reason if method.guard else None
            raise invalid_input(error, reason=reason) from None

    async def _guarded(self, method: Method, origin: Origin, refusal: Refusal) -> Refusal:
        """The refusal as the method's guard has it, after what it notes of it is on disk."""
        guard = method.guard
        if guard is None:
            return refusal
        if guard.notes(refusal):
            with suppress(Unavailable):
                await self._session(method, origin).write(lambda ctx: guard.note(ctx, refusal))
        return guard.explain(refusal)

    def _session(self, method: Method, origin: Origin) -> Session:
        return Session(
            self._database,
            origin.caller,
            self._node,
            method.name,
            self._stopping,
            self._others.fetch,
        )

    async def _wait(self, method: Method, params: Any, origin: Origin, _: Any) -> Any:
        return await method.run(self._session(method, origin), params)

    async def _read(self, method: Method, params: Any, origin: Origin, _: Any) -> Any:
        return self._database.read(
            lambda db: method.run(Context(db, origin.caller, self._node, method.name, 0), params)
        )

    async def _read_wide(self, method: Method, params: Any, origin: Origin, _: Any) -> Any:
        def run(db: Any) -> Any:
            result = method.run(Context(db, origin.caller, self._node, method.name, 0), params)
            # Serialised here, off the event loop: it may be megabytes.
            return orjson.Fragment(orjson.dumps(result))

        return await self._database.read_wide(run)

    async def _write(self, method: Method, params: Any, origin: Origin, given: Any) -> Any:
        def run(transaction: Transaction) -> Any:
            context = Context(
                transaction.connection,
                origin.caller,
                self._node,
                method.name,
                transaction.stamp,
                transaction,
            )
            return method.run(context, params)

        if origin.idempotency_key is not None:
            run = partial(_once, run, _scope(method, origin), _hash(given))
        try:
            return await self._database.write(run)
        except HeldElsewhere as call:
            # Out of the transaction, and with nothing written: others do not wait for that node.
            return await self._others.forward(call)


def _scope(method: Method, origin: Origin) -> str:
    caller = origin.caller
    parts = [
        caller.agent_id,
        caller.repo,
        caller.project_id,
        method.name,
        origin.member,
        origin.idempotency_key,
    ]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


def _hash(given: dict[str, Any]) -> str:
    # Null means absent, so a retry may spell it out.
    present = {name: value for name, value in given.items() if value is not None}
    return hashlib.sha256(orjson.dumps(present, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _once(
    run: Callable[[Transaction], Any], scope: str, params_hash: str, transaction: Transaction
) -> Any:
    """Run a write once per idempotency key: what was answered is kept in the same transaction."""
    known = answers.find(transaction.connection, scope, transaction.stamp)
    if known is not None:
        if known.params_hash != params_hash:
            raise Conflict(
                "This Idempotency-Key was used with other params", reason="idempotency_key_reused"
            )
        return orjson.Fragment(known.result)
    result = run(transaction)
    text = orjson.dumps(result).decode()
    answers.keep(transaction.connection, scope, params_hash, text, transaction.stamp)
    return result


def error_of(refusal: Refusal) -> tuple[ErrorCode, str, dict[str, Any]]:
    """A refusal's code, message and data. Our own faults get an id to look up in the log."""
    code = CODES[type(refusal)]
    if code == ErrorCode.SERVER_ERROR and not isinstance(refusal, NodeAway):
        error_id = secrets.token_hex(8)
        log.error("unavailable", error_id=error_id, reason=refusal.data["reason"])
        return code, f"Server error {error_id}: {refusal.message}", refusal.data | {"id": error_id}
    if code == ErrorCode.INVALID_PARAMS:
        return code, f"Invalid params: {refusal.message}", refusal.data
    return code, refusal.message, refusal.data


def _refused(refusal: Refusal, method: str) -> JsonRpcError:
    code, message, data = error_of(refusal)
    log.debug("refused", method=method, **data)
    return JsonRpcError(int(code), message, data)


def _failed(error: Exception, method: str) -> JsonRpcError:
    code, message, data = server_error(error, method)
    return JsonRpcError(int(code), message, data)


def server_error(error: Exception, where: str) -> tuple[ErrorCode, str, dict[str, Any]]:
    """An error that is our own fault: it goes to the log with an id, and only the id goes out."""
    error_id = secrets.token_hex(8)
    log.error("failed", error_id=error_id, where=where, exc_info=error)
    return (
        ErrorCode.SERVER_ERROR,
        f"Server error {error_id}: something broke in the node; the operator finds it in the log",
        {"reason": "internal_error", "id": error_id},
    )
