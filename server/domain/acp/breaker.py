"""A circuit breaker (acp-canonical §12.4): who fails again and again is refused for a while.

closed ── failures in window ──▶ open ── time ──▶ half-open ── success ──▶ closed
                                   ▲                  │  └── quiet, step by step ──▶ closed
                                   └──── failure ─────┘ (for twice as long)

What it remembers is on disk, and fades by the time that is passed in alone: a restart changes
nothing. No pause is longer than `Trip.longest`, whatever the clock does.
"""

from typing import NamedTuple

SECOND = 1_000_000


class Trip(NamedTuple):
    """When a breaker opens, for how long at first, and how fast it forgets. Times are
    microseconds."""

    failures: int = 20
    window: int = 60 * SECOND
    open: int = 60 * SECOND
    longest: int = 3_600 * SECOND
    calm: int = 600 * SECOND
    """From the end of a pause on, so much time without a failure takes back one doubling."""

    @property
    def most(self) -> int:
        """The number of openings from which on pauses grow no longer."""
        return (-(-self.longest // self.open) - 1).bit_length() + 1


SENDER = Trip()


class CircuitBreaker(NamedTuple):
    """Times are microseconds since 1970. `trips` counts how often it opened without a success,
    `reason` is that of the last failure."""

    failures: int = 0
    since: int = 0
    open_until: int = 0
    trips: int = 0
    reason: str = ""


CLOSED = CircuitBreaker()


def wait(breaker: CircuitBreaker, now: int, trip: Trip = SENDER) -> int | None:
    """Microseconds until somebody is let through again; None when that is now.

    It is now, too, when the clock went back so far that no pause can end so late.
    """
    left = breaker.open_until - now
    return left if 0 < left <= trip.longest else None


def calmed(breaker: CircuitBreaker, now: int, trip: Trip = SENDER) -> CircuitBreaker:
    """What is left of a breaker after the quiet since its pause."""
    if not breaker.trips or now < breaker.open_until:
        return breaker
    faded = (now - breaker.open_until) // trip.calm
    return breaker._replace(trips=max(min(breaker.trips, trip.most) - faded, 0))


def after_failure(
    breaker: CircuitBreaker, now: int, trip: Trip = SENDER, reason: str = ""
) -> CircuitBreaker:
    """The breaker after one more failure; one that is open stays as it is."""
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
    """The breaker after a success: half-open becomes closed. Failures of a closed one still count,
    for who fails every other time fails too often."""
    return CLOSED if breaker.trips and now >= breaker.open_until else breaker


def _opened(trips: int, now: int, trip: Trip, reason: str) -> CircuitBreaker:
    trips = min(trips, trip.most)
    return CircuitBreaker(0, now, now + min(trip.open << (trips - 1), trip.longest), trips, reason)
