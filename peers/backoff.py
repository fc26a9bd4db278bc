"""When to try again (design §7). Pure: chance arrives as an argument."""

FIRST_SECONDS = 0.5
CAP_SECONDS = 60.0
RETRIED_PER_SECOND = 10
"""Of what a peer refuses, about, once it has refused it often."""


def delay(
    failures: int, chance: float, *, first: float = FIRST_SECONDS, cap: float = CAP_SECONDS
) -> float:
    """Seconds to wait after so many failures in a row: doubling, capped, half of it by chance.

    `chance` is between 0 and 1; the spread keeps many from calling a node that comes back all at
    once.
    """
    full = min(cap, first * 2.0 ** min(failures - 1, 30))
    return full * (0.5 + chance / 2)


def retry_delay(tries: int, among: int, chance: float) -> float:
    """Seconds until a peer is brought something again that it has refused so often.

    The more it has refused, `among`, the rarer each comes: a peer that takes nothing costs the same
    however much there is.
    """
    return delay(tries, chance, cap=max(CAP_SECONDS, among / RETRIED_PER_SECOND))
