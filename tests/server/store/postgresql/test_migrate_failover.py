"""The epoch when another server takes over: history is the same for a replica that goes on, and a
start without one can't know."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from server.domain.errors import Unavailable
from server.domain.location import DatabaseUrl
from server.store.postgresql import migrate
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.migrate import prepare
from server.store.postgresql.replicas import Announced, beat
from server.store.storage import Prepared
from tests.support.postgresql import execute, own_server
from tests.support.waiting import eventually

OTHER = Announced("other", "10.0.0.2:8080", "1.0", "baseline", "ok")


@pytest.fixture
def taken_over() -> Iterator[tuple[Prepared, DatabaseUrl]]:
    """What a start said before the server was lost, and the database on the one that took over."""
    with own_server() as server:
        url = server.create_database("cacp")
        before = prepare(url)
        with server.standby(server.folder / "second", "second") as standby:
            at_standby = standby.url("cacp")
            eventually(lambda: execute(at_standby, "SELECT 1 FROM meta WHERE name = 'epoch'") != [])
            with pytest.raises(Unavailable, match="read-only or a standby"):
                prepare(at_standby)
            server.kill()
            standby.promote()
            yield before, at_standby


def test_the_epoch_stays_when_a_replica_goes_on(
    taken_over: tuple[Prepared, DatabaseUrl],
) -> None:
    before, url = taken_over
    with closing(PgConnection(url)) as replica:
        beat(replica, OTHER)
    assert prepare(url).epoch == before.epoch
    # From now on this is the server.
    execute(url, "DELETE FROM replicas")
    assert prepare(url).epoch == before.epoch


def test_it_is_new_when_nobody_knows_whether_anything_was_lost(
    taken_over: tuple[Prepared, DatabaseUrl], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, url = taken_over
    monkeypatch.setattr(migrate, "VOUCH_SECONDS", 0.0)
    after = prepare(url)
    assert after.epoch != before.epoch
    assert prepare(url).epoch == after.epoch
