"""When to try again (design §7). Pure: chance arrives as an argument."""

FIRST_SECONDS = 0.5
CAP_SECONDS = 60.0
RETRIED_PER_SECOND = 10
"""Entities, about, that are sent again each second to a peer that has refused them often."""


def delay(
    failures: int, chance: float, *, first: float = FIRST_SECONDS, cap: float = CAP_SECONDS
) -> float:
    """Seconds to wait after `failures` failures in a row: doubling, capped, half of it by chance.

    `chance` is between 0 and 1. The spread keeps peers from all calling a returning node at once.
    """
    full = min(cap, first * 2.0 ** min(failures - 1, 30))
    return full * (0.5 + chance / 2)


def retry_delay(tries: int, among: int, chance: float) -> float:
    """Seconds until an entity is sent again that a peer has refused `tries` times.

    It grows with the number of entities that the peer has refused (`among`), so that a peer that
    refuses everything costs the same however much there is.
    """
    return delay(tries, chance, cap=max(CAP_SECONDS, among / RETRIED_PER_SECOND))
