"""When a message is pushed again (acp-canonical §10, §12.5). Pure: time and chance are arguments.

Each push channel of a recipient has one record for each message, which is never taken away:

    due ─▶ under way ─▶ delivered, until its lease ends unacknowledged ─▶ due
               └─▶ waits, twice as long after each failure ─▶ due … ─▶ failed after `attempts`

A push is counted as failed when it starts, and that count is cleared when it was taken: one whose
node is killed comes back too, but can't take the node with it for ever. Whatever becomes of it, the
message stays in the inbox.
"""

from typing import NamedTuple

from peers.backoff import delay
from schemas.acp import ACPMessageStatus
from server.domain.acp.breaker import Trip
from server.domain.acp.routing import Channel

SECOND = 1_000_000
HOUR = 3_600 * SECOND


class Terms(NamedTuple):
    """How pushes are made. Times are microseconds."""

    lease: int = 300 * SECOND
    """From a push that was taken to the next, unless it is acknowledged; each lasts twice as long
    as the one before, but no longer than an hour, or this."""
    retry: int = 5 * SECOND
    """The first wait after a failure."""
    attempts: int = 12
    """Failures in a row after which a push is given up."""
    repeats: int = 6
    """How often one message is offered to a webhook or a command; to a session, without end."""

    @property
    def trip(self) -> Trip:
        """When a channel of a recipient is refused for a while."""
        return Trip(failures=5, window=10 * 60 * SECOND, open=6 * self.retry)


class Push(NamedTuple):
    """A message on one channel of a recipient. `due` is when something is to be done, as
    microseconds since 1970; None when there is nothing more to do."""

    status: ACPMessageStatus = "pending"
    pushes: int = 0
    failures: int = 0
    due: int | None = 0


def lease(pushes: int, terms: Terms) -> int:
    """Microseconds that the push lasts which was taken as number `pushes`."""
    doubled = terms.lease << min(max(pushes - 1, 0), 30)
    return min(doubled, max(terms.lease, HOUR))


def started(push: Push, now: int, patience: int) -> Push:
    """The push is under way, and comes back if nothing is heard of it for `patience`."""
    return push._replace(failures=push.failures + 1, due=now + patience)


def taken(push: Push, channel: Channel, now: int, terms: Terms) -> Push:
    """The push arrived, and is leased."""
    pushes = push.pushes + 1
    last = channel != "session" and pushes >= terms.repeats
    due = None if last else now + lease(pushes, terms)
    return Push("delivered", pushes, 0, due)


def failed(push: Push, now: int, terms: Terms, chance: float) -> Push:
    """The push that was under way did not arrive. One that never did fails for good at last."""
    if push.failures < terms.attempts:
        first = terms.retry / SECOND
        seconds = delay(max(push.failures, 1), chance, first=first, cap=max(first, HOUR / SECOND))
        return push._replace(due=now + max(int(seconds * SECOND), 1))
    return push._replace(status="failed" if push.status == "pending" else push.status, due=None)
