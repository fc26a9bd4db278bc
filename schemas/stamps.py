"""Stamps, microseconds since 1970, and times as text. Imports little: commands print times."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


def iso(stamp: int) -> str:
    """A stamp (microseconds since 1970, UTC) as ISO 8601 with exactly six digits (design §5)."""
    second, fraction = divmod(stamp, 1_000_000)
    return f"{_second(second)}.{fraction:06d}+00:00"


@lru_cache(maxsize=16)
def _second(second: int) -> str:
    # Most printed stamps are recent: of the call itself and of concurrent ones.
    return (EPOCH + timedelta(seconds=second)).isoformat(timespec="seconds").removesuffix("+00:00")


def stamp_of(text: str) -> int:
    """The stamp of an ISO 8601 time; without an offset it is UTC (design §5).

    Raises ValueError when `text` is not a time between the years 1970 and 9999.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    # An offset can lead beyond the years 1970 to 9999.
    if not EPOCH <= moment <= LAST:
        raise ValueError(f"{text} is not between the years 1970 and 9999")
    return (moment - EPOCH) // timedelta(microseconds=1)
