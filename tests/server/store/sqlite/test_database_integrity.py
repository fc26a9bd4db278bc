"""Is a node's file sound?"""

import sqlite3

from server.store import changes, projects, stamps
from server.store.sqlite import database_integrity


def test_a_new_database_is_sound(db: sqlite3.Connection) -> None:
    assert database_integrity.damage(db) == []
    assert database_integrity.broken_references(db) == {}
    assert stamps.newest_stamp(db) == 0


def test_rows_that_refer_to_nothing_are_counted(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA foreign_keys=OFF")
    for packet in ("p1", "p2"):
        db.execute("INSERT INTO packets VALUES ('gone', ?, 't', NULL, 1, '{}', NULL)", (packet,))
    assert database_integrity.broken_references(db) == {"packets": 2}


def test_the_newest_stamp_is_that_of_what_is_stored_for_the_mesh(db: sqlite3.Connection) -> None:
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
    assert stamps.newest_stamp(db) == 0, "what is only noted here is nobody's stamp"
    db.execute("PRAGMA foreign_keys=OFF")
    db.execute("INSERT INTO packets VALUES ('p', 'p1', 't', NULL, 3, '{}', NULL)")
    assert stamps.newest_stamp(db) == 3
    projects.insert(db, projects.ProjectHeader("p", "n", "o", "planning", "any", 1, 4), [])
    assert stamps.newest_stamp(db) == 4
    projects.insert_repo(db, "p", projects.Repo("r", "n", "service", "python", "[]", None, 5))
    assert stamps.newest_stamp(db) == 5
    projects.update_claim(db, "p", "r", "a", None, 6)
    assert stamps.newest_stamp(db) == 6


def test_an_index_that_misses_a_row_is_damage(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO tokens VALUES ('t', 'p', 'a', 1, 1, NULL)")
    db.execute("PRAGMA writable_schema=ON")
    index = "CREATE INDEX lost ON tokens (agent_id) WHERE agent_id = 'b'"
    db.execute("CREATE INDEX lost ON tokens (agent_id)")
    db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'lost'", (index,))
    db.execute("PRAGMA writable_schema=RESET")
    assert database_integrity.damage(db)
