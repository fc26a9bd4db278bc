"""How many connections a node takes: fewer than it has descriptors, and a share for each address.

Without a limit of its own a process that runs out of descriptors takes no more calls, opens no more
files, and says nothing.
"""

import sys
from collections import Counter

from server.util.log_once import LogOnce

RESERVED = 256
"""Descriptors for everything but callers: the database, the log, calls to peers, commands."""


class Connections:
    """Counts who is connected. `most` and `most_of_one` are limits; 0 of the latter sets none."""

    def __init__(self, most: int, most_of_one: int, notices: LogOnce) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._notices = notices
        self._open: Counter[str] = Counter()
        self.refused = 0
        self.ended = 0
        """Connections of callers that did not take their answers."""

    @property
    def open(self) -> int:
        """Connections that are open and were let in."""
        return self._open.total()

    def enter(self, address: str) -> str | None:
        """Count a connection in, or say why it can't be."""
        if self._open.total() >= self._most:
            return self._refuse("all", f"The node has {self._most} open connections, its limit")
        if self._most_of_one and self._open[address] >= self._most_of_one:
            said = f"{address} has {self._most_of_one} open connections, the limit for one address"
            return self._refuse(address, said)
        self._open[address] += 1
        return None

    def leave(self, address: str) -> None:
        """Count a connection out that was let in."""
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]

    def not_taken(self, address: str) -> None:
        """Note that a caller was too slow to take its answer, and its connection was ended."""
        self.ended += 1
        said = "too slow to take its answer: the connection was ended"
        self._notices.refused("answer_not_taken", (address,), address=address, said=said)

    def _refuse(self, cause: str, said: str) -> str:
        self.refused += 1
        self._notices.refused("connection_refused", (cause,), said=said)
        return said


def affordable(wanted: int) -> int:
    """How many connections this process has descriptors for, `wanted` at most. Raises its limit of
    descriptors as far as it may and as that needs."""
    if sys.platform == "win32":
        return wanted
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(soft - RESERVED, soft // 2)
    return wanted
