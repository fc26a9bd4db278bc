"""Registered peers."""

import sqlite3
from typing import NamedTuple

from server.domain.agents import same_agent
from server.domain.places import Way
from server.store.sql import SQL

# On the hot path: run as text, without aiosql's own call.
_BY_AGENT: str = SQL.peer_by_agent.sql


class Peer(NamedTuple):
    """A peer as it registered. `trust` is verified or unkeyed; times are stamps."""

    agent_id: str
    endpoint: str
    repo_name: str | None
    trust: str
    registered_at: int
    last_seen: int
    secret: str | None = None
    """The key that this node calls the peer with; None for a foreign peer."""
    key_id: str | None = None
    """The last two keys that the peer calls this node with, by a comma."""
    cursor: int = 0
    """The last change that the peer has confirmed."""
    retries: int = 0
    """How often the operator has asked to try again at once."""
    api_key: str | None = None
    """The key that a foreign peer at this endpoint has given this node."""


def put(
    db: sqlite3.Connection,
    agent_id: str,
    endpoint: str,
    repo_name: str | None,
    trust: str,
    at: int,
) -> None:
    SQL.put_peer(db, agent_id=agent_id, endpoint=endpoint, repo_name=repo_name, trust=trust, at=at)


def put_keys(db: sqlite3.Connection, agent_id: str, secret: str, key_id: str) -> None:
    SQL.put_peer_keys(db, agent_id=agent_id, secret=secret, key_id=key_id)


def put_api_key(db: sqlite3.Connection, endpoint: str, api_key: str | None) -> None:
    """Keep the key for a foreign peer, or forget it. It is bound to the endpoint: who takes an
    agent's name elsewhere is not shown it."""
    if api_key is None:
        SQL.drop_peer_api_key(db, endpoint=endpoint)
    else:
        SQL.put_peer_api_key(db, endpoint=endpoint, api_key=api_key)


def api_key(db: sqlite3.Connection, endpoint: str) -> str | None:
    return SQL.peer_api_key(db, endpoint=endpoint)  # type: ignore[no-any-return]


def put_cursor(db: sqlite3.Connection, agent_id: str, cursor: int, at: int) -> None:
    """Remember what the peer has confirmed at `at`."""
    SQL.put_peer_cursor(db, agent_id=agent_id, cursor=cursor, at=at)


def find(db: sqlite3.Connection, agent_id: str) -> Peer | None:
    row = db.execute(_BY_AGENT, {"agent_id": agent_id}).fetchone()
    return Peer(*row) if row else None


def every(db: sqlite3.Connection) -> list[Peer]:
    return [Peer(*row) for row in SQL.all_peers(db)]


def put_way(db: sqlite3.Connection, agent_id: str, came_by: Way) -> None:
    """Remember what let a peer in; an operator, where nothing is said."""
    SQL.put_peer_way(db, agent_id=agent_id, came_by=came_by)


def count_by_way(db: sqlite3.Connection) -> dict[str, int]:
    """How many peers there are, by what let them in."""
    return dict(SQL.peers_by_way(db))


def count(db: sqlite3.Connection) -> int:
    return int(SQL.peer_count(db))


def remove(db: sqlite3.Connection, agent_id: str) -> bool:
    """Forget a peer, what it had not taken, and what it has deferred. False when there is none."""
    SQL.forget_undelivered_of(db, peer=agent_id)
    SQL.drop_deferred_of(db, source=agent_id)
    return bool(SQL.remove_peer(db, agent_id=agent_id))


def take_back(db: sqlite3.Connection, agent_id: str) -> list[Peer]:
    """End the registrations of an agent, in any of its versions, that came without a key; these."""
    found = [
        one for one in every(db) if one.trust == "unkeyed" and same_agent(one.agent_id, agent_id)
    ]
    for one in found:
        remove(db, one.agent_id)
    return found


def retry(db: sqlite3.Connection, agent_id: str) -> bool:
    """Have the peer tried again at once, also with what was given up. False when there is none."""
    SQL.forget_dropped(db, peer=agent_id)
    return bool(SQL.retry_peer(db, agent_id=agent_id))


def backlog(db: sqlite3.Connection, cursor: int, origin: str) -> int:
    """How many entities of this node wait after `cursor`, 10,000 at most."""
    return int(SQL.backlog(db, cursor=cursor, origin=origin))


def waiting_since(db: sqlite3.Connection, cursor: int, origin: str) -> int | None:
    """When the first of them changed, a stamp; None when none waits."""
    return SQL.oldest_waiting(db, cursor=cursor, origin=origin)  # type: ignore[no-any-return]


def exchanged(db: sqlite3.Connection, peer_id: str, entity_id: str) -> str | None:
    """What was last exchanged with a peer about an entity, as JSON (`peers.foreign`)."""
    return SQL.exchanged_document(  # type: ignore[no-any-return]
        db, peer_id=peer_id, entity_id=entity_id
    )


def put_exchanged(db: sqlite3.Connection, peer_id: str, entity_id: str, document: str) -> None:
    SQL.put_exchanged(db, peer_id=peer_id, entity_id=entity_id, document=document)
