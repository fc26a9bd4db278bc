"""Which database this is: a restored one must not go on with the epoch of what was copied.

PostgreSQL's tools can't mark a copy. But a dump that is restored is another database, a database on
another server has another system identifier, and a server that was recovered to an earlier time
began a new timeline. So does a standby that takes over, whose history is the same: then a replica
that has run meanwhile vouches for it.
"""

from contextlib import suppress
from typing import NamedTuple

import psycopg

from server.store.postgresql.fitness import PgAsked


class Identity(NamedTuple):
    """What tells a database from its copies; a part is empty where the server does not say."""

    system: str
    """The server's data directory, and the standbys that follow it."""
    database: str
    timeline: str

    @property
    def text(self) -> str:
        """As it is stored."""
        return "/".join(self)

    @classmethod
    def parse(cls, text: str) -> "Identity":
        """The identity that was stored as `text`."""
        return cls(*text.split("/"))


def identity_of(db: PgAsked) -> Identity:
    """The identity of a connection's database, which is in no transaction."""
    return Identity(*(_ask(db, sql) for sql in (_SYSTEM, _DATABASE, _TIMELINE)))


def is_copy(stored: Identity, now: Identity, *, vouched: bool) -> bool:
    """Whether `now` is a copy of the database that `stored` was, or an earlier state of it.

    `vouched`: a replica has used it since the server started.
    """
    if _differ(stored.system, now.system) or _differ(stored.database, now.database):
        return True
    return _differ(stored.timeline, now.timeline) and not vouched


def _differ(part: str, other: str) -> bool:
    return bool(part and other and part != other)


def _ask(db: PgAsked, sql: str) -> str:
    # Not every compatible engine has these functions, and some only for a few users.
    with suppress(psycopg.DatabaseError):
        return str(db.execute(sql).fetchone()[0])
    return ""


_SYSTEM = "SELECT CAST(system_identifier AS TEXT) FROM pg_control_system()"
_DATABASE = "SELECT CAST(oid AS TEXT) FROM pg_database WHERE datname = current_database()"
_TIMELINE = "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)"
