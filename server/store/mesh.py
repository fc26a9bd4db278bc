"""Trust between nodes: pinned keys, homes of agents, invites, wanted peers."""

import secrets
from typing import NamedTuple

from server.domain.agents import identity
from server.store import keys, peers
from server.store.connection import Connection
from server.store.sql import SQL

# On the hot path: run as text, which is faster than aiosql's own call.
_NODE_KEY: str = SQL.node_key.sql


class NodeKey(NamedTuple):
    """The key that an agent id is pinned to. `introduced_by` is the node that introduced the key;
    None when its owner proved it."""

    public_key: str
    introduced_by: str | None


class Invite(NamedTuple):
    """An invite as it is listed. Times are stamps."""

    invite_id: str
    created_at: int
    expires_at: int
    used_by: str | None
    revoked_at: int | None


class Wanted(NamedTuple):
    """A node to register with, by the mesh token or an invite's code."""

    url: str
    invite: str | None
    error: str | None


# --- keys and homes, by the agent without its version -------------------------------------------


def node_key(db: Connection, agent_id: str) -> NodeKey | None:
    row = db.execute(_NODE_KEY, {"agent": identity(agent_id)}).fetchone()
    return NodeKey(*row) if row else None


def pin(db: Connection, agent_id: str, public_key: str, introduced_by: str | None = None) -> None:
    SQL.put_node_key(
        db, agent=identity(agent_id), public_key=public_key, introduced_by=introduced_by
    )


def unpin(db: Connection, agent_id: str) -> None:
    """Forget a node's key and the agents at home there, so that it may come with another key."""
    SQL.forget_node_key(db, agent=identity(agent_id))
    forget_homes(db, agent_id)


def forget_homes(db: Connection, node: str) -> None:
    """Forget which agents are at home on a node, so that other nodes may become their home."""
    SQL.forget_homes(db, node=identity(node))


def is_known_by_key(db: Connection, agent_id: str, own: str) -> bool:
    """Whether the agent holds a key here, is a node whose key is known, or is at home on a node
    other than `own`. Its bare id is then no proof of identity."""
    return (
        keys.is_keyed(db, agent_id)
        or node_key(db, agent_id) is not None
        or home_of(db, agent_id) not in (None, identity(own))
    )


def known_agents(db: Connection) -> list[str]:
    """Every agent that holds a key here, is a node or a peer, or has a home."""
    return [agent for (agent,) in SQL.every_agent(db)]


def home_of(db: Connection, agent_id: str) -> str | None:
    """The home node of an agent; None when none is known."""
    return SQL.home_of(db, agent=identity(agent_id))  # type: ignore[no-any-return]


def home_at_peer(db: Connection, agent_id: str) -> str | None:
    """The peer that is the agent or its home; None when its home is here or unknown."""
    nodes = {identity(peer.agent_id) for peer in peers.every(db)}
    home = identity(agent_id) if node_key(db, agent_id) else home_of(db, agent_id)
    return home if home in nodes else None


def put_home(db: Connection, agent_id: str, node: str) -> None:
    SQL.put_home(db, agent=identity(agent_id), node=identity(node))


# --- invites and wanted peers -------------------------------------------------------------------


def invite(db: Connection, *, now: int, expires_at: int) -> tuple[str, str]:
    """Create an invite; returns its id and its code, which is ID.SECRET."""
    invite_id, secret = f"inv_{secrets.token_hex(6)}", secrets.token_urlsafe(24)
    SQL.insert_invite(db, invite_id=invite_id, secret=secret, created_at=now, expires_at=expires_at)
    return invite_id, f"{invite_id}.{secret}"


def invites(db: Connection) -> list[Invite]:
    return [Invite(*row) for row in SQL.all_invites(db)]


def invite_secret(db: Connection, invite_id: str, now: int) -> str | None:
    """The secret of a usable invite; None for any other."""
    return SQL.open_invite(db, invite_id=invite_id, now=now)  # type: ignore[no-any-return]


def use_invite(db: Connection, invite_id: str, agent_id: str) -> bool:
    """Mark an invite as used. False when it was used already."""
    return bool(SQL.use_invite(db, invite_id=invite_id, agent=agent_id))


def revoke_invite(db: Connection, invite_id: str, *, now: int) -> bool:
    """False when there is no such open invite."""
    return bool(SQL.revoke_invite(db, invite_id=invite_id, now=now))


def want(db: Connection, url: str, code: str | None = None) -> None:
    """Have this node register with the one at `url`, by the mesh token or an invite's code."""
    SQL.put_wanted(db, url=url, invite=code)


def wanted(db: Connection) -> list[Wanted]:
    return [Wanted(*row) for row in SQL.all_wanted(db)]


def want_failed(db: Connection, url: str, error: str) -> None:
    SQL.fail_wanted(db, url=url, error=error)


def want_done(db: Connection, url: str) -> bool:
    return bool(SQL.drop_wanted(db, url=url))
