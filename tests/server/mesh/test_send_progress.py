"""How far each peer is told is on disk, and what is written there reaches the senders."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from peers.digest import Name
from peers.sender import Sender, UndeliveredEntity
from server.mesh.send_progress import SHOWN, SendProgress, undelivered_of
from server.store import peers, undelivered
from server.store.database import Database
from tests.support.located import location_of, prepare

BETA = "aid://example.com/beta@1.0.0"
ONE, OTHER = Name("contract", "p", "one"), Name("context", "p", "other")
Story = Callable[[Database], Awaitable[None]]


def sender(cursor: int = 0) -> Sender:
    async def never(_: object) -> None:
        raise AssertionError

    return Sender(
        BETA,
        cursor,
        load=never,  # type: ignore[arg-type]
        deliver=never,
        next_commit=asyncio.Event,
        returned=lambda: None,
    )


def on_disk(path: Path, story: Story) -> None:
    async def run() -> None:
        prepare(path)
        database = Database(location_of(path))
        await database.open(1)
        await database.write(
            lambda to: peers.put(to.connection, BETA, "http://x", None, "verified", 1)
        )
        try:
            await story(database)
        finally:
            await database.close()

    asyncio.run(run())


async def begun(database: Database, cursor: int = 0) -> tuple[SendProgress, Sender]:
    progress, one = SendProgress(database), sender(cursor)
    await progress.begin(one)
    return progress, one


def test_a_restart_goes_on_where_it_was_with_what_was_not_taken(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        progress, one = await begun(database)
        one.cursor, one.undelivered = (
            9,
            {ONE: UndeliveredEntity(4, "why", 2, due=5.0), OTHER: UndeliveredEntity(7, "no", 1)},
        )
        await progress.keep({BETA: one})
        commits = database.commits
        await progress.keep({BETA: one})
        assert database.commits == commits, "nothing is new"
        [peer] = await database.read(peers.every)
        assert peer.cursor == 9
        _, again = await begun(database, peer.cursor)
        assert again.undelivered == {
            ONE: UndeliveredEntity(4, "why", 2),
            OTHER: UndeliveredEntity(7, "no", 1),
        }
        assert again.confirmed == 3, "since then the first of it waits"
        one.undelivered = {OTHER: UndeliveredEntity(7, "no", 2)}
        await progress.keep({BETA: one})
        assert await database.read(undelivered.every) == {
            BETA: {OTHER: UndeliveredEntity(7, "no", 2)}
        }

    on_disk(tmp_path / "node.db", story)


def test_what_an_operator_drops_is_tried_no_more(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        progress, one = await begun(database)
        one.undelivered = {
            ONE: UndeliveredEntity(4, "why", 2),
            OTHER: UndeliveredEntity(7, "no", 1),
        }
        await progress.keep({BETA: one})
        await database.write(lambda to: undelivered.drop(to.connection, BETA, "one"))
        await progress.keep({BETA: one})
        assert set(one.undelivered) == {OTHER}
        one.undelivered = {
            **one.undelivered,
            ONE: UndeliveredEntity(11, "why", 1),
        }
        await progress.keep({BETA: one})
        assert set((await database.read(undelivered.every))[BETA]) == {ONE, OTHER}, "it has changed"

    on_disk(tmp_path / "node.db", story)


def test_what_is_dropped_while_it_is_tried_stays_dropped(tmp_path: Path) -> None:
    """The try ends after the drop, and before the sender has heard of it."""

    async def story(database: Database) -> None:
        progress, one = await begun(database)
        one.undelivered = {ONE: UndeliveredEntity(4, "why", 2)}
        await progress.keep({BETA: one})
        again = {ONE: UndeliveredEntity(4, "why", 3)}
        await database.write(lambda to: undelivered.drop(to.connection, BETA, "one"))
        await database.write(lambda to: undelivered.put(to.connection, BETA, again))
        assert await database.read(undelivered.every) == {}
        await progress.keep({BETA: one})
        one.undelivered = again
        await progress.keep({BETA: one})
        await progress.keep({BETA: one})
        assert (one.undelivered, await database.read(undelivered.every)) == ({}, {})

    on_disk(tmp_path / "node.db", story)


def test_what_a_peer_asked_for_in_vain_is_held(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        progress, one = await begun(database, 5)
        noted = {ONE: "can't be signed"}
        await database.write(lambda to: undelivered.note(to.connection, BETA, noted))
        await progress.keep({BETA: one})
        assert one.undelivered == {ONE: UndeliveredEntity(6, "can't be signed")}
        [shown] = undelivered_of(one)
        assert shown == {
            "entity": "contract",
            "projectId": "p",
            "entityId": "one",
            "reason": "can't be signed",
            "tries": 0,
        }
        one.undelivered = {
            Name("contract", "p", str(at)): UndeliveredEntity(1, "") for at in range(SHOWN + 1)
        }
        assert len(undelivered_of(one)) == SHOWN

    on_disk(tmp_path / "node.db", story)
