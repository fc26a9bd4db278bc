"""Values that one replica keeps and another finds, for a while."""

from contextlib import closing

from server.store.postgresql import shared_values
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.migrate import prepare


def test_a_value_is_found_until_its_time_is_over(url: str) -> None:
    prepare(url)
    with closing(PgConnection(url)) as db, closing(PgConnection(url)) as other:
        shared_values.put(db, "grant:x", "anna", 60)
        assert shared_values.find(other, "grant:x") == "anna"
        shared_values.put(db, "grant:x", "berta", 60)
        assert shared_values.find(other, "grant:x") == "berta"
        shared_values.put(db, "grant:x", "berta", -1)
        assert shared_values.find(other, "grant:x") is None
        assert shared_values.take(other, "grant:x") is None
        shared_values.forget_old(other)
        assert db.execute("SELECT count(*) FROM shared_values").fetchall() == [(0,)]


def test_a_value_is_taken_once(url: str) -> None:
    prepare(url)
    with closing(PgConnection(url)) as db, closing(PgConnection(url)) as other:
        shared_values.put(db, "hello:1", "h", 60)
        assert shared_values.take(other, "hello:1") == "h"
        assert shared_values.take(db, "hello:1") is None


def test_a_new_value_is_refused_while_there_is_one(url: str) -> None:
    prepare(url)
    with closing(PgConnection(url)) as db:
        assert shared_values.put_new(db, "nudge:a", "form 1", 60) is None
        before = shared_values.put_new(db, "nudge:a", "form 2", 60)
        assert before is not None
        assert before[0] == "form 1"
        assert 50 < before[1] <= 60
        shared_values.put(db, "nudge:a", "form 1", -1)
        assert shared_values.put_new(db, "nudge:a", "form 3", 60) is None
        assert shared_values.find(db, "nudge:a") == "form 3"


def test_values_are_counted_by_the_begin_of_their_names(url: str) -> None:
    prepare(url)
    with closing(PgConnection(url)) as db:
        for name in ("hello:1", "hello:2", "hell_:3"):
            shared_values.put(db, name, "", 60)
        assert shared_values.count(db, "hello:") == 2
