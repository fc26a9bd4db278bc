"""Says so when comparing with a peer does not make equal (design §7)."""

import sqlite3
from functools import partial

import structlog

from peers.digest import Name
from peers.unequal import ROUNDS, Pair, Unequal
from server.domain.agents import identity
from server.store import alarms, deferred, projects
from server.store.alarms import Alarm
from server.store.database import Database, Transaction

log = structlog.get_logger()
NAMED = 3
"""Entities that are named one by one."""


class Divergence:
    """What stays different from one peer, comparison after comparison."""

    def __init__(self, database: Database, peer: str) -> None:
        self._database = database
        self._peer = peer
        self._unequal = Unequal()

    async def note(self, differing: dict[Name, Pair]) -> None:
        """What a comparison has found. What is deferred is known to differ until it is taken, and
        only that: no member hides by it what else differs."""
        unequal = self._unequal.note(differing)
        if not unequal:
            if not differing and self._database.read(alarms.counts).get("content_differs"):
                await self._database.write(self._end)
            return
        stuck = self._database.read(partial(_not_deferred, names=unequal))
        if not stuck:
            return
        named = ", ".join(f"{one.entity} {one.entity_id}" for one in stuck[:NAMED])
        more = f" and {len(stuck) - NAMED} more" if len(stuck) > NAMED else ""
        detail = (
            f"Of what a peer holds, {named}{more} stayed different in {ROUNDS} comparisons, though "
            "it was fetched each time: one of the two nodes refuses what the other holds. The logs "
            "of both say why (refused_from_peer, fetched_refused); run the same release on both, "
            "and `cacp doctor` on each"
        )

        def begin(to: Transaction) -> bool:
            about = identity(self._peer)
            return alarms.begin(to.connection, Alarm("content_differs", about, detail, to.now))

        if await self._database.write(begin):
            log.warning("content_differs", peer=self._peer, entities=len(stuck), first=named)

    def _end(self, to: Transaction) -> None:
        if alarms.end(to.connection, "content_differs", identity(self._peer)):
            log.warning("content_equal", peer=self._peer)


def _not_deferred(db: sqlite3.Connection, names: list[Name]) -> list[Name]:
    """Those that no deferred message explains: of itself, or of a project that is not here."""
    subjects = deferred.subjects(db)
    return [
        one
        for one in names
        if one.entity_id not in subjects
        and (one.project_id not in subjects or projects.header(db, one.project_id) is not None)
    ]
