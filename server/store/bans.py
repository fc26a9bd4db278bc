"""Ban statements of all nodes, and what a ban ends on this node."""

from collections.abc import Iterable

from schemas.stamps import iso
from server.domain.agents import identity
from server.domain.bans import BanStatement, TrustedBans, deciding
from server.domain.errors import Forbidden
from server.store import alarms, keys, mail_outbox, mesh, peers
from server.store.connection import Connection
from server.store.sql import SQL, Row

# On the hot path: run as text, which is faster than aiosql's own call.
_ABOUT: str = SQL.bans_about.sql


def put(db: Connection, statement: BanStatement) -> None:
    """Store a node's statement about an agent, replacing its former one."""
    SQL.put_ban(db, **statement._asdict())


def statements_by(db: Connection, node: str) -> list[BanStatement]:
    """All statements of a node."""
    return _read(SQL.bans_said_by(db, by_node=identity(node)))


def every(db: Connection) -> list[BanStatement]:
    return _read(SQL.every_ban(db))


def find(
    db: Connection, trusted_bans: TrustedBans, agent_id: str, public_key: str | None = None
) -> BanStatement | None:
    """The ban that holds here for an agent, in any version, or for its key; None when there is
    none."""
    rows = db.execute(_ABOUT, {"agent": identity(agent_id), "public_key": public_key}).fetchall()
    if not rows:
        return None
    mine = [
        statement.agent for statement in statements_by(db, trusted_bans.own) if statement.banned
    ]
    return deciding(_read(rows), trusted_bans, mine)


def check(
    db: Connection, trusted_bans: TrustedBans, agent_id: str, public_key: str | None = None
) -> None:
    """Raises Forbidden when the agent or its key is banned."""
    ban = find(db, trusted_bans, agent_id, public_key)
    if ban is None:
        return
    whose = "this node" if ban.by_node == trusted_bans.own else ban.by_node
    under = "" if identity(agent_id) == ban.agent else f", whose key it has as {ban.agent},"
    raise Forbidden(
        f"{agent_id}{under} is banned here since {iso(ban.stamp)}, by {whose}: nothing from it is "
        f"accepted until an operator here runs `cacp peers unban {ban.agent}`",
        reason="banned",
        bannedBy=ban.by_node,
        since=iso(ban.stamp),
    )


def enforce(db: Connection, trusted_bans: TrustedBans, now: int) -> list[str]:
    """Expel every banned peer; returns their agent ids."""
    ended = []
    for peer in peers.every(db):
        known = mesh.node_key(db, peer.agent_id)
        if find(db, trusted_bans, peer.agent_id, known.public_key if known else None) is not None:
            expel(db, peer, now)
            ended.append(peer.agent_id)
    return ended


def is_due(db: Connection, trusted_bans: TrustedBans) -> bool:
    """Whether any peer is banned."""
    return any(
        find(db, trusted_bans, peer.agent_id, known.public_key if known else None) is not None
        for peer in peers.every(db)
        for known in [mesh.node_key(db, peer.agent_id)]
    )


def expel(db: Connection, peer: peers.Peer, now: int) -> None:
    """End the exchange with a peer: revoke the keys that it calls with, and forget the agents at
    home there. Its signing key stays known, so that what it wrote before can be verified."""
    address = identity(peer.agent_id)
    for key in keys.every(db):
        if key.trust == "peer" and identity(key.agent_id) == address:
            keys.revoke(db, key.key_id, now=now)
    mesh.forget_homes(db, peer.agent_id)
    mail_outbox.forget_node(db, peer.agent_id)
    peers.put_api_key(db, peer.endpoint.rstrip("/"), None)
    # No comparison with it will end this alarm any more.
    alarms.end(db, "content_differs", address)
    peers.remove(db, peer.agent_id)


def _read(rows: Iterable[Row]) -> list[BanStatement]:
    return [BanStatement._make([*row[:3], bool(row[3]), *row[4:]]) for row in rows]
