"""Lists of threads, read by their indexes."""

import pytest

from server.store import mail_threads
from server.store.connection import Connection
from server.store.sql import SQL

ANA = "aid://example.com/ana"


def put_thread(db: Connection, thread: str, last: str, last_open: str | None) -> None:
    db.execute(
        "INSERT INTO threads (thread_id, name, last_open) VALUES (?, ?, ?)",
        (thread, thread, last_open),
    )
    db.execute(
        "INSERT INTO thread_parties (thread_id, address, sent, last) VALUES (?, ?, 1, ?)",
        (thread, ANA, last),
    )


def test_each_thread_is_in_one_place(db: Connection) -> None:
    put_thread(db, "a", "m1", None)
    put_thread(db, "b", "m2", "m2")
    put_thread(db, "c", "m3", "m5")
    db.execute("INSERT INTO threads (thread_id, name, last_open) VALUES ('d', 'd', 'm4')")
    listed = mail_threads.listed(db, ANA, human=True, before=None, limit=10)
    assert [tuple(thread) for thread in listed] == [
        ("c", "m5"),
        ("d", "m4"),
        ("b", "m2"),
        ("a", "m1"),
    ]
    rest = mail_threads.listed(db, ANA, human=True, before="m4", limit=10)
    assert rest == listed[2:]
    own = mail_threads.listed(db, ANA, human=False, before=None, limit=2)
    assert [tuple(thread) for thread in own] == [("c", "m3"), ("b", "m2")]


@pytest.mark.sqlite
def test_no_list_reads_a_whole_table(db: Connection) -> None:
    asked = {"address": ANA, "human": True, "before": "~", "limit": 5, "thread": "t", "most": 9}
    for query in (
        *(SQL.threads_of_party, SQL.threads_open_to_humans),
        *(SQL.thread_counts, SQL.first_seen_of_thread, SQL.messages_seen_of_thread),
    ):
        plan = db.execute(f"EXPLAIN QUERY PLAN {query.sql}", asked).fetchall()
        steps = [str(row[3]) for row in plan]
        assert not [step for step in steps if "TEMP B-TREE" in step], steps
        assert not [step for step in steps if step.startswith("SCAN m")], steps


def test_a_thread_without_messages_has_no_topic(db: Connection) -> None:
    assert mail_threads.topic(db, "none", ANA, human=False) == ""
    assert mail_threads.counts(db, "none", ANA, human=False) == (0, 0)
    assert mail_threads.seen(db, "none", ANA, human=False, before=None, limit=5) == []
