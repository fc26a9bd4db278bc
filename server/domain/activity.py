"""Which changes readers are shown, and how many there were in each span of time."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

KINDS = frozenset(
    {
        "project",
        "repo",
        "contract",
        "receipt",
        "context",
        "file",
        "file_request",
        "peer",
        "conflict",
    }
)
"""The entities whose changes any reader may see, as far as its projects go."""
MESSAGE = "message"
"""Changes of messages, which concern their parties, and humans who audit those open to them."""

_SECOND = 1_000_000
WIDTHS = tuple(
    seconds * _SECOND
    for seconds in (1, 5, 15, 60, 300, 900, 3_600, 3 * 3_600, 6 * 3_600, 12 * 3_600, 86_400)
)
"""The spans that are counted, in microseconds; beyond the last, a number of days."""


class TimeCount(NamedTuple):
    """How many changes there were in a span of time that begins at the stamp `start`."""

    start: int
    changes: int


def counts_by_time(times: Sequence[int], most: int) -> tuple[int, list[TimeCount]]:
    """The width of at most `most` equal spans that hold these stamps, and how many are in each.

    The newest stamp comes first; what claims to be later than it was stamped by a clock that was
    wrong, and is left out. Spans begin at multiples of their width.
    """
    known = [at for at in times if at <= times[0]]
    if not known:
        return WIDTHS[0], []
    first, last = min(known), max(known)
    width = next((width for width in WIDTHS if _spans(first, last, width) <= most), 0)
    if not width:
        day = WIDTHS[-1]
        width = day * -(-(last - first + 2 * day) // (day * (most - 1)))
    counted = Counter(at // width for at in known)
    return width, [
        TimeCount(place * width, counted[place])
        for place in range(first // width, last // width + 1)
    ]


def _spans(first: int, last: int, width: int) -> int:
    return last // width - first // width + 1
