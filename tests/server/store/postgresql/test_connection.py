"""Statements go without waiting for each other's answers, and none of their errors is lost."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from server.domain.location import DatabaseUrl
from server.store import projects
from server.store.postgresql import connection as module
from server.store.postgresql.connection import UNANSWERED_MAX, PgConnection, conninfo
from server.store.postgresql.errors import NodeMoved, ServerSilent
from server.store.projects import ProjectHeader
from server.store.sql import SQL
from tests.support.postgresql import database, execute
from tests.support.waiting import PATIENCE, eventually

PUT = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = ''"
INSERT = "INSERT INTO meta (name, value) VALUES (?, ?)"
WRONG = "UPDATE meta SET nonsense = ?"
READ = "SELECT value FROM meta WHERE name = ?"


@pytest.fixture(scope="module")
def url() -> Iterator[DatabaseUrl]:
    with database() as made:
        yield made


@pytest.fixture
def db(url: DatabaseUrl) -> Iterator[PgConnection]:
    """A connection to a node's tables."""
    with closing(PgConnection(url)) as connection:
        yield connection
        if not connection.is_cut:
            connection.roll_back()
    execute(url, "DELETE FROM meta WHERE name IN ('a', 'b', 'c')")


@pytest.fixture
def other(url: DatabaseUrl) -> Iterator[PgConnection]:
    with closing(PgConnection(url)) as connection:
        yield connection


@pytest.fixture
def settled(db: PgConnection, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many statements each wait for answers was for, from now on."""
    waits: list[int] = []
    settle = db.settle

    def counted() -> None:
        waits.append(len(db._sent))
        settle()

    monkeypatch.setattr(db, "settle", counted)
    return waits


def stamp_of(db: PgConnection) -> int:
    [[stamp]] = db.execute("SELECT stamp FROM cluster").fetchall()
    return int(stamp)


def setting(db: PgConnection, name: str) -> str:
    row = db.execute("SELECT current_setting(?)", (name,)).fetchone()
    assert row is not None
    return str(row[0])


# --- statements without answers ------------------------------------------------------------------


def test_only_reads_and_the_commit_wait(db: PgConnection, settled: list[int]) -> None:
    db.begin_writing()
    settled.clear()
    for name in ("a", "b", "c"):
        db.execute(PUT, (name, "1"))
        db.execute("UPDATE meta SET value = '2' WHERE name = ?", (name,))
    assert settled == []
    assert db.execute(READ, ("b",)).fetchone() == ("2",)
    assert len(settled) == 1
    db.note(stamp_of(db) + 1, "replica", 1)
    waits = len(settled)
    db.commit()
    assert len(settled) == waits + 1


def test_a_statement_alone_is_a_transaction(db: PgConnection, other: PgConnection) -> None:
    db.execute(INSERT, ("a", "1"))
    assert other.execute(READ, ("a",)).fetchone() == ("1",)
    assert not db.in_transaction
    with pytest.raises(psycopg.errors.UndefinedColumn):
        db.execute(WRONG, ("x",))
    assert db.execute(READ, ("a",)).fetchone() == ("1",)


@pytest.mark.parametrize("at", range(4))
def test_the_first_error_among_many_is_raised_and_the_connection_goes_on(
    db: PgConnection, other: PgConnection, at: int
) -> None:
    db.begin_writing()
    for number in range(4):
        db.execute(PUT, ("a", f"{number}"))
        if number == at:
            db.execute(WRONG, ("x",))
    db.execute("UPDATE nowhere SET x = 1")
    with pytest.raises(psycopg.errors.UndefinedColumn, match="nonsense"):
        db.execute(READ, ("a",))
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        db.execute(READ, ("a",))
    assert not db.is_cut
    db.roll_back()
    assert other.execute(READ, ("a",)).fetchone() is None
    db.begin_writing()
    db.execute(PUT, ("a", "again"))
    assert db.execute(READ, ("a",)).fetchone() == ("again",)


def test_an_error_that_nobody_waited_for_fails_the_commit(
    db: PgConnection, other: PgConnection
) -> None:
    before = stamp_of(db)
    db.begin_writing()
    db.execute(PUT, ("a", "1"))
    db.execute(WRONG, ("x",))
    db.note(before + 1, "replica", 1)
    with pytest.raises(psycopg.errors.UndefinedColumn):
        db.commit()
    db.roll_back()
    assert other.execute(READ, ("a",)).fetchone() is None
    assert stamp_of(other) == before


def test_a_failed_transaction_is_never_said_to_be_committed(
    db: PgConnection, other: PgConnection
) -> None:
    """PostgreSQL answers its COMMIT without an error, having rolled it back."""
    db.begin_writing()
    db.execute(PUT, ("a", "1"))
    with pytest.raises(psycopg.errors.UndefinedTable):
        db.execute("SELECT * FROM nowhere")
    with pytest.raises(psycopg.Error):
        db.commit()
    db.roll_back()
    assert other.execute(READ, ("a",)).fetchone() is None


def test_neither_side_waits_for_the_other_with_full_buffers(
    db: PgConnection, settled: list[int]
) -> None:
    db.begin_writing()
    settled.clear()
    for _ in range(3 * UNANSWERED_MAX):
        db.execute(PUT, ("a", "x" * 1_000))
    assert len(settled) >= 2
    assert max(settled) <= UNANSWERED_MAX + 1
    large = "y" * 8_000_000
    assert db.execute("SELECT CAST(? AS TEXT), CAST(? AS TEXT)", (large, large)).fetchone() == (
        large,
        large,
    )


# --- prepared statements -------------------------------------------------------------------------


def prepared(db: PgConnection) -> list[str]:
    rows = db.execute("SELECT statement FROM pg_prepared_statements").fetchall()
    return [text for (text,) in rows]


def test_a_statement_is_prepared_once(db: PgConnection) -> None:
    for _ in range(3):
        db.execute(READ, ("a",))
        db.begin_writing()
        db.execute(READ, ("a",))
        db.roll_back()
    assert prepared(db).count("SELECT value FROM meta WHERE name = $1") == 1


def test_it_is_prepared_again_after_it_was_refused(db: PgConnection) -> None:
    """Such as one whose table another transaction has made meanwhile."""
    for _ in range(2):
        with pytest.raises(psycopg.errors.UndefinedTable):
            db.execute("SELECT count(*) FROM later")
    db.execute("CREATE TEMPORARY TABLE later (x INT)")
    assert db.execute("SELECT count(*) FROM later").fetchone() == (0,)


def test_what_was_sent_after_a_failure_is_prepared_again(db: PgConnection) -> None:
    """The server has skipped it."""
    db.begin_writing()
    db.execute(WRONG, ("x",))
    db.execute("UPDATE meta SET value = 'late' WHERE name = ?", ("a",))
    with pytest.raises(psycopg.errors.UndefinedColumn):
        db.execute("SELECT 'skipped' WHERE ? = ''", ("",))
    db.roll_back()
    db.begin_writing()
    db.execute(PUT, ("a", "1"))
    db.execute("UPDATE meta SET value = 'late' WHERE name = ?", ("a",))
    assert db.execute(READ, ("a",)).fetchone() == ("late",)
    assert db.execute("SELECT 'skipped' WHERE ? = ''", ("",)).fetchone() == ("skipped",)


def test_a_value_that_is_refused_leaves_the_connection(db: PgConnection) -> None:
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        db.execute("SELECT CAST(? AS BIGINT)", ("no number",))
    with pytest.raises(TypeError):
        db.execute("SELECT CAST(? AS TEXT)", ([],))
    with pytest.raises(KeyError):
        db.execute("SELECT CAST(:name AS TEXT)", {})
    assert db.execute("SELECT CAST(:name AS TEXT)", {"name": "x"}).fetchone() == ("x",)


# --- transactions --------------------------------------------------------------------------------


def test_one_writes_at_a_time_and_learns_the_last_stamp(
    db: PgConnection, other: PgConnection
) -> None:
    stamp = db.begin_writing()
    begun = threading.Event()
    later: list[int] = []

    def write() -> None:
        begun.set()
        later.append(other.begin_writing())
        other.roll_back()

    waiting = threading.Thread(target=write)
    waiting.start()
    assert begun.wait(PATIENCE)
    db.execute(PUT, ("a", "1"))
    db.note(stamp + 5, "replica", 3)
    assert later == []
    db.commit()
    waiting.join(PATIENCE)
    assert later == [stamp + 5]
    numbers = db.execute("SELECT number FROM commits WHERE replica = 'replica'").fetchall()
    assert numbers == [(3,)]


def test_the_words_of_sqlite_for_transactions(db: PgConnection, other: PgConnection) -> None:
    db.execute("BEGIN IMMEDIATE")
    assert db.in_transaction
    db.execute(PUT, ("a", "1"))
    db.execute("ROLLBACK")
    assert not db.in_transaction
    assert other.execute(READ, ("a",)).fetchone() is None
    db.execute("BEGIN IMMEDIATE")
    db.execute(PUT, ("a", "1"))
    db.execute("COMMIT")
    assert other.execute(READ, ("a",)).fetchone() == ("1",)


def test_a_read_transaction_is_one_snapshot_and_writes_nothing(
    db: PgConnection, other: PgConnection
) -> None:
    db.begin_reading()
    assert db.execute(READ, ("a",)).fetchone() is None
    other.execute(INSERT, ("a", "1"))
    assert db.execute(READ, ("a",)).fetchone() is None
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        db.execute("INSERT INTO meta (name, value) VALUES ('b', '') RETURNING name")
    db.roll_back()
    assert db.execute(READ, ("a",)).fetchone() == ("1",)


def test_a_transaction_that_nobody_began_is_not_ended(db: PgConnection, settled: list[int]) -> None:
    db.roll_back()
    assert settled == []


def test_a_database_that_the_node_has_left_takes_no_writes(db: PgConnection) -> None:
    [[stamp]] = db.execute("SELECT stamp FROM cluster").fetchall()
    db.execute("DELETE FROM cluster")
    try:
        with pytest.raises(NodeMoved):
            db.begin_writing()
        db.roll_back()
    finally:
        db.execute("INSERT INTO cluster VALUES (1, ?)", (stamp,))


def test_statements_that_may_change_something_are_counted(db: PgConnection) -> None:
    counts = [db.total_changes]

    def ran(sql: str, *values: Any) -> int:
        db.execute(sql, values)
        counts.append(db.total_changes)
        return counts[-1] - counts[-2]

    assert ran(INSERT, "a", "1") == 1
    db.begin_writing()
    assert ran(READ, "a") == 0
    assert ran(INSERT, "b", "1") == 1
    assert ran(SQL.membership.sql.replace(":project_id", "?"), "none") == 0
    assert ran("UPDATE meta SET value = '2' WHERE name = 'none'") == 1
    db.executemany(PUT, [("b", ""), ("c", "")])
    assert db.total_changes == counts[-1] + 2


def test_rows_that_were_changed_are_known_in_a_transaction(db: PgConnection) -> None:
    db.begin_writing()
    changed = db.execute("UPDATE meta SET value = value WHERE name IN (?, ?)", ("a", "b"))
    db.execute(INSERT, ("c", "1"))
    assert changed.rowcount == 0
    assert bool(SQL.put_meta(db, name="c", value="2"))
    assert db.execute("DELETE FROM meta WHERE name = 'c'").rowcount == 1


def test_one_cursor_reads_kept_rows_again_and_again(db: PgConnection) -> None:
    project = "f0ebc7e6-3b58-4d02-abb1-b63e1e0ba7ac"
    db.begin_writing()
    projects.insert(db, ProjectHeader(project, "Auth", "", "planning", "any", 1, 1), [])
    db.note(stamp_of(db) + 1, "replica", 1)
    db.commit()
    db.begin_writing()
    cursor = db.cursor()
    for _ in range(3):
        cursor.execute(SQL.membership.sql, {"project_id": project})
        assert cursor.fetchone()[0] == "Auth"
        assert cursor.fetchone() is None
    cursor.execute(INSERT, ("a", ""))
    assert (cursor.rowcount, cursor.fetchall()) == (1, [])
    cursor.execute("UPDATE meta SET value = 'x' WHERE name IN ('a', 'b')")
    assert cursor.rowcount == 1


# --- limits, and connections that end -------------------------------------------------------------


def test_limits_on_time_hold_everywhere(db: PgConnection) -> None:
    limits = {
        "lock_timeout": "7s",
        "statement_timeout": "8s",
        "idle_in_transaction_session_timeout": "5s",
    }
    for begin in (lambda: None, db.begin_writing, db.begin_reading):
        begin()
        assert {name: setting(db, name) for name in limits} == limits
        db.roll_back()


def test_who_waits_too_long_for_the_lock_is_told(
    db: PgConnection, other: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.begin_writing()
    monkeypatch.setattr(module, "_LIMITS", (50, 8_000, 5_000))
    with pytest.raises(psycopg.errors.LockNotAvailable):
        other.begin_writing()
    other.roll_back()
    db.roll_back()
    assert other.begin_writing() == stamp_of(db)
    other.roll_back()


def test_who_holds_the_lock_without_a_word_loses_it(
    db: PgConnection, other: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a process that was stopped: the others go on without it."""
    with monkeypatch.context() as patched:
        patched.setattr(module, "_LIMITS", (7_000, 8_000, 50))
        db.begin_writing()
        db.execute(PUT, ("a", "lost"))
    assert other.begin_writing() == stamp_of(other)
    other.roll_back()
    with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
        db.execute(READ, ("a",))
    assert db.is_cut
    assert other.execute(READ, ("a",)).fetchone() is None


def test_a_server_that_says_nothing_is_given_up(url: DatabaseUrl, other: PgConnection) -> None:
    """Its own limits end a statement, unless it is stopped or its network is gone."""
    other.begin_writing()
    connection = PgConnection(url, seconds=0.1)
    with pytest.raises(ServerSilent, match=r"0\.1 seconds"):
        connection.begin_writing()
    assert connection.is_cut
    with pytest.raises(psycopg.OperationalError, match="closed"):
        connection.execute("SELECT 1")
    connection.roll_back()
    assert not connection.in_transaction
    other.roll_back()
    connection.reopen()
    assert connection.begin_writing() == stamp_of(other)
    connection.close()


def test_a_server_that_takes_connections_and_says_nothing_is_given_up(
    url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        with pytest.raises(psycopg.OperationalError):
            PgConnection(f"postgresql://127.0.0.1:{port}/none")


def test_a_connection_that_was_ended_is_opened_anew(db: PgConnection, url: DatabaseUrl) -> None:
    db.begin_writing()
    db.execute(PUT, ("a", "lost"))
    end(db, url)
    with pytest.raises(psycopg.OperationalError):
        db.execute(READ, ("a",))
    assert db.is_cut
    db.roll_back()
    db.reopen()
    assert db.execute(READ, ("a",)).fetchone() is None
    db.begin_writing()
    db.execute(PUT, ("a", "kept"))
    assert db.execute(READ, ("a",)).fetchone() == ("kept",)


def end(db: PgConnection, url: DatabaseUrl) -> None:
    """End a connection, and wait until the server has."""
    pid = db._pg.backend_pid
    execute(url, f"SELECT pg_terminate_backend({pid})")
    eventually(lambda: not execute(url, f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"))


def test_a_server_that_is_not_there(url: DatabaseUrl) -> None:
    with pytest.raises(psycopg.OperationalError, match="refused"):
        PgConnection("postgresql://127.0.0.1:9/none")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        PgConnection(f"{url}_none")


def test_a_closed_connection_holds_nothing(url: DatabaseUrl) -> None:
    connection = PgConnection(f"{url}?application_name=closed")
    shown = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'closed'"
    assert execute(url, shown)
    connection.close()
    eventually(lambda: not execute(url, shown))
    connection.close()


def test_the_servers_version(db: PgConnection) -> None:
    assert db.server_version >= 140_000
    assert str(db.server_version) == setting(db, "server_version_num")


# --- where to connect ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", {"connect_timeout": "5", "application_name": "cacp", "keepalives_count": "3"}),
        (
            "?connect_timeout=9&application_name=x",
            {"connect_timeout": "9", "application_name": "x"},
        ),
    ],
)
def test_a_dead_server_is_noticed_unless_the_url_says_how(
    given: str, expected: dict[str, str]
) -> None:
    parts = conninfo_to_dict(conninfo(f"postgresql://127.0.0.1/x{given}").decode())
    assert expected.items() <= parts.items()
    assert parts["client_encoding"] == "UTF8"


def test_of_several_servers_the_one_that_takes_writes() -> None:
    one = conninfo_to_dict(conninfo("postgresql://a/x").decode())
    assert "target_session_attrs" not in one
    several = conninfo_to_dict(conninfo("postgresql://a,b/x").decode())
    assert several["target_session_attrs"] == "read-write"
    any_of = conninfo_to_dict(conninfo("postgresql://a,b/x?target_session_attrs=any").decode())
    assert any_of["target_session_attrs"] == "any"


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(psycopg.ProgrammingError):
        conninfo("postgresql://127.0.0.1/x?no_such_option=1")
