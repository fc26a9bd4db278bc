"""The duty to do what only one replica may do, as a row (`server.domain.duty` decides about it).

Each function is one statement, so that each is whole by itself outside of a transaction.
"""

from server.domain.duty import LEASE, Lease
from server.store.connection import Connection
from server.util.duty import HeldDuty, duty_lost

BACKGROUND = "background"


def look(db: Connection) -> tuple[Lease | None, int]:
    """The lease, and the server's time."""
    holder, epoch, until, now = db.execute(_LOOK, (BACKGROUND,)).fetchone()
    return None if holder is None else Lease(holder, epoch, until), now


def take(db: Connection, seen: Lease | None, replica: str) -> int | None:
    """Take the duty, if the lease still is as it was seen. Returns the new epoch; None when another
    replica was faster."""
    if seen is None:
        row = db.execute(_FIRST, (BACKGROUND, replica, LEASE)).fetchone()
    else:
        row = db.execute(_TAKE, (replica, LEASE, BACKGROUND, *seen)).fetchone()
    return None if row is None else int(row[0])


def renew(db: Connection, replica: str, epoch: int) -> bool:
    """Renew the lease. Returns False when it has lapsed, or another replica has it."""
    return db.execute(_RENEW, (LEASE, BACKGROUND, replica, epoch)).fetchone() is not None


def release(db: Connection, replica: str, epoch: int) -> None:
    """Give the duty back, so that another replica takes it at once."""
    db.execute(_RELEASE, (BACKGROUND, replica, epoch))


def verify(db: Connection, duty: HeldDuty) -> None:
    """In a transaction: raise Unavailable unless the duty is still held with this epoch. Nobody can
    take it until the transaction has ended."""
    if db.execute(_VERIFY, (BACKGROUND, duty.replica, duty.epoch)).fetchone() is None:
        raise duty_lost()


_LOOK = (
    "SELECT holder, epoch, until, server_time() FROM (SELECT) AS one LEFT JOIN duties ON name = ?"
)
_FIRST = (
    "INSERT INTO duties (name, holder, epoch, until) VALUES (?, ?, 1, server_time() + ?)"
    " ON CONFLICT (name) DO NOTHING RETURNING epoch"
)
_TAKE = (
    "UPDATE duties SET holder = ?, epoch = epoch + 1, until = server_time() + ?"
    " WHERE name = ? AND holder = ? AND epoch = ? AND until = ? RETURNING epoch"
)
_RENEW = (
    "UPDATE duties SET until = server_time() + ?"
    " WHERE name = ? AND holder = ? AND epoch = ? AND until > server_time() RETURNING epoch"
)
_RELEASE = "UPDATE duties SET until = 0 WHERE name = ? AND holder = ? AND epoch = ?"
_VERIFY = "SELECT epoch FROM duties WHERE name = ? AND holder = ? AND epoch = ? FOR SHARE"
