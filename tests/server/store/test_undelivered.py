"""What peers have not taken, on disk."""

import pytest

from peers.digest import Name
from peers.sender import UndeliveredEntity
from server.store import peers, undelivered
from server.store.connection import Connection
from server.store.undelivered import STUCK_TRIES, Stuck

BETA, GAMMA = "aid://example.com/beta@1.0.0", "aid://example.com/gamma@1.0.0"
ONE, OTHER = Name("contract", "p", "one"), Name("context", "p", "other")


@pytest.fixture(autouse=True)
def known(db: Connection) -> None:
    for agent_id in (BETA, GAMMA):
        peers.put(db, agent_id, "http://x", None, "verified", 1)


def test_what_is_put_is_found_by_peer_as_it_was(db: Connection) -> None:
    undelivered.put(
        db, BETA, {ONE: UndeliveredEntity(7, "why", 2), OTHER: UndeliveredEntity(3, "too large", 1)}
    )
    undelivered.put(db, GAMMA, {ONE: UndeliveredEntity(9, "no", 1)})
    undelivered.put(db, BETA, {ONE: UndeliveredEntity(8, "another", 3, due=1e9)})
    undelivered.put(db, "aid://example.com/removed@1.0.0", {ONE: UndeliveredEntity(9, "no", 1)})
    beta = {OTHER: UndeliveredEntity(3, "too large", 1), ONE: UndeliveredEntity(8, "another", 3)}
    assert undelivered.every(db) == {BETA: beta, GAMMA: {ONE: UndeliveredEntity(9, "no", 1)}}
    undelivered.forget(db, BETA, OTHER)
    assert undelivered.every(db)[BETA] == {ONE: UndeliveredEntity(8, "another", 3)}
    assert peers.remove(db, BETA)
    assert set(undelivered.every(db)) == {GAMMA}


def test_what_was_tried_often_is_stuck(db: Connection) -> None:
    undelivered.put(
        db,
        BETA,
        {ONE: UndeliveredEntity(1, "why", STUCK_TRIES - 1), OTHER: UndeliveredEntity(1, "why", 1)},
    )
    assert undelivered.stuck(db) == Stuck(0, 0)
    undelivered.put(
        db,
        BETA,
        {ONE: UndeliveredEntity(1, "why", STUCK_TRIES), OTHER: UndeliveredEntity(1, "why", 99)},
    )
    assert undelivered.stuck(db) == Stuck(2, 1)


def test_what_is_given_up_stays_so_until_it_fails_anew_or_is_tried_again(
    db: Connection,
) -> None:
    problems = {ONE: "can't be signed", OTHER: "can't be signed"}
    undelivered.note(db, BETA, problems)
    assert undelivered.every(db)[BETA] == dict.fromkeys(
        problems, UndeliveredEntity(1, "can't be signed")
    )
    assert undelivered.drop(db, BETA, "one") == 1
    assert undelivered.drop(db, BETA, "one") == 0, "it is given up already"
    undelivered.note(db, BETA, problems)
    assert set(undelivered.every(db)[BETA]) == {OTHER}, "the peer asks for it now and then"
    undelivered.put(db, BETA, {ONE: UndeliveredEntity(5, "why", 1)})
    assert set(undelivered.every(db)[BETA]) == {ONE, OTHER}, "it has changed"
    assert undelivered.drop(db, BETA) == 2
    assert undelivered.stuck(db) == Stuck(0, 0)
    assert undelivered.every(db) == {}
    assert peers.retry(db, BETA)
    undelivered.note(db, BETA, problems)
    assert set(undelivered.every(db)[BETA]) == {ONE, OTHER}
