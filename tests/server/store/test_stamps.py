"""The stamps that a node gives out (design §7)."""

from peers.clock import GAP, Sure
from server.domain.clocks import Deferred
from server.store.connection import Connection
from server.store.stamps import Stamps, keep, kept

HOUR = 3_600_000_000
NOW = 1_800_000_000_000_000


def test_they_go_on_after_what_is_on_disk_and_what_was_seen() -> None:
    stamps, now = Stamps(), Stamps().clock.now()
    stamps.begin(now + 5)
    assert stamps.next(now) == now + 6
    stamps.saw(now + 20)
    assert stamps.next(now + 7) == now + 21
    assert stamps.next(now + 90) == now + 90
    assert stamps.trouble(Deferred()) is None


def test_they_come_back_to_the_time() -> None:
    stamps, now = Stamps(), Stamps().clock.now()
    stamps.begin(now + HOUR)
    assert [stamps.next(now), stamps.next(now)] == [now, now + 1]
    assert stamps.trouble(Deferred()) is None, "nothing that is stored is ahead"


def test_what_is_stored_ahead_is_trouble() -> None:
    stamps, now = Stamps(), Stamps().clock.now()
    stamps.stored(now + HOUR)
    stamps.stored(now)
    assert stamps.newest == now + HOUR
    found = stamps.trouble(Deferred())
    assert found is not None
    assert found.reason == "stamps_ahead"


def test_what_is_sure_is_kept(db: Connection) -> None:
    assert kept(db) is None
    for one in (Sure(NOW), Sure(NOW - HOUR, doubted=5)):
        keep(db, one)
        assert kept(db) == one


def test_a_clock_in_doubt_is_trouble() -> None:
    stamps = Stamps()
    stamps.clock.trust(Sure(stamps.clock.now() - 2 * GAP))
    found = stamps.trouble(Deferred())
    assert found is not None
    assert found.reason == "clock_unconfirmed"
