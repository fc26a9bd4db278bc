"""What nearly every write asks of its project first, kept between the writer's transactions.

Temporary triggers see each change of the tables behind it, whatever statement makes it: also what
peers send, and deletions by foreign keys. A commit by another process shows in `data_version`.
"""

import sqlite3

from server.store.connection import Connection
from server.store.projects import Membership

TABLES = ("projects", "repos", "project_lifecycle")
"""The tables that `server.store.projects.membership` reads."""
EVENTS = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}
"""Which rows a change of a table concerns."""
KEPT_MAX = 1_000
"""The most projects; beyond, all are forgotten."""


class Memberships:
    """The kept memberships of one connection. Only what is committed is kept, so that a transaction
    that is rolled back leaves nothing behind."""

    def __init__(self) -> None:
        self._kept: dict[str, Membership] = {}
        self._changed: set[str] = set()
        """The projects that the transaction has changed."""
        self._version = -1

    def watch(self, connection: sqlite3.Connection) -> None:
        """See what this connection changes, from now on."""
        connection.create_function("membership_changed", 1, self._note_change)
        for table in TABLES:
            for event, rows in EVENTS.items():
                changed = ", ".join(f"membership_changed({row}.project_id)" for row in rows)
                connection.execute(
                    f"CREATE TEMP TRIGGER membership_{table}_{event.lower()} AFTER {event} "
                    f"ON main.{table} BEGIN SELECT {changed}; END"
                )

    def _note_change(self, project_id: str) -> None:
        self._kept.pop(project_id, None)
        self._changed.add(project_id)

    def begin(self, connection: Connection) -> None:
        """A transaction has begun that may write."""
        self._changed.clear()
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._kept.clear()
            self._version = version

    def find(self, project_id: str) -> Membership | None:
        """The membership of a project, if it is known."""
        return self._kept.get(project_id)

    def keep(self, project_id: str, membership: Membership) -> None:
        """Note what the transaction has read."""
        if project_id in self._changed:
            return
        if len(self._kept) >= KEPT_MAX:
            self._kept.clear()
        self._kept[project_id] = membership
