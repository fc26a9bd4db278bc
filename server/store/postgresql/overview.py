"""What people are shown of a database that replicas share, and of the replicas."""

from typing import NamedTuple

from server.store.connection import Connection
from server.store.postgresql import duties, replicas
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.replicas import Replica

SECONDS = 3.0
"""How long the server may take to answer."""


class Overview(NamedTuple):
    """`stamp` is that of the last write, 0 before the first; times are microseconds since 1970 of
    the database server."""

    server: str
    """The server's version, such as 15.4."""
    connections: int
    stamp: int
    now: int
    holder: str | None
    """The replica that has the background duty."""
    replicas: list[Replica]


def connect(url: str) -> PgConnection:
    """A connection to look through, again and again. Raises psycopg.Error."""
    return PgConnection(url, seconds=SECONDS)


def look(db: Connection) -> Overview:
    """The database and its replicas now. Raises psycopg.Error, as before the tables are made."""
    version, connections, stamp = db.execute(_LOOK).fetchone()
    lease, now = duties.look(db)
    known, now = replicas.every(db)
    holder = lease.holder if lease is not None and lease.until > now else None
    return Overview(version.split()[0], connections, stamp, now, holder, known)


_LOOK = """
SELECT current_setting('server_version'),
    (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),
    (SELECT stamp FROM cluster WHERE id = 1)
"""
