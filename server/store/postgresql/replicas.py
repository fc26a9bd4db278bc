"""The replicas that run: each renews its row every second, and reads those of the others."""

from typing import NamedTuple

from server.store.connection import Connection

AWAY = 5_000_000
"""Microseconds after which a replica that was not heard of counts as away."""
FORGOTTEN = 60_000_000
"""Microseconds after which it is forgotten."""


class Replica(NamedTuple):
    """A replica as it tells of itself. `migration` is the newest one that its release knows; times
    are microseconds since 1970 of the database server; `report` is JSON."""

    replica: str
    address: str
    version: str
    migration: str
    started_at: int
    seen_at: int
    status: str
    report: str = "{}"

    def is_away(self, now: int) -> bool:
        """Whether it was not heard of lately."""
        return now - self.seen_at > AWAY


class Announced(NamedTuple):
    """What a replica tells of itself."""

    replica: str
    address: str
    version: str
    migration: str
    status: str
    report: str = "{}"


def beat(db: Connection, own: Announced) -> tuple[list[Replica], int]:
    """Renew a replica's row. Returns all that are known, oldest first, and the server's time."""
    db.execute(_BEAT, own)
    db.execute(_FORGET, (FORGOTTEN,))
    return every(db)


def every(db: Connection) -> tuple[list[Replica], int]:
    """All replicas that are known, the oldest first, and the server's time."""
    rows = db.execute(_EVERY).fetchall()
    return [Replica(*row) for row in rows], server_time(db)


def server_time(db: Connection) -> int:
    """The server's time, in microseconds since 1970."""
    return int(db.execute("SELECT server_time()").fetchone()[0])


def leave(db: Connection, replica: str) -> None:
    """Forget a replica that stops."""
    db.execute("DELETE FROM replicas WHERE replica = ?", (replica,))


_BEAT = (
    "INSERT INTO replicas"
    " (replica, address, version, migration, status, report, started_at, seen_at)"
    " VALUES (?, ?, ?, ?, ?, ?, clock_timestamp(), clock_timestamp())"
    " ON CONFLICT (replica) DO UPDATE SET address = excluded.address, version = excluded.version,"
    " migration = excluded.migration, status = excluded.status, report = excluded.report,"
    " seen_at = excluded.seen_at"
)
_FORGET = (
    "DELETE FROM replicas"
    " WHERE seen_at < clock_timestamp() - CAST(? AS DOUBLE PRECISION) * interval '1 microsecond'"
)
_EVERY = """
SELECT replica, address, version, migration,
    CAST(EXTRACT(EPOCH FROM started_at) * 1000000 AS BIGINT),
    CAST(EXTRACT(EPOCH FROM seen_at) * 1000000 AS BIGINT), status, report
FROM replicas ORDER BY started_at, replica
"""
