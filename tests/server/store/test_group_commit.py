"""A group of writes in one transaction (design §3); `test_database.py` has it under load."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.domain.errors import Conflict, Unavailable
from server.store import changes
from server.store.connection import Connection
from server.store.group_commit import GroupCommit, Transaction
from server.store.sqlite.storage import SqliteStorage
from server.store.stamps import Stamps


class StoredFile(SqliteStorage):
    """Storage of which a group asks nothing but to begin and end transactions."""

    def __init__(self, *, lost: bool = False) -> None:
        super().__init__(Path("unused"))
        self.lost = lost

    def begin(self, connection: Connection) -> int:
        connection.execute("BEGIN IMMEDIATE")
        return 0

    def is_lost(self) -> bool:
        return self.lost


def put(transaction: Transaction) -> int:
    changes.put_meta(transaction.connection, str(transaction.stamp), "")
    return transaction.stamp


def put_and_refuse(transaction: Transaction) -> None:
    put(transaction)
    raise Conflict("too late")


def refuse(transaction: Transaction) -> None:
    raise Conflict("taken")


def run(db: sqlite3.Connection, *functions: Callable[[Transaction], Any]) -> list[Any]:
    """What became of each: its value, or its error's type."""
    outcomes = GroupCommit(Stamps(), StoredFile()).run(list(functions), db)
    return [type(outcome.error) if outcome.error else outcome.value for outcome in outcomes]


def test_each_function_has_a_stamp_of_its_own(db: sqlite3.Connection) -> None:
    first, second = run(db, put, put)
    assert first < second
    assert not db.in_transaction


@pytest.mark.parametrize("failing", [refuse, put_and_refuse])
def test_one_that_is_refused_leaves_the_others(
    db: sqlite3.Connection, failing: Callable[[Transaction], Any]
) -> None:
    before = db.execute("SELECT count(*) FROM meta").fetchone()[0]
    first, refused, last = run(db, put, failing, put)
    assert refused is Conflict
    assert first < last
    assert db.execute("SELECT count(*) FROM meta").fetchone()[0] == before + 2


def test_it_says_whether_anything_was_written(db: sqlite3.Connection) -> None:
    group = GroupCommit(Stamps(), StoredFile())
    group.run([lambda transaction: transaction.stamp], db)
    assert not group.wrote
    group.run([put], db)
    assert group.wrote


def test_nothing_is_committed_to_files_that_are_lost(db: sqlite3.Connection) -> None:
    [outcome] = GroupCommit(Stamps(), StoredFile(lost=True)).run([put], db)
    assert isinstance(outcome.error, Unavailable)
    assert outcome.error.data["reason"] == "storage_missing"
    assert not db.in_transaction
