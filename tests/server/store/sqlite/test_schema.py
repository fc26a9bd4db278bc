"""What the migrations make, and which of them a database has had (design §3)."""

import sqlite3
from contextlib import closing

import pytest

from server.store.sqlite.schema import (
    Migration,
    SchemaDamaged,
    additions,
    check,
    deduce,
    elements,
    made,
    migrations,
)

KNOWN = (
    Migration(1, "first", "CREATE TABLE a (x TEXT, y TEXT); CREATE INDEX a_x ON a (x);"),
    Migration(2, "second", "-- More; of it.\nALTER TABLE a ADD COLUMN z TEXT; CREATE TABLE b (x);"),
)
FIRST = frozenset({"table a", "column a.x", "column a.y", "index a_x"})
SECOND = frozenset({"column a.z", "table b", "column b.x"})


def test_each_migration_adds_its_own() -> None:
    assert additions(KNOWN) == {"first": FIRST, "second": SECOND}


def test_what_they_make_is_made_at_once_too() -> None:
    """Rows, triggers and rows of SQLite's own, too: all but what is gone again."""
    more = Migration(
        3,
        "third",
        "CREATE TABLE c (n INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT REFERENCES a (x));"
        " INSERT INTO c (b) VALUES ('it''s'), (NULL); DELETE FROM c WHERE n = 2;"
        " CREATE UNIQUE INDEX c_b ON c (b); DROP TABLE b; ALTER TABLE a RENAME COLUMN y TO w;"
        " CREATE VIEW v AS SELECT x FROM a;",
    )
    steps, once = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    with closing(steps), closing(once):
        for one in (*KNOWN, more):
            one.run(steps)
        for statement in made((*KNOWN, more)).statements:
            once.execute(statement)
        assert list(once.iterdump()) == list(steps.iterdump())


def test_what_a_database_has_had_is_told_by_what_is_there() -> None:
    assert deduce(frozenset(), KNOWN) == (set(), [])
    assert deduce(FIRST, KNOWN) == ({"first"}, [])
    assert deduce(FIRST | SECOND, KNOWN) == ({"first", "second"}, [])


def test_a_part_of_a_migration_is_damage() -> None:
    with pytest.raises(
        SchemaDamaged, match="only a part of migration second: table b and 1 more missing"
    ):
        deduce(FIRST | {"column a.z"}, KNOWN)


def test_what_is_lacking_is_named_tables_first() -> None:
    with pytest.raises(SchemaDamaged, match="lacks table b and 2 more, which second made"):
        check(FIRST, KNOWN)
    check(FIRST | SECOND | {"index mine"}, KNOWN)


def test_elements_leave_out_what_is_sqlites_own() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT UNIQUE)")
        assert elements(db) == {"table t", "column t.a", "column t.b"}


def test_migrations_from_before_the_record_are_told_by_what_they_add() -> None:
    """Later ones may change rows only: their names are recorded."""
    known = tuple(migrations())
    added = additions(known)
    assert all(added[one.name] for one in known[:10])
    assert len({one.name for one in known}) == len(known)
