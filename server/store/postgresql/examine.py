"""What a server says of itself, for `cacp doctor`: nothing of it depends on a node's tables."""

import time
from typing import Any, NamedTuple

import psycopg

from server.store.postgresql.migrate import checked
from server.store.postgresql.storage import READERS

CONNECTIONS_PER_REPLICA = READERS + 3
"""What a replica opens: its readers, its writer, what it tells the others, and news of them."""

SETTINGS = (
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "synchronous_standby_names",
    "idle_session_timeout",
    "idle_in_transaction_session_timeout",
    "statement_timeout",
    "lock_timeout",
    "max_connections",
    "superuser_reserved_connections",
)


class Standby(NamedTuple):
    """A standby that is connected. `lag` is in bytes of its log that it has not replayed, None when
    this user may not see it."""

    name: str
    sync_state: str
    lag: int | None


class ServerFacts(NamedTuple):
    """What a server says of itself. Times are microseconds."""

    version: str
    database_bytes: int
    takes_writes: bool
    settings: dict[str, str]
    """By name. Durations are in milliseconds, 0 for none."""
    connections: int
    """Those of all clients, also of other databases on the server."""
    connections_of_nodes: int
    """Those of nodes on this database among them."""
    standbys: list[Standby]
    ahead: int
    """How far its clock is ahead of this machine's."""
    uncertainty: int
    """How wrong `ahead` may be."""
    pooled: bool
    """Whether a pooler or a proxy that speaks for the server is between."""


def examine(url: str) -> ServerFacts:
    """Ask the server at a URL. Raises psycopg.Error and ValueError."""
    with psycopg.connect(checked(url), autocommit=True, prepare_threshold=None) as db:
        settings: dict[str, str] = dict(db.execute(_SETTINGS, (list(SETTINGS),)).fetchall())
        [(version, database_bytes, takes_writes, backend)] = db.execute(_SERVER).fetchall()
        [(connections, own)] = db.execute(_CONNECTIONS).fetchall()
        standbys = [Standby(*row) for row in db.execute(_STANDBYS).fetchall()]
        ahead, uncertainty = _ahead(db)
        return ServerFacts(
            version=version,
            database_bytes=database_bytes,
            takes_writes=takes_writes,
            settings=settings,
            connections=connections,
            connections_of_nodes=own,
            standbys=standbys,
            ahead=ahead,
            uncertainty=uncertainty,
            # A pooler gives its clients numbers of its own, by which it cancels their statements.
            pooled=backend != db.info.backend_pid,
        )


def _ahead(db: "psycopg.Connection[Any]") -> tuple[int, int]:
    """How far the server's clock is ahead, by the quickest of a few answers."""
    best: tuple[int, int] | None = None
    for _ in range(3):
        sent = time.time_ns() // 1000
        [(there,)] = db.execute(_TIME).fetchall()
        received = time.time_ns() // 1000
        reading = (received - sent, int(there) - (sent + received) // 2)
        best = reading if best is None else min(best, reading)
    assert best is not None
    return best[1], best[0] // 2


_SETTINGS = """
SELECT name, CASE unit WHEN 's' THEN CAST(CAST(setting AS BIGINT) * 1000 AS TEXT) ELSE setting END
FROM pg_settings WHERE name = ANY (%s)
"""
_SERVER = """
SELECT current_setting('server_version'), pg_database_size(current_database()),
       NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off',
       pg_backend_pid()
"""
_CONNECTIONS = """
SELECT count(*), count(*) FILTER (
    WHERE application_name LIKE 'cacp%' AND datname = current_database() AND pid <> pg_backend_pid()
) FROM pg_stat_activity WHERE backend_type = 'client backend'
"""
_STANDBYS = """
SELECT coalesce(nullif(application_name, ''), host(client_addr), 'one'),
       coalesce(sync_state, 'unknown'),
       CAST(CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)
            END AS BIGINT)
FROM pg_stat_replication ORDER BY 1
"""
_TIME = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
