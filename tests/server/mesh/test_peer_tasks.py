"""Which changes a peer gets, and which tasks run for it."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from peers.signing import SigningKey
from server.mesh.clock_settling import ClockSettling
from server.mesh.handshake_client import HandshakeClient
from server.mesh.peer_tasks import PeerTasks, SharedParts
from server.methods.sync.composer import Composer
from server.node import Node
from server.rpc.sync_batch import SyncIntake
from server.settings import Settings
from server.store import changes
from server.store.database import Database
from server.store.group_commit import Transaction
from server.store.peers import Peer
from server.util.loops import Loops
from tests.support.located import location_of, prepare

ALPHA, BETA, GAMMA = (f"aid://example.com/{name}@1.0.0" for name in ("alpha", "beta", "gamma"))
MESH = Peer(BETA, "http://127.0.0.1:1", "beta", "verified", 1, 1, "secret", "key")
FOREIGN = Peer(BETA, "http://127.0.0.1:1", "beta", "unkeyed", 1, 1, None, None)


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        (MESH, ["project p", "contract own", "file own"]),
        (FOREIGN, ["project p", "contract own", "contract gamma"]),
    ],
)
def test_a_page_has_what_concerns_the_peer_and_projects_first(
    tmp_path: Path, peer: Peer, expected: list[str]
) -> None:
    """A mesh peer gets what was written here, a foreign peer all but its own and files."""

    async def read(shared: SharedParts) -> None:
        shared.settling.settled.set()
        page = await PeerTasks(shared, peer).load(0)
        assert [f"{name.entity} {name.entity_id}" for name in page.names] == expected
        assert (page.cursor, page.more) == (5, False)

    with_changes(tmp_path, read)


def test_a_mesh_peer_gets_nothing_before_the_clocks_have_settled(tmp_path: Path) -> None:
    async def wait(shared: SharedParts) -> None:
        loading = asyncio.create_task(PeerTasks(shared, MESH).load(0))
        await asyncio.sleep(0)
        assert not loading.done()
        shared.settling.settled.set()
        assert (await loading).cursor == 5

    with_changes(tmp_path, wait)


def test_a_foreign_peer_gets_no_mail_and_no_comparison(tmp_path: Path) -> None:
    async def begin(shared: SharedParts) -> None:
        for peer, names in (
            (MESH, ["comparison", "mail", "sender"]),
            (FOREIGN, ["foreign", "sender"]),
        ):
            tasks = PeerTasks(shared, peer)
            tasks.start()
            assert sorted(task.get_name() for task in tasks.running) == [
                f"cacp-{name}" for name in names
            ]
            await tasks.stop()
            assert tasks.running == []

    with_changes(tmp_path, begin)


def with_changes(folder: Path, use: Callable[[SharedParts], Any]) -> None:
    """Call `use` beside a database in which this node, the peer and a third node have written."""

    async def run() -> None:
        settings = Settings(db=folder / "node.db", agent_id=ALPHA, repo="alpha")
        prepare(settings.db)
        database = Database(location_of(settings.db))
        await database.open(1)
        node = Node(ALPHA, "alpha", True, True, SigningKey(b"k" * 32))
        rows = (
            ("contract", "own", ALPHA),
            ("contract", "beta", BETA),
            ("contract", "gamma", GAMMA),
            ("file", "own", ALPHA),
            ("project", "p", ALPHA),
        )
        for entity, entity_id, author in rows:
            await database.write(partial(append, entity, entity_id, author))
        client = cast(Any, None)
        shared = SharedParts(
            database,
            node,
            Loops(),
            client,
            Composer(database, node),
            SyncIntake(database, node),
            ClockSettling(database, node),
            HandshakeClient(settings, database, node, client),
            60,
        )
        await use(shared)
        await database.close()

    asyncio.run(run())


def append(entity: str, entity_id: str, author: str, transaction: Transaction) -> None:
    changes.append(
        transaction.connection,
        at=1,
        origin=author,
        actor=author,
        action="test",
        entity=entity,
        entity_id=entity_id,
        project_id="p",
        outcome="new",
    )
