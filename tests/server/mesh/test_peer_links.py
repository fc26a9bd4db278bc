"""The tasks of the listed peers run where this process exchanges; else their channels are there."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from peers.signing import SigningKey
from server.mesh.peer_links import PeerLinks
from server.mesh.supervisor import Supervisor
from server.node import Node
from server.settings import Settings
from server.store import peers
from server.store.connection import Connection
from server.store.database import Database
from server.store.sqlite.migrate import prepare
from server.util.loops import Loops

AGENT = "aid://example.com/alpha@1.0.0"
BETA, GAMMA = "aid://example.com/beta@1.0.0", "aid://example.com/gamma@1.0.0"
Play = Callable[[PeerLinks, Database], Awaitable[None]]


def with_links(folder: Path, play: Play) -> None:
    async def run() -> None:
        settings = Settings(db=folder / "node.db", agent_id=AGENT, repo="alpha")
        prepare(settings.db)
        database = Database(settings.db)
        await database.open(1)
        node = Node(AGENT, "alpha", True, True, SigningKey(bytes(32)))
        mesh = Supervisor(settings, database, node, Loops())
        await register(database, BETA)
        await play(mesh.links, database)
        await mesh.stop()
        await mesh.close()
        await database.close()

    asyncio.run(run())


async def register(database: Database, agent_id: str, *, cursor: int = 0) -> None:
    def put(db: Connection) -> None:
        peers.put(db, agent_id, "http://127.0.0.1:1", None, "verified", 1)
        peers.put_keys(db, agent_id, "secret", "key")
        peers.put_cursor(db, agent_id, cursor, 1)

    await database.write(lambda to: put(to.connection))


def test_a_process_that_does_not_exchange_has_channels_alone(tmp_path: Path) -> None:
    async def play(links: PeerLinks, database: Database) -> None:
        await links.match(exchanges=False)
        assert list(links.channels) == ["aid://example.com/beta"]
        assert links.nodes == [BETA]
        assert links.is_up("aid://example.com/beta")
        assert not links.tasks[BETA].running
        await register(database, GAMMA)
        assert await links.match(exchanges=True) is None
        assert list(links.tasks) == [BETA], "it does nothing for who thinks that they run"
        await links.match(exchanges=False)
        assert set(links.tasks) == {BETA, GAMMA}

    with_links(tmp_path, play)


def test_who_begins_to_exchange_goes_on_from_where_the_last_one_came(tmp_path: Path) -> None:
    async def play(links: PeerLinks, database: Database) -> None:
        await links.match(exchanges=False)
        await register(database, BETA, cursor=7)
        await links.begin()
        assert links.tasks[BETA].sender.cursor == 7
        assert links.tasks[BETA].running
        running = list(links.tasks[BETA].running)
        assert await links.match(exchanges=False) is None
        assert links.tasks[BETA].running == running
        await links.end()
        assert all(task.done() for task in running)
        assert links.channels == {}
        await links.match(exchanges=False)
        assert not links.tasks[BETA].running

    with_links(tmp_path, play)
