"""Limits the open connections: in all, by the process's file descriptors, and for each address.

A process that runs out of descriptors accepts no calls and opens no files, without any error.
"""

import sys
from collections import Counter

from server.util.log_once import RateLimitedLog

RESERVED = 256
"""Descriptors for everything but callers: the database, the log, calls to peers, commands."""


class Connections:
    """Counts the open connections. `most` limits all of them, `most_per_address` those of one
    address; 0 sets no limit per address."""

    def __init__(self, most: int, most_per_address: int, notices: RateLimitedLog) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._notices = notices
        self._open: Counter[str] = Counter()
        self.refused = 0
        self.ended = 0
        """Connections that were ended because their callers did not read the answers."""

    @property
    def open(self) -> int:
        """The admitted connections that are open."""
        return self._open.total()

    def enter(self, address: str) -> str | None:
        """Admit a connection and return None, or return why it is refused."""
        if self._open.total() >= self._most:
            return self._refuse("all", f"The node has {self._most} open connections, its limit")
        if self._most_per_address and self._open[address] >= self._most_per_address:
            limit = f"{self._most_per_address} open connections, the limit for one address"
            return self._refuse(address, f"{address} has {limit}")
        self._open[address] += 1
        return None

    def leave(self, address: str) -> None:
        """Forget an admitted connection that was closed."""
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]

    def note_slow_reader(self, address: str) -> None:
        """Note a connection that was ended because its caller read its answer too slowly."""
        self.ended += 1
        reason = "the caller read its answer too slowly: the connection was ended"
        self._notices.refused("answer_not_taken", (address,), address=address, said=reason)

    def _refuse(self, cause: str, reason: str) -> str:
        self.refused += 1
        self._notices.refused("connection_refused", (cause,), said=reason)
        return reason


def affordable(wanted: int) -> int:
    """The connections that this process has file descriptors for, `wanted` at most. Raises the soft
    limit of descriptors when needed, up to the hard limit."""
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
