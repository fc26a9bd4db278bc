"""Registered peers."""

from typing import NamedTuple

from server.domain.agents import same_agent
from server.domain.peer_limits import JoinMethod
from server.store.connection import Connection
from server.store.sql import SQL

# On the hot path: run as text, which is faster than aiosql's own call.
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
    """The ids of the last two keys that the peer calls this node with, separated by a comma."""
    cursor: int = 0
    """The last change that the peer has confirmed."""
    retries: int = 0
    """How often the operator has requested an immediate retry."""
    api_key: str | None = None
    """The key that a foreign peer at this endpoint has given this node."""


def put(
    db: Connection,
    agent_id: str,
    endpoint: str,
    repo_name: str | None,
    trust: str,
    at: int,
) -> None:
    SQL.put_peer(db, agent_id=agent_id, endpoint=endpoint, repo_name=repo_name, trust=trust, at=at)


def put_keys(db: Connection, agent_id: str, secret: str, key_id: str) -> None:
    SQL.put_peer_keys(db, agent_id=agent_id, secret=secret, key_id=key_id)


def put_api_key(db: Connection, endpoint: str, api_key: str | None) -> None:
    """Store the key for a foreign peer; None deletes it. The key is bound to the endpoint, so that
    an impostor at another endpoint never gets it."""
    if api_key is None:
        SQL.drop_peer_api_key(db, endpoint=endpoint)
    else:
        SQL.put_peer_api_key(db, endpoint=endpoint, api_key=api_key)


def api_key(db: Connection, endpoint: str) -> str | None:
    return SQL.peer_api_key(db, endpoint=endpoint)  # type: ignore[no-any-return]


def put_cursor(db: Connection, agent_id: str, cursor: int, at: int) -> None:
    """Store the cursor that the peer confirmed at the time `at`."""
    SQL.put_peer_cursor(db, agent_id=agent_id, cursor=cursor, at=at)


def find(db: Connection, agent_id: str) -> Peer | None:
    row = db.execute(_BY_AGENT, {"agent_id": agent_id}).fetchone()
    return Peer(*row) if row else None


def every(db: Connection) -> list[Peer]:
    return [Peer(*row) for row in SQL.all_peers(db)]


def put_way(db: Connection, agent_id: str, came_by: JoinMethod) -> None:
    """Store how a peer joined; without that, it joined through an operator."""
    SQL.put_peer_way(db, agent_id=agent_id, came_by=came_by)


def count_by_way(db: Connection) -> dict[str, int]:
    """The number of peers by the way they joined."""
    return dict(SQL.peers_by_way(db))


def count(db: Connection) -> int:
    return int(SQL.peer_count(db))


def remove(db: Connection, agent_id: str) -> bool:
    """Delete a peer with its undelivered entities and deferred messages. False when there is
    none."""
    SQL.forget_undelivered_of(db, peer=agent_id)
    SQL.drop_deferred_of(db, source=agent_id)
    return bool(SQL.remove_peer(db, agent_id=agent_id))


def take_back(db: Connection, agent_id: str) -> list[Peer]:
    """Delete an agent's registrations without a key, in any version; returns them."""
    removed = [
        peer
        for peer in every(db)
        if peer.trust == "unkeyed" and same_agent(peer.agent_id, agent_id)
    ]
    for peer in removed:
        remove(db, peer.agent_id)
    return removed


def retry(db: Connection, agent_id: str) -> bool:
    """Retry the peer at once, including entities that were given up. False when there is none."""
    SQL.forget_dropped(db, peer=agent_id)
    return bool(SQL.retry_peer(db, agent_id=agent_id))


def backlog(db: Connection, cursor: int, origin: str) -> int:
    """How many entities of this node changed after `cursor`, at most 10,000."""
    return int(SQL.backlog(db, cursor=cursor, origin=origin))


def waiting_since(db: Connection, cursor: int, origin: str) -> int | None:
    """When the first of these changed, as a stamp; None when there is none."""
    return SQL.oldest_waiting(db, cursor=cursor, origin=origin)  # type: ignore[no-any-return]


def exchanged(db: Connection, peer_id: str, entity_id: str) -> str | None:
    """The state of an entity last exchanged with a peer, as JSON (`peers.foreign`)."""
    return SQL.exchanged_document(  # type: ignore[no-any-return]
        db, peer_id=peer_id, entity_id=entity_id
    )


def put_exchanged(db: Connection, peer_id: str, entity_id: str, document: str) -> None:
    SQL.put_exchanged(db, peer_id=peer_id, entity_id=entity_id, document=document)
