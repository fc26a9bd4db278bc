"""Nodes whose machine's clock is wrong: it is set, while they run, by what stands in a file."""

import os
import time
from pathlib import Path

from peers import timekeeper
from tests.support.node import Node

VARIABLE = "TEST_CLOCK_FILE"
AT_ONCE = "TEST_CLOCK_AT_ONCE"
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
    if AT_ONCE in os.environ:
        # However far the clock is set, it counts as running a little fast.
        timekeeper.JUMP = 10**18


class SkewedNode(Node):
    """A node on a machine whose clock tests set. A node doubts a jump for a minute; with `at_once`
    it goes by it immediately."""

    def __init__(self, folder: Path, *, ahead: int = 0, **settings: object) -> None:
        self._at_once = {AT_ONCE: "1"} if settings.pop("at_once", False) else {}
        super().__init__(folder, **settings)
        self.clock_file = folder / "clock"
        self.set_clock(ahead)

    def set_clock(self, ahead: int) -> None:
        """Set the machine's clock, so many seconds ahead of the time."""
        self._ahead = ahead
        written = self.clock_file.with_suffix(".new")
        written.write_text(str(ahead))
        written.replace(self.clock_file)

    def pass_time(self, seconds: int) -> None:
        """Set the machine's clock so many seconds forward."""
        self.set_clock(self._ahead + seconds)

    @property
    def env(self) -> dict[str, str]:
        return super().env | {VARIABLE: str(self.clock_file)} | self._at_once
