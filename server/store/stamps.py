"""The stamps that a node gives out, one to a transaction, and what is wrong with them."""

import sqlite3
from collections.abc import Callable

from peers.clock import Sure, tick
from peers.timekeeper import Timekeeper
from server.domain.clocks import Deferred, Trouble, trouble
from server.store.sql import SQL

_SURE = "sure_time"


class Stamps:
    """A hybrid logical clock (`peers.clock`) over a node's time, on the writer's thread."""

    def __init__(self) -> None:
        self.clock = Timekeeper()
        self._last = 0
        self.newest = 0
        """The largest stamp of what is stored for the mesh, as far as it is known: a start counts
        it beside the callers (`server.mesh.supervisor`)."""

    def begin(self, last: int) -> None:
        """Go on after what is on disk."""
        self._last = last

    def next(self, now: int) -> int:
        """The stamp of a transaction that begins now."""
        self._last = tick(self._last, now)
        return self._last

    def saw(self, stamp: int) -> None:
        """What is written next is after this, which came from another node."""
        self._last = max(self._last, stamp)

    def stored(self, stamp: int) -> None:
        """This is the stamp of something that is on disk."""
        self.newest = max(self.newest, stamp)

    def trouble(
        self, deferred: Deferred, name: Callable[[str], str] | None = None
    ) -> Trouble | None:
        """What is wrong with the node's time; peers are named by `name`, or not at all."""
        return trouble(
            self.clock.verdict,
            has_jumped=self.clock.has_jumped,
            doubt=self.clock.doubt,
            newest=self.newest,
            deferred=deferred,
            now=self.clock.now(),
            name=name,
        )


def kept(db: sqlite3.Connection) -> Sure | None:
    """The time that the node was sure of when it last wrote that down, or that an operator has
    confirmed since."""
    found = SQL.meta_value(db, name=_SURE)
    return None if found is None else Sure(*map(int, found.split()))


def keep(db: sqlite3.Connection, sure: Sure) -> None:
    """Write down what is sure; a running node goes on from what others write."""
    SQL.put_meta(db, name=_SURE, value=f"{sure.time} {sure.doubted}")
