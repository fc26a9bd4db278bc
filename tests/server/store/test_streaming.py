"""Statements with many rows, on both kinds of database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.domain.location import Location
from server.store.export import view
from server.store.opening import connect, prepare
from server.store.sql import SQL
from server.store.streaming import streamed
from tests.support.postgresql import database

ROWS = 1_203


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    """A database with more rows than come at once."""
    if request.param == "sqlite":
        yield filled(tmp_path / "node.db")
        return
    with database() as url:
        yield filled(url)


def filled(place: Location) -> Location:
    prepare(place)
    db = connect(place)
    db.execute("BEGIN IMMEDIATE")
    for number in range(ROWS):
        db.execute(
            "INSERT INTO acp_audit (at, actor, action, outcome) VALUES ('t', ?, 'a', 'o')",
            (f"{number}\0",),
        )
    db.execute("COMMIT")
    db.close()
    return place


def test_all_rows_come_in_their_order(location: Location) -> None:
    with view(location) as db, streamed(db, SQL.mail_audit, seq=2) as rows:
        assert rows.columns[:3] == ["seq", "at", "actor"]
        assert [row[2] for row in rows] == [f"{number}\0" for number in range(2, ROWS)]


def test_one_may_be_read_within_another(location: Location) -> None:
    with view(location) as db, streamed(db, SQL.mail_audit, seq=0) as outer:
        for row in outer:
            with streamed(db, SQL.mail_audit, seq=row[0]) as inner:
                assert next(iter(inner), (row[0] + 1,))[0] == row[0] + 1
            if row[0] > 3:
                break


def test_it_is_a_view_of_one_moment(location: Location) -> None:
    with view(location) as db:
        with streamed(db, SQL.mail_audit, seq=ROWS - 1) as rows:
            assert len(list(rows)) == 1
        other = connect(location)
        other.execute(
            "INSERT INTO acp_audit (at, actor, action, outcome) VALUES ('t', 'x', 'a', 'o')"
        )
        other.close()
        with streamed(db, SQL.mail_audit, seq=ROWS - 1) as rows:
            assert len(list(rows)) == 1
