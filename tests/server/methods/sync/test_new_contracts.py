"""What is new here is known for a batch, until a message of that batch changes it."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from schemas.sync import ContractSyncParams
from server.domain.identifiers import begun_by
from server.methods.sync import new_contracts
from server.store import deferred
from server.store.connection import Connection
from server.store.deferred import DeferredMessage
from server.store.group_commit import Transaction
from tests.support.located import connect, prepare
from tests.support.mesh import status
from tests.support.mesh_member import SOME_TIME, MeshMember
from tests.support.node import Node, bearer
from tests.support.waiting import eventually

BETA = "aid://example.com/beta@1.0.0"


def begun(node: str = BETA, project_id: str = "p") -> str:
    return begun_by(node, project_id, uuid4())


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    prepare(tmp_path / "cacp.db")
    with closing(connect(tmp_path / "cacp.db")) as connection:
        yield connection


def message(contract_id: str, facts: Any = ()) -> ContractSyncParams:
    contract = {
        "contract_id": contract_id,
        "type": "custom",
        "name": "n",
        "version": 1,
        "status": "proposed",
        "content": {},
    }
    given = {"source_agent": BETA, "projectId": "p", "contract": contract, "facts": facts}
    return ContractSyncParams.model_validate(given, by_alias=True)


def test_what_is_here_or_awaited_is_not_new(db: Connection) -> None:
    new, awaited, foreign = begun(), begun(), "a foreign peer's\0"
    waits = DeferredMessage(BETA, "cacp/contract/sync", "{}", "1")
    deferred.put(db, waits, "predecessor", awaited, due=10, now=0)
    transaction = Transaction(db, 1)
    new_contracts.note(transaction, map(message, (new, awaited, foreign)))
    found = [new_contracts.is_new(transaction, one) for one in (new, awaited, foreign, begun())]
    assert found == [True, False, False, False]
    new_contracts.forget(transaction, new)
    assert not new_contracts.is_new(transaction, new)
    new_contracts.forget(transaction, new)


@pytest.mark.parametrize("sent", [[message(begun())], [message(begun(), None) for _ in range(3)]])
def test_nobody_asks_for_one_alone_or_for_whole_objects(
    db: Connection, sent: list[ContractSyncParams]
) -> None:
    transaction = Transaction(db, 1)
    new_contracts.note(transaction, sent)
    assert transaction.memo == {}


def parts(beta: MeshMember, project_id: str, contract: str) -> tuple[Any, Any]:
    """Two messages of one contract: its version, and a response to it."""
    bodies = beta.version(project_id), beta.response(project_id, "beta", beta.agent)
    called = {"type": "api_endpoint", "name": "Theirs"}
    header = beta.signed("contract", contract, {**called, "stamp": SOME_TIME})
    params = {
        "source_agent": beta.agent,
        "projectId": project_id,
        "contract": called
        | {"contract_id": contract, "version": 1, "status": "proposed", "content": {}},
        "createdAt": SOME_TIME,
        "headerSignature": header,
    }
    first, second = (params | {"facts": [beta.fact(contract, body)]} for body in bodies)
    return first, second


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_parts_of_a_contract_may_come_in_one_batch(
    alpha: Node, beta: MeshMember, shared: str, order: tuple[int, int]
) -> None:
    contract, other = begun(beta.agent, shared), begun(beta.agent, shared)
    sent = [parts(beta, shared, contract)[part] for part in order]
    sent += [parts(beta, shared, other)[0], parts(beta, shared, other)[0]]
    batch = [
        {"jsonrpc": "2.0", "id": number, "method": "cacp/contract/sync", "params": params}
        for number, params in enumerate(sent)
    ]
    answers = alpha.raw(json.dumps(batch), bearer(beta.key)).json()
    statuses = [answer["result"]["status"] for answer in answers]
    created, early = ["created", "updated"], ["skipped", "created"]
    assert statuses == [*(created if order == (0, 1) else early), "created", "skipped"]
    # The version makes the response due that came before it.
    eventually(lambda: status(alpha, shared, contract) == "proposed")
    kinds = "SELECT kind FROM facts WHERE contract_id = ? ORDER BY kind"
    eventually(lambda: alpha.query(kinds, contract) == [("response",), ("version",)])
