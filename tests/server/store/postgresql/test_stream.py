"""A view of a whole database (`tests/server/store/test_streaming.py` reads rows from it)."""

import psycopg
import pytest

from server.domain.location import DatabaseUrl
from server.store.postgresql.migrate import prepare
from server.store.postgresql.stream import snapshot


def test_it_takes_its_time_and_changes_nothing(url: DatabaseUrl) -> None:
    prepare(url)
    with snapshot(url) as db:
        [(timeout,)] = db.execute("SELECT current_setting('statement_timeout')").fetchall()
        assert timeout == "1h"
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            db.execute("DELETE FROM meta RETURNING name")


def test_rows_come_in_parts(url: DatabaseUrl) -> None:
    prepare(url)
    with snapshot(url) as db:
        rows = db.stream("SELECT n FROM generate_series(1, :last) AS n", {"last": 1_001})
        assert rows.description == [("n",)]
        assert [n for (n,) in rows] == list(range(1, 1_002))
        assert list(rows) == []
        rows.close()
        none = db.stream("SELECT 1 AS x WHERE 1 = 2")
        assert (none.description, list(none)) == ([("x",)], [])
