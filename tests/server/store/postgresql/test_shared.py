"""A connection beside those of callers, and the clock of the server."""

import asyncio
import time
from contextlib import closing

import psycopg
import pytest

from server.domain.errors import Unavailable
from server.domain.location import DatabaseUrl
from server.store.database import Database
from server.store.group_commit import Transaction
from server.store.postgresql import duties
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.migrate import prepare
from server.store.postgresql.shared import PgShared
from server.util.duty import HeldDuty, acting


def test_the_server_s_clock_is_read_with_the_last_stamp(url: str) -> None:
    prepare(url)
    last = prepare(url).last_stamp
    shared = PgShared("r", lambda: PgConnection(url))
    with closing(PgConnection(url)) as db:
        assert shared.look(db) == last
    assert abs(shared.now() - time.time_ns() // 1000) < 1_000_000


def test_a_cut_connection_is_opened_again(url: str) -> None:
    prepare(url)

    async def play() -> None:
        shared = PgShared("r", lambda: PgConnection(url))
        lease, _ = await shared.aside(duties.look)
        assert lease is None
        with closing(psycopg.connect(url, autocommit=True)) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        assert (await shared.aside(duties.look))[0] is None
        await shared.close()

    asyncio.run(play())


def test_a_write_in_the_name_of_a_lost_duty_writes_nothing(url: str) -> None:
    prepared = prepare(url)

    def note(name: str, to: Transaction) -> None:
        to.connection.execute("INSERT INTO meta (name, value) VALUES (?, '')", (name,))

    async def play() -> set[str]:
        database = Database(DatabaseUrl(url))
        await database.open(prepared.last_stamp)
        shared = database.storage.shared
        assert shared is not None
        epoch = await shared.aside(lambda db: duties.take(db, None, shared.replica))
        assert epoch == 1
        duty = HeldDuty(shared.replica, 1, 0, lambda: 0)
        with acting(duty):
            await database.write(lambda to: note("held", to))
        await shared.aside(lambda db: duties.release(db, shared.replica, 1))
        await shared.aside(lambda db: duties.take(db, duties.look(db)[0], "another"))
        with acting(duty), pytest.raises(Unavailable) as lost:
            await database.write(lambda to: note("lost", to))
        assert lost.value.data["reason"] == "duty_lost"
        await database.write(lambda to: note("of a caller", to))
        names = await database.read(
            lambda db: {row[0] for row in db.execute("SELECT name FROM meta").fetchall()}
        )
        await database.close()
        return names

    names = asyncio.run(play())
    assert {"held", "of a caller"} <= names
    assert "lost" not in names
