"""A commit whose answer was lost: what became of it is found out, or said not to be known."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from cli.local_postgresql import LocalPostgresql
from server.domain.errors import OutcomeUnknown, Unavailable
from server.domain.location import DatabaseUrl
from server.store import changes
from server.store.database import Database
from server.store.opening import prepare
from server.store.postgresql import storage
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.errors import NotReplicated, ServerSilent
from tests.support.postgresql import database, execute, own_server
from tests.support.waiting import eventually


@pytest.fixture
def url() -> Iterator[DatabaseUrl]:
    with database() as made:
        yield made


def lose_second(patch: pytest.MonkeyPatch, *, sent: bool) -> None:
    """The connection ends before the answer to the second commit comes, which was `sent` or not."""
    commit, count = PgConnection.commit, 0

    def cut(self: PgConnection) -> None:
        nonlocal count
        count += 1
        if count != 2 or sent:
            commit(self)
        if count == 2:
            self.cut()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    patch.setattr(PgConnection, "commit", cut)


async def written(url: DatabaseUrl, value: str) -> None:
    """Write a value as a replica does, after another one."""
    opened = Database(url)
    await opened.open(0)
    try:
        await opened.write(lambda done: changes.put_meta(done.connection, "value", "before"))
        await opened.write(lambda done: changes.put_meta(done.connection, "value", value))
    finally:
        await opened.close()


def value(url: str) -> str:
    [[found]] = execute(url, "SELECT value FROM meta WHERE name = 'value'")
    return str(found)


def test_a_commit_that_took_place_is_acknowledged(
    url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_second(monkeypatch, sent=True)
    asyncio.run(written(url, "after"))
    assert value(url) == "after"


def test_a_commit_that_did_not_take_place_is_refused(
    url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_second(monkeypatch, sent=False)
    with pytest.raises(Unavailable) as refusal:
        asyncio.run(written(url, "after"))
    assert not isinstance(refusal.value, OutcomeUnknown)
    assert refusal.value.data["reason"] == "storage_away"
    assert value(url) == "before"


def test_while_nobody_can_be_asked_it_is_not_known(
    url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "LOOKUP_SECONDS", 0)
    lose_second(monkeypatch, sent=True)
    with pytest.raises(OutcomeUnknown) as refusal:
        asyncio.run(written(url, "after"))
    assert refusal.value.data["reason"] == "outcome_unknown"


# --- with a standby -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def primary() -> Iterator[LocalPostgresql]:
    """A server whose commits wait for a standby that is not there."""
    with own_server() as server:
        prepare(server.url())
        server.configure(synchronous_standby_names="absent")
        server.restart()
        yield server


def committing(server: LocalPostgresql) -> PgConnection:
    connection = PgConnection(server.url(), seconds=1)
    connection.begin_writing()
    connection.execute("INSERT INTO meta VALUES ('value', 'x') ON CONFLICT DO NOTHING")
    connection.note(1, "replica", 1)
    return connection


def test_a_commit_does_not_count_as_done_when_its_time_is_over(
    primary: LocalPostgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL would answer a commit whose wait was canceled as if it were done."""
    monkeypatch.setattr("server.store.postgresql.connection._LIMITS", (300, 300, 300))
    connection = committing(primary)
    with pytest.raises(ServerSilent):
        connection.commit()
    release(primary)


def test_a_wait_that_is_canceled_is_no_acknowledgement(primary: LocalPostgresql) -> None:
    connection = committing(primary)
    canceled = asyncio.run(canceled_commit(primary, connection))
    assert isinstance(canceled, NotReplicated)
    connection.close()


async def canceled_commit(server: LocalPostgresql, connection: PgConnection) -> object:
    committed = asyncio.create_task(asyncio.to_thread(connection.commit))
    await asyncio.to_thread(release, server)
    await asyncio.wait([committed])
    return committed.exception()


def release(server: LocalPostgresql) -> None:
    """Cancel what waits for the standby, as an administrator does."""
    waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    eventually(lambda: execute(server.url(), f"SELECT pg_cancel_backend(pid) {waiting}"))
    eventually(lambda: not execute(server.url(), f"SELECT 1 {waiting}"))
