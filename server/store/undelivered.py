"""Entities that reachable peers refuse or that can't be sent to them, each with the reason."""

from collections.abc import Mapping
from typing import NamedTuple

from peers.digest import Name
from peers.sender import UndeliveredEntity
from server.store.connection import Connection
from server.store.sql import SQL

STUCK_TRIES = 3
"""Tries after which an entity counts as stuck."""


class Stuck(NamedTuple):
    """How many entities are stuck, and for how many peers."""

    entities: int
    peers: int


def every(db: Connection) -> dict[str, dict[Name, UndeliveredEntity]]:
    """The undelivered entities of each peer, by its agent id; without peers that have none."""
    by_peer: dict[str, dict[Name, UndeliveredEntity]] = {}
    for peer, entity, project_id, entity_id, seq, tries, reason in SQL.all_undelivered(db):
        held = by_peer.setdefault(peer, {})
        held[Name(entity, project_id, entity_id)] = UndeliveredEntity(seq, reason, tries)
    return by_peer


def put(db: Connection, peer: str, held: Mapping[Name, UndeliveredEntity]) -> None:
    """Store the state of a peer's undelivered entities."""
    for name, entry in held.items():
        SQL.put_undelivered(
            db, peer=peer, **name._asdict(), seq=entry.seq, tries=entry.tries, reason=entry.reason
        )


def note(db: Connection, peer: str, problems: Mapping[Name, str]) -> None:
    """Store entities that turned out not to be sendable when a peer asked for them, for the peer's
    sender, unless an operator has given them up."""
    for name, reason in problems.items():
        SQL.note_undelivered(db, peer=peer, **name._asdict(), reason=reason)


def forget(db: Connection, peer: str, name: Name) -> None:
    SQL.forget_undelivered(db, peer=peer, **name._asdict())


def drop(db: Connection, peer: str, entity_id: str | None = None) -> int:
    """Give up one undelivered entity of a peer, or all, until it changes or an operator requests a
    retry; returns how many."""
    return int(SQL.drop_undelivered(db, peer=peer, entity_id=entity_id))


def stuck(db: Connection) -> Stuck:
    return Stuck(*SQL.stuck_undelivered(db, tries=STUCK_TRIES))
