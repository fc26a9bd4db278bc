"""Requests that replicas hand out: one bucket for each caller, from which a replica takes some at a
time (`server.http.rate_limit`)."""

from typing import NamedTuple

from server.store.connection import Connection

IDLE = 120_000_000
"""Microseconds after which a caller's bucket is full again, and forgotten."""


class Granted(NamedTuple):
    """How many requests a replica may admit now. `wait` is in seconds; it is None when there are
    some, else until there is one."""

    requests: int
    wait: float | None = None


def take(db: Connection, caller: str, *, per_minute: int, wanted: int, owed: int) -> Granted:
    """Take up to `wanted` requests of a caller's bucket. `owed` is what was admitted already beyond
    what was taken; it may leave the bucket in debt."""
    values = {"caller": caller, "most": per_minute, "wanted": wanted, "owed": owed}
    granted, left = db.execute(_TAKE, values).fetchone()
    if granted >= 1:
        return Granted(int(granted))
    return Granted(0, (1 - left) * 60 / per_minute)


def forget_idle(db: Connection) -> None:
    """Forget the callers whose buckets are full."""
    db.execute("DELETE FROM request_rates WHERE at < server_time() - ?", (IDLE,))


_TAKE = """
INSERT INTO request_rates AS kept (caller, left_, granted, at)
SELECT CAST(:caller AS TEXT), full_ - LEAST(wanted, GREATEST(0, FLOOR(full_))),
    LEAST(wanted, GREATEST(0, FLOOR(full_))), server_time()
FROM (
    SELECT CAST(:most AS DOUBLE PRECISION) - CAST(:owed AS DOUBLE PRECISION) AS full_,
        CAST(:wanted AS DOUBLE PRECISION) AS wanted
) AS asked
ON CONFLICT (caller) DO UPDATE SET (left_, granted, at) = (
    SELECT now_left - LEAST(wanted, GREATEST(0, FLOOR(now_left))),
        LEAST(wanted, GREATEST(0, FLOOR(now_left))), GREATEST(kept.at, excluded.at)
    FROM (
        SELECT LEAST(
                CAST(:most AS DOUBLE PRECISION),
                kept.left_ + GREATEST(0, excluded.at - kept.at)
                    * CAST(:most AS DOUBLE PRECISION) / 60000000
            ) - CAST(:owed AS DOUBLE PRECISION) AS now_left,
            CAST(:wanted AS DOUBLE PRECISION) AS wanted
    ) AS asked
)
RETURNING granted, left_
"""
