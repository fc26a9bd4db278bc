"""The duty as a row: one of many takes it, and what its former holder writes is refused."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing

import psycopg
import pytest

from server.domain.duty import LEASE
from server.domain.errors import Unavailable
from server.store.postgresql import duties
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.migrate import prepare
from server.util.duty import HeldDuty


@pytest.fixture
def connections(url: str) -> Iterator[list[PgConnection]]:
    prepare(url)
    with ExitStack() as opened:
        yield [opened.enter_context(closing(PgConnection(url))) for _ in range(4)]


def held(replica: str, epoch: int) -> HeldDuty:
    return HeldDuty(replica, epoch, 0, lambda: 0)


def test_one_takes_it_renews_it_and_gives_it_back(connections: list[PgConnection]) -> None:
    one, other, *_ = connections
    lease, now = duties.look(one)
    assert lease is None
    assert duties.take(one, None, "a") == 1
    assert duties.take(other, None, "b") is None
    lease, now = duties.look(other)
    assert lease is not None
    assert lease[:2] == ("a", 1)
    assert 0 < lease.until - now <= LEASE
    assert duties.renew(one, "a", 1)
    assert not duties.renew(other, "b", 1)
    assert duties.take(other, lease, "b") is None, "it was renewed since it was seen"
    duties.release(one, "a", 1)
    lease, _ = duties.look(other)
    assert lease is not None
    assert lease.until == 0
    assert not duties.renew(one, "a", 1), "a lease that was given back is not renewed"
    assert duties.take(other, lease, "b") == 2


def test_of_many_that_take_a_lapsed_lease_at_once_one_gets_it(
    connections: list[PgConnection],
) -> None:
    duties.take(connections[0], None, "dead")
    duties.release(connections[0], "dead", 1)
    lease, _ = duties.look(connections[0])
    start, took = threading.Barrier(4), list[int | None]()

    def take(db: PgConnection, replica: str) -> None:
        start.wait()
        took.append(duties.take(db, lease, replica))

    threads = [
        threading.Thread(target=take, args=(db, name))
        for db, name in zip(connections, "abcd", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(took, key=str) == [2, None, None, None]


def test_a_write_of_a_former_holder_is_refused(connections: list[PgConnection]) -> None:
    one, other, *_ = connections
    duties.take(one, None, "a")
    duties.release(one, "a", 1)
    duties.take(other, duties.look(other)[0], "b")
    one.begin_writing()
    with pytest.raises(Unavailable) as lost:
        duties.verify(one, held("a", 1))
    one.roll_back()
    assert lost.value.data["reason"] == "duty_lost"
    other.begin_writing()
    duties.verify(other, held("b", 2))
    other.roll_back()


def test_nobody_takes_it_while_a_write_of_the_holder_is_under_way(
    connections: list[PgConnection], url: str
) -> None:
    """Else a write could commit after a new holder has begun."""
    one = connections[0]
    duties.take(one, None, "a")
    duties.release(one, "a", 1)
    lease, _ = duties.look(one)
    one.begin_writing()
    duties.verify(one, held("a", 1))
    with closing(PgConnection(url)) as other:
        other.execute("SELECT set_config('lock_timeout', '50', false)").fetchone()
        with pytest.raises(psycopg.errors.LockNotAvailable):
            duties.take(other, lease, "b")
        one.commit()
        assert duties.take(other, lease, "b") == 2
