"""Evidence of equivocation: a node has signed two contradicting things."""

from typing import NamedTuple

from schemas.mesh import EVIDENCE_MAX
from server.domain.agents import identity
from server.store import alarms
from server.store.alarms import Alarm
from server.store.connection import Connection
from server.store.sql import SQL

KEPT_MAX = 100
"""The most evidence that is kept against one node."""
_DETAIL = (
    "A node has signed two different things under one id: its operator, its key or its disk can't "
    "be trusted. All nodes keep the same one of the two, and both are kept as evidence. `cacp "
    "peers` names the node; `cacp peers remove` ends the exchange with it, `cacp peers note` ends "
    "this warning"
)


class Equivocation(NamedTuple):
    """Two contradicting statements of a node, as JSON, with their signatures: the known one
    (`ours`) and the one that came later (`theirs`). `ours_signature` is None for this node's own
    statement."""

    node: str
    kind: str
    place: str
    key: str
    ours: str
    ours_signature: str | None
    theirs: str
    theirs_signature: str
    found_at: int


def record(db: Connection, evidence: Equivocation) -> bool:
    """Store evidence and raise the alarm. False when it is known."""
    node = identity(evidence.node)
    if not SQL.put_equivocation(db, **evidence._asdict() | {"node": node}, most=KEPT_MAX):
        return False
    alarms.begin(db, Alarm("equivocation", node, _DETAIL, evidence.found_at))
    return True


def of_node(db: Connection, node: str) -> list[Equivocation]:
    """The evidence against a node, the oldest first."""
    return [Equivocation(*row) for row in SQL.equivocations_of(db, node=identity(node))]


def after(
    db: Connection, last: int, bytes_max: int, one_max: int
) -> tuple[list[Equivocation], int]:
    """The evidence after the number `last`, at most EVIDENCE_MAX pieces and about `bytes_max`
    bytes, and the number of the last piece. A piece of more than `one_max` bytes is left out."""
    newest = int(SQL.newest_equivocation(db) or 0)
    evidence: list[Equivocation] = []
    # A larger number than the newest dates from before this node was restored from a backup.
    last = last if last <= newest else 0
    size = 0
    for number, *row in SQL.equivocations_after(db, last=last):
        equivocation = Equivocation(*row)
        bytes_ = len(equivocation.ours) + len(equivocation.theirs)
        if evidence and (size + bytes_ > bytes_max or len(evidence) == EVIDENCE_MAX):
            break
        last = number
        if bytes_ <= one_max:
            evidence.append(equivocation)
            size += bytes_
    return evidence, last


def counts(db: Connection, *, unnoted: bool = False) -> dict[str, int]:
    """The pieces of evidence against each node; `unnoted`: only those that no operator has
    noted."""
    return dict(SQL.count_unnoted_equivocations(db) if unnoted else SQL.count_equivocations(db))


def note(db: Connection, node: str, now: int) -> int:
    """Note that an operator has seen the evidence, which stays; returns how many pieces were
    new."""
    alarms.end(db, "equivocation", identity(node))
    return int(SQL.note_equivocations(db, node=identity(node), noted_at=now))
