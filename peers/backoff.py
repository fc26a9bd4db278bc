"""When to try a peer again (design §6). Pure: chance arrives as an argument."""

FIRST_SECONDS = 0.5
CAP_SECONDS = 60.0


def delay(failures: int, chance: float) -> float:
    """Seconds to wait after so many failures in a row: doubling, capped, half of it by chance.

    `chance` is between 0 and 1; the spread keeps peers from calling a node that comes back all
    at once.
    """
    full = min(CAP_SECONDS, FIRST_SECONDS * 2.0 ** min(failures - 1, 20))
    return full * (0.5 + chance / 2)
