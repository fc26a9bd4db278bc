"""The stamps that a node gives out, one for each transaction, and problems with its time."""

from collections.abc import Callable

from peers.clock import Sure, tick
from peers.timekeeper import Timekeeper
from server.domain.clocks import Deferred, Trouble, trouble
from server.store.connection import Connection
from server.store.sql import SQL

_SURE = "sure_time"


class Stamps:
    """A hybrid logical clock (`peers.clock`) over a node's time, on the writer's thread."""

    def __init__(self) -> None:
        self.clock = Timekeeper()
        self.last = 0
        """The last stamp that was given out."""
        self.newest = 0
        """The largest known stamp of synchronised data; after a start it is computed in the
        background (`server.mesh.supervisor`)."""

    def begin(self, last: int) -> None:
        """Continue after the last stamp on disk."""
        self.last = last

    def next(self, now: int) -> int:
        """The stamp of a transaction that begins now."""
        self.last = tick(self.last, now)
        return self.last

    def saw(self, stamp: int) -> None:
        """Make later stamps larger than this one of another node."""
        self.last = max(self.last, stamp)

    def stored(self, stamp: int) -> None:
        """Note the stamp of stored data."""
        self.newest = max(self.newest, stamp)

    def trouble(
        self, deferred: Deferred, name: Callable[[str], str] | None = None
    ) -> Trouble | None:
        """The gravest problem with the node's time. `name` gives peers' names; without it they stay
        unnamed."""
        return trouble(
            self.clock.verdict,
            has_jumped=self.clock.has_jumped,
            doubt=self.clock.doubt,
            newest=self.newest,
            deferred=deferred,
            now=self.clock.now(),
            name=name,
        )


def kept(db: Connection) -> Sure | None:
    """The sure time that the node last stored or an operator has confirmed since; None when there
    is none."""
    stored = SQL.meta_value(db, name=_SURE)
    return None if stored is None else Sure(*map(int, stored.split()))


def keep(db: Connection, sure: Sure) -> None:
    """Store the sure time. A running node takes up what another process stores."""
    SQL.put_meta(db, name=_SURE, value=f"{sure.time} {sure.doubted}")


def newest_stamp(db: Connection) -> int:
    """The largest stamp of synchronised data; 0 when there is none. Reads every row."""
    return int(SQL.newest_stamp(db))
