"""Writes with an Idempotency-Key (design §3): run once, and answered again from what was kept."""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from server.auth.authenticator import Caller
from server.domain.acp.handoff import HeldElsewhere
from server.domain.errors import Conflict
from server.store import idempotency
from server.store.group_commit import Transaction


class KeyedCall(NamedTuple):
    """A call with an Idempotency-Key."""

    method: str
    scope: str
    """Whose call it is: the same for a retry, and for nothing else."""
    params_hash: str


def keyed_call(
    caller: Caller, method: str, member: int, key: str, params: dict[str, Any]
) -> KeyedCall:
    """A call with its hashes, which are made before its transaction; `member` is its place in its
    batch."""
    parts = [
        caller.agent_id,
        caller.repo,
        None if caller.projects is None else sorted(caller.projects),
        method,
        member,
        key,
    ]
    if caller.operator:
        # The node's own agent must not be given what the operator was shown.
        parts.append("operator")
    # Null means absent, so a retry may spell it out.
    present = {name: value for name, value in params.items() if value is not None}
    return KeyedCall(
        method,
        hashlib.sha256(orjson.dumps(parts)).hexdigest(),
        hashlib.sha256(orjson.dumps(present, option=orjson.OPT_SORT_KEYS)).hexdigest(),
    )


def run_once(
    run: Callable[[Transaction], Any],
    call: KeyedCall,
    transaction: Transaction,
    *,
    parsed: bool = False,
) -> Any:
    """Run a write once per idempotency key: its result is kept in the same transaction, and comes
    back as JSON, or as a value if `parsed`. Raises Conflict when the key was used with other
    params."""
    known = idempotency.find(transaction.connection, call.scope, transaction.sure)
    if known is not None:
        if known.params_hash != call.params_hash:
            raise Conflict(
                f"This Idempotency-Key was already used for {call.method} with other params; "
                "use a new key",
                reason="idempotency_key_reused",
            )
        return orjson.loads(known.result) if parsed else orjson.Fragment(known.result)
    result = run(transaction)
    if isinstance(result, HeldElsewhere):
        return result
    text = orjson.dumps(result).decode()
    answer = idempotency.KeptAnswer(call.params_hash, text, transaction.stamp)
    idempotency.keep(transaction.connection, call.scope, answer, transaction.sure)
    return result
