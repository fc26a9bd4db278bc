"""What goes to peers of our own make (design §6)."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
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
from server.outbox import KEPT_BYTES, Composer, Outbox
from server.store import contracts, mesh, peers
from server.store.database import Database, connect
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
    [(named, text)] = Outbox(db, NODE).messages([name], 1)
    assert named == name
    assert text is not None
    return orjson.loads(text)


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
    peers.put(db, FOREIGN, "http://x", "alpha", "unkeyed", 1)
    db.execute("UPDATE facts SET body = replace(body, ?, ?)", (AGENT, FOREIGN))
    assert message(db, contract)["params"]["facts"][0]["signature"]["unkeyed"] is True


def test_a_file_and_a_request_go_signed_and_without_content(
    db: sqlite3.Connection, contract: Name
) -> None:
    shared = contract.project_id
    asked = call(db, "file/request", 3, projectId=shared, description="d")["requestId"]
    given = {"name": "n", "content": "YQ=="}
    made = call(db, "file/fulfillRequest", 4, requestId=asked, file=given)["fileId"]
    for kind, entity_id, member in (("file_request", asked, "request"), ("file", made, "file")):
        sent = message(db, Name(kind, shared, entity_id))
        params = METHODS[sent["method"]].params.model_validate(sent["params"], by_alias=True)
        body = sent["params"][member]
        assert getattr(params, member).model_dump() == body
        value = sent["params"]["signature"]["value"]
        assert verify(NODE.key.public, statement(kind, shared, body), value)
        assert "content" not in body
    assert body["fulfils"] == asked


def test_what_is_not_there_is_not_sent(db: sqlite3.Connection) -> None:
    for kind in ("project", "contract", "context", "file", "file_request"):
        assert Outbox(db, NODE).messages([Name(kind, "p", "x")], 1) == [
            (Name(kind, "p", "x"), None)
        ]
    assert contracts.signed_facts(db, "x") == []


def test_a_batch_is_signed_once_and_each_of_it_holds_alone(
    db: sqlite3.Connection, contract: Name
) -> None:
    project = Name("project", contract.project_id, contract.project_id)
    made = Outbox(db, NODE).messages([project, contract], 10_000)
    sent = [orjson.loads(text or b"") for _, text in made]
    [claim] = sent[0]["params"]["registers"]["repos"][0]["claims"]
    [fact] = sent[1]["params"]["facts"]
    by, other = fact["signature"], claim["signature"]
    assert by["value"] == other["value"]
    said = statement("fact", contract.entity_id, fact["fact"])
    assert verify(NODE.key.public, said, by["value"], by["path"])
    assert not verify(NODE.key.public, said, by["value"], other["path"])


def test_no_more_is_made_at_once_than_fits(db: sqlite3.Connection, contract: Name) -> None:
    project = Name("project", contract.project_id, contract.project_id)
    made = Outbox(db, NODE).messages([contract, project], 10)
    assert [name for name, _ in made] == [contract], "one at least"


# --- one composer for all peers -----------------------------------------------------------------


def composing(path: Path, story: Callable[[Composer], Awaitable[None]]) -> None:
    async def run() -> None:
        database = Database(path)
        await database.open(0)
        try:
            await story(Composer(database, NODE))
        finally:
            await database.close()

    asyncio.run(run())


def test_for_ten_peers_a_message_is_made_once(
    tmp_path: Path, db: sqlite3.Connection, contract: Name
) -> None:
    """Design §6: a write costs the same with ten peers as with none."""

    async def story(composer: Composer) -> None:
        told = await asyncio.gather(*(composer.messages({contract: 2}) for _ in range(10)))
        assert composer.made == 1
        assert all(one == told[0] for one in told)

    composing(tmp_path / "cacp.db", story)


def test_what_has_changed_since_is_made_anew(
    tmp_path: Path, db: sqlite3.Connection, contract: Name
) -> None:
    seq = db.execute("SELECT max(seq) FROM changes").fetchone()[0]

    async def story(composer: Composer) -> None:
        await composer.messages({contract: seq})
        await composer.messages({contract: seq - 1})
        assert composer.made == 1
        call(
            db,
            "contract/propose",
            3,
            projectId=contract.project_id,
            type="custom",
            name="m",
            content={},
        )
        await composer.messages({contract: seq + 1})
        assert composer.made == 2
        await composer.messages({contract: None})
        assert composer.made == 3, "as it is now"
        nobody = Name("contract", "p", "x")
        assert await composer.messages({nobody: 1}) == [(nobody, None)]

    composing(tmp_path / "cacp.db", story)


def test_what_is_kept_is_bounded(
    tmp_path: Path, db: sqlite3.Connection, contract: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.outbox.KEPT_BYTES", 1_000)
    project = Name("project", contract.project_id, contract.project_id)

    async def story(composer: Composer) -> None:
        for _ in range(2):
            sent = await composer.messages({project: 1, contract: 1})
            assert [name for name, _ in sent] == [project, contract]
        assert composer.made == 4, "neither fits"

    composing(tmp_path / "cacp.db", story)
    assert KEPT_BYTES <= 16 * 2**20
