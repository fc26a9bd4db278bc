"""Registered peers on disk."""

from server.store import deferred, peers
from server.store.connection import Connection
from server.store.peers import Peer

AGENT = "aid://example.com/frontend@1.0.0"


def test_a_peer_is_entered_and_renewed(db: Connection) -> None:
    peers.put(db, AGENT, "http://a", "frontend-app", "unkeyed", 1)
    peers.put(db, "peer-7", "http://b", None, "unkeyed", 2)
    peers.put(db, AGENT, "http://c", "frontend-app", "verified", 3)
    renewed = Peer(AGENT, "http://c", "frontend-app", "verified", 1, 3)
    assert peers.find(db, AGENT) == renewed
    assert peers.every(db) == [renewed, Peer("peer-7", "http://b", None, "unkeyed", 2, 2)]
    assert peers.count(db) == 2


def test_who_registers_again_without_a_repo_keeps_it(db: Connection) -> None:
    peers.put(db, AGENT, "http://a", "frontend-app", "unkeyed", 1)
    peers.put(db, AGENT, "http://b", None, "unkeyed", 2)
    assert peers.find(db, AGENT) == Peer(AGENT, "http://b", "frontend-app", "unkeyed", 1, 2)


def test_registrations_without_a_key_are_taken_back(db: Connection) -> None:
    """In every version of the agent, and of no other; nor one with a key."""
    other = AGENT.replace("1.0.0", "2.0.0")
    peers.put(db, AGENT, "http://a", "r", "unkeyed", 1)
    peers.put(db, other, "http://b", "r", "unkeyed", 2)
    peers.put(db, AGENT.replace("1.0.0", "3.0.0"), "http://c", "r", "verified", 3)
    peers.put(db, "peer-7", "http://d", "r", "unkeyed", 4)
    assert [one.agent_id for one in peers.take_back(db, AGENT)] == [AGENT, other]
    assert peers.take_back(db, AGENT) == []
    assert [one.endpoint for one in peers.every(db)] == ["http://c", "http://d"]


def test_what_a_peer_has_deferred_goes_with_it(db: Connection) -> None:
    """Nothing of it would be taken, and it makes no health degraded."""
    for number, agent in enumerate((AGENT, "peer-7")):
        peers.put(db, agent, "http://a", None, "verified", 1)
        message = deferred.DeferredMessage(agent, "cacp/contract/sync", "{}", str(number))
        deferred.put(db, message, "predecessor", "c", due=10, now=0)
    assert peers.remove(db, AGENT)
    assert [one.source for one in deferred.due(db, 10)] == ["peer-7"]


def test_nobody_is_there_at_first(db: Connection) -> None:
    assert (peers.find(db, AGENT), peers.every(db), peers.count(db)) == (None, [], 0)


def test_a_key_is_bound_to_an_endpoint(db: Connection) -> None:
    """An agent that registers elsewhere is not shown the key."""
    peers.put_api_key(db, "http://a", "old")
    peers.put_api_key(db, "http://a", "key")
    peers.put(db, AGENT, "http://a/", None, "unkeyed", 1)
    found = peers.find(db, AGENT)
    assert found is not None
    assert (found.api_key, peers.api_key(db, "http://a")) == ("key", "key")
    assert [one.api_key for one in peers.every(db)] == ["key"]
    peers.put(db, AGENT, "http://b", None, "unkeyed", 2)
    assert [one.api_key for one in peers.every(db)] == [None]
    peers.put_api_key(db, "http://a", None)
    assert peers.api_key(db, "http://a") is None
