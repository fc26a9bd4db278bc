"""Writes with an Idempotency-Key (design §3): run once, and answered again from what was kept."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from server.auth.authenticator import Caller
from server.domain.acp.handoff import HeldElsewhere
from server.domain.errors import Conflict
from server.store import idempotency
from server.store.group_commit import Transaction


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """A call with an Idempotency-Key; `member` is its place in its batch."""

    caller: Caller
    method: str
    member: int
    key: str
    params: dict[str, Any]

    def scope(self) -> str:
        """Whose call it is: the same for a retry, and for nothing else."""
        caller = self.caller
        parts = [
            caller.agent_id,
            caller.repo,
            None if caller.projects is None else sorted(caller.projects),
            self.method,
            self.member,
            self.key,
        ]
        if caller.operator:
            # The node's own agent must not be given what the operator was shown.
            parts.append("operator")
        return hashlib.sha256(orjson.dumps(parts)).hexdigest()

    def params_hash(self) -> str:
        """A hash of the params. Null means absent, so a retry may spell it out."""
        present = {name: value for name, value in self.params.items() if value is not None}
        return hashlib.sha256(orjson.dumps(present, option=orjson.OPT_SORT_KEYS)).hexdigest()


def run_once(run: Callable[[Transaction], Any], call: KeyedCall, transaction: Transaction) -> Any:
    """Run a write once per idempotency key: its result is kept in the same transaction. Raises
    Conflict when the key was used with other params."""
    scope, params_hash = call.scope(), call.params_hash()
    known = idempotency.find(transaction.connection, scope, transaction.sure)
    if known is not None:
        if known.params_hash != params_hash:
            raise Conflict(
                f"This Idempotency-Key was already used for {call.method} with other params; "
                "use a new key",
                reason="idempotency_key_reused",
            )
        return orjson.Fragment(known.result)
    result = run(transaction)
    if isinstance(result, HeldElsewhere):
        return result
    text = orjson.dumps(result).decode()
    answer = idempotency.KeptAnswer(params_hash, text, transaction.stamp)
    idempotency.keep(transaction.connection, scope, answer, transaction.sure)
    return result
