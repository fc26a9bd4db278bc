"""A circuit breaker (acp-canonical §12.4): who fails again and again is refused for a while.

closed ── failures in window ──▶ open ── time ──▶ half-open ── success ──▶ closed
                                   ▲                  │
                                   └──── failure ─────┘ (for twice as long)
"""

from typing import NamedTuple

SECOND = 1_000_000


class Trip(NamedTuple):
    """When a breaker opens, and for how long at first. Times are microseconds."""

    failures: int = 20
    window: int = 60 * SECOND
    open: int = 60 * SECOND
    longest: int = 3_600 * SECOND


SENDER = Trip()


class Breaker(NamedTuple):
    """Times are microseconds since 1970. `trips` counts how often it opened without a success."""

    failures: int = 0
    since: int = 0
    open_until: int = 0
    trips: int = 0


CLOSED = Breaker()


def wait(breaker: Breaker, now: int) -> int | None:
    """Microseconds until somebody is let through again; None when that is now."""
    return breaker.open_until - now if now < breaker.open_until else None


def after_failure(breaker: Breaker, now: int, trip: Trip = SENDER) -> Breaker:
    """The breaker after one more failure; one that is open stays as it is."""
    if now < breaker.open_until:
        return breaker
    if breaker.trips:
        return _opened(breaker.trips + 1, now, trip)
    if now - breaker.since >= trip.window:
        return Breaker(1, now)
    failures = breaker.failures + 1
    return (
        _opened(1, now, trip) if failures >= trip.failures else breaker._replace(failures=failures)
    )


def after_success(breaker: Breaker, now: int) -> Breaker:
    """The breaker after a success: half-open becomes closed. Failures of a closed one still count,
    for who fails every other time fails too often."""
    return CLOSED if breaker.trips and now >= breaker.open_until else breaker


def _opened(trips: int, now: int, trip: Trip) -> Breaker:
    return Breaker(0, now, now + min(trip.open * 2 ** min(trips - 1, 30), trip.longest), trips)
