"""Mail between nodes: who is at home where, what goes where, what is still to be said to whom
(acp-canonical §10; design §7). Nodes and agents are kept without their versions."""

import sqlite3
from typing import Literal, NamedTuple

from server.domain.agents import identity
from server.store.sql import SQL, plain

Kind = Literal["message", "receipts"]

# On the hot path: run as text, without aiosql's own call.
_SPEAKER: str = SQL.speaker_for.sql
_SOURCE = plain(SQL.mail_source)


class OutboxMessage(NamedTuple):
    """A node's signed directory as it is kept: its stamp, its epoch, and all of it as JSON."""

    stamp: int
    epoch: str
    document: str


class Owed(NamedTuple):
    """What is still to be said to a node; `seq` is its place in the order."""

    seq: int
    kind: Kind
    message_id: str


class Route(NamedTuple):
    """The node that a recipient's mail goes to, and whether it was sent there at least once."""

    node: str
    offered: bool


# --- who is at home where -----------------------------------------------------------------------


def directory(db: sqlite3.Connection, node: str) -> OutboxMessage | None:
    row = SQL.directory_of(db, node=identity(node))
    return OutboxMessage(*row) if row else None


def put_directory(db: sqlite3.Connection, node: str, kept: OutboxMessage) -> None:
    SQL.put_directory_of(db, node=identity(node), **kept._asdict())


def listed(db: sqlite3.Connection, node: str) -> set[str]:
    """The addresses that a node's directory names."""
    return {agent for (agent,) in SQL.agents_listed_by(db, node=identity(node))}


def list_agent(db: sqlite3.Connection, agent: str, node: str) -> None:
    SQL.list_agent(db, agent=agent, node=identity(node))


def unlist_agent(db: sqlite3.Connection, agent: str, node: str) -> None:
    SQL.unlist_agent(db, agent=agent, node=identity(node))


def first_to_list(db: sqlite3.Connection, agent: str) -> str | None:
    """Of the nodes whose directories name an agent, the one that was heard first."""
    return SQL.first_to_list(db, agent=agent)  # type: ignore[no-any-return]


def move_home(db: sqlite3.Connection, agent: str, node: str) -> None:
    SQL.move_home(db, agent=agent, node=identity(node))


def forget_node(db: sqlite3.Connection, node: str) -> None:
    """Forget whom a node has named; mail for them waits for it to come back."""
    SQL.drop_directory_of(db, node=identity(node))
    SQL.unlist_agents(db, node=identity(node))


def elsewhere(db: sqlite3.Connection, own: str) -> dict[str, str]:
    """Every agent that is at home on another node, and that node."""
    return dict(SQL.agents_at_home_elsewhere(db, own=identity(own)))


def speaker(db: sqlite3.Connection, address: str) -> str | None:
    """The node that speaks for an agent, as far as one was heard to; a node speaks for itself."""
    row = db.execute(_SPEAKER, {"agent": address}).fetchone()
    return row[0] if row else None


def keyed(db: sqlite3.Connection) -> set[str]:
    """The addresses of all who hold a key here that is not a peer's."""
    return {identity(agent_id) for (agent_id,) in SQL.keyed_agents(db)}


# --- what goes where ----------------------------------------------------------------------------


def put_route(db: sqlite3.Connection, message_id: str, recipient: str, node: str) -> None:
    SQL.insert_route(db, message_id=message_id, recipient=recipient, node=node)


def route(db: sqlite3.Connection, message_id: str, recipient: str) -> Route | None:
    row = SQL.route_of(db, message_id=message_id, recipient=recipient)
    return Route(row[0], bool(row[1])) if row else None


def waiting(db: sqlite3.Connection, message_id: str, node: str) -> list[str]:
    """The recipients at a node that a message has not come to its end with."""
    return [one for (one,) in SQL.waiting_recipients(db, message_id=message_id, node=node)]


def offer(db: sqlite3.Connection, message_id: str, node: str) -> bool:
    """Note that a message is about to be sent to a node. False when it was before."""
    return bool(SQL.offer_routes(db, message_id=message_id, node=node))


def withdraw(db: sqlite3.Connection, message_ids: list[str], node: str) -> None:
    """Note that messages were not sent after all."""
    for message_id in message_ids:
        SQL.withdraw_routes(db, message_id=message_id, node=identity(node))


def put_source(db: sqlite3.Connection, message_id: str, node: str) -> None:
    SQL.put_mail_source(db, message_id=message_id, node=identity(node))


def source(db: sqlite3.Connection, message_id: str) -> str | None:
    """The node that vouched for a message; None for one that was sent here."""
    row = db.execute(_SOURCE, (message_id,)).fetchone()
    return row[0] if row else None


# --- what is still to be said -------------------------------------------------------------------


def owe(db: sqlite3.Connection, node: str, kind: Kind, message_id: str) -> None:
    """Have a node told; what it was to be told of the same before is part of it."""
    SQL.drop_owed(db, node=node, kind=kind, message_id=message_id)
    SQL.owe(db, node=node, kind=kind, message_id=message_id)


def owe_again(db: sqlite3.Connection, node: str) -> None:
    """Have a node told again all that it may have lost: messages that it has not ended, and how far
    its own are."""
    SQL.owe_messages_again(db, node=identity(node))
    SQL.owe_receipts_again(db, node=identity(node))


def owed(db: sqlite3.Connection, node: str, limit: int) -> list[Owed]:
    """What is to be said to a node, the first of it."""
    return [Owed(*row) for row in SQL.owed(db, node=identity(node), limit=limit)]


def count_owed(db: sqlite3.Connection, node: str) -> int:
    return int(SQL.count_owed(db, node=identity(node)))


def said(db: sqlite3.Connection, owed: list[Owed]) -> None:
    """The node has confirmed these."""
    for one in owed:
        SQL.drop_owed_row(db, seq=one.seq)
