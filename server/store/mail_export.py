"""Messages, receipts and audit as lines of JSON: complete and resumable (acp-canonical §9.1).

Files are only appended to. `export.json` records for each file how many bytes are complete and the
position of its last line; the next run truncates what an interrupted run wrote after that.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from server.domain.location import Location
from server.store import mailboxes
from server.store.connection import Connection
from server.store.export import view
from server.store.messages import MessageRow
from server.store.sql import SQL
from server.store.streaming import streamed

STATE = "export.json"
LINES = 500
"""Lines between two updates of `export.json`."""

Line = tuple[list[Any], bytes]
"""The position of a line in its order, and its text."""


def export(source: Location, folder: Path) -> dict[str, int]:
    """Append to the files of a folder what a snapshot of the database adds; returns the number of
    lines added to each.

    `messages.jsonl` holds {message, receipts} in the order of their last change, `archive.jsonl`
    the same for archived messages, `audit.jsonl` the audit events. Raises OSError and
    what the database's driver raises.
    """
    state: dict[str, Any] = {}
    if (folder / STATE).exists():
        state = orjson.loads((folder / STATE).read_bytes())
    counts = {}
    with view(source) as db:
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
    """Write `export.json` after the data that it declares complete is on disk."""
    flush()
    os.fsync(descriptor)
    part = folder / f"{STATE}.part"
    part.write_bytes(orjson.dumps(state))
    part.replace(folder / STATE)


def _messages(db: Connection, last: list[Any] | None) -> Iterator[Line]:
    changed, message_id = last or ("", "")
    with streamed(db, SQL.mail_messages, changed=changed, id=message_id) as rows:
        for *row, at in rows:
            message = MessageRow(*row)
            yield [at, message.id], mailboxes.whole(db, message)


def _archive(db: Connection, last: list[Any] | None) -> Iterator[Line]:
    with streamed(db, SQL.mail_archive, seq=last[0] if last else 0) as rows:
        for seq, document in rows:
            yield [seq], document.encode()


def _audit(db: Connection, last: list[Any] | None) -> Iterator[Line]:
    with streamed(db, SQL.mail_audit, seq=last[0] if last else 0) as rows:
        for row in rows:
            event = dict(zip(rows.columns, row, strict=True))
            event["detail"] = orjson.loads(event["detail"]) if event["detail"] else None
            yield [row[0]], orjson.dumps(event)
