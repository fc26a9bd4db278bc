"""Keeps the full-text index (`server.store.search`): indexes what writes have queued.

All state is in the store, so a restart continues where the last run stopped.
"""

import asyncio
import time

import structlog

from server.store import search
from server.store.database import Database
from server.store.group_commit import Transaction
from server.util.loops import Loops, Turns
from server.util.service import Service
from server.util.wait_first import first

log = structlog.get_logger()

STEP = 50
"""The most documents per transaction: other writes wait while it runs."""
GATHER_SECONDS = 0.1
"""How long a document waits for others that are indexed in the same transaction."""
IDLE_SECONDS = 5.0
"""The longest wait: another process may have queued something."""
QUIET_PAUSE, BUSY_PAUSE = 1, 20
"""How many times as long as a step the pause after it is, while more waits. After a step beside
which more than `BUSY` other writes were made the longer pause follows, so that callers wait for
steps in a twentieth of the time."""
BUSY = 3


class SearchIndexer(Service):
    """Indexes in small steps with pauses, so that a first start on a large database serves callers
    meanwhile."""

    def __init__(self, database: Database, loops: Loops) -> None:
        super().__init__(loops)
        self._database = database

    async def start(self) -> None:
        self.run("search_indexer", self._index)

    async def _index(self) -> Turns:
        if not await self._database.read(search.is_ready):
            await self._database.write(_rebuild)
            waiting = await self._database.read(search.waiting)
            if waiting:
                log.info("search_index", documents=waiting, what="indexing what is stored already")
        while True:
            committed = self._database.next_commit
            if not await self._database.read(search.waiting):
                yield None
                await first(committed, seconds=IDLE_SECONDS)
                await asyncio.sleep(GATHER_SECONDS)
                continue
            before = self._database.writes
            began = time.monotonic()
            await self._database.write(_step)
            took = time.monotonic() - began
            yield None
            await asyncio.sleep(took * QUIET_PAUSE)
            if self._database.writes - before - 1 > BUSY:
                await asyncio.sleep(took * BUSY_PAUSE)


def _rebuild(to: Transaction) -> None:
    # Another replica may have done it meanwhile.
    if not search.is_ready(to.connection):
        search.rebuild(to.connection)


def _step(to: Transaction) -> None:
    search.index_next(to.connection, STEP)
