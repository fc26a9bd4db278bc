"""Comparing that does not make equal is said, and said to be over."""

import asyncio
from pathlib import Path

from structlog.testing import capture_logs

from peers.digest import Name
from peers.unequal import ROUNDS
from server.mesh.divergence import Divergence
from server.store import alarms, deferred
from server.store.database import Database
from tests.support.located import location_of, prepare

PEER = "aid://example.com/beta@1.0.0"
DIFFERS = {Name("context", "p", str(number)): ("1", "2") for number in range(5)}


def test_it_is_an_alarm_until_the_two_are_equal(tmp_path: Path) -> None:
    async def play() -> None:
        prepare(tmp_path / "cacp.db")
        database = Database(location_of(tmp_path / "cacp.db"))
        await database.open(1)
        divergence = Divergence(database, PEER)
        message = deferred.DeferredMessage(PEER, "m", "{}", "{}")
        await database.write(
            lambda to: deferred.put(to.connection, message, "stamp", "1", due=5, now=1)
        )
        waits = Name("context", "p", "1")
        with capture_logs() as lines:
            for _ in range(2 * ROUNDS):
                await divergence.note({waits: DIFFERS[waits]})
            assert await database.read(alarms.every) == [], (
                "what is deferred differs until it is due"
            )
            for _ in range(2 * ROUNDS):
                await divergence.note(DIFFERS)
            [alarm] = await database.read(alarms.every)
            assert (alarm.reason, alarm.about) == ("content_differs", "aid://example.com/beta")
            assert "context 0, context 2, context 3 and 1 more" in alarm.detail
            await divergence.note({})
            assert await database.read(alarms.every) == []
        assert [line["event"] for line in lines] == ["content_differs", "content_equal"]
        await database.close()

    asyncio.run(play())
