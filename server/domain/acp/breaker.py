"""A circuit breaker (acp-canonical §12.4): after repeated failures, calls are refused for a while.

closed ── failures in window ──▶ open ── time ──▶ half-open ── success ──▶ closed
                                   ▲                  │  └── quiet, step by step ──▶ closed
                                   └──── failure ─────┘ (for twice as long)

Its state is stored on disk, and depends on the given time only: a restart changes nothing. No pause
exceeds `Trip.longest`, whatever the clock does.
"""

from typing import NamedTuple

from server.domain.errors import RateLimited

SECOND = 1_000_000


class Trip(NamedTuple):
    """When a breaker opens, for how long at first, and how fast it recovers. Times are
    microseconds."""

    failures: int = 20
    window: int = 60 * SECOND
    open: int = 60 * SECOND
    longest: int = 3_600 * SECOND
    calm: int = 600 * SECOND
    """How much time without a failure, after a pause, undoes one doubling of the pause."""

    @property
    def most(self) -> int:
        """The number of openings after which pauses no longer grow."""
        return (-(-self.longest // self.open) - 1).bit_length() + 1


SENDER = Trip()


class CircuitBreaker(NamedTuple):
    """The state of a breaker. Times are microseconds since 1970. `trips` counts the openings since
    the last success; `reason` is that of the last failure."""

    failures: int = 0
    since: int = 0
    open_until: int = 0
    trips: int = 0
    reason: str = ""


CLOSED = CircuitBreaker()


def wait(breaker: CircuitBreaker, now: int, trip: Trip = SENDER) -> int | None:
    """Microseconds until a call is let through again; None when that is now.

    That is now as well when the clock was set back so far that no pause could end so late.
    """
    left = breaker.open_until - now
    return left if 0 < left <= trip.longest else None


def check(breaker: CircuitBreaker, now: int) -> None:
    """Raises RateLimited (`circuit_open`) while a sender's breaker is open."""
    left = wait(breaker, now)
    if left is None:
        return
    seconds = -(-left // SECOND)
    lastly = f", most recently with {breaker.reason}" if breaker.reason else ""
    raise RateLimited(
        f"Too many of your calls were refused{lastly}. Fix the calls before you retry; "
        f"retry after {seconds} s",
        reason="circuit_open",
        retryAfter=seconds,
        cause=breaker.reason or None,
    )


def calmed(breaker: CircuitBreaker, now: int, trip: Trip = SENDER) -> CircuitBreaker:
    """The breaker after the time without failures since its pause."""
    if not breaker.trips or now < breaker.open_until:
        return breaker
    faded = (now - breaker.open_until) // trip.calm
    return breaker._replace(trips=max(min(breaker.trips, trip.most) - faded, 0))


def after_failure(
    breaker: CircuitBreaker, now: int, trip: Trip = SENDER, reason: str = ""
) -> CircuitBreaker:
    """The breaker after one more failure; an open one stays unchanged."""
    if wait(breaker, now, trip) is not None:
        return breaker
    known = calmed(breaker, now, trip)
    if known.trips:
        return _opened(known.trips + 1, now, trip, reason)
    if not 0 <= now - known.since < trip.window:
        return CircuitBreaker(1, now, reason=reason)
    if known.failures + 1 >= trip.failures:
        return _opened(1, now, trip, reason)
    return known._replace(failures=known.failures + 1, reason=reason)


def after_success(breaker: CircuitBreaker, now: int) -> CircuitBreaker:
    """The breaker after a success: a half-open one closes. A closed one keeps its count of
    failures, since failing every other time is too often as well."""
    return CLOSED if breaker.trips and now >= breaker.open_until else breaker


def _opened(trips: int, now: int, trip: Trip, reason: str) -> CircuitBreaker:
    trips = min(trips, trip.most)
    return CircuitBreaker(0, now, now + min(trip.open << (trips - 1), trip.longest), trips, reason)
