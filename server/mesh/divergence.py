"""Raises an alarm when comparing with a peer doesn't make both equal (design §7)."""

from functools import partial

import structlog

from peers.digest import Name
from peers.unequal import ROUNDS, Pair, Unequal
from server.domain.agents import identity
from server.store import alarms, deferred, projects
from server.store.alarms import Alarm
from server.store.connection import Connection
from server.store.database import Database
from server.store.group_commit import Transaction

log = structlog.get_logger()
NAMED = 3
"""Entities that the alarm names one by one."""


class Divergence:
    """What stays different from one peer, comparison after comparison."""

    def __init__(self, database: Database, peer: str) -> None:
        self._database = database
        self._peer = peer
        self._unequal = Unequal()

    async def note(self, differing: dict[Name, Pair]) -> None:
        """Note what a comparison found to differ, and begin or end the alarm. Entities that are
        deferred here don't count: they differ until they are merged."""
        unequal = self._unequal.note(differing)
        if not unequal:
            if not differing and "content_differs" in await self._database.read(alarms.counts):
                await self._database.write(self._end)
            return
        stuck = await self._database.read(partial(_not_deferred, names=unequal))
        if not stuck:
            return
        named = ", ".join(f"{name.entity} {name.entity_id}" for name in stuck[:NAMED])
        more = f" and {len(stuck) - NAMED} more" if len(stuck) > NAMED else ""
        detail = (
            f"{named}{more} of a peer stayed different in {ROUNDS} comparisons, though fetched "
            "each time: one of the two nodes refuses what the other holds. The logs of both say "
            "why (refused_from_peer, fetched_refused); run the same release on both, and "
            "`cacp doctor` on each"
        )

        def begin(to: Transaction) -> bool:
            about = identity(self._peer)
            return alarms.begin(to.connection, Alarm("content_differs", about, detail, to.now))

        if await self._database.write(begin):
            log.warning("content_differs", peer=self._peer, entities=len(stuck), first=named)

    def _end(self, to: Transaction) -> None:
        if alarms.end(to.connection, "content_differs", identity(self._peer)):
            log.warning("content_equal", peer=self._peer)


def _not_deferred(db: Connection, names: list[Name]) -> list[Name]:
    """The entities that are not deferred, and whose projects are here or not deferred."""
    subjects = deferred.subjects(db)
    return [
        name
        for name in names
        if name.entity_id not in subjects
        and (name.project_id not in subjects or projects.header(db, name.project_id) is not None)
    ]
