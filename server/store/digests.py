"""What this node holds, in digests (`peers.digest`). Follows `changes`: a write pays nothing.

A digest covers all that is signed of an entity, so that two nodes with equal digests show the same.
Signatures are left out: who vouches for a thing may sign it anew. Mail and nodes' keys have none,
for no two nodes hold the same of them.
"""

import sqlite3
from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import orjson

from peers import digest
from peers.digest import Name
from server.domain.canonical import canonical
from server.domain.errors import Refusal
from server.store import changes, context_packets
from server.store.sql import SQL

# Run for each change: as text, without aiosql's own call.
_DIGEST: str = SQL.digest_of.sql
_PUT_DIGEST: str = SQL.put_digest.sql
_SUM: str = SQL.sum_of.sql
_PUT_SUM: str = SQL.put_sum.sql
_FACTS: str = SQL.fact_states.sql

_CURSOR = "digest_cursor"
_PAGE = 50
"""Changes that are counted in one transaction: writes wait for it, a few milliseconds."""
KINDS = {
    "project": "project",
    "repo": "project",
    "contract": "contract",
    "context": "context",
    "file": "file",
    "file_request": "file_request",
}
"""Which entity a change is of: a project's repos and claims are part of it."""


def name_of(change: changes.Change) -> Name | None:
    """The entity that a change is of; None when it is not one that nodes synchronise."""
    kind = KINDS.get(change.entity)
    if kind is None or change.project_id is None:
        return None
    return Name(
        kind, change.project_id, change.project_id if kind == "project" else change.entity_id
    )


def catch_up(db: sqlite3.Connection) -> bool:
    """Count the changes that were not counted yet, a page of them; whether all are counted."""
    after = int(SQL.meta_value(db, name=_CURSOR) or 0)
    page = changes.after(db, after, _PAGE)
    if not page:
        return True
    names = dict.fromkeys(name for change in page if (name := name_of(change)))
    sums: dict[str, str] = {}
    for name in names:
        _count(db, name, sums)
    db.executemany(_PUT_SUM, [{"prefix": one, "digest": total} for one, total in sums.items()])
    changes.put_meta(db, _CURSOR, str(page[-1].seq))
    return len(page) < _PAGE


def is_behind(db: sqlite3.Connection) -> bool:
    """Whether there are changes that were not counted yet."""
    return changes.newest(db) > int(SQL.meta_value(db, name=_CURSOR) or 0)


def sums_below(db: sqlite3.Connection, prefix: str) -> dict[str, str]:
    """The sums of the prefixes that are one digit longer."""
    rows = SQL.sums_below(db, low=prefix, high=prefix + "g", length=len(prefix) + 1)
    return dict(rows)


def leaves_at(db: sqlite3.Connection, place: str) -> dict[Name, str]:
    """The digests of all entities at a place."""
    return {Name(*row[:3]): row[3] for row in SQL.digests_at(db, place=place)}


class Held(NamedTuple):
    """How much this node holds, and the digest of all of it."""

    digest: str
    projects: int
    contracts: int
    packets: int
    files: int
    conflicts: int
    deferred: int


def held(db: sqlite3.Connection) -> Held:
    """What `catch_up` has counted, in one digest, and counts of what is there."""
    root = reduce(digest.xor, sums_below(db, "").values(), digest.NOTHING)
    return Held(root, *SQL.held_counts(db))


def held_of(db: sqlite3.Connection, name: Name) -> str:
    """The digest of an entity as it was counted."""
    [found] = db.execute(_DIGEST, name._asdict()).fetchone() or [digest.NOTHING]
    return str(found)


def leaf_of(db: sqlite3.Connection, name: Name) -> str:
    """The digest of an entity as it is stored now."""
    return digest.leaf(name, _state(db, name))


def _count(db: sqlite3.Connection, name: Name, sums: dict[str, str]) -> None:
    place = digest.place_of(name)
    at = name._asdict()
    before = held_of(db, name)
    now = leaf_of(db, name)
    if now == before:
        return
    db.execute(_PUT_DIGEST, {**at, "place": place, "digest": now})
    change = digest.xor(before, now)
    for prefix in digest.prefixes_of(place):
        known = sums.get(prefix)
        if known is None:
            [known] = db.execute(_SUM, {"prefix": prefix}).fetchone() or [digest.NOTHING]
        sums[prefix] = digest.xor(known, change)


def _state(db: sqlite3.Connection, name: Name) -> Iterable[bytes]:
    """The parts of an entity's state that every node that knows it all has alike; none of what is
    not there."""
    if name.entity == "project":
        rows = [*SQL.project_state(db, project_id=name.project_id)]
        rows += SQL.repo_states(db, project_id=name.project_id)
        rows += SQL.lost_claim_states(db, project_id=name.project_id)
        return [orjson.dumps(row) for row in rows]
    if name.entity == "contract":
        return [
            f"{kind}\n{key}\n".encode() + _canonical(body)
            for kind, key, body in db.execute(_FACTS, name._asdict())
        ]
    if name.entity == "context":
        found = context_packets.signed(db, name.project_id, name.entity_id)
        return [] if found is None else [_canonical(found[0])]
    state = SQL.file_state if name.entity == "file" else SQL.file_request_state
    rows = [*state(db, project_id=name.project_id, entity_id=name.entity_id)]
    return [orjson.dumps(row) for row in rows]


def _canonical(text: str) -> bytes:
    """JSON as it is signed: on its way it may have come into another order."""
    try:
        return canonical(orjson.loads(text))
    except (ValueError, Refusal):
        # No node signed that: the row is damaged. It counts as what it is.
        return text.encode()
