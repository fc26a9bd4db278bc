"""What peers have not taken, though they answer, or what can't be sent to them, each with why."""

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from peers.digest import Name
from peers.sender import Held
from server.store.sql import SQL

STUCK_TRIES = 3
"""After so many tries it is no passing trouble."""


class Stuck(NamedTuple):
    """How many entities were tried several times, and for how many peers."""

    entities: int
    peers: int


def every(db: sqlite3.Connection) -> dict[str, dict[Name, Held]]:
    """What each peer has not taken, by its agent id; those that have taken all are absent."""
    found: dict[str, dict[Name, Held]] = {}
    for peer, entity, project_id, entity_id, seq, tries, reason in SQL.all_undelivered(db):
        held = found.setdefault(peer, {})
        held[Name(entity, project_id, entity_id)] = Held(seq, reason, tries)
    return found


def put(db: sqlite3.Connection, peer: str, held: Mapping[Name, Held]) -> None:
    """Keep entities that a peer has not taken, as they are now."""
    for name, one in held.items():
        SQL.put_undelivered(
            db, peer=peer, **name._asdict(), seq=one.seq, tries=one.tries, reason=one.reason
        )


def note(db: sqlite3.Connection, peer: str, problems: Mapping[Name, str]) -> None:
    """Keep what was found not to be sendable when a peer asked for it; its sender finds it here,
    unless an operator has given it up."""
    for name, reason in problems.items():
        SQL.note_undelivered(db, peer=peer, **name._asdict(), reason=reason)


def forget(db: sqlite3.Connection, peer: str, name: Name) -> None:
    SQL.forget_undelivered(db, peer=peer, **name._asdict())


def drop(db: sqlite3.Connection, peer: str, entity_id: str | None = None) -> int:
    """Give up an entity, or all that a peer has not taken, until it changes or is tried again at an
    operator's word; how many these were."""
    return int(SQL.drop_undelivered(db, peer=peer, entity_id=entity_id))


def stuck(db: sqlite3.Connection) -> Stuck:
    return Stuck(*SQL.stuck_undelivered(db, tries=STUCK_TRIES))
