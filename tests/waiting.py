"""Waiting for what another process does."""

import time
from collections.abc import Callable


def eventually(holds: Callable[[], object], seconds: float = 10.0) -> None:
    """Return once `holds` is true; AssertionError when it isn't within `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.05)
