"""Digests of what this node holds (`peers.digest`). They follow `changes`, so writes don't pay for
them.

A digest covers everything that is signed in an entity, so that nodes with equal digests show the
same. Signatures are left out, because a node may sign an entity anew. Mail and keys of nodes have
no digests, because no two nodes hold the same of them.
"""

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import orjson

from peers import digest
from peers.digest import Name
from server.domain.canonical import canonical
from server.domain.errors import Refusal
from server.store import changes, context_packets
from server.store.connection import Connection
from server.store.sql import SQL

# Run for each change: as text, which is faster than aiosql's own call.
_DIGEST: str = SQL.digest_of.sql
_PUT_DIGEST: str = SQL.put_digest.sql
_SUM: str = SQL.sum_of.sql
_PUT_SUM: str = SQL.put_sum.sql
_FACTS: str = SQL.fact_states.sql

_CURSOR = "digest_cursor"
_PAGE = 50
"""How many changes are counted in one transaction, for which writes wait a few milliseconds."""
KINDS = {
    "project": "project",
    "repo": "project",
    "contract": "contract",
    "receipt": "receipt",
    "context": "context",
    "file": "file",
    "file_request": "file_request",
}
"""The kind of entity that a change belongs to: repos and claims are part of their project. The
receipts of a contract are one entity, and have its id."""


def name_of(change: changes.Change) -> Name | None:
    """The entity that a change belongs to; None when nodes don't synchronise it."""
    kind = KINDS.get(change.entity)
    if kind is None or change.project_id is None:
        return None
    return Name(
        kind, change.project_id, change.project_id if kind == "project" else change.entity_id
    )


def catch_up(db: Connection) -> bool:
    """Count a page of uncounted changes. True when no more are left."""
    after = int(SQL.meta_value(db, name=_CURSOR) or 0)
    page = changes.after(db, after, _PAGE)
    if not page:
        return True
    names = dict.fromkeys(name for change in page if (name := name_of(change)))
    sums: dict[str, str] = {}
    for name in names:
        _count(db, name, sums)
    _put_sums(db, sums)
    changes.put_meta(db, _CURSOR, str(page[-1].seq))
    return len(page) < _PAGE


def is_behind(db: Connection) -> bool:
    """Whether there are uncounted changes."""
    return changes.newest(db) > int(SQL.meta_value(db, name=_CURSOR) or 0)


def sums_below(db: Connection, prefix: str) -> dict[str, str]:
    """The sums of the prefixes that are one digit longer than `prefix`."""
    rows = SQL.sums_below(db, low=prefix, high=prefix + "g", length=len(prefix) + 1)
    return dict(rows)


def leaves_at(db: Connection, place: str) -> dict[Name, str]:
    """The digests of all entities at a place."""
    return {Name(*row[:3]): row[3] for row in SQL.digests_at(db, place=place)}


class HoldingsSummary(NamedTuple):
    """How much this node holds, and the digest of all of it."""

    digest: str
    projects: int
    contracts: int
    packets: int
    files: int
    conflicts: int
    deferred: int


def held(db: Connection) -> HoldingsSummary:
    """The digest of all that `catch_up` has counted, and the numbers of stored entities."""
    root = reduce(digest.xor, sums_below(db, "").values(), digest.NOTHING)
    return HoldingsSummary(root, *SQL.held_counts(db))


def held_of(db: Connection, name: Name) -> str:
    """The digest of an entity as it was last counted."""
    [stored_digest] = db.execute(_DIGEST, name._asdict()).fetchone() or [digest.NOTHING]
    return str(stored_digest)


def leaf_of(db: Connection, name: Name) -> str:
    """The digest of an entity as it is stored now; NOTHING for content of a deleted project."""
    state = list(_state(db, name))
    if not state and SQL.is_deleted(db, project_id=name.project_id) is not None:
        return digest.NOTHING
    return digest.leaf(name, state)


def forget_content(db: Connection, project_id: str) -> None:
    """Take what was counted of a deleted project's content out of the sums."""
    sums: dict[str, str] = {}
    for place, known in SQL.content_digests(db, project_id=project_id):
        _add(db, place, known, sums)
    SQL.drop_content_digests(db, project_id=project_id)
    _put_sums(db, sums)


def _count(db: Connection, name: Name, sums: dict[str, str]) -> None:
    place = digest.place_of(name)
    at = name._asdict()
    before = held_of(db, name)
    now = leaf_of(db, name)
    if now == before:
        return
    db.execute(_PUT_DIGEST, {**at, "place": place, "digest": now})
    _add(db, place, digest.xor(before, now), sums)


def _add(db: Connection, place: str, change: str, sums: dict[str, str]) -> None:
    """Apply a change of a digest to the sums of its prefixes."""
    for prefix in digest.prefixes_of(place):
        known = sums.get(prefix)
        if known is None:
            [known] = db.execute(_SUM, {"prefix": prefix}).fetchone() or [digest.NOTHING]
        sums[prefix] = digest.xor(known, change)


def _put_sums(db: Connection, sums: dict[str, str]) -> None:
    db.executemany(
        _PUT_SUM, [{"prefix": prefix, "digest": total} for prefix, total in sums.items()]
    )


def _state(db: Connection, name: Name) -> Iterable[bytes]:
    """The parts of an entity's state that are the same on all nodes with the same data; empty when
    the entity is not stored."""
    if name.entity == "project":
        rows = [*SQL.project_state(db, project_id=name.project_id)]
        rows += SQL.verification_policy_state(db, project_id=name.project_id)
        rows += SQL.repo_states(db, project_id=name.project_id)
        rows += SQL.lost_claim_states(db, project_id=name.project_id)
        rows += SQL.release_states(db, project_id=name.project_id)
        rows += SQL.lifecycle_state(db, project_id=name.project_id)
        return [orjson.dumps(row) for row in rows]
    if name.entity == "contract":
        return [
            f"{kind}\n{key}\n".encode() + _canonical(body)
            if created_at is None
            else f"{kind}\n\n".encode() + _canonical(orjson.dumps([key, body, created_at]).decode())
            for kind, key, body, created_at in db.execute(_FACTS, name._asdict())
        ]
    if name.entity == "receipt":
        rows = SQL.receipt_states(db, entity_id=name.entity_id)
        return [_canonical(body) for (body,) in rows]
    if name.entity == "context":
        packet = context_packets.signed(db, name.project_id, name.entity_id)
        return [] if packet is None else [_canonical(packet[0])]
    state = SQL.file_state if name.entity == "file" else SQL.file_request_state
    rows = [*state(db, project_id=name.project_id, entity_id=name.entity_id)]
    return [orjson.dumps(row) for row in rows]


def _canonical(text: str) -> bytes:
    """The canonical JSON, as it was signed: members may have changed their order on the way."""
    try:
        return canonical(orjson.loads(text))
    except (ValueError, Refusal):
        # No node signed this: the row is damaged, and is counted as it is.
        return text.encode()
