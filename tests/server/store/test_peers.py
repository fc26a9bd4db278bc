"""Registered peers on disk."""

import sqlite3

from server.store import peers
from server.store.peers import Peer

AGENT = "aid://example.com/frontend@1.0.0"


def test_a_peer_is_entered_and_renewed(db: sqlite3.Connection) -> None:
    peers.put(db, AGENT, "http://a", "frontend-app", "unkeyed", 1)
    peers.put(db, "peer-7", "http://b", None, "unkeyed", 2)
    peers.put(db, AGENT, "http://c", "frontend-app", "verified", 3)
    renewed = Peer(AGENT, "http://c", "frontend-app", "verified", 1, 3)
    assert peers.find(db, AGENT) == renewed
    assert peers.every(db) == [renewed, Peer("peer-7", "http://b", None, "unkeyed", 2, 2)]
    assert peers.count(db) == 2


def test_nobody_is_there_at_first(db: sqlite3.Connection) -> None:
    assert (peers.find(db, AGENT), peers.every(db), peers.count(db)) == (None, [], 0)
