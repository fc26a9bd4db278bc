"""How what a function costs grows with what it is given, in one run, whatever the machine does."""

import time
from collections.abc import Callable

FACTOR = 8
LINEAR = 4 * FACTOR
"""Eight times as much costs eight times as much, and here four times that at most: what grows with
the square costs 64 times as much."""


def grows_linearly(run: Callable[[int], object], size: int) -> bool:
    """Whether eight times `size` costs no more than linear growth does. It is the processor's
    time that counts, and of three tries each the least."""
    return _least(run, size * FACTOR) < LINEAR * _least(run, size)


def _least(run: Callable[[int], object], size: int) -> float:
    return min(_cost(run, size) for _ in range(3))


def _cost(run: Callable[[int], object], size: int) -> float:
    began = time.process_time()
    run(size)
    return time.process_time() - began
