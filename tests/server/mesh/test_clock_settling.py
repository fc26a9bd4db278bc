"""A node sends what it has stamped once clocks were compared; scenarios/test_clocks.py has more."""

import asyncio
from pathlib import Path

from peers.clock import Reading
from peers.signing import SigningKey
from server.mesh.clock_settling import ClockSettling
from server.node import Node
from server.store.database import Database
from tests.support.located import location_of, prepare
from tests.support.node import AGENT
from tests.support.waiting import PATIENCE


def test_it_waits_for_the_clocks_and_then_ends(tmp_path: Path) -> None:
    path = tmp_path / "cacp.db"
    node = Node(AGENT, "alpha", True, True, SigningKey(bytes(32)))

    async def play() -> list[bool]:
        database = Database(location_of(path))
        await database.open(prepare(path).last_stamp)
        settling = ClockSettling(database, node)
        database.clock.sends = False
        turns = settling.run()
        await anext(turns)
        before = settling.settled.is_set(), database.clock.sends
        sent = database.clock.steady()
        database.clock.judge(["peer"])
        settling.meet()
        settling.heard_time("peer", Reading(sent, database.now(), database.clock.steady()))
        async with asyncio.timeout(PATIENCE):
            async for _ in turns:
                pass
        after = settling.settled.is_set(), database.clock.sends
        await database.close()
        return [*before, *after]

    assert asyncio.run(play()) == [False, False, True, True]
