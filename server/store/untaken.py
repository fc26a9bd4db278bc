"""What this node has written and no other has taken yet: it may still be stamped anew.

A node sends nothing before it has compared clocks (`peers.timekeeper`), so what it wrote before
that since its start is its own affair; and what a node without peers ever wrote.
"""

import sqlite3
from collections import Counter
from typing import NamedTuple

from peers.clock import AHEAD, Shift, shift_of
from server.store import changes, claims, context_packets, contracts, files, projects
from server.store.sql import SQL

_GIVEN = "given"
_ALL = "all"
_REPAIRED = "repaired"


def begin(db: sqlite3.Connection) -> int:
    """The last change that another node may have taken; all of those before this start, once this
    node has had a peer."""
    given = _given(db)
    changes.put_meta(db, _GIVEN, str(given))
    return given


def is_any(db: sqlite3.Connection, node: str) -> bool:
    """Whether there is something that no other node has taken yet."""
    given = SQL.meta_value(db, name=_GIVEN)
    return given != _ALL and bool(SQL.is_untaken(db, given=int(given or 0), origin=node))


def bring_back(db: sqlite3.Connection, *, node: str, given: int, now: int) -> Shift | None:
    """Stamp anew what is ahead of the time and not taken, and count the rest as taken from now on.

    How it was moved; None when nothing was too far ahead.
    """
    changes.put_meta(db, _GIVEN, _ALL)
    return _restamp(db, node, given, now)


class Ahead(NamedTuple):
    """What is stamped ahead of the time, of each kind how many: that nobody else has taken yet,
    and that others may have."""

    untaken: dict[str, int]
    taken: dict[str, int]


def ahead(db: sqlite3.Connection, *, node: str, now: int) -> Ahead:
    """What `repair` would stamp anew, and what it would leave."""
    reach = {"given": _given(db), "origin": node, "now": now}
    newest, floor = SQL.reach_of_untaken(db, **reach)
    mended = shift_of(newest or 0, floor or 0, now) is not None
    untaken = Counter(row[0] for row in SQL.untaken_ahead(db, **reach)) if mended else Counter()
    # A change is not ahead by a fault when it is by no more than clocks may differ.
    taken = Counter(row[0] for row in SQL.taken_ahead(db, **reach | {"now": now + AHEAD}))
    return Ahead(dict(untaken), dict(taken))


def repair(db: sqlite3.Connection, *, node: str, now: int) -> Shift | None:
    """Stamp anew what is ahead of the time and nobody else has taken; it may still be taken by
    nobody. A running node sees it by `repaired`. How it was moved; None when nothing was too far
    ahead."""
    moved = _restamp(db, node, _given(db), now)
    if moved is not None:
        changes.put_meta(db, _REPAIRED, str(changes.newest(db)))
    return moved


def repaired(db: sqlite3.Connection) -> int:
    """The last change of the last repair; 0 when there was none."""
    return int(SQL.meta_value(db, name=_REPAIRED) or 0)


def _given(db: sqlite3.Connection) -> int:
    known = SQL.meta_value(db, name=_GIVEN)
    return changes.newest(db) if known in (None, _ALL) else int(known)


def _restamp(db: sqlite3.Connection, node: str, given: int, now: int) -> Shift | None:
    reach = {"given": given, "origin": node, "now": now}
    newest, floor = SQL.reach_of_untaken(db, **reach)
    moved = shift_of(newest or 0, floor or 0, now)
    if moved is None:
        return None
    found = list(SQL.untaken_ahead(db, **reach))
    SQL.put_back_changes(db, **reach)
    for entity, entity_id, project_id in found:
        if entity == "contract":
            contracts.restamp(db, project_id, entity_id, moved.move)
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


def _restamp_project(db: sqlite3.Connection, project_id: str, moved: Shift) -> None:
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
            one
            if one.signature is not None
            else one._replace(
                claimed_at=moved.move(one.claimed_at), renewed_at=moved.move(one.renewed_at)
            )
            for one in claims.every(db, project_id, repo.repo_id)
        ]
        claims.settle(db, project_id, repo.repo_id, settled)
