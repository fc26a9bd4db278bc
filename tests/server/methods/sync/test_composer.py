"""What goes to mesh peers (design §7)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from peers.digest import Name
from peers.signing import SigningKey, verify
from server.auth.authenticator import Caller
from server.domain.authorship import statement
from server.methods import METHODS
from server.methods.base import Context
from server.methods.sync.composer import (
    KEPT_BYTES,
    PIECE_BYTES,
    BuiltMessages,
    Composer,
    MessageBuilder,
)
from server.node import Node
from server.store import contracts, mesh, peers
from server.store.connection import Connection
from server.store.database import Database
from tests.support.located import connect, location_of, prepare

AGENT, FOREIGN = "aid://example.com/alpha@1.0.0", "aid://example.com/foreign@1.0.0"
NODE = Node(AGENT, "alpha", True, True, SigningKey(bytes(32)))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    prepare(tmp_path / "cacp.db")
    with closing(connect(tmp_path / "cacp.db")) as connection:
        yield connection


def call(db: Connection, method_name: str, stamp: int, /, **params: Any) -> Any:
    method = METHODS[f"cacp/{method_name}"]
    caller = Caller(AGENT, "alpha", "verified", "local")
    given = method.params.model_validate(params)
    return method.run(Context(db, caller, NODE, method.name, stamp), given)


@pytest.fixture
def contract(db: Connection) -> Name:
    repos = [{"name": name, "role": "r", "language": "l"} for name in ("alpha", "beta")]
    shared = call(db, "project/create", 1, name="n", objective="o", repos=repos)["projectId"]
    made = call(
        db, "contract/propose", 2, projectId=shared, type="custom", name="n", content={"b": 1.5}
    )
    return Name("contract", shared, made["contractId"])


def pieces(db: Connection, name: Name) -> list[Any]:
    [(named, made)] = MessageBuilder(db, NODE).messages([name], 1)
    assert (named, made.problem) == (name, None)
    return [orjson.loads(text) for text in made.texts]


def message(db: Connection, name: Name) -> Any:
    [only] = pieces(db, name)
    return only


UNSIGNED = {"repo_id", "claims", "signature"}
"""Of a repo in the registers, what is not what it is."""


def holds(said: bytes, by: Any) -> bool:
    return verify(NODE.key.public, said, by["value"], by["path"])


def test_a_contract_goes_whole_with_signed_facts_beside(db: Connection, contract: Name) -> None:
    sent = message(db, contract)
    assert sent["method"] == "cacp/contract/sync"
    params = sent["params"]
    assert params["source_agent"] == AGENT
    assert params["contract"]["status"] == "proposed"
    [one] = params["facts"]
    said = statement("fact", contract.entity_id, one["fact"])
    assert holds(said, one["signature"])
    assert one["signature"]["node"] == AGENT
    called = {"type": "custom", "name": "n", "stamp": params["createdAt"]}
    said = statement("contract", contract.entity_id, called)
    assert holds(said, params["headerSignature"])
    METHODS[sent["method"]].params.model_validate(params, by_alias=True)


def test_a_project_goes_with_its_registers_and_signed_claims(
    db: Connection, contract: Name
) -> None:
    sent = message(db, Name("project", contract.project_id, contract.project_id))
    [alpha, beta] = sent["params"]["registers"]["repos"]
    [claim] = alpha["claims"]
    said = {name: one for name, one in beta.items() if name not in UNSIGNED}
    assert holds(statement("repo", contract.project_id, said), beta["signature"])
    assert (claim["agent_id"], beta["claims"]) == (AGENT, [])
    assert sent["params"]["project"]["contracts"] == [], "they go one by one"
    METHODS[sent["method"]].params.model_validate(sent["params"], by_alias=True)


def test_what_others_signed_goes_on_as_it_came_with_their_keys(
    db: Connection, contract: Name
) -> None:
    mesh.pin(db, FOREIGN, "their key")
    project = Name("project", contract.project_id, contract.project_id)
    kept = {"node": FOREIGN, "value": "v", "unkeyed": False}
    db.execute("UPDATE facts SET signature = ?", (orjson.dumps(kept).decode(),))
    params = message(db, contract)["params"]
    assert params["facts"][0]["signature"] == kept
    for table in ("contracts", "repos"):
        db.execute(f"UPDATE {table} SET signature = ?", (orjson.dumps(kept).decode(),))
    assert message(db, contract)["params"]["headerSignature"] == kept
    [repo, _] = message(db, project)["params"]["registers"]["repos"]
    assert repo["signature"] == kept
    for table in ("contracts", "repos"):
        db.execute(f"UPDATE {table} SET signature = ''")
    assert message(db, contract)["params"]["headerSignature"] is None
    assert params["keys"] == {FOREIGN: "their key"}


def test_the_word_of_an_unkeyed_peer_is_passed_on_as_that(db: Connection, contract: Name) -> None:
    peers.put(db, FOREIGN, "http://x", "alpha", "unkeyed", 1)
    db.execute("UPDATE facts SET body = replace(body, ?, ?)", (AGENT, FOREIGN))
    params = message(db, contract)["params"]
    assert params["facts"][0]["signature"]["unkeyed"] is True
    assert params["headerSignature"]["unkeyed"] is True


def test_a_file_and_a_request_go_signed_and_without_content(db: Connection, contract: Name) -> None:
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


def test_what_is_not_there_is_not_sent(db: Connection) -> None:
    for kind in ("project", "contract", "context", "file", "file_request"):
        assert pieces(db, Name(kind, "p", "x")) == []
    assert contracts.signed_facts(db, "x") == []


def test_a_batch_is_signed_once_and_each_of_it_holds_alone(db: Connection, contract: Name) -> None:
    project = Name("project", contract.project_id, contract.project_id)
    made = MessageBuilder(db, NODE).messages([project, contract], 10_000)
    sent = [orjson.loads(text) for _, one in made for text in one.texts]
    [claim] = sent[0]["params"]["registers"]["repos"][0]["claims"]
    [fact] = sent[1]["params"]["facts"]
    by, other = fact["signature"], claim["signature"]
    assert by["value"] == other["value"]
    said = statement("fact", contract.entity_id, fact["fact"])
    assert verify(NODE.key.public, said, by["value"], by["path"])
    assert not verify(NODE.key.public, said, by["value"], other["path"])


def test_no_more_is_made_at_once_than_fits(db: Connection, contract: Name) -> None:
    project = Name("project", contract.project_id, contract.project_id)
    made = MessageBuilder(db, NODE).messages([contract, project], 10)
    assert [name for name, _ in made] == [contract], "one at least"


# --- what is large goes in pieces ---------------------------------------------------------------


def respond(db: Connection, contract: Name, stamp: int, suggested: Any) -> None:
    call(
        db,
        "contract/respond",
        stamp,
        projectId=contract.project_id,
        contractId=contract.entity_id,
        action="request_change",
        suggestedChange=suggested,
    )


def test_a_large_contract_goes_in_pieces_of_which_each_stands_alone(
    db: Connection, contract: Name
) -> None:
    for version in range(1, 5):
        respond(db, contract, 10 * version, {"text": "x" * 400_000})
        call(
            db,
            "contract/update",
            10 * version + 1,
            projectId=contract.project_id,
            contractId=contract.entity_id,
            content={"text": "y" * 300_000},
        )
    sent = pieces(db, contract)
    assert max(len(orjson.dumps(one)) for one in sent) < PIECE_BYTES + 10_000
    facts = [fact for one in sent for fact in one["params"]["facts"]]
    assert sorted(one["fact"]["kind"] for one in facts) == ["response"] * 4 + ["version"] * 5
    kinds = [one["fact"]["kind"] for one in facts]
    assert kinds == sorted(kinds, reverse=True), "nothing is said of a version before it"
    for one in sent:
        METHODS[one["method"]].params.model_validate(one["params"], by_alias=True)
        assert one["params"]["facts"], "each holds by itself"
        assert one["params"]["contract"]["contract_id"] == contract.entity_id
        assert one["params"]["source_agent"] == AGENT
    for fact in facts:
        said = statement("fact", contract.entity_id, fact["fact"])
        by = fact["signature"]
        assert verify(NODE.key.public, said, by["value"], by["path"])


def test_a_project_of_large_repos_goes_in_pieces(db: Connection, contract: Name) -> None:
    for number in range(600):
        repo: Any = {"name": f"small {number}", "role": "r", "language": "l"}
        call(db, "project/addRepo", 100 + number, projectId=contract.project_id, repo=repo)
    for number in range(4):
        paths = ["p" * 4_000] * 60
        repo = {"name": f"r{number}", "role": "r", "language": "l", "relevantPaths": paths}
        call(db, "project/addRepo", 10 + number, projectId=contract.project_id, repo=repo)
    sent = pieces(db, Name("project", contract.project_id, contract.project_id))
    assert len(sent) > 1
    assert max(len(orjson.dumps(one)) for one in sent) < PIECE_BYTES + 10_000
    names = []
    for one in sent:
        METHODS[one["method"]].params.model_validate(one["params"], by_alias=True)
        parts = [repo["name"] for repo in one["params"]["registers"]["repos"]]
        assert [repo["name"] for repo in one["params"]["project"]["repos"]] == parts
        names += parts
    assert len(set(names)) == len(names) == 606


# --- what can't be sent -------------------------------------------------------------------------


def nested(levels: int) -> Any:
    content: Any = {}
    for _ in range(levels - 1):
        content = {"a": content}
    return content


def test_what_can_not_be_signed_is_told_and_the_others_are_made(
    db: Connection, contract: Name
) -> None:
    """A row of an earlier release, which took more than can be signed."""
    project = Name("project", contract.project_id, contract.project_id)
    [(body,)] = db.execute("SELECT body FROM facts").fetchall()
    spoilt = orjson.loads(body) | {"content": nested(70)}
    db.execute("UPDATE facts SET body = ?", (orjson.dumps(spoilt).decode(),))
    made = MessageBuilder(db, NODE).messages([contract, project], 10_000)
    assert [name for name, _ in made] == [contract, project]
    assert made[0][1].texts == ()
    assert made[0][1].problem is not None
    assert made[0][1].problem.startswith("can't be signed: fact[2].content.a.a")
    assert "nested deeper than 66 levels" in made[0][1].problem
    [text] = made[1][1].texts
    [claim] = orjson.loads(text)["params"]["registers"]["repos"][0]["claims"]
    assert claim["signature"]["value"], "what is sent is signed"


def test_a_row_that_is_damaged_is_told_and_named_in_the_log(db: Connection, contract: Name) -> None:
    project = Name("project", contract.project_id, contract.project_id)
    db.execute("UPDATE facts SET body = '{'")
    with capture_logs() as lines:
        made = dict(MessageBuilder(db, NODE).messages([contract, project], 10_000))
    assert (
        made[contract].problem == "can't be composed: JSONDecodeError, see not_composed in the log"
    )
    assert len(made[project].texts) == 1
    assert [line["event"] for line in lines] == ["not_composed"]


# --- one composer for all peers -----------------------------------------------------------------


def composing(path: Path, story: Callable[[Composer], Awaitable[None]]) -> None:
    async def run() -> None:
        database = Database(location_of(path))
        await database.open(0)
        try:
            await story(Composer(database, NODE))
        finally:
            await database.close()

    asyncio.run(run())


def test_for_ten_peers_a_message_is_made_once(
    tmp_path: Path, db: Connection, contract: Name
) -> None:
    """Design §7: a write costs the same with ten peers as with none."""

    async def story(composer: Composer) -> None:
        told = await asyncio.gather(*(composer.messages({contract: 2}) for _ in range(10)))
        assert composer.made == 1
        assert all(one == told[0] for one in told)

    composing(tmp_path / "cacp.db", story)


def test_what_has_changed_since_is_made_anew(
    tmp_path: Path, db: Connection, contract: Name
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
        assert await composer.messages({nobody: 1}) == [(nobody, BuiltMessages(()))]

    composing(tmp_path / "cacp.db", story)


def test_what_can_not_be_made_is_tried_each_time(
    tmp_path: Path, db: Connection, contract: Name
) -> None:
    async def story(composer: Composer) -> None:
        db.execute("UPDATE facts SET body = replace(body, '1.5', '1e300')")
        [(_, bad)] = await composer.messages({contract: 1})
        assert bad.problem is not None
        db.execute("UPDATE facts SET body = replace(body, '1e300', '1.5')")
        [(_, good)] = await composer.messages({contract: 1})
        assert (good.problem, len(good.texts)) == (None, 1)

    composing(tmp_path / "cacp.db", story)


def test_what_is_kept_is_bounded(
    tmp_path: Path, db: Connection, contract: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.methods.sync.composer.KEPT_BYTES", 1_000)
    project = Name("project", contract.project_id, contract.project_id)

    async def story(composer: Composer) -> None:
        for _ in range(2):
            sent = await composer.messages({project: 1, contract: 1})
            assert [name for name, _ in sent] == [project, contract]
        assert composer.made == 4, "neither fits"

    composing(tmp_path / "cacp.db", story)
    assert KEPT_BYTES <= 16 * 2**20
