"""Who is no peer any more, as each node has said it, and what that ends here."""

import sqlite3
from collections.abc import Iterable

from schemas.base import iso
from server.domain.agents import identity
from server.domain.bans import BanStatement, Heeds, deciding
from server.domain.errors import Forbidden
from server.store import alarms, keys, mail_outbox, mesh, peers
from server.store.sql import SQL, Row

# On the hot path: run as text, without aiosql's own call.
_ABOUT: str = SQL.bans_about.sql


def put(db: sqlite3.Connection, said: BanStatement) -> None:
    """Keep a node's word of an agent, in place of what it said before."""
    SQL.put_ban(db, **said._asdict())


def said_by(db: sqlite3.Connection, node: str) -> list[BanStatement]:
    """All that a node has said."""
    return _read(SQL.bans_said_by(db, by_node=identity(node)))


def every(db: sqlite3.Connection) -> list[BanStatement]:
    return _read(SQL.every_ban(db))


def find(
    db: sqlite3.Connection, heeds: Heeds, agent_id: str, public_key: str | None = None
) -> BanStatement | None:
    """The ban of an agent, in any of its versions, or of a key, that holds here."""
    rows = db.execute(_ABOUT, {"agent": identity(agent_id), "public_key": public_key}).fetchall()
    if not rows:
        return None
    mine = [one.agent for one in said_by(db, heeds.own) if one.banned]
    return deciding(_read(rows), heeds, mine)


def check(
    db: sqlite3.Connection, heeds: Heeds, agent_id: str, public_key: str | None = None
) -> None:
    """Raises Forbidden for an agent, or the holder of a key, that is banned."""
    ban = find(db, heeds, agent_id, public_key)
    if ban is None:
        return
    whose = "this node" if ban.by_node == heeds.own else ban.by_node
    under = "" if identity(agent_id) == ban.agent else f", whose key it has as {ban.agent},"
    raise Forbidden(
        f"{agent_id}{under} is banned here since {iso(ban.stamp)}, by {whose}: nothing of it is "
        f"taken until an operator here runs `cacp peers unban {ban.agent}`",
        reason="banned",
        bannedBy=ban.by_node,
        since=iso(ban.stamp),
    )


def enforce(db: sqlite3.Connection, heeds: Heeds, now: int) -> list[str]:
    """End what is exchanged with every peer that is banned; these."""
    ended = []
    for peer in peers.every(db):
        known = mesh.node_key(db, peer.agent_id)
        if find(db, heeds, peer.agent_id, known.public_key if known else None) is not None:
            expel(db, peer, now)
            ended.append(peer.agent_id)
    return ended


def is_due(db: sqlite3.Connection, heeds: Heeds) -> bool:
    """Whether there is a peer that is banned."""
    return any(
        find(db, heeds, peer.agent_id, known.public_key if known else None) is not None
        for peer in peers.every(db)
        for known in [mesh.node_key(db, peer.agent_id)]
    )


def expel(db: sqlite3.Connection, peer: peers.Peer, now: int) -> None:
    """End what is exchanged with a peer, with every key that it may call with, and whom it spoke
    for. The key that it signs with stays known: what it wrote before stays, and can be checked."""
    address = identity(peer.agent_id)
    for key in keys.every(db):
        if key.trust == "peer" and identity(key.agent_id) == address:
            keys.revoke(db, key.key_id, now=now)
    mesh.forget_homes(db, peer.agent_id)
    mail_outbox.forget_node(db, peer.agent_id)
    peers.put_api_key(db, peer.endpoint.rstrip("/"), None)
    # Nobody compares with it any more, so nothing else would end that.
    alarms.end(db, "content_differs", address)
    peers.remove(db, peer.agent_id)


def _read(rows: Iterable[Row]) -> list[BanStatement]:
    return [BanStatement._make([*row[:3], bool(row[3]), *row[4:]]) for row in rows]
