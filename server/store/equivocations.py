"""Evidence that a node has signed two different things where it could honestly sign one."""

import sqlite3
from typing import NamedTuple

from schemas.mesh import EVIDENCE_MAX
from server.domain.agents import identity
from server.store import alarms
from server.store.alarms import Alarm
from server.store.sql import SQL

KEPT_MAX = 100
"""Of each node: it could go on for ever, and the first say enough."""
_DETAIL = (
    "A node has signed two different things under one id: its operator, its key or its disk is not "
    "to be trusted. All nodes keep the same one of the two, and both are kept as evidence. "
    "`cacp peers` says which node; `cacp peers remove` ends the exchange with it, "
    "`cacp peers note` this warning"
)


class Equivocation(NamedTuple):
    """The two things, as JSON, and their signatures; None for what this node wrote itself."""

    node: str
    kind: str
    place: str
    key: str
    ours: str
    ours_signature: str | None
    theirs: str
    theirs_signature: str
    found_at: int


def record(db: sqlite3.Connection, found: Equivocation) -> bool:
    """Keep the evidence and raise the alarm; whether it is new."""
    node = identity(found.node)
    if not SQL.put_equivocation(db, **found._asdict() | {"node": node}, most=KEPT_MAX):
        return False
    alarms.begin(db, Alarm("equivocation", node, _DETAIL, found.found_at))
    return True


def of_node(db: sqlite3.Connection, node: str) -> list[Equivocation]:
    """The evidence against a node, the oldest first."""
    return [Equivocation(*row) for row in SQL.equivocations_of(db, node=identity(node))]


def after(
    db: sqlite3.Connection, last: int, bytes_max: int, one_max: int
) -> tuple[list[Equivocation], int]:
    """What was found after the number `last`, at most EVIDENCE_MAX and about `bytes_max` of it, and
    the number of the last. A single one of more than `one_max` bytes is left out."""
    newest = int(SQL.newest_equivocation(db) or 0)
    found: list[Equivocation] = []
    # Who remembers more than there is has asked before this node was restored from a backup.
    last = last if last <= newest else 0
    size = 0
    for number, *row in SQL.equivocations_after(db, last=last):
        one = Equivocation(*row)
        bytes_ = len(one.ours) + len(one.theirs)
        if found and (size + bytes_ > bytes_max or len(found) == EVIDENCE_MAX):
            break
        last = number
        if bytes_ <= one_max:
            found.append(one)
            size += bytes_
    return found, last


def counts(db: sqlite3.Connection, *, unnoted: bool = False) -> dict[str, int]:
    """How often each node has contradicted itself; `unnoted`: what no operator has seen yet."""
    return dict(SQL.count_unnoted_equivocations(db) if unnoted else SQL.count_equivocations(db))


def note(db: sqlite3.Connection, node: str, now: int) -> int:
    """An operator has seen it: how many there were. The evidence stays."""
    alarms.end(db, "equivocation", identity(node))
    return int(SQL.note_equivocations(db, node=identity(node), noted_at=now))
