"""JSON-RPC: parse, find the method, validate its params, run it, map what it raises to codes.

The only place that knows error codes (design §5). Calls go through jsonrpcserver, member by member
and checked: its own parser and validator answer with exception texts, one bad member would make it
refuse a whole batch, and it takes a method's signature anew on each call (design §3).
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
from server.auth.authenticator import Caller
from server.domain import access
from server.domain.access import check_project, check_whole
from server.domain.errors import (
    Busy,
    Conflict,
    Damaged,
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
from server.methods.base import Context, Fetch, Method, Session
from server.node import Node
from server.rpc.answer_budget import UNCOUNTED, AnswerBudget, AnswerShare, Meter
from server.rpc.sync_batch import SyncCall, take_together
from server.store import idempotency
from server.store.database import Database, Transaction

log = structlog.get_logger()

CODES: dict[type[Refusal], ErrorCode] = {
    InvalidInput: ErrorCode.INVALID_PARAMS,
    NotFound: ErrorCode.INVALID_PARAMS,
    Damaged: ErrorCode.INVALID_PARAMS,
    HeldElsewhere: ErrorCode.INVALID_PARAMS,
    IllegalTransition: ErrorCode.INVALID_PARAMS,
    Unauthenticated: ErrorCode.UNAUTHENTICATED,
    Forbidden: ErrorCode.FORBIDDEN,
    Conflict: ErrorCode.CONFLICT,
    RateLimited: ErrorCode.RATE_LIMITED,
    TooLarge: ErrorCode.TOO_LARGE,
    Unavailable: ErrorCode.SERVER_ERROR,
    NodeAway: ErrorCode.SERVER_ERROR,
    Busy: ErrorCode.SERVER_ERROR,
}


Answer = bytes | list[bytes]
"""A response as JSON; a large one in parts, which are not copied into one."""

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
    share: AnswerShare | None = None
    """What the answer takes of the budget, once it is found to be large. Whoever asks for the
    answer releases it when the answer is sent."""
    check_still: Callable[[], None] = lambda: None
    """Raises Unauthenticated or Forbidden when the caller would not be let in any more."""


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
        budget: AnswerBudget,
    ) -> None:
        self._database = database
        self._node = node
        self._batch_limit = batch_limit
        self._observe = observe
        self._stopping = stopping
        self._others = others
        self.budget = budget
        self._callables = {name: self._callable(method) for name, method in methods.items()}
        self._taken_together = {
            name: method
            for name, method in methods.items()
            if method.access == "sync" and method.writes and method.guard is None
        }

    async def answer(self, body: bytes, origin: Origin) -> Answer | None:
        """The response to a request's body; None when it holds notifications only. What it takes of
        the budget is the origin's share.

        Raises TooLarge for a batch over the limit, RateLimited for one of a peer over its rate.
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
            return None if response is None else self._encoded(response, origin)
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
        self._share(origin)
        answers = await asyncio.gather(
            *(
                self._answer_member(member, replace(origin, member=place))
                for place, member in enumerate(request)
            )
        )
        given = [answer for answer in answers if answer is not None]
        if not given:
            return None
        parts = [part for answer in given for part in (b",", *answer)]
        return [b"[", *parts[1:], b"]"]

    async def _answer_member(self, request: Any, origin: Origin) -> list[bytes] | None:
        response = await self._answer_one(request, origin)
        if response is None:
            return None
        answer = self._encoded(response, origin)
        if isinstance(answer, list):
            return answer
        if len(answer) <= UNCOUNTED:
            # Others of the batch may be as small, and there may be many.
            self._share(origin).change(len(answer))
        return [answer]

    def _share(self, origin: Origin) -> AnswerShare:
        """What the answer takes of the budget; made when it is first needed."""
        share = origin.share
        if share is None:
            share = self.budget.share(origin.caller.agent_id)
            origin.share = share
        return share

    def _encoded(self, response: dict[str, Any], origin: Origin) -> Answer:
        """A response as JSON. A result that is bytes is JSON already, and was counted."""
        result = response.get("result")
        if type(result) is bytes:
            end = b',"id":%b}' % orjson.dumps(response["id"])
            parts = [b'{"jsonrpc":"2.0","result":', result, end]
            return parts if len(result) > UNCOUNTED else b"".join(parts)
        answer = orjson.dumps(response)
        if len(answer) > UNCOUNTED:
            self._share(origin).change(len(answer))
        return answer

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

    def _admitted(self, call: jsonrpc.Call, origin: Origin) -> SyncCall:
        method = self._taken_together[call.method]
        return SyncCall(method, self._admit(method, origin, call.params))

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
            if method.wide is True
            else self._read
        )

        async def call(origin: Origin, /, **given: Any) -> Result:
            try:
                params = self._admit(method, origin, given)
                result = await run(method, params, origin, given)
            except Refusal as refusal:
                self._observe(method.name, "refused")
                refusal = await self._guarded(method, origin, _with_instead(refusal, method))
                raise _refused(refusal, method.name) from None
            except Exception as error:
                self._observe(method.name, "failed")
                raise _failed(error, method.name) from None
            self._observe(method.name, "ok")
            return Success(result)

        return call

    def _admit(self, method: Method, origin: Origin, given: dict[str, Any]) -> Any:
        """The params, checked and counted. Raises Forbidden, TooLarge, InvalidInput or
        RateLimited."""
        caller = origin.caller
        access.check(caller.trust, method.access, is_own=caller.via == "local")
        if method.reach == "node":
            check_whole(caller.projects)
        if origin.large and not method.large:
            raise TooLarge(f"The body is too large for {method.name}")
        if origin.may_be_deep and jsonrpc.is_deep(given):
            raise InvalidInput(f"They are nested deeper than {jsonrpc.DEPTH_MAX} levels")
        present = {name: value for name, value in given.items() if value is not None}
        try:
            params = method.params.model_validate(present, by_alias=True)
        except ValidationError as error:
            reason = method.guard.reason if method.guard else None
            raise invalid_input(error, reason=reason) from None
        if method.reach == "project":
            check_project(caller.projects, params.project_id)  # type: ignore[attr-defined]
        more = method.weight(params) - 1 if method.weight is not None else 0
        if more > 0:
            origin.charge(more)
        return params

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
            origin.check_still,
        )

    async def _wait(self, method: Method, params: Any, origin: Origin, _: Any) -> Any:
        self._check_room(origin)
        result = await method.run(self._session(method, origin), params)
        # It may have waited long: a key that was revoked meanwhile is shown nothing.
        origin.check_still()
        if type(result) is bytes:
            self._share(origin).change(len(result))
        return result

    def _check_room(self, origin: Origin) -> None:
        """Raise TooLarge or Busy before a call that answers what there is no room for."""
        if origin.share is not None:
            origin.share.check()
        else:
            self.budget.check(origin.caller.agent_id)

    async def _read(self, method: Method, params: Any, origin: Origin, given: Any) -> Any:
        if callable(method.wide) and method.wide(params):
            return await self._read_wide(method, params, origin, given)
        if self.budget.taken:
            self._check_room(origin)
        return self._database.read(
            lambda db: method.run(Context(db, origin.caller, self._node, method.name, 0), params)
        )

    async def _read_wide(self, method: Method, params: Any, origin: Origin, _: Any) -> Any:
        def run(db: Any) -> bytes:
            # Serialised here, off the event loop: it may be megabytes.
            return orjson.dumps(
                method.run(Context(db, origin.caller, self._node, method.name, 0), params)
            )

        def make(meter: Meter) -> Awaitable[bytes]:
            return self._database.read_wide(run, meter)

        result = await self._share(origin).make(make)
        # It may have waited for room, or for the other members of its batch.
        origin.check_still()
        return result

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


def _with_instead(refusal: Refusal, method: Method) -> Refusal:
    """The refusal of an answer that is too large, with its method and what to call in its place."""
    if refusal.data["reason"] != "answer_too_large":
        return refusal
    instead = method.instead or "it for less: a smaller limit, or by itself in place of a batch"
    said = f"{method.name}: {refusal.message}. Call {instead}"
    return TooLarge(said, **refusal.data | {"method": method.name, "instead": instead})


def _scope(method: Method, origin: Origin) -> str:
    caller = origin.caller
    parts = [
        caller.agent_id,
        caller.repo,
        None if caller.projects is None else sorted(caller.projects),
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
    known = idempotency.find(transaction.connection, scope, transaction.sure)
    if known is not None:
        if known.params_hash != params_hash:
            raise Conflict(
                "This Idempotency-Key was used with other params", reason="idempotency_key_reused"
            )
        return orjson.Fragment(known.result)
    result = run(transaction)
    text = orjson.dumps(result).decode()
    answer = idempotency.KeptAnswer(params_hash, text, transaction.stamp)
    idempotency.keep(transaction.connection, scope, answer, transaction.sure)
    return result


def error_of(refusal: Refusal) -> tuple[ErrorCode, str, dict[str, Any]]:
    """A refusal's code, message and data. Our own faults get an id to look up in the log."""
    code = CODES[type(refusal)]
    if code == ErrorCode.SERVER_ERROR and not isinstance(refusal, NodeAway | Busy):
        error_id = secrets.token_hex(8)
        log.error("unavailable", error_id=error_id, reason=refusal.data["reason"])
        return code, f"Server error {error_id}: {refusal.message}", refusal.data | {"id": error_id}
    if code == ErrorCode.INVALID_PARAMS:
        return code, f"Invalid params: {refusal.message}", refusal.data
    return code, refusal.message, refusal.data


def _refused(refusal: Refusal, method: str) -> JsonRpcError:
    code, message, data = error_of(refusal)
    log.debug("refused", **data | {"method": method})
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
