"""What keeps a node equal with its peers can be begun, ended and begun again."""

import asyncio
from pathlib import Path

from peers.signing import SigningKey
from server.mesh.supervisor import Supervisor
from server.node import Node
from server.settings import Settings
from server.store.database import Database
from server.store.sqlite.migrate import prepare
from server.util.loops import Loops

AGENT = "aid://example.com/alpha@1.0.0"


def test_it_runs_between_each_start_and_stop(tmp_path: Path) -> None:
    async def play() -> None:
        settings = Settings(db=tmp_path / "node.db", agent_id=AGENT, repo="alpha")
        prepare(settings.db)
        database = Database(settings.db)
        await database.open(1)
        node = Node(AGENT, "alpha", True, True, SigningKey(bytes(32)))
        loops = Loops()
        mesh = Supervisor(settings, database, node, loops)
        await mesh.start()
        for _ in range(2):
            settling = mesh._shared.settling
            assert not mesh.links.exchanges
            await mesh.exchange.start()
            assert mesh.links.exchanges
            assert mesh._shared.settling is not settling, "clocks are compared anew"
            names = {task.get_name() for task in asyncio.all_tasks()}
            assert {"cacp-cursors", "cacp-deferred", "cacp-digests", "cacp-joining"} <= names
            await mesh.exchange.stop()
            assert not {task.get_name() for task in asyncio.all_tasks()} & {"cacp-cursors"}
        await mesh.stop()
        await mesh.close()
        await database.close()
        assert loops.failures.total() == 0

    asyncio.run(play())
