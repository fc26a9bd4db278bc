"""All data of a node except its secrets, row by row, for `cacp export`."""

import base64
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import orjson

from schemas.base import iso
from server.domain.location import DatabaseUrl, Location
from server.store.connection import Connection
from server.store.sql import SQL
from server.store.streaming import streamed

_TIMES = frozenset(
    {"created_at", "claimed_at", "registered_at", "last_seen", "renewed_at", "at", "closed_at"}
)
_JSON = frozenset({"relevant_paths", "related_contracts", "body", "manifest", "chain", "line"})

ENTITIES = (
    "projects",
    "repos",
    "aliases",
    "claim_conflicts",
    "stated_releases",
    "project_lifecycle",
    "contracts",
    "facts",
    "packets",
    "files",
    "file_requests",
    "changes",
    "peers",
    "directory",
    "messages",
    "deliveries",
    "messages_archive",
    "acp_audit",
    "handoffs",
    "handoff_history",
    "handoff_checks",
    "teamspaces",
    "team_members",
    "tasks",
    "team_log",
)
"""The exported entities. Keys, tokens and the node's secret are left out."""


@contextmanager
def view(location: Location) -> Iterator[Connection]:
    """A consistent, read-only view of a node's database, whether or not the node runs."""
    if isinstance(location, DatabaseUrl):
        from server.store.postgresql.stream import snapshot as view_of

        with view_of(location) as db:
            yield db
    else:
        with snapshot(Path(location)) as db:
            yield db


@contextmanager
def snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """A consistent, read-only view of a node's file, whether or not the node runs."""
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as db:
        db.execute("BEGIN")
        yield db


def lines(db: Connection, entity: str) -> Iterator[bytes]:
    """Each row of an entity as a line of JSON. Times are ISO 8601; stamps by which facts are merged
    stay microseconds; contents of files are base64."""
    with streamed(db, getattr(SQL, f"export_{entity}")) as rows:
        for row in rows:
            yield orjson.dumps(_shown(dict(zip(rows.columns, row, strict=True)))) + b"\n"


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    if "document" in row:
        whole: dict[str, Any] = orjson.loads(row.pop("document"))
        if "history" in row:
            whole["history"] = orjson.loads(row.pop("history"))
        return row | whole
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    # Tables of mail store times as text (acp-canonical §9).
    if name in _TIMES and isinstance(value, int):
        return iso(value)
    if name in _JSON or name.endswith("_json"):
        return orjson.Fragment(value)
    return base64.b64encode(value).decode() if name == "content" else value
