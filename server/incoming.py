"""Takes in `*/sync` calls that this node has fetched, as if their peer had made them."""

import asyncio
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from server.domain.errors import Refusal
from server.identity import Caller
from server.methods import METHODS
from server.methods.base import Context, Method, Node
from server.store.database import Database, Transaction
from server.store.peers import Peer

Message = dict[str, Any]
"""{method, params} of a call; the params are an object, or its JSON."""
Problem = Refusal | ValidationError


class _Call(NamedTuple):
    method: Method
    params: BaseModel


class Incoming:
    """What comes from peers on this node's own asking."""

    def __init__(self, database: Database, node: Node) -> None:
        self._database = database
        self._node = node

    async def take(self, source: Peer, message: Message) -> dict[str, Any]:
        """The SyncResult of one call. Raises Refusal, ValidationError."""
        [outcome] = await self.take_all(source, [message])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def take_all(
        self, source: Peer, messages: list[Message]
    ) -> list[dict[str, Any] | Problem]:
        """The SyncResult of each call, or why it is refused; all in one transaction.

        What one of them breaks, it breaks for itself: the others are taken without it.
        """
        # Read in a thread: neither the event loop nor the writer waits for the checks.
        calls = await asyncio.to_thread(lambda: [_read(message) for message in messages])
        try:
            return await self._database.write(partial(_taken, self._node, source, calls))
        except Refusal as refusal:
            if len(messages) == 1:
                return [refusal]
            return [one for each in messages for one in await self.take_all(source, [each])]


def _read(message: Message) -> _Call | ValidationError:
    method, params = METHODS[message["method"]], message["params"]
    try:
        if isinstance(params, str):
            return _Call(method, method.params.model_validate_json(params, by_alias=True))
        return _Call(method, method.params.model_validate(params, by_alias=True))
    except ValidationError as error:
        return error


def _taken(
    node: Node, source: Peer, calls: list[_Call | ValidationError], transaction: Transaction
) -> list[dict[str, Any] | Problem]:
    """Raises what a call raises that had written before it did."""
    db = transaction.connection
    trust = "peer" if source.secret is not None else "unkeyed"
    via = "key" if source.secret is not None else "peer"
    caller = Caller(source.agent_id, source.repo_name or "", trust, via)  # type: ignore[arg-type]
    outcomes: list[dict[str, Any] | Problem] = []
    for call in calls:
        if isinstance(call, ValidationError):
            outcomes.append(call)
            continue
        changes = db.total_changes
        context = Context(db, caller, node, call.method.name, transaction.stamp, transaction)
        try:
            outcomes.append(call.method.run(context, call.params))
        except Refusal as refusal:
            if db.total_changes != changes:
                raise
            outcomes.append(refusal)
    return outcomes
