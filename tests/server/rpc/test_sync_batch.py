"""What peers push or this node fetches is taken in together; each call answers for itself."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import ValidationError

from peers.signing import SigningKey
from schemas.sync import ContextSyncParams, SyncResult
from server.domain.errors import Conflict, NotFound
from server.methods import METHODS
from server.methods.base import Context, Method
from server.node import Node
from server.rpc.sync_batch import SyncIntake, is_fault
from server.store import changes, peers, projects
from server.store.database import Database
from server.store.group_commit import Transaction
from server.store.peers import Peer
from tests.support.located import connect, location_of, prepare
from tests.support.mesh_member import ALPHA, SOME_TIME, TOKEN, MeshMember
from tests.support.node import Node as Running
from tests.support.node import bearer

BETA = "aid://example.com/beta@1.0.0"


def project(**more: Any) -> dict[str, Any]:
    project_id = str(uuid4())
    registers = {
        "name": "Profiles",
        "objective": "o",
        "status": "planning",
        "agreement_policy": "any",
        "created_at": SOME_TIME,
        "stamp": SOME_TIME,
        "repos": [],
    }
    params = {
        "project": {"project_id": project_id, "name": "Profiles"},
        "registers": registers | more,
        "source_agent": BETA,
    }
    return {"method": "cacp/project/sync", "params": params}


def packet(project_id: str) -> dict[str, Any]:
    theirs = {
        "packet_id": str(uuid4()),
        "from_repo": "beta",
        "from_agent": BETA,
        "timestamp": "2025-01-01T00:00:00.000000+00:00",
        "type": "question",
        "content": {},
    }
    params = {
        "projectId": project_id,
        "packet": theirs,
        "signature": {"node": BETA, "value": "x"},
        "source_agent": BETA,
    }
    return {"method": "cacp/context/sync", "params": params}


def taken(path: Path, work: Callable[[SyncIntake, Database, Peer], Awaitable[None]]) -> None:
    """Do some work with what comes in from beta, a mesh node."""

    def enter(transaction: Transaction) -> Peer:
        db = transaction.connection
        peers.put(db, BETA, "http://beta", "beta", "verified", 1)
        peers.put_keys(db, BETA, "secret", "key")
        found = peers.find(db, BETA)
        assert found is not None
        return found

    async def run() -> None:
        prepare(path)
        database = Database(location_of(path))
        await database.open(1)
        node = Node(ALPHA, "alpha", True, True, SigningKey(bytes(32)))
        await work(SyncIntake(database, node), database, await database.write(enter))
        await database.close()

    asyncio.run(run())


def test_what_is_refused_leaves_the_others(tmp_path: Path) -> None:
    async def work(incoming: SyncIntake, database: Database, beta: Peer) -> None:
        first, last = project(), project()
        commits = database.commits
        outcomes = await incoming.take_all(
            beta, [first, project(status="no such"), packet(str(uuid4())), last]
        )
        assert database.commits == commits + 1
        assert [type(one) for one in outcomes] == [dict, ValidationError, NotFound, dict]
        assert [outcomes[0], outcomes[3]] == [{"status": "created"}] * 2
        for one in (first, last):
            project_id = one["params"]["project"]["project_id"]
            assert await database.read(lambda db, at=project_id: projects.header(db, at))  # type: ignore[misc]

    taken(tmp_path / "node.db", work)


def test_what_fails_after_it_wrote_leaves_nothing_and_the_others_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(ctx: Context, params: ContextSyncParams) -> None:
        changes.put_meta(ctx.db, "left", "over")
        raise Conflict("too late")

    broken = Method("x", ContextSyncParams, SyncResult, "sync", run, "", writes=True)
    monkeypatch.setitem(METHODS, "x", broken)

    async def work(incoming: SyncIntake, database: Database, beta: Peer) -> None:
        breaks = packet(str(uuid4())) | {"method": "x"}
        outcomes = await incoming.take_all(beta, [project(), breaks, project()])
        assert [type(one) for one in outcomes] == [dict, Conflict, dict]
        headers = await database.read(lambda db: projects.headers_before(db, 2**63 - 1, "", 10))
        assert headers[1:]
        rows = await database.read(lambda db: db.execute("SELECT * FROM meta WHERE name = 'left'"))
        assert rows.fetchall() == []
        with pytest.raises(Conflict):
            await incoming.take(beta, breaks)

    taken(tmp_path / "node.db", work)


def test_a_fault_of_our_own_is_told_from_what_is_refused_and_the_others_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(ctx: Context, params: ContextSyncParams) -> None:
        raise ValueError("a fault")

    faulty = Method("x", ContextSyncParams, SyncResult, "sync", run, "", writes=True)
    monkeypatch.setitem(METHODS, "x", faulty)

    async def work(incoming: SyncIntake, database: Database, beta: Peer) -> None:
        faulty = packet(str(uuid4())) | {"method": "x"}
        wrong = packet(str(uuid4())) | {"params": {}}
        outcomes = await incoming.take_all(beta, [faulty, wrong, project()])
        assert [is_fault(one) for one in outcomes] == [True, False, False]
        assert isinstance(outcomes[1], ValidationError)
        with pytest.raises(ValueError, match="a fault"):
            await incoming.take(beta, faulty)
        assert (
            len(await database.read(lambda db: projects.headers_before(db, 2**63 - 1, "", 10))) == 1
        )

    taken(tmp_path / "node.db", work)


# --- what a peer pushes in a batch --------------------------------------------------------------


@pytest.fixture(scope="module")
def beta(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshMember]:
    """A peer of a node of its own."""
    settings = {"repo": "alpha", "agent_id": ALPHA, "mesh_token": TOKEN}
    with Running(tmp_path_factory.mktemp("alpha"), **settings) as node:
        yield MeshMember(node, "beta").register()
        assert "Traceback" not in node.log


def pushed(beta: MeshMember, calls: list[Any]) -> Any:
    """The answers to calls in one batch, numbered from 0."""
    batch = [{"jsonrpc": "2.0", "id": number} | call for number, call in enumerate(calls)]
    return beta.node.raw(json.dumps(batch), bearer(beta.key)).json()


def test_a_batch_is_answered_member_by_member(beta: MeshMember) -> None:
    """Design §5: errors in one batch member don't touch the others."""
    calls = [project() for _ in range(60)]
    made = [one["params"]["project"]["project_id"] for one in calls]
    calls[7]["params"]["registers"]["status"] = "no such"
    calls[20]["params"]["source_agent"] = ALPHA
    calls[33]["params"]["project"]["deep"] = json.loads("[" * 200 + "]" * 200)
    calls[41] = packet(str(uuid4()))
    answers = pushed(beta, calls)
    assert [one["id"] for one in answers] == list(range(60))
    refused = {one["id"]: one["error"]["code"] for one in answers if "error" in one}
    assert refused == {7: -32602, 20: -32003, 33: -32602, 41: -32602}
    assert answers[41]["error"]["data"]["kind"] == "project"
    assert all(one["result"] == {"status": "created"} for one in answers if "result" in one)
    held = {row[0] for row in beta.node.query("SELECT project_id FROM projects")}
    assert held == {one for number, one in enumerate(made) if number not in refused}


def test_a_batch_may_hold_other_calls_and_notifications(beta: MeshMember) -> None:
    told, silently = project(), project()
    batch = [
        {"jsonrpc": "2.0", "id": 1} | told,
        {"jsonrpc": "2.0"} | silently,
        {"jsonrpc": "2.0", "id": 2, "method": "cacp/project/list"},
        "nonsense",
    ]
    answers = beta.node.raw(json.dumps(batch), bearer(beta.key)).json()
    assert answers[0]["result"] == {"status": "created"}
    # The members of a batch run in any order: this one may be before the others.
    assert "projects" in answers[1]["result"]
    assert answers[2]["error"]["code"] == -32600
    held = {row[0] for row in beta.node.query("SELECT project_id FROM projects")}
    assert held >= {one["params"]["project"]["project_id"] for one in (told, silently)}


@pytest.mark.sqlite
@pytest.mark.sqlite  # The only one that takes a text for a number.
def test_what_breaks_the_node_fails_alone_and_is_in_the_log(tmp_path: Path) -> None:
    with Running(tmp_path, repo="alpha", agent_id=ALPHA, mesh_token=TOKEN) as node:
        beta = MeshMember(node, "beta").register()
        damaged = project()
        assert pushed(beta, [damaged])[0]["result"] == {"status": "created"}
        with closing(connect(node.db)) as db:
            db.execute("UPDATE projects SET stamp = 'damaged'")
        answers = pushed(beta, [project(), damaged, project()])
        created = {"status": "created"}
        assert [one.get("result") for one in answers] == [created, None, created]
        assert answers[1]["error"]["data"]["reason"] == "internal_error"
        assert answers[1]["error"]["data"]["id"] in node.log
        assert "TypeError" in node.log
