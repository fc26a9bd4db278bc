"""Takes in the `*/sync` calls of a peer, many in one transaction: what it pushes in a batch, and
what this node has fetched from it."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from server.domain.errors import Refusal, Unavailable
from server.identity import Caller
from server.methods import METHODS
from server.methods.base import Context, Method, Node
from server.store.database import Database, Transaction
from server.store.peers import Peer

Message = dict[str, Any]
"""{method, params} of a call; the params are an object, or its JSON."""
Problem = Refusal | ValidationError


class Call(NamedTuple):
    """A call whose params are checked."""

    method: Method
    params: BaseModel


async def take_together(
    database: Database, node: Node, caller: Caller, calls: Sequence[Call | Exception]
) -> list[dict[str, Any] | Exception]:
    """The result of each call, or what it raises; of what is no call, itself. One transaction.

    What one of them breaks, it breaks for itself: the others are taken without it.
    """
    try:
        return await database.write(partial(_taken, node, caller, calls))
    except Unavailable as refusal:
        return [refusal] * len(calls)
    except Exception as error:
        if len(calls) == 1:
            return [error]
        return [
            one for each in calls for one in await take_together(database, node, caller, [each])
        ]


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
        """The SyncResult of each call, or why it is refused, as if their peer had made them."""
        # Read in a thread: neither the event loop nor the writer waits for the checks.
        calls = await asyncio.to_thread(lambda: [_read(message) for message in messages])
        keyed = source.secret is not None
        caller = Caller(
            source.agent_id,
            source.repo_name or "",
            "peer" if keyed else "unkeyed",
            "key" if keyed else "peer",
        )
        outcomes: list[dict[str, Any] | Problem] = []
        for outcome in await take_together(self._database, self._node, caller, calls):
            if isinstance(outcome, Exception) and not isinstance(
                outcome, Refusal | ValidationError
            ):
                raise outcome
            outcomes.append(outcome)
        return outcomes


def _read(message: Message) -> Call | ValidationError:
    method, params = METHODS[message["method"]], message["params"]
    try:
        if isinstance(params, str):
            return Call(method, method.params.model_validate_json(params, by_alias=True))
        return Call(method, method.params.model_validate(params, by_alias=True))
    except ValidationError as error:
        return error


def _taken(
    node: Node, caller: Caller, calls: Sequence[Call | Exception], transaction: Transaction
) -> list[dict[str, Any] | Exception]:
    """Raises what a call raises that had written before it did."""
    db = transaction.connection
    outcomes: list[dict[str, Any] | Exception] = []
    for call in calls:
        if isinstance(call, Exception):
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
