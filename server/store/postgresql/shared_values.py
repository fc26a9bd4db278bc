"""What one replica keeps for a while so that another one finds it: open handshakes, granted keys,
nudges. Lost when the database server crashes, as it is with the process of a single node."""

from server.store.connection import Connection


def put(db: Connection, name: str, value: str, seconds: float) -> None:
    """Keep a value for so long."""
    db.execute(_PUT, (name, value, int(seconds * 1_000_000)))


def put_new(db: Connection, name: str, value: str, seconds: float) -> tuple[str, float] | None:
    """Keep a value unless there is one. Returns the one that there is, with the seconds that it is
    kept for still; None when this one was put."""
    while db.execute(_PUT_NEW, (name, value, int(seconds * 1_000_000))).fetchone() is None:
        row = db.execute(_FIND, (name,)).fetchone()
        if row is not None:
            return str(row[0]), row[1] / 1_000_000
    return None


def find(db: Connection, name: str) -> str | None:
    row = db.execute(_FIND, (name,)).fetchone()
    return None if row is None else str(row[0])


def take(db: Connection, name: str) -> str | None:
    """Remove a value, and return it; only one of several callers gets it."""
    row = db.execute(_TAKE, (name,)).fetchone()
    return None if row is None else str(row[0])


def count(db: Connection, prefix: str) -> int:
    """How many values there are whose names begin so."""
    return int(db.execute(_COUNT, (prefix,)).fetchone()[0])


def forget_old(db: Connection) -> None:
    db.execute("DELETE FROM shared_values WHERE until < server_time()")


_PUT = (
    "INSERT INTO shared_values (name, value, until) VALUES (?, ?, server_time() + ?)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value, until = excluded.until"
)
_PUT_NEW = (
    "INSERT INTO shared_values AS kept (name, value, until) VALUES (?, ?, server_time() + ?)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value, until = excluded.until"
    " WHERE kept.until < server_time() RETURNING name"
)
_FIND = (
    "SELECT value, until - server_time() FROM shared_values"
    " WHERE name = ? AND until >= server_time()"
)
_TAKE = "DELETE FROM shared_values WHERE name = ? AND until >= server_time() RETURNING value"
_COUNT = "SELECT count(*) FROM shared_values WHERE starts_with(name, ?) AND until >= server_time()"
