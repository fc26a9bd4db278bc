"""What goes to peers of our own make (design §6)."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from peers.digest import Name
from peers.signing import SigningKey, verify
from server.domain.authorship import statement
from server.identity import Caller
from server.methods import METHODS
from server.methods.base import Context, Node
from server.outbox import Outbox
from server.store import contracts, mesh, peers
from server.store.database import connect
from server.store.migrate import prepare

AGENT, FOREIGN = "aid://example.com/alpha@1.0.0", "aid://example.com/foreign@1.0.0"
NODE = Node(AGENT, "alpha", True, True, SigningKey(bytes(32)))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    prepare(tmp_path / "cacp.db")
    with closing(connect(tmp_path / "cacp.db")) as connection:
        yield connection


def call(db: sqlite3.Connection, method_name: str, stamp: int, /, **params: Any) -> Any:
    method = METHODS[f"cacp/{method_name}"]
    caller = Caller(AGENT, "alpha", "verified", "local")
    given = method.params.model_validate(params)
    return method.run(Context(db, caller, NODE, method.name, stamp), given)


@pytest.fixture
def contract(db: sqlite3.Connection) -> Name:
    repos = [{"name": name, "role": "r", "language": "l"} for name in ("alpha", "beta")]
    shared = call(db, "project/create", 1, name="n", objective="o", repos=repos)["projectId"]
    made = call(
        db, "contract/propose", 2, projectId=shared, type="custom", name="n", content={"b": 1.5}
    )
    return Name("contract", shared, made["contractId"])


def message(db: sqlite3.Connection, name: Name) -> Any:
    return orjson.loads(orjson.dumps(Outbox(db, NODE).message(name)))


def test_a_contract_goes_whole_with_signed_facts_beside(
    db: sqlite3.Connection, contract: Name
) -> None:
    sent = message(db, contract)
    assert sent["method"] == "cacp/contract/sync"
    params = sent["params"]
    assert params["source_agent"] == AGENT
    assert params["contract"]["status"] == "proposed"
    [one] = params["facts"]
    said = statement("fact", contract.entity_id, one["fact"])
    assert verify(NODE.key.public, said, one["signature"]["value"])
    assert one["signature"]["node"] == AGENT
    METHODS[sent["method"]].params.model_validate(params, by_alias=True)


def test_a_project_goes_with_its_registers_and_signed_claims(
    db: sqlite3.Connection, contract: Name
) -> None:
    sent = message(db, Name("project", contract.project_id, contract.project_id))
    [alpha, beta] = sent["params"]["registers"]["repos"]
    [claim] = alpha["claims"]
    assert (claim["agent_id"], beta["claims"]) == (AGENT, [])
    assert sent["params"]["project"]["contracts"] == [], "they go one by one"
    METHODS[sent["method"]].params.model_validate(sent["params"], by_alias=True)


def test_what_others_signed_goes_on_as_it_came_with_their_keys(
    db: sqlite3.Connection, contract: Name
) -> None:
    mesh.pin(db, FOREIGN, "their key")
    kept = {"node": FOREIGN, "value": "v", "unkeyed": False}
    db.execute("UPDATE facts SET signature = ?", (orjson.dumps(kept).decode(),))
    params = message(db, contract)["params"]
    assert params["facts"][0]["signature"] == kept
    assert params["keys"] == {FOREIGN: "their key"}


def test_the_word_of_an_unkeyed_peer_is_passed_on_as_that(
    db: sqlite3.Connection, contract: Name
) -> None:
    peers.put(db, AGENT, "http://x", "alpha", "unkeyed", 1)
    assert message(db, contract)["params"]["facts"][0]["signature"]["unkeyed"] is True


def test_what_is_not_there_is_not_sent(db: sqlite3.Connection) -> None:
    for kind in ("project", "contract", "context"):
        assert Outbox(db, NODE).message(Name(kind, "p", "x")) is None
    assert contracts.signed_facts(db, "x") == []
