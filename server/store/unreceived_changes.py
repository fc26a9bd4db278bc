"""Changes that no other node has received yet, so that their stamps may still be corrected.

A node sends nothing before it has compared clocks (`peers.timekeeper`). So no other node has what
it wrote between its start and that comparison, or anything of a node that never had a peer.
"""

from collections import Counter
from typing import NamedTuple

from peers.clock import AHEAD, Shift, shift_of
from server.store import changes, claims, context_packets, contracts, files, lifecycle, projects
from server.store.connection import Connection
from server.store.sql import SQL

_GIVEN = "given"
_ALL = "all"
_REPAIRED = "repaired"


def last_received(db: Connection) -> int:
    """The last change that another node may have received: once this node has had a peer, the last
    one before this start."""
    given = _given(db)
    changes.put_meta(db, _GIVEN, str(given))
    return given


def has_unreceived(db: Connection, node: str) -> bool:
    """Whether there are changes that no other node has received yet."""
    given = SQL.meta_value(db, name=_GIVEN)
    return given != _ALL and bool(SQL.has_unreceived(db, given=int(given or 0), origin=node))


def correct_at_start(db: Connection, *, node: str, given: int, now: int) -> Shift | None:
    """Correct the stamps of unreceived changes that are ahead of the time, and regard later changes
    as received. Returns the shift; None when nothing was too far ahead.
    """
    changes.put_meta(db, _GIVEN, _ALL)
    return _restamp(db, node, given, now)


class Ahead(NamedTuple):
    """How many entities of each kind are stamped ahead of the time: unreceived ones, and those that
    other nodes may have received."""

    unreceived: dict[str, int]
    received: dict[str, int]


def count_ahead(db: Connection, *, node: str, now: int) -> Ahead:
    """The entities that `correct_by_operator` would correct, and those that it would leave."""
    reach = {"given": _given(db), "origin": node, "now": now}
    newest, floor = SQL.reach_of_unreceived(db, **reach)
    mended = shift_of(newest or 0, floor or 0, now) is not None
    unreceived = (
        Counter(row[0] for row in SQL.unreceived_ahead(db, **reach)) if mended else Counter()
    )
    # A difference within the tolerance between clocks is no fault.
    received = Counter(row[0] for row in SQL.received_ahead(db, **reach | {"now": now + AHEAD}))
    return Ahead(dict(unreceived), dict(received))


def correct_by_operator(db: Connection, *, node: str, now: int) -> Shift | None:
    """Correct the stamps of unreceived changes that are ahead of the time; they stay unreceived. A
    running node notices by `last_correction`. Returns the shift; None when nothing was too far
    ahead."""
    moved = _restamp(db, node, _given(db), now)
    if moved is not None:
        changes.put_meta(db, _REPAIRED, str(changes.newest(db)))
    return moved


def last_correction(db: Connection) -> int:
    """The last change of the latest correction; 0 when there was none."""
    return int(SQL.meta_value(db, name=_REPAIRED) or 0)


def _given(db: Connection) -> int:
    known = SQL.meta_value(db, name=_GIVEN)
    return changes.newest(db) if known in (None, _ALL) else int(known)


def _restamp(db: Connection, node: str, given: int, now: int) -> Shift | None:
    reach = {"given": given, "origin": node, "now": now}
    newest, floor = SQL.reach_of_unreceived(db, **reach)
    moved = shift_of(newest or 0, floor or 0, now)
    if moved is None:
        return None
    entities = list(SQL.unreceived_ahead(db, **reach))
    SQL.put_back_changes(db, **reach)
    for entity, entity_id, project_id in entities:
        if entity == "contract":
            contracts.restamp(db, project_id, entity_id, moved.move)
        elif entity == "receipt":
            contracts.restamp(db, project_id, entity_id, moved.move, receipts=True)
        elif entity == "context":
            context_packets.restamp(db, project_id, entity_id, moved.move)
        elif entity in ("file", "file_request"):
            files.restamp(db, project_id, entity_id, moved.move)
        else:
            _restamp_project(db, project_id, moved)
        changes.append(
            db,
            at=now,
            origin=node,
            actor=node,
            action="clock",
            entity=entity,
            entity_id=entity_id,
            project_id=project_id,
            outcome="restamped",
        )
    return moved


def _restamp_project(db: Connection, project_id: str, moved: Shift) -> None:
    register = lifecycle.find(db, project_id)
    if register is not None and register.signature is None:
        lifecycle.put(db, project_id, register._replace(stamp=moved.move(register.stamp)))
    for repo_id, (by_node, release) in claims.stated_in(db, project_id):
        if release.signature is None:
            again = release._replace(released_at=moved.move(release.released_at))
            claims.state_release(db, project_id, repo_id, by_node, again)
    header = projects.header(db, project_id)
    if header is None:
        return
    stamp, created_at = moved.move(header.stamp), moved.move(header.created_at)
    if header.signature is None:
        projects.update_header(db, header._replace(stamp=stamp, created_at=created_at))
    for repo in projects.repos(db, project_id):
        if repo.signature is None:
            projects.update_repo(db, project_id, repo._replace(stamp=moved.move(repo.stamp)))
        settled = [
            claim
            if claim.signature is not None
            else claim._replace(
                claimed_at=moved.move(claim.claimed_at), renewed_at=moved.move(claim.renewed_at)
            )
            for claim in claims.every(db, project_id, repo.repo_id)
        ]
        claims.settle(db, project_id, repo.repo_id, settled)
