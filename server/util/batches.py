"""Cuts lists into batches."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """The items in order, `size` at a time; the last batch may be shorter."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
