"""Runs the `*/sync` calls of a peer, many in one transaction: those that it pushes in a batch, and
those that this node fetched from it.

All of it runs on the writer's thread, the validation of params too: threads that compute
concurrently contend for the interpreter, and cost more than they save.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from server.auth.authenticator import Caller
from server.domain.errors import Refusal, Unavailable
from server.methods import METHODS
from server.methods.base import Context, Method
from server.methods.sync import new_contracts
from server.node import Node
from server.store.database import Database
from server.store.group_commit import Transaction
from server.store.peers import Peer

Message = dict[str, Any]
"""{method, params} of a call; params is an object, or its JSON text."""


class SyncCall(NamedTuple):
    """A call with validated params."""

    method: Method
    params: BaseModel


Read = Callable[[], SyncCall]
"""Validates a call. Raises Refusal or ValidationError."""


async def take_together(
    database: Database, node: Node, caller: Caller, calls: Sequence[Read]
) -> list[dict[str, Any] | Exception]:
    """The result of each call, or the exception that it raised. Runs all in one transaction.

    When the transaction fails, each call runs in a transaction of its own.
    """
    try:
        return await database.write(partial(_taken, node, caller, calls))
    except Unavailable as refusal:
        return [refusal] * len(calls)
    except Exception as error:
        if len(calls) == 1:
            return [error]
        return [
            outcome
            for call in calls
            for outcome in await take_together(database, node, caller, [call])
        ]


def is_fault(outcome: object) -> bool:
    """Whether a call failed by a fault of this node or its disk, rather than being refused."""
    if isinstance(outcome, Unavailable):
        return True
    return isinstance(outcome, Exception) and not isinstance(outcome, Refusal | ValidationError)


class SyncIntake:
    """Takes in what this node fetched from peers."""

    def __init__(self, database: Database, node: Node) -> None:
        self._database = database
        self._node = node

    async def take(self, source: Peer, message: Message) -> dict[str, Any]:
        """The SyncResult of one call. Raises what its method raises, and ValidationError."""
        [outcome] = await self.take_all(source, [message])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def take_all(
        self, source: Peer, messages: list[Message]
    ) -> list[dict[str, Any] | Exception]:
        """The SyncResult of each call, run with its peer as the caller, or the exception that it
        raised: Refusal or ValidationError when refused, anything else for a fault of this node."""
        calls = [partial(_read, message) for message in messages]
        keyed = source.secret is not None
        caller = Caller(
            source.agent_id,
            source.repo_name or "",
            "peer" if keyed else "unkeyed",
            "key" if keyed else "peer",
        )
        return await take_together(self._database, self._node, caller, calls)


def _read(message: Message) -> SyncCall:
    method, params = METHODS[message["method"]], message["params"]
    if isinstance(params, str):
        return SyncCall(method, method.params.model_validate_json(params, by_alias=True))
    return SyncCall(method, method.params.model_validate(params, by_alias=True))


def _taken(
    node: Node, caller: Caller, calls: Sequence[Read], transaction: Transaction
) -> list[dict[str, Any] | Exception]:
    """The outcome of each call. Raises what a call raises that wrote before, to roll back."""
    db = transaction.connection
    read = [_validated(call) for call in calls]
    new_contracts.note(transaction, [call.params for call in read if isinstance(call, SyncCall)])
    outcomes: list[dict[str, Any] | Exception] = []
    for call in read:
        if not isinstance(call, SyncCall):
            outcomes.append(call)
            continue
        changes = db.total_changes
        try:
            method, params = call
            context = Context(db, caller, node, method.name, transaction.stamp, transaction)
            outcomes.append(method.run(context, params))
        except (Refusal, ValidationError) as problem:
            if db.total_changes != changes:
                raise
            outcomes.append(problem)
    return outcomes


def _validated(call: Read) -> SyncCall | Refusal | ValidationError:
    try:
        return call()
    except (Refusal, ValidationError) as problem:
        return problem
