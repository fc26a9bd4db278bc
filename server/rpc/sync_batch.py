"""Takes in the `*/sync` calls of a peer, many in one transaction: what it pushes in a batch, and
what this node has fetched from it.

All of it is done on the writer's thread, the checks of params too: threads that compute side by
side take the interpreter from each other, and cost more than they save.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from server.auth.authenticator import Caller
from server.domain.errors import Refusal, Unavailable
from server.methods import METHODS
from server.methods.base import Context, Method
from server.node import Node
from server.store.database import Database, Transaction
from server.store.peers import Peer

Message = dict[str, Any]
"""{method, params} of a call; the params are an object, or its JSON."""


class SyncCall(NamedTuple):
    """A call whose params are checked."""

    method: Method
    params: BaseModel


Read = Callable[[], SyncCall]
"""Checks what came in. Raises Refusal or ValidationError for what is no call."""


async def take_together(
    database: Database, node: Node, caller: Caller, calls: Sequence[Read]
) -> list[dict[str, Any] | Exception]:
    """The result of each call, or what it raises; all in one transaction.

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


def is_fault(outcome: object) -> bool:
    """Whether a call failed by a fault of this node or its disk, and was not refused."""
    if isinstance(outcome, Unavailable):
        return True
    return isinstance(outcome, Exception) and not isinstance(outcome, Refusal | ValidationError)


class SyncIntake:
    """What comes from peers on this node's own asking."""

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
        """The SyncResult of each call, as if their peer had made them, or what it raises: Refusal
        or ValidationError for what is refused, all else by a fault of this node."""
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
    """Raises what a call raises that had written before it did."""
    db = transaction.connection
    outcomes: list[dict[str, Any] | Exception] = []
    for read in calls:
        changes = db.total_changes
        try:
            method, params = read()
            context = Context(db, caller, node, method.name, transaction.stamp, transaction)
            outcomes.append(method.run(context, params))
        except (Refusal, ValidationError) as problem:
            if db.total_changes != changes:
                raise
            outcomes.append(problem)
    return outcomes
