"""When a message is pushed again (acp-canonical §10, §12.5). Pure: time and chance are arguments.

Each push channel of a recipient has one record for each message, which is never deleted:

    due ─▶ under way ─▶ delivered, until its lease ends unacknowledged ─▶ due
               └─▶ waits, twice as long after each failure ─▶ due … ─▶ failed after `attempts`

A push counts as failed when it starts, and succeeding resets that count. So a push that kills the
node is retried, but not endlessly. In any case the message stays in the inbox.
"""

from typing import NamedTuple

from peers.backoff import delay
from schemas.acp import ACPMessageStatus
from server.domain.acp.breaker import Trip
from server.domain.acp.routing import Channel

SECOND = 1_000_000
HOUR = 3_600 * SECOND


class Terms(NamedTuple):
    """The timing of pushes, in microseconds, and their limits."""

    lease: int = 300 * SECOND
    """The time from a successful push to the next one, unless the message is acknowledged. It
    doubles with each push, up to an hour or this value if larger."""
    retry: int = 5 * SECOND
    """The first wait after a failure."""
    attempts: int = 12
    """Failures in a row after which a push is given up."""
    repeats: int = 6
    """How often one message is pushed to a webhook or a command; to sessions, without limit."""

    @property
    def trip(self) -> Trip:
        """When the breaker of a recipient's channel opens."""
        return Trip(failures=5, window=10 * 60 * SECOND, open=6 * self.retry)


class Push(NamedTuple):
    """A message on one channel of a recipient. `due` is the time of the next push, microseconds
    since 1970; None when there is none."""

    status: ACPMessageStatus = "pending"
    pushes: int = 0
    failures: int = 0
    due: int | None = 0


def lease(pushes: int, terms: Terms) -> int:
    """The lease, in microseconds, of the successful push with the number `pushes`."""
    doubled = terms.lease << min(max(pushes - 1, 0), 30)
    return min(doubled, max(terms.lease, HOUR))


def started(push: Push, now: int, patience: int) -> Push:
    """The push when it starts; it is due again if it has no outcome within `patience`."""
    return push._replace(failures=push.failures + 1, due=now + patience)


def taken(push: Push, channel: Channel, now: int, terms: Terms) -> Push:
    """The push after it succeeded, with its lease."""
    pushes = push.pushes + 1
    last = channel != "session" and pushes >= terms.repeats
    due = None if last else now + lease(pushes, terms)
    return Push("delivered", pushes, 0, due)


def failed(push: Push, now: int, terms: Terms, chance: float) -> Push:
    """The push after it failed. After `attempts` failures it is given up."""
    if push.failures < terms.attempts:
        first = terms.retry / SECOND
        seconds = delay(max(push.failures, 1), chance, first=first, cap=max(first, HOUR / SECOND))
        return push._replace(due=now + max(int(seconds * SECOND), 1))
    return push._replace(status="failed" if push.status == "pending" else push.status, due=None)
