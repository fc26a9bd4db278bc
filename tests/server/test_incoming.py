"""What was fetched is taken in together, and each call answers for itself."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import ValidationError

from peers.signing import SigningKey
from schemas.sync import ContextSyncParams, SyncResult
from server.domain.errors import Conflict, NotFound
from server.incoming import Incoming
from server.methods import METHODS
from server.methods.base import Context, Method, Node
from server.store import changes, peers, projects
from server.store.database import Database, Transaction
from server.store.migrate import prepare
from server.store.peers import Peer

ALPHA, BETA = "aid://example.com/alpha@1.0.0", "aid://example.com/beta@1.0.0"
SOME_TIME = 1_700_000_000_000_000


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


def taken(path: Path, work: Callable[[Incoming, Database, Peer], Awaitable[None]]) -> None:
    """Do some work with what comes in from beta, a node of our own make."""

    def enter(transaction: Transaction) -> Peer:
        db = transaction.connection
        peers.put(db, BETA, "http://beta", "beta", "verified", 1)
        peers.put_keys(db, BETA, "secret", "key")
        found = peers.find(db, BETA)
        assert found is not None
        return found

    async def run() -> None:
        prepare(path)
        database = Database(path)
        await database.open(1)
        node = Node(ALPHA, "alpha", True, True, SigningKey(bytes(32)))
        await work(Incoming(database, node), database, await database.write(enter))
        await database.close()

    asyncio.run(run())


def test_what_is_refused_leaves_the_others(tmp_path: Path) -> None:
    async def work(incoming: Incoming, database: Database, beta: Peer) -> None:
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
            assert database.read(lambda db, at=project_id: projects.header(db, at))  # type: ignore[misc]

    taken(tmp_path / "node.db", work)


def test_what_fails_after_it_wrote_leaves_nothing_and_the_others_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(ctx: Context, params: ContextSyncParams) -> None:
        changes.put_meta(ctx.db, "left", "over")
        raise Conflict("too late")

    broken = Method("x", ContextSyncParams, SyncResult, "sync", run, "", writes=True)
    monkeypatch.setitem(METHODS, "x", broken)

    async def work(incoming: Incoming, database: Database, beta: Peer) -> None:
        breaks = packet(str(uuid4())) | {"method": "x"}
        outcomes = await incoming.take_all(beta, [project(), breaks, project()])
        assert [type(one) for one in outcomes] == [dict, Conflict, dict]
        assert database.read(lambda db: projects.headers_after(db, 0, "", 10))[1:]
        rows = database.read(lambda db: db.execute("SELECT * FROM meta WHERE name = 'left'"))
        assert rows.fetchall() == []
        with pytest.raises(Conflict):
            await incoming.take(beta, breaks)

    taken(tmp_path / "node.db", work)
