"""Is a node's file sound?"""

import sqlite3
from contextlib import closing

from server.store import changes, check


def test_a_new_database_is_sound(db: sqlite3.Connection) -> None:
    assert check.damage(db) == []
    assert check.broken_references(db) == {}
    assert check.schema_version(db) == check.known_version()
    assert check.newest_stamp(db) == 0


def test_rows_that_refer_to_nothing_are_counted(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA foreign_keys=OFF")
    for packet in ("p1", "p2"):
        db.execute("INSERT INTO packets VALUES ('gone', ?, 't', NULL, 1, '{}', NULL)", (packet,))
    assert check.broken_references(db) == {"packets": 2}


def test_the_newest_stamp_is_that_of_the_last_change(db: sqlite3.Connection) -> None:
    for at in (5, 7):
        changes.append(
            db,
            at=at,
            origin="o",
            actor="a",
            action="x",
            entity="e",
            entity_id="i",
            project_id=None,
            outcome="y",
        )
    assert check.newest_stamp(db) == 7


def test_what_is_no_nodes_file_has_version_0() -> None:
    with closing(sqlite3.connect(":memory:")) as other:
        assert check.schema_version(other) == 0


def test_an_index_that_misses_a_row_is_damage(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO tokens VALUES ('t', 'p', 'a', 1, 1, NULL)")
    db.execute("PRAGMA writable_schema=ON")
    index = "CREATE INDEX lost ON tokens (agent_id) WHERE agent_id = 'b'"
    db.execute("CREATE INDEX lost ON tokens (agent_id)")
    db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'lost'", (index,))
    db.execute("PRAGMA writable_schema=RESET")
    assert check.damage(db)
