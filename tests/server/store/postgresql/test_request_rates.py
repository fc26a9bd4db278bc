"""However many replicas take from a bucket, a caller gets what one node would give."""

import threading
from contextlib import closing

from server.store.postgresql import request_rates
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.migrate import prepare

ANNA = "aid://example.com/anna"


def take(db: PgConnection, wanted: int = 10, owed: int = 0, caller: str = ANNA) -> tuple[int, bool]:
    granted = request_rates.take(db, caller, per_minute=60, wanted=wanted, owed=owed)
    return granted.requests, granted.wait is not None


def test_a_bucket_is_emptied_and_refilled(url: str) -> None:
    prepare(url)
    with closing(PgConnection(url)) as db:
        assert [take(db, 25) for _ in range(3)] == [(25, False), (25, False), (10, False)]
        granted = request_rates.take(db, ANNA, per_minute=60, wanted=10, owed=0)
        assert granted.requests == 0
        assert granted.wait is not None
        assert 0 < granted.wait <= 1
        assert take(db, caller="another") == (10, False)
        db.execute("UPDATE request_rates SET at = at - 5500000 WHERE caller = ?", (ANNA,))
        assert take(db, 60) == (5, False)
        db.execute("UPDATE request_rates SET at = at - 3600000000 WHERE caller = ?", (ANNA,))
        assert take(db, 100) == (60, False), "a bucket holds no more than a minute's requests"


def test_what_is_owed_leaves_the_bucket_in_debt(url: str) -> None:
    prepare(url)
    with closing(PgConnection(url)) as db:
        assert take(db, 10, owed=90) == (0, True)
        granted = request_rates.take(db, ANNA, per_minute=60, wanted=10, owed=0)
        assert granted.wait is not None
        assert 30 < granted.wait <= 31


def test_callers_with_full_buckets_are_forgotten(url: str) -> None:
    prepare(url)
    with closing(PgConnection(url)) as db:
        take(db)
        take(db, caller="idle")
        db.execute("UPDATE request_rates SET at = at - 121000000 WHERE caller = 'idle'")
        request_rates.forget_idle(db)
        assert db.execute("SELECT caller FROM request_rates").fetchall() == [(ANNA,)]


def test_takers_at_once_get_no_more_together(url: str) -> None:
    prepare(url)
    got = list[int]()

    def taker() -> None:
        with closing(PgConnection(url)) as db:
            got.extend(take(db, 7)[0] for _ in range(10))

    threads = [threading.Thread(target=taker) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A second or two may have passed meanwhile.
    assert 60 <= sum(got) <= 65
