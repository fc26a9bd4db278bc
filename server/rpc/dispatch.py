"""JSON-RPC: parse, find the method, validate its params, run it, map what it raises to codes.

jsonrpcserver gets each member of a batch separately, after our own checks: its parser and validator
answer with exception texts, refuse a whole batch for one bad member, and inspect a method's
signature on each call (design §3).
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from pydantic import ValidationError

from schemas import jsonrpc
from schemas.errors import ErrorCode
from server.auth.authenticator import Caller
from server.domain import access
from server.domain.access import check_project, check_unrestricted
from server.domain.acp.handoff import HeldElsewhere
from server.domain.agents import identity
from server.domain.errors import InvalidInput, Refusal, TooLarge, Unavailable
from server.domain.invalid import invalid_input
from server.methods.base import CallSession, Context, Fetch, Method, unchecked
from server.node import Node
from server.rpc.answer_budget import UNCOUNTED, AnswerBudget, AnswerShare, Meter
from server.rpc.error_codes import (
    MethodError,
    error_of,
    failed,
    invalid_request,
    refused,
    server_error,
)
from server.rpc.idempotent_call import keyed_call, run_once
from server.rpc.sync_batch import SyncCall, take_together
from server.store.database import Database
from server.store.group_commit import Transaction
from server.util.batches import batches

if TYPE_CHECKING:
    from server.rpc.library_call import Run

Answer = bytes | list[bytes]
"""A response as JSON; a large one as parts, to avoid a copy."""

SYNC_CALLS_PER_TRANSACTION = 25
"""Members of a peer's batch per transaction, which delays other writes by some milliseconds."""


class OtherNodes(Protocol):
    """The other nodes, for what this one does not hold."""

    async def forward(self, call: HeldElsewhere) -> Any:
        """The answer of the node that holds what the call is about. Raises its Refusal."""

    @property
    def fetch(self) -> Fetch: ...


@dataclass(slots=True)
class RequestContext:
    """The caller of an HTTP request, and what else the request says."""

    caller: Caller
    idempotency_key: str | None = None
    body_size: int = 0
    body_limit: int = 0
    """The limit of bodies for methods that do not carry files."""
    member: int = 0
    may_be_deep: bool = False
    charge: Callable[[int], None] = lambda more: None
    """Counts the further calls of a batch against the caller's rate limit."""
    share: AnswerShare | None = None
    """What the answer takes of the budget, if it is large. The caller of `Dispatcher.answer`
    releases it when the answer is sent."""
    recheck_access: Callable[[], Awaitable[None]] = unchecked
    """Raises Unauthenticated or Forbidden when the caller's access has ended or changed."""
    reads: asyncio.Lock | None = None
    """Held by each read of a batch in turn, so that what one takes is counted before the next."""


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
        others: OtherNodes,
        budget: AnswerBudget,
    ) -> None:
        self._database = database
        self._node = node
        self._batch_limit = batch_limit
        self._observe = observe
        self.stopping = stopping
        """Set when the node stops."""
        self._others = others
        self.budget = budget
        self._runs = {name: self._run(method) for name, method in methods.items()}
        self._batchable_sync_methods = {
            name: method
            for name, method in methods.items()
            if method.access == "sync" and method.writes and method.guard is None
        }

    @property
    def next_commit(self) -> asyncio.Event:
        """Set with the next commit."""
        return self._database.next_commit

    async def answer(self, body: bytes, context: RequestContext) -> Answer | None:
        """The response to a request's body; None when it has notifications only. `context.share`
        holds what the response takes of the budget.

        Raises TooLarge for a batch over the limit, RateLimited for a peer's batch over its rate.
        """
        try:
            request = orjson.loads(body)
        except orjson.JSONDecodeError:
            return orjson.dumps(
                jsonrpc.error(
                    ErrorCode.PARSE_ERROR,
                    "Parse error: the body is not JSON",
                    {"reason": "parse_error"},
                )
            )
        context.may_be_deep = body.count(b"[") + body.count(b"{") > jsonrpc.DEPTH_MAX
        if type(request) is not list:
            response = await self._answer_one(request, context)
            return None if response is None else self._encoded(response, context)
        if not request:
            return orjson.dumps(invalid_request("the batch is empty"))
        if len(request) > self._batch_limit:
            raise TooLarge(
                f"A batch may have {self._batch_limit} members, this has {len(request)}",
                limit=self._batch_limit,
            )
        context.charge(len(request) - 1)
        calls = self._sync_calls(request, context)
        if calls:
            return orjson.dumps(await self._answer_together(calls, context))
        self._share(context)
        reads = asyncio.Lock()
        answers = await asyncio.gather(
            *(
                self._answer_member(member, replace(context, member=place, reads=reads))
                for place, member in enumerate(request)
            )
        )
        parts = [part for answer in answers if answer is not None for part in (b",", *answer)]
        if not parts:
            return None
        return [b"[", *parts[1:], b"]"]

    async def _answer_member(self, request: Any, context: RequestContext) -> list[bytes] | None:
        response = await self._answer_one(request, context)
        if response is None:
            return None
        answer = self._encoded(response, context)
        if isinstance(answer, list):
            return answer
        if len(answer) <= UNCOUNTED:
            # A batch may have many small answers.
            self._share(context).add_unchecked(len(answer))
        return [answer]

    def _share(self, context: RequestContext) -> AnswerShare:
        """The share of the request's answer, made when it is first needed."""
        share = context.share
        if share is None:
            share = self.budget.share(context.caller.agent_id)
            context.share = share
        return share

    def _encoded(self, response: dict[str, Any], context: RequestContext) -> Answer:
        """A response as JSON. A result of type bytes is JSON already, and was counted."""
        result = response.get("result")
        if type(result) is bytes:
            end = b',"id":%b}' % orjson.dumps(response["id"])
            parts = [b'{"jsonrpc":"2.0","result":', result, end]
            return parts if len(result) > UNCOUNTED else b"".join(parts)
        answer = orjson.dumps(response)
        if len(answer) > UNCOUNTED:
            self._share(context).add_unchecked(len(answer))
        return answer

    async def _answer_one(self, request: Any, context: RequestContext) -> dict[str, Any] | None:
        try:
            call = jsonrpc.check(request)
        except jsonrpc.InvalidRpcRequest as error:
            return invalid_request(error.message, error.id)
        except jsonrpc.InvalidParams as error:
            if error.notification:
                return None
            return jsonrpc.error(
                ErrorCode.INVALID_PARAMS,
                f"Invalid params: {error.message}",
                {"reason": "invalid_params"},
                error.id,
            )
        run = self._runs.get(call.method)
        if run is None:
            if call.notification:
                return None
            return jsonrpc.error(
                ErrorCode.METHOD_NOT_FOUND,
                f"Method not found: {call.method[:200]}; GET /methods lists them",
                {"reason": "method_not_found"},
                call.id,
            )
        if context.reads is None and not call.notification:
            return await _answered_alone(call, context, run)
        # jsonrpcserver is slow to import, and most callers send neither batches nor notifications.
        from server.rpc.library_call import answered

        return await answered(call, context, run)

    def _sync_calls(self, request: list[Any], context: RequestContext) -> list[jsonrpc.Call]:
        """The calls of a peer's batch of nothing but sync calls; empty for any other batch."""
        if context.caller.trust != "peer" or context.idempotency_key is not None:
            return []
        try:
            calls = [jsonrpc.check(member) for member in request]
        except (jsonrpc.InvalidRpcRequest, jsonrpc.InvalidParams):
            return []
        if any(
            call.notification or call.method not in self._batchable_sync_methods for call in calls
        ):
            return []
        return calls

    async def _answer_together(
        self, calls: list[jsonrpc.Call], context: RequestContext
    ) -> list[dict[str, Any]]:
        """The responses to a peer's batch of sync calls, run in a few transactions."""
        take = partial(take_together, self._database, self._node, context.caller)
        reads = [partial(self._validated_sync_call, call, context) for call in calls]
        parts = batches(reads, SYNC_CALLS_PER_TRANSACTION)
        outcomes = chain.from_iterable(await asyncio.gather(*map(take, parts)))
        return [
            self._response(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)
        ]

    def _validated_sync_call(self, call: jsonrpc.Call, context: RequestContext) -> SyncCall:
        method = self._batchable_sync_methods[call.method]
        return SyncCall(method, self._validate_call(method, context, call.params))

    def _response(self, call: jsonrpc.Call, outcome: Any) -> dict[str, Any]:
        if isinstance(outcome, Refusal):
            self._observe(call.method, "refused")
            return jsonrpc.error(*error_of(outcome), call.id)
        if isinstance(outcome, Exception):
            self._observe(call.method, "failed")
            return jsonrpc.error(*server_error(outcome, call.method), call.id)
        self._observe(call.method, "ok")
        return {"jsonrpc": "2.0", "result": outcome, "id": call.id}

    def _run(self, method: Method) -> "Run":
        """The method with what belongs to each call of it. Raises MethodError."""
        run = self._runner(method)

        async def call(context: RequestContext, given: dict[str, Any]) -> Any:
            try:
                params = self._validate_call(method, context, given)
                result = await run(method, params, context, given)
            except Refusal as refusal:
                self._observe(method.name, "refused")
                refusal = await self._explain_refusal(
                    method, context, _with_instead(refusal, method)
                )
                raise refused(refusal, method.name) from None
            except Exception as error:
                self._observe(method.name, "failed")
                raise failed(error, method.name) from None
            self._observe(method.name, "ok")
            return result

        return call

    def _runner(self, method: Method) -> Callable[..., Awaitable[Any]]:
        """The function that runs the method as it is declared."""
        if method.writes:
            return self._write
        if method.waits:
            return self._wait
        if method.wide is True:
            return self._read_wide
        return self._read

    def _validate_call(self, method: Method, context: RequestContext, given: dict[str, Any]) -> Any:
        """The validated params of a call that the caller may make, counted against its rate. Raises
        Forbidden, TooLarge, InvalidInput or RateLimited."""
        caller = context.caller
        self._node.last_calls[identity(caller.agent_id)] = self._database.now()
        check_access(method, caller)
        if context.body_size > context.body_limit and not method.large:
            raise TooLarge(
                f"The body has {context.body_size} bytes; {method.name} accepts "
                f"{context.body_limit} at most",
                limit=context.body_limit,
            )
        if context.may_be_deep and jsonrpc.is_deep(given):
            raise InvalidInput(f"params are nested deeper than {jsonrpc.DEPTH_MAX} levels")
        params = checked_params(method, caller, given)
        more = method.weight(params) - 1 if method.weight is not None else 0
        if more > 0:
            context.charge(more)
        return params

    async def _explain_refusal(
        self, method: Method, context: RequestContext, refusal: Refusal
    ) -> Refusal:
        """The refusal as the method's guard explains it, after the guard has noted it on disk."""
        guard = method.guard
        if guard is None:
            return refusal
        if guard.notes(refusal):
            with suppress(Unavailable):
                await self._session(method, context).write(lambda ctx: guard.note(ctx, refusal))
        return guard.explain(refusal)

    def _session(self, method: Method, context: RequestContext) -> CallSession:
        return CallSession(
            self._database,
            context.caller,
            self._node,
            method.name,
            self.stopping,
            self._others.fetch,
            context.recheck_access,
        )

    async def _wait(self, method: Method, params: Any, context: RequestContext, _: Any) -> Any:
        self._check_room(context)
        result = await method.run(self._session(method, context), params)
        # It may have waited long, and the caller's key may be revoked by now.
        await context.recheck_access()
        if type(result) is bytes:
            self._share(context).add_unchecked(len(result))
        return result

    def _check_room(self, context: RequestContext) -> None:
        """Raise TooLarge or Busy before a call whose answer has no room."""
        if context.share is not None:
            context.share.check()
        else:
            self.budget.check(context.caller.agent_id)

    async def _read(self, method: Method, params: Any, context: RequestContext, given: Any) -> Any:
        if callable(method.wide) and method.wide(params):
            return await self._read_wide(method, params, context, given)
        async with context.reads or nullcontext():
            if self.budget.taken:
                self._check_room(context)
            return await self._database.read(
                lambda db: method.run(
                    Context(db, context.caller, self._node, method.name, 0), params
                )
            )

    async def _read_wide(self, method: Method, params: Any, context: RequestContext, _: Any) -> Any:
        def run(db: Any) -> bytes:
            # Serialised here, off the event loop: the result may have megabytes.
            return orjson.dumps(
                method.run(Context(db, context.caller, self._node, method.name, 0), params)
            )

        def make(meter: Meter) -> Awaitable[bytes]:
            return self._database.read_wide(run, meter)

        result = await self._share(context).make(make)
        # It may have waited for room, or for the other members of its batch.
        await context.recheck_access()
        return result

    async def _write(self, method: Method, params: Any, context: RequestContext, given: Any) -> Any:
        def run(transaction: Transaction) -> Any:
            ctx = Context(
                transaction.connection,
                context.caller,
                self._node,
                method.name,
                transaction.stamp,
                transaction,
            )
            return method.run(ctx, params)

        if context.idempotency_key is not None:
            keyed = keyed_call(
                context.caller, method.name, context.member, context.idempotency_key, given
            )
            run = partial(run_once, run, keyed, parsed=method.around is not None)
        if method.around is not None:
            session = self._session(method, context)
            return await method.around(session, params, partial(self._database.write, run))
        result = await self._database.write(run)
        if isinstance(result, HeldElsewhere):
            # After the transaction, which wrote nothing: no other write waits for that node.
            return await self._others.forward(result)
        return result


async def _answered_alone(
    call: jsonrpc.Call, context: RequestContext, run: "Run"
) -> dict[str, Any]:
    """The response to a call that is no member of a batch. jsonrpcserver, which makes all others,
    takes longer than many a method."""
    try:
        return {"jsonrpc": "2.0", "result": await run(context, call.params), "id": call.id}
    except MethodError as error:
        return jsonrpc.error(error.code, error.message, error.data, call.id)
    except Exception as error:
        return jsonrpc.error(*server_error(error, call.method), call.id)


def check_access(method: Method, caller: Caller) -> None:
    """Raises Forbidden for a caller that may not call the method with any params."""
    access.check_trust(caller.trust, method.access, is_own=caller.is_own_agent)
    if method.reach == "node":
        check_unrestricted(caller.projects)


def checked_params(method: Method, caller: Caller, given: dict[str, Any]) -> Any:
    """The validated params of a call by a caller that `check_access` let pass. Raises Forbidden for
    a project that is not the caller's, and InvalidInput."""
    present = {name: value for name, value in given.items() if value is not None}
    try:
        params = method.params.model_validate(present, by_alias=True)
    except ValidationError as error:
        reason = method.guard.reason if method.guard else None
        raise invalid_input(error, reason=reason, model=method.params) from None
    if method.reach == "project":
        check_project(caller.projects, params.project_id)  # type: ignore[attr-defined]
    return params


def _with_instead(refusal: Refusal, method: Method) -> Refusal:
    """The refusal of an answer that is too large, with its method and what to call instead."""
    if refusal.data["reason"] != "answer_too_large":
        return refusal
    instead = method.instead or "it for less: with a smaller limit, or outside of a batch"
    message = f"{method.name}: {refusal.message}. Call {instead}"
    return TooLarge(message, **refusal.data | {"method": method.name, "instead": instead})
