"""Mail between nodes: the homes of agents, the routes of messages, the outbox of each node
(acp-canonical §10; design §7). Nodes and agents are stored without their versions."""

from typing import Literal, NamedTuple

from server.domain.agents import identity
from server.store.connection import Connection
from server.store.sql import SQL, plain

Kind = Literal["message", "receipts"]

# On the hot path: run as text, which is faster than aiosql's own call.
_SPEAKER: str = SQL.speaker_for.sql
_SOURCE = plain(SQL.mail_source)


class StoredDirectory(NamedTuple):
    """A node's signed directory of agents: its stamp, its epoch, and the whole as JSON."""

    stamp: int
    epoch: str
    document: str


class OutboxEntry(NamedTuple):
    """An entry in a node's outbox; `seq` is its position."""

    seq: int
    kind: Kind
    message_id: str


class Route(NamedTuple):
    """The home node of a recipient, and whether the message was sent there at least once."""

    node: str
    offered: bool


# --- homes -----------------------------------------------------------------------


def directory(db: Connection, node: str) -> StoredDirectory | None:
    row = SQL.directory_of(db, node=identity(node))
    return StoredDirectory(*row) if row else None


def put_directory(db: Connection, node: str, kept: StoredDirectory) -> None:
    SQL.put_directory_of(db, node=identity(node), **kept._asdict())


def listed(db: Connection, node: str) -> set[str]:
    """The addresses that a node's directory names."""
    return {agent for (agent,) in SQL.agents_listed_by(db, node=identity(node))}


def list_agent(db: Connection, agent: str, node: str) -> None:
    SQL.list_agent(db, agent=agent, node=identity(node))


def unlist_agent(db: Connection, agent: str, node: str) -> None:
    SQL.unlist_agent(db, agent=agent, node=identity(node))


def first_to_list(db: Connection, agent: str) -> str | None:
    """The first node whose directory named the agent; None when none does."""
    return SQL.first_to_list(db, agent=agent)  # type: ignore[no-any-return]


def move_home(db: Connection, agent: str, node: str) -> None:
    SQL.move_home(db, agent=agent, node=identity(node))


def forget_node(db: Connection, node: str) -> None:
    """Forget a node's directory; mail for its agents waits until it returns."""
    SQL.drop_directory_of(db, node=identity(node))
    SQL.unlist_agents(db, node=identity(node))


def elsewhere(db: Connection, own: str) -> dict[str, str]:
    """Every agent that is at home on another node, and that node."""
    return dict(SQL.agents_at_home_elsewhere(db, own=identity(own)))


def speaker(db: Connection, address: str) -> str | None:
    """The home node of an agent, as far as it is known; a node is its own home."""
    row = db.execute(_SPEAKER, {"agent": address}).fetchone()
    return row[0] if row else None


def keyed(db: Connection) -> set[str]:
    """The addresses of all agents that hold a key here, except peers' keys."""
    return {identity(agent_id) for (agent_id,) in SQL.keyed_agents(db)}


# --- routes ----------------------------------------------------------------------------


def put_route(db: Connection, message_id: str, recipient: str, node: str) -> None:
    SQL.insert_route(db, message_id=message_id, recipient=recipient, node=node)


def route(db: Connection, message_id: str, recipient: str) -> Route | None:
    row = SQL.route_of(db, message_id=message_id, recipient=recipient)
    return Route(row[0], bool(row[1])) if row else None


def waiting(db: Connection, message_id: str, node: str) -> list[str]:
    """The recipients at a node for whom a message has no final status."""
    return [
        recipient for (recipient,) in SQL.waiting_recipients(db, message_id=message_id, node=node)
    ]


def offer(db: Connection, message_id: str, node: str) -> bool:
    """Record that a message is about to be sent to a node. False when that was recorded before."""
    return bool(SQL.offer_routes(db, message_id=message_id, node=node))


def withdraw(db: Connection, message_ids: list[str], node: str) -> None:
    """Undo `offer` for messages that were not sent after all."""
    for message_id in message_ids:
        SQL.withdraw_routes(db, message_id=message_id, node=identity(node))


def put_source(db: Connection, message_id: str, node: str) -> None:
    SQL.put_mail_source(db, message_id=message_id, node=identity(node))


def source(db: Connection, message_id: str) -> str | None:
    """The node that vouches for a message; None for a message that was sent here."""
    row = db.execute(_SOURCE, (message_id,)).fetchone()
    return row[0] if row else None


# --- the outbox -------------------------------------------------------------------


def enqueue(db: Connection, node: str, kind: Kind, message_id: str) -> None:
    """Put a message or its receipts into a node's outbox, replacing a former entry for the same."""
    SQL.drop_owed(db, node=node, kind=kind, message_id=message_id)
    SQL.owe(db, node=node, kind=kind, message_id=message_id)


def enqueue_again(db: Connection, node: str) -> None:
    """Put into a node's outbox again all that it may have lost: messages without a final status,
    and receipts for its own messages."""
    SQL.owe_messages_again(db, node=identity(node))
    SQL.owe_receipts_again(db, node=identity(node))


def entries(db: Connection, node: str, limit: int) -> list[OutboxEntry]:
    """The first entries of a node's outbox."""
    return [OutboxEntry(*row) for row in SQL.owed(db, node=identity(node), limit=limit)]


def count_entries(db: Connection, node: str) -> int:
    return int(SQL.count_owed(db, node=identity(node)))


def confirm(db: Connection, batch: list[OutboxEntry]) -> None:
    """Remove entries that the node has confirmed."""
    for entry in batch:
        SQL.drop_owed_row(db, seq=entry.seq)
