"""What is kept of rows that writers ask for is always what the database holds."""

import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any, NamedTuple

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from server.domain.identifiers import repo_id_for
from server.domain.lifecycle import Lifecycle
from server.domain.location import DatabaseUrl
from server.store import lifecycle, projects
from server.store.postgresql import row_cache
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.row_cache import ROWS_MAX, RowCache
from server.store.postgresql.statement import prepare
from server.store.projects import ProjectHeader, Repo
from server.store.sql import SQL, plain
from tests.support.postgresql import database
from tests.support.waiting import PATIENCE

PROJECT = "f0ebc7e6-3b58-4d02-abb1-b63e1e0ba7ac"
READ = frozenset({"projects", "repos"})
TABLES = ("projects", "repos", "changes")


Rows = dict[tuple[str, int], int]
"""The value of each row, by table and key; other rows are 0."""


class Turn(NamedTuple):
    """A transaction: which replica's, or None for a program beside; what it reads (a key) and
    writes (a table, a key, and whether there is such a row), and whether it is committed."""

    replica: int | None
    steps: list[int | tuple[str, int, bool]]
    is_committed: bool


KEYS = st.integers(0, 1)
TRANSACTIONS = st.lists(
    st.builds(
        Turn,
        st.sampled_from([0, 0, 1, None]),
        st.lists(KEYS | st.tuples(st.sampled_from(TABLES), KEYS, st.booleans()), max_size=5),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=500)
@given(TRANSACTIONS)
@example([Turn(0, [("repos", 0, True), 0], False), Turn(0, [0], True)])
def test_what_is_returned_is_what_the_tables_hold(transactions: list[Turn]) -> None:
    """Two replicas with a cache each take turns at the lock, with programs beside them."""
    caches = [RowCache(), RowCache()]
    tables, stamp, values = Rows(), 0, count(1)
    for replica, steps, is_committed in transactions:
        cache = None if replica is None else caches[replica]
        changed = dict(tables)
        if cache is not None:
            cache.begin(stamp)
        for step in steps:
            if not isinstance(step, int):
                table, key, exists = step
                if exists:
                    changed[table, key] = next(values)
                if cache is not None:
                    cache.wrote(frozenset({table}))
            elif cache is not None:
                now = [changed.get((table, step), 0) for table in sorted(READ)]
                kept = cache.find((step,))
                assert kept in (None, now)
                if kept is None:
                    cache.keep((step,), now, READ)
        if is_committed and changed != tables:
            tables, stamp = changed, stamp + 1
            if cache is not None:
                cache.committed(stamp)


def test_no_more_than_a_bound_is_kept() -> None:
    cache = RowCache()
    cache.begin(1)
    for key in range(ROWS_MAX + 1):
        cache.keep((key,), [key], READ)
    assert cache.find((0,)) is None
    assert cache.find((ROWS_MAX,)) == [ROWS_MAX]
    cache.wrote(frozenset({"repos"}))
    assert cache.find((ROWS_MAX,)) is None


def test_what_others_write_to_other_tables_costs_nothing() -> None:
    cache = RowCache()
    cache.begin(1)
    cache.keep((1,), ["x"], READ)
    cache.wrote(frozenset({"changes"}))
    cache.committed(2)
    cache.begin(2)
    assert cache.find((1,)) == ["x"]


# --- on a real server -----------------------------------------------------------------------------


@pytest.fixture
def url() -> Iterator[DatabaseUrl]:
    with database() as made:
        yield made


@pytest.fixture
def db(url: DatabaseUrl) -> Iterator[PgConnection]:
    """A connection of a replica, to a database with one project."""
    with closing(PgConnection(url)) as connection:
        header = ProjectHeader(PROJECT, "User Auth", "Login", "planning", "any", 1_000, 1_000)
        begin(connection)
        projects.insert(connection, header, [repo("backend")])
        end(connection)
        yield connection


def repo(name: str) -> Repo:
    return Repo(repo_id_for(PROJECT, name), name, "backend", "python", "[]", None, 1_000)


def begin(connection: PgConnection) -> None:
    connection.begin_writing()


def end(connection: PgConnection, step: int = 1) -> None:
    """Commit as a replica does, with the stamp after the last."""
    [[stamp]] = connection.execute("SELECT stamp FROM cluster").fetchall()
    connection.note(stamp + step, "replica", 1)
    connection.commit()


def members(connection: PgConnection) -> list[str]:
    known = projects.membership(connection, PROJECT)
    return [] if known is None else [member.name for member in known.members]


def asked(connection: PgConnection, patch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are sent from now on."""
    texts: list[str] = []
    send = connection._send

    def noted(text: str, *rest: Any) -> None:
        texts.append(text)
        send(text, *rest)

    patch.setattr(connection, "_send", noted)
    return texts


def kept(connection: PgConnection) -> bool:
    return connection._rows.find((plain(SQL.membership), PROJECT)) is not None


def test_a_membership_is_asked_for_once(db: PgConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(db)
    assert members(db) == ["backend"]
    end(db)
    texts = asked(db, monkeypatch)
    for _ in range(3):
        begin(db)
        assert members(db) == ["backend"]
        db.execute("INSERT INTO meta (name, value) VALUES (?, ?)", (f"n{len(texts)}", ""))
        end(db)
    assert not [text for text in texts if "FROM projects p LEFT JOIN" in text]


def test_what_another_replica_changed_is_asked_for(db: PgConnection, url: DatabaseUrl) -> None:
    with closing(PgConnection(url)) as other:
        for number in range(3):
            begin(db)
            assert len(members(db)) == 1 + number
            end(db)
            begin(other)
            assert len(members(other)) == 1 + number
            projects.insert_repo(other, PROJECT, repo(f"repo-{number}"))
            end(other)
        begin(db)
        assert len(members(db)) == 4
        db.roll_back()


def test_what_a_transaction_changed_itself_is_asked_for(db: PgConnection) -> None:
    begin(db)
    assert members(db) == ["backend"]
    projects.insert_repo(db, PROJECT, repo("frontend"))
    assert sorted(members(db)) == ["backend", "frontend"]
    end(db)
    begin(db)
    assert sorted(members(db)) == ["backend", "frontend"]
    db.roll_back()


def test_what_was_read_of_changes_that_were_rolled_back_is_not_kept(db: PgConnection) -> None:
    """Even when nothing was kept when they were made."""
    begin(db)
    db.roll_back()
    begin(db)
    projects.insert_repo(db, PROJECT, repo("never"))
    assert len(members(db)) == 2
    db.roll_back()
    begin(db)
    assert members(db) == ["backend"]
    db.roll_back()


def test_an_archived_project_is_asked_for(db: PgConnection) -> None:
    begin(db)
    members(db)
    lifecycle.put(db, PROJECT, Lifecycle("archived", "User Auth", "node", 2_000, None))
    end(db)
    begin(db)
    known = projects.membership(db, PROJECT)
    assert known is not None
    assert known.is_archived
    db.roll_back()


def test_a_failed_transaction_leaves_what_was_kept(db: PgConnection) -> None:
    begin(db)
    members(db)
    with pytest.raises(psycopg.errors.UndefinedColumn):
        db.execute("SELECT nonsense").fetchone()
    db.roll_back()
    begin(db)
    assert kept(db)
    assert members(db) == ["backend"]
    db.roll_back()


def test_what_a_program_beside_committed_is_asked_for_and_told(
    db: PgConnection, url: DatabaseUrl
) -> None:
    """It gives out no stamp, so its commit adds one, and wakes the replicas."""
    begin(db)
    members(db)
    end(db)
    [[stamp]] = db.execute("SELECT stamp FROM cluster").fetchall()
    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute("LISTEN cacp")
        with closing(PgConnection(url)) as beside:
            beside.execute("BEGIN IMMEDIATE")
            projects.insert_repo(beside, PROJECT, repo("beside"))
            beside.execute("COMMIT")
        heard = [heard.payload for heard in listener.notifies(timeout=PATIENCE, stop_after=1)]
    assert heard == [""]
    assert db.execute("SELECT stamp FROM cluster").fetchall() == [(stamp + 1,)]
    begin(db)
    assert sorted(members(db)) == ["backend", "beside"]
    db.roll_back()


def test_a_program_beside_that_changed_nothing_is_no_news(
    db: PgConnection, url: DatabaseUrl
) -> None:
    [[stamp]] = db.execute("SELECT stamp FROM cluster").fetchall()
    with closing(PgConnection(url)) as beside:
        beside.execute("BEGIN IMMEDIATE")
        beside.execute("UPDATE projects SET name = 'x' WHERE project_id = 'none'")
        beside.execute("COMMIT")
    assert db.execute("SELECT stamp FROM cluster").fetchall() == [(stamp,)]


REPOS = 12


def test_replicas_that_write_at_once_see_each_others_members(
    db: PgConnection, url: DatabaseUrl
) -> None:
    """Each adds a repo when it sees an even or odd number of them, by its kept rows or not."""
    failed: list[object] = []

    def take_turns(parity: int) -> None:
        with closing(PgConnection(url)) as connection:
            count = 0
            # Neither can add two in a row: they take turns, however the machine runs them.
            while count < REPOS:
                begin(connection)
                known = members(connection)
                [[count]] = connection.execute("SELECT count(*) FROM repos").fetchall()
                if len(known) != count:
                    failed.append((len(known), count))
                if count % 2 == parity:
                    projects.insert_repo(connection, PROJECT, repo(f"repo-{count}"))
                end(connection)

    threads = [threading.Thread(target=take_turns, args=(parity,)) for parity in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    begin(db)
    assert len(members(db)) > 2
    db.roll_back()


def test_only_reads_are_kept() -> None:
    for text in row_cache.KEPT:
        statement = prepare(text)
        assert statement.returns
        assert not statement.writes
        assert statement.reads
