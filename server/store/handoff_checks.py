"""The checks of handoffs' evidence that were made at this node (design-next N2)."""

from typing import Any

import orjson

from server.domain.acp.evidence import RecordedCheck
from server.store.connection import Connection
from server.store.sql import SQL


def put(
    db: Connection,
    handoff_id: str,
    package_hash: str,
    *,
    checked_by: str,
    commands: list[dict[str, Any]],
    stamp: int,
) -> None:
    """Record the check of a package by an agent, an address, in place of its last one."""
    SQL.put_handoff_check(
        db,
        handoff_id=handoff_id,
        checked_by=checked_by,
        package_hash=package_hash,
        commands_json=orjson.dumps(commands).decode(),
        at=stamp,
    )


def last(db: Connection, handoff_id: str, package_hash: str) -> RecordedCheck | None:
    """The latest check of a handoff with this package."""
    row = SQL.handoff_check(db, handoff_id=handoff_id, package_hash=package_hash)
    if row is None:
        return None
    checked_by, at, commands = row
    return RecordedCheck(checked_by, at, orjson.loads(commands))
