"""What is deferred, on disk: bounded for each peer, and not for ever (design §7)."""

import pytest

from server.store import deferred
from server.store.connection import Connection
from server.store.deferred import AGAIN, KEPT, SOON, DeferredMessage

BETA = "aid://example.com/beta@1.0.0"


def message(number: int = 0, params: str = "{}", source: str = BETA) -> DeferredMessage:
    return DeferredMessage(source, "cacp/contract/sync", params, str(number))


def test_what_is_deferred_comes_when_it_is_due(db: Connection) -> None:
    assert deferred.put(db, message(), "stamp", "", due=10, now=0) == "deferred"
    assert deferred.put(db, message(), "stamp", "", due=12, now=0) == "known"
    assert deferred.due(db, 9) == []
    [one] = deferred.due(db, 10)
    assert (one.due, one.source, one.params, deferred.count(db)) == (10, BETA, "{}", 1)
    deferred.drop(db, one)
    assert deferred.count(db) == 0


def test_what_is_deferred_anew_when_it_was_tried_stays(db: Connection) -> None:
    deferred.put(db, message(), "predecessor", "c1", due=10, now=0)
    [one] = deferred.due(db, 20)
    assert deferred.put(db, message(), "predecessor", "c1", due=20, now=20) == "known"
    deferred.drop(db, one)
    assert deferred.due(db, 20) == []
    assert [again.due for again in deferred.due(db, 20 + AGAIN)] == [20 + AGAIN]


def test_what_waits_for_a_predecessor_is_woken(db: Connection) -> None:
    deferred.put(db, message(1), "predecessor", "c1", due=10, now=0)
    deferred.put(db, message(2), "predecessor", "c2", due=10, now=0)
    deferred.put(db, message(3), "stamp", "c1", due=10, now=0)
    deferred.wake(db, "c1", now=5)
    assert [one.digest for one in deferred.due(db, 5)] == [message(1).digest]


def test_what_is_woken_while_it_is_tried_stays(db: Connection) -> None:
    """Its predecessor arrives between the try and the drop: the next try must find it."""
    deferred.put(db, message(), "predecessor", "c1", due=1, now=1)
    deferred.wake(db, "c1", now=1)
    [tried] = deferred.due(db, 2)
    deferred.put(db, message(), "predecessor", "c1", due=3, now=3)
    deferred.wake(db, "c1", now=4)
    deferred.drop(db, tried)
    assert [again.digest for again in deferred.due(db, 4)] == [tried.digest]


def test_a_peer_has_so_many_deferred_and_no_more(
    db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred, "MESSAGES_MAX", 3)
    found = [deferred.put(db, message(n), "stamp", "", due=10, now=0) for n in range(4)]
    assert found == ["deferred"] * 3 + ["full"]
    assert deferred.put(db, message(0), "stamp", "", due=10, now=0) == "known"
    assert deferred.put(db, message(0, source="gamma"), "stamp", "", due=1, now=0) == "deferred"


def test_a_peer_has_so_many_bytes_deferred_and_no_more(
    db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred, "BYTES_MAX", 10)
    assert deferred.put(db, message(1, "ü" * 5), "stamp", "", due=1, now=0) == "deferred"
    assert deferred.put(db, message(2, "x"), "stamp", "", due=1, now=0) == "full"


def test_what_is_deferred_expires(db: Connection) -> None:
    for number, now in enumerate((0, 0, 5)):
        deferred.put(db, message(number), "stamp", "", due=10 * KEPT, now=now)
    assert deferred.expire(db, KEPT - 1) == {}
    assert deferred.expire(db, KEPT) == {BETA: 2}
    assert deferred.count(db) == 1


def test_what_is_ahead_is_told_from_what_waits(db: Connection) -> None:
    deferred.put(db, message(1), "stamp", "", due=90, now=0)
    deferred.put(db, message(2), "project", "p", due=0, now=0)
    assert deferred.ahead(db, 0) == (1, 90)
    assert [one.due for one in deferred.each(db, 0)] == [90]
    assert deferred.waiting(db, SOON - 1) == {}
    assert deferred.waiting(db, SOON) == {BETA: 1}
    assert deferred.accept(db, 0) == 1
    assert deferred.ahead(db, 0) == (0, 0)
    assert deferred.accepted(db) == 90 + SOON
    assert deferred.accept(db, 0) == 0


def test_who_has_most_deferred_comes_first_and_can_be_dropped(db: Connection) -> None:
    other = deferred.DeferredMessage("aid://h/gamma@1", "m", "{}", "x")
    deferred.put(db, other, "project", "p", due=0, now=3)
    for number in range(2):
        deferred.put(db, message(number), "predecessor", "c", due=0, now=number)
    shares = deferred.by_source(db)
    assert [(one.source, one.messages, one.since) for one in shares] == [
        (BETA, 2, 0),
        (other.source, 1, 3),
    ]
    assert [(one.reason, one.about) for one in deferred.of_source(db, other.source)] == [
        ("project", "p")
    ]
    assert list(deferred.waiting(db, 3 + SOON)) == [BETA, other.source]
    assert deferred.drop_all(db, BETA) == 2
    assert [one.source for one in deferred.by_source(db)] == [other.source]
