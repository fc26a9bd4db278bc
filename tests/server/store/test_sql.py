"""The named queries: each fits the schema that the migrations make."""

import re
import sqlite3

import pytest

from server.store.sql import SQL

NAMES = sorted(SQL.available_queries)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("_cursor")])
def test_a_query_fits_the_schema(db: sqlite3.Connection, name: str) -> None:
    text = str(getattr(SQL, name).sql)
    params = dict.fromkeys(re.findall(r"(?<!:):(\w+)", text))
    assert db.execute(f"EXPLAIN {text}", params).fetchall()


def test_no_query_puts_values_into_its_text() -> None:
    for name in NAMES:
        assert not re.search(r"%s|\{\w*\}|%\(", str(getattr(SQL, name).sql))
