"""What this node has written and no other has taken yet: it may still be stamped anew.

A node sends nothing before it has compared clocks (`peers.timekeeper`), so what it wrote before
that since its start is its own affair; and what a node without peers ever wrote.
"""

import sqlite3

from peers.clock import Shift, shift_of
from server.store import changes, claims, contracts, files, packets, projects
from server.store.sql import SQL

_GIVEN = "given"
_ALL = "all"


def begin(db: sqlite3.Connection) -> int:
    """The last change that another node may have taken; all of those before this start, once this
    node has had a peer."""
    known = SQL.meta_value(db, name=_GIVEN)
    given = int(known) if known not in (None, _ALL) else changes.newest(db)
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
    reach = {"given": given, "origin": node, "now": now}
    newest, floor = SQL.reach_of_untaken(db, **reach)
    moved = shift_of(newest or 0, floor or 0, now)
    if moved is None:
        return None
    for entity, entity_id, project_id in SQL.untaken_ahead(db, **reach):
        if entity == "contract":
            contracts.restamp(db, project_id, entity_id, moved.move)
        elif entity == "context":
            packets.restamp(db, project_id, entity_id, moved.move)
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
    projects.update_header(db, header._replace(stamp=stamp, created_at=created_at))
    for repo in projects.repos(db, project_id):
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
