"""What a read takes out of the database is counted while it does."""

import sqlite3
from contextlib import closing

import pytest

from server.store.metered import metered


def test_text_and_bytes_are_counted_row_by_row() -> None:
    counts: list[int] = []
    with closing(sqlite3.connect(":memory:")) as db:
        with metered(db, counts.append):
            rows = db.execute("SELECT 'abc', x'0102', 7, NULL UNION ALL SELECT 'ü€', x'', 0, 1")
            assert rows.fetchall() == [("abc", b"\1\2", 7, None), ("ü€", b"", 0, 1)]
        db.execute("SELECT 'not counted'").fetchall()
    assert counts == [5, 5]


def test_what_counts_breaks_the_read_off() -> None:
    counts: list[int] = []

    def count(size: int) -> None:
        counts.append(size)
        if len(counts) == 3:
            raise OverflowError

    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9)"
    series = f"{numbers} SELECT 'x' FROM n"
    with closing(sqlite3.connect(":memory:")) as db:
        with pytest.raises(OverflowError), metered(db, count):
            db.execute(series).fetchall()
        assert db.execute(series).fetchall() == [("x",)] * 9
    assert len(counts) == 3


def test_who_counts_around_it_counts_too() -> None:
    outer: list[int] = []
    inner: list[int] = []
    with closing(sqlite3.connect(":memory:")) as db, metered(db, outer.append):
        with metered(db, inner.append):
            db.execute("SELECT 'ab'").fetchall()
        db.execute("SELECT 'c'").fetchall()
    assert (outer, inner) == ([2, 1], [2])
