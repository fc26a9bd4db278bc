"""Messages, receipts and audit as lines of JSON: complete and resumable (acp-canonical §9.1).

Each file only grows. What was written is remembered in `export.json`: for each file, how many
bytes of it are whole and what its last line was; what a broken run wrote behind that is cut off.
"""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from server.store import mailboxes
from server.store.export import snapshot
from server.store.messages import MessageRow
from server.store.sql import SQL

STATE = "export.json"
LINES = 500
"""Lines that are written before they are counted as whole."""

Line = tuple[list[Any], bytes]
"""Where a line stands in its order, and its text."""


def export(source: Path, folder: Path) -> dict[str, int]:
    """Bring the files of a folder up to one moment of the database; the lines added to each.

    `messages.jsonl` holds {message, receipts} in the order of their last change, `archive.jsonl`
    the same of what was purged, `audit.jsonl` the audit events. Raises OSError and sqlite3.Error.
    """
    state: dict[str, Any] = {}
    if (folder / STATE).exists():
        state = orjson.loads((folder / STATE).read_bytes())
    counts = {}
    with snapshot(source) as db:
        for name, lines in (("messages", _messages), ("archive", _archive), ("audit", _audit)):
            counts[name] = 0
            known = state.get(name, {"bytes": 0, "last": None})
            with (folder / f"{name}.jsonl").open("ab") as out:
                out.truncate(known["bytes"])
                for last, line in lines(db, known["last"]):
                    known["bytes"] += out.write(line + b"\n")
                    known["last"] = last
                    counts[name] += 1
                    if counts[name] % LINES == 0:
                        _save(folder, out.fileno(), out.flush, state | {name: known})
                state[name] = known
                _save(folder, out.fileno(), out.flush, state)
    return counts


def _save(folder: Path, descriptor: int, flush: Any, state: dict[str, Any]) -> None:
    """What is said to be whole is on disk first."""
    flush()
    os.fsync(descriptor)
    part = folder / f"{STATE}.part"
    part.write_bytes(orjson.dumps(state))
    part.replace(folder / STATE)


def _messages(db: sqlite3.Connection, last: list[Any] | None) -> Iterator[Line]:
    changed, message_id = last or ("", "")
    with SQL.mail_messages_cursor(db, changed=changed, id=message_id) as cursor:
        for *row, at in cursor:
            message = MessageRow(*row)
            yield [at, message.id], mailboxes.whole(db, message)


def _archive(db: sqlite3.Connection, last: list[Any] | None) -> Iterator[Line]:
    with SQL.mail_archive_cursor(db, seq=last[0] if last else 0) as cursor:
        for seq, document in cursor:
            yield [seq], document.encode()


def _audit(db: sqlite3.Connection, last: list[Any] | None) -> Iterator[Line]:
    with SQL.mail_audit_cursor(db, seq=last[0] if last else 0) as cursor:
        names = [column[0] for column in cursor.description]
        for row in cursor:
            event = dict(zip(names, row, strict=True))
            event["detail"] = orjson.loads(event["detail"]) if event["detail"] else None
            yield [row[0]], orjson.dumps(event)
