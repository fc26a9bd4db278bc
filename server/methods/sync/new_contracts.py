"""Which contracts of a batch are new here, found by one look-up for all of them.

A node that catches up takes in thousands of contracts of which nothing is here and for which
nothing waits. It is told so once for each batch, rather than by two statements for each contract.
"""

from collections.abc import Iterable

from pydantic import BaseModel

from schemas.sync import ContractSyncParams
from server.domain.identifiers import names_beginner
from server.store import contracts
from server.store.group_commit import Transaction

_KEY = "new contract"


def note(transaction: Transaction, messages: Iterable[BaseModel]) -> None:
    """Note, until something changes it, which contracts of a mesh node's messages are new."""
    sent = {
        params.contract.contract_id
        for params in messages
        if isinstance(params, ContractSyncParams) and params.facts is not None
    }
    # Ids of another form may hold anything.
    sent = set(filter(names_beginner, sent))
    if len(sent) < 2:
        return
    for contract_id in contracts.new(transaction.connection, sent):
        transaction.memo[_KEY, contract_id] = True


def is_new(transaction: Transaction, contract_id: str) -> bool:
    """Whether nothing of a contract is here and no message waits for it. False also means that
    this is not known."""
    return (_KEY, contract_id) in transaction.memo


def forget(transaction: Transaction, contract_id: str) -> None:
    """Note that something of a contract is now here, or a message waits for it."""
    transaction.memo.pop((_KEY, contract_id), None)
