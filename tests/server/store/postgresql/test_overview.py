"""What is shown of a shared database."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from server.domain.location import DatabaseUrl
from server.store.postgresql import duties, overview, replicas
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.replicas import Announced
from tests.support.postgresql import database


@pytest.fixture
def db() -> Iterator[PgConnection]:
    """A connection to a database with the tables."""
    with database() as url, closing(overview.connect(url)) as connection:
        yield connection


def test_an_unused_database_has_no_replicas(db: PgConnection) -> None:
    seen = overview.look(db)
    assert (seen.stamp, seen.holder, seen.replicas) == (0, None, [])
    assert seen.connections == 1
    assert int(seen.server.partition(".")[0]) * 10_000 <= db.server_version


def test_replicas_are_seen_and_which_of_them_has_the_duty(db: PgConnection) -> None:
    for name in ("a", "b"):
        replicas.beat(db, Announced(name, f"127.0.0.1:{name}", "1", "baseline", "ready"))
    assert duties.take(db, None, "b") == 1
    db.execute("BEGIN IMMEDIATE")
    db.note(7, "a", 1)
    db.commit()
    seen = overview.look(db)
    assert {one.address for one in seen.replicas} == {"127.0.0.1:a", "127.0.0.1:b"}
    assert seen.holder == "b"
    assert seen.stamp == 7
    duties.release(db, "b", 1)
    assert overview.look(db).holder is None


def test_a_database_without_the_tables_is_an_error(url: DatabaseUrl) -> None:
    with closing(overview.connect(url)) as connection, pytest.raises(psycopg.Error):
        overview.look(connection)
