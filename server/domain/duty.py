"""Which replica has the duty to do what only one of them may do, decided without a clock.

The duty is a lease, a row that all replicas see: a holder, an epoch, and an end in the time of the
database server. Each holder gets an epoch of its own, and every write in the name of the duty
verifies it in its own transaction. So a replica that was paused and wakes up writes nothing, and
clocks decide only who tries when.
"""

from typing import Literal, NamedTuple

SECOND = 1_000_000
LEASE = 10 * SECOND
RENEW = 3 * SECOND
"""How often the holder renews its lease."""
MARGIN = SECOND
"""How much earlier than the lease the holder stops: two machines' seconds are not quite equal."""
STALE = 2 * LEASE
"""A lease that nobody has renewed for so long has ended, whatever its end says: the server's clock
was set back."""


class Lease(NamedTuple):
    """The row. `until` is in microseconds since 1970 of the database server; 0 when released."""

    holder: str
    epoch: int
    until: int


Step = Literal["take", "renew", "wait"]


def step(lease: Lease | None, replica: str, *, epoch: int | None, now: int, unchanged: int) -> Step:
    """What a replica does about a lease at `now` of the server's time.

    `epoch` is the one that the replica holds the duty with, None when it doesn't; `unchanged`, for
    how many microseconds of its own steady clock it has seen the lease as it is. A holder whose
    lease has lapsed takes it anew: others may have seen it lapse.
    """
    if lease is None:
        return "take"
    if lease.holder == replica:
        return "renew" if epoch == lease.epoch and now < lease.until else "take"
    return "take" if lease.until <= now or unchanged >= STALE else "wait"


def taken(lease: Lease | None, replica: str, now: int) -> Lease:
    """The lease once a replica has taken it."""
    return Lease(replica, lease.epoch + 1 if lease is not None else 1, now + LEASE)


def end_of(sent: int) -> int:
    """Until when a holder may act, by its own steady clock: it sent the renewal at `sent`, and the
    server counts from when it came."""
    return sent + LEASE - MARGIN
