"""A circuit breaker (acp-canonical §12.4): who fails again and again is refused for a while.

closed ── FAILURES in WINDOW ──▶ open ── time ──▶ half-open ── success ──▶ closed
                                   ▲                  │
                                   └──── failure ─────┘ (for twice as long)
"""

from typing import NamedTuple

SECOND = 1_000_000
FAILURES = 20
WINDOW = 60 * SECOND
OPEN = 60 * SECOND
OPEN_MAX = 3_600 * SECOND


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


def after_failure(breaker: Breaker, now: int) -> Breaker:
    """The breaker after one more failure; one that is open stays as it is."""
    if now < breaker.open_until:
        return breaker
    if breaker.trips:
        return _opened(breaker.trips + 1, now)
    if now - breaker.since >= WINDOW:
        return Breaker(1, now)
    failures = breaker.failures + 1
    return _opened(1, now) if failures >= FAILURES else breaker._replace(failures=failures)


def after_success(breaker: Breaker, now: int) -> Breaker:
    """The breaker after a success: half-open becomes closed. Failures of a closed one still count,
    for who fails every other time fails too often."""
    return CLOSED if breaker.trips and now >= breaker.open_until else breaker


def _opened(trips: int, now: int) -> Breaker:
    return Breaker(0, now, now + min(OPEN * 2 ** (trips - 1), OPEN_MAX), trips)
