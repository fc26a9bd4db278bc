"""The rate limit of a caller: a token bucket (CACP 2.0, Error Codes: -32005; design §6)."""

from typing import NamedTuple


class Bucket(NamedTuple):
    """How many requests a caller has left at a time, in seconds."""

    left: float
    at: float


def full(now: float, per_minute: int) -> Bucket:
    """The initial bucket: a minute's requests, which the caller may spend at once."""
    return Bucket(per_minute, now)


def allow(bucket: Bucket, now: float, per_minute: int) -> tuple[Bucket, float | None]:
    """Take one request out of the bucket; returns the bucket afterwards, and None.

    When it holds none, returns the unchanged bucket and the seconds until it holds one. A clock
    that goes backwards changes nothing.
    """
    elapsed = max(0.0, now - bucket.at)
    left = min(per_minute, bucket.left + elapsed * per_minute / 60)
    at = max(now, bucket.at)
    if left >= 1:
        return Bucket(left - 1, at), None
    return Bucket(left, at), (1 - left) * 60 / per_minute
