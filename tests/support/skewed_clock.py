"""Nodes whose machine's clock is wrong: it is set, while they run, by what stands in a file."""

import os
import time
from pathlib import Path

from tests.support.node import Node

VARIABLE = "TEST_CLOCK_FILE"
HOUR = 3_600


def install() -> None:
    """In a node's process: its machine's clock is ahead by the seconds in the file that the
    environment names. The clocks that never jump are left alone."""
    named = os.environ.get(VARIABLE)
    if named is None:
        return
    file, true = Path(named), time.time_ns

    def time_ns() -> int:
        return true() + int(file.read_text()) * 1_000_000_000

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


class SkewedNode(Node):
    """A node on a machine whose clock tests set."""

    def __init__(self, folder: Path, *, ahead: int = 0, **settings: object) -> None:
        super().__init__(folder, **settings)
        self._clock = folder / "clock"
        self.set_clock(ahead)

    def set_clock(self, ahead: int) -> None:
        """Set the machine's clock, so many seconds ahead of the time."""
        written = self._clock.with_suffix(".new")
        written.write_text(str(ahead))
        written.replace(self._clock)

    @property
    def env(self) -> dict[str, str]:
        return super().env | {VARIABLE: str(self._clock)}
