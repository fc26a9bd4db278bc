"""Which servers and databases can hold a node."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from server.domain.errors import Unavailable
from server.store.postgresql import fitness
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.fitness import (
    check_may_create,
    check_may_write,
    check_server,
    tables,
)
from server.store.postgresql.migrate import prepare


@pytest.fixture
def db(url: str) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def test_a_usual_database_is_fit(url: str) -> None:
    """Whichever connection asks."""
    with closing(PgConnection(url)) as ours, psycopg.connect(url, autocommit=True) as theirs:
        for db in (ours, theirs):
            check_server(db)
            check_may_create(db)
            check_may_write(db)
            assert tables(db) == set()


def test_an_old_server_is_refused(
    db: "psycopg.Connection[tuple[object, ...]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitness, "OLDEST", 990_000)
    with pytest.raises(ValueError, match=r"The server is PostgreSQL \d+\.\d+.*: a node needs 14"):
        check_server(db)


def test_another_encoding_is_refused(url: str) -> None:
    name = f"{url.rpartition('/')[2]}_ascii"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(
            f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'"
            " TEMPLATE template0".encode()
        )
        try:
            with pytest.raises(ValueError, match=f"{name} has the encoding SQL_ASCII.* needs UTF8"):
                prepare(f"{url}_ascii")
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_a_database_that_takes_no_writes_is_unavailable(
    db: "psycopg.Connection[tuple[object, ...]]",
) -> None:
    db.execute("SET default_transaction_read_only = on")
    with pytest.raises(Unavailable) as refused:
        check_server(db)
    assert refused.value.data["reason"] == "storage_read_only"


def test_a_user_without_a_schema_is_refused(
    db: "psycopg.Connection[tuple[object, ...]]",
) -> None:
    db.execute("SET search_path = nowhere")
    with pytest.raises(ValueError, match=r"No schema of the database .* can be used"):
        check_server(db)


def test_rights_are_asked_for_by_name(url: str) -> None:
    prepare(url)
    with psycopg.connect(url) as db:
        db.execute("CREATE ROLE cacp_test_reader")
        db.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO cacp_test_reader")
        db.execute("REVOKE CREATE ON SCHEMA public FROM public")
        db.execute("SET LOCAL ROLE cacp_test_reader")
        with pytest.raises(ValueError, match=r"cacp_test_reader may not create tables.*GRANT"):
            check_may_create(db)
        with pytest.raises(
            ValueError, match=r"may not read and write the table acp_audit and \d+ more\. GRANT"
        ):
            check_may_write(db)
        db.rollback()


def test_views_of_extensions_are_not_ours(
    db: "psycopg.Connection[tuple[object, ...]]",
) -> None:
    db.execute("CREATE TABLE kept (x INTEGER)")
    db.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    assert tables(db) == {"kept"}
