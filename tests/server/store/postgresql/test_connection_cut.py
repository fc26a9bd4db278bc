"""A connection that ends at any moment: who waits for its answers gets an error, never none."""

import random
import threading
from collections.abc import Iterator

import psycopg
import pytest

from server.domain.location import DatabaseUrl
from server.store.postgresql.connection import PgConnection
from tests.support.postgresql import database

CUTS = 60


@pytest.fixture
def url() -> Iterator[DatabaseUrl]:
    """A database with a node's tables."""
    with database() as made:
        yield made


def test_a_connection_that_the_server_ends_at_any_moment_raises_a_drivers_error(
    url: DatabaseUrl,
) -> None:
    """What the server says before it closes, and what libpq adds, are more answers than statements
    were sent; an error of another kind would leave its caller waiting for ever."""
    dice = random.Random(0)
    connection = PgConnection(url)
    reasons = set()
    with psycopg.connect(url, autocommit=True) as killer:
        for _ in range(CUTS):
            [pid] = connection.execute("SELECT pg_backend_pid()").fetchone()
            cut = threading.Timer(
                dice.uniform(0, 0.01), killer.execute, ["SELECT pg_terminate_backend(%s)", [pid]]
            )
            cut.start()
            with pytest.raises(psycopg.OperationalError) as error:
                _write_on(connection)
            reasons.add(error.value.sqlstate)
            assert connection.is_cut
            cut.join()
            connection.reopen()
    connection.close()
    assert "57P01" in reasons


def _write_on(connection: PgConnection) -> None:
    while True:
        connection.begin_writing()
        for stamp in range(3):
            connection.execute("UPDATE cluster SET stamp = ? WHERE id = 1", (stamp,))
        connection.execute("SELECT 1").fetchone()
        connection.note(4, "replica", 1)
        connection.commit()
