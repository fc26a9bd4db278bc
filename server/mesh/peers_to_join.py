"""Registers with the nodes that are to become peers, until each is one (`handshake_client`)."""

import asyncio
import random
import time
from collections.abc import Iterable
from functools import partial

import structlog

from peers.backoff import delay
from peers.errors import CallError
from server.domain.errors import Refusal, Unavailable
from server.mesh.handshake_client import HandshakeClient, JoinRefused
from server.store import mesh, peers
from server.store.database import Database
from server.store.group_commit import Transaction
from server.store.mesh import Wanted
from server.util.loops import Turns, grouped

log = structlog.get_logger()

LOOK_SECONDS = 1.0


class PeersToJoin:
    """The nodes that the settings name, and those that operators' commands have asked for."""

    def __init__(self, database: Database, joining: HandshakeClient, urls: Iterable[str]) -> None:
        self._database = database
        self._joining = joining
        self._urls = urls
        self._attempts: dict[str, tuple[int, float]] = {}
        """How often in a row each failed, and when it is tried again: seconds, monotonic."""

    async def run(self) -> Turns:
        """Yields after each look; never ends. All that are due are tried concurrently: a node that
        doesn't answer holds up no other."""
        for url in self._urls:
            await self._database.write(partial(_want, url))
        while True:
            results = await asyncio.gather(
                *map(self._try, await self._database.read(mesh.wanted)), return_exceptions=True
            )
            yield grouped(result for result in results if isinstance(result, Exception))
            await asyncio.sleep(LOOK_SECONDS)

    async def _try(self, wanted: Wanted) -> None:
        failures, not_before = self._attempts.get(wanted.url, (0, 0.0))
        if time.monotonic() < not_before:
            return
        pause = delay(failures + 1, random.random())  # noqa: S311 - no secret
        self._attempts[wanted.url] = failures + 1, time.monotonic() + pause
        try:
            await self._joining.join(wanted.url, wanted.invite)
        except Unavailable:
            raise
        except (CallError, JoinRefused, Refusal) as error:
            if wanted.error != str(error):
                log.warning("peer_not_joined", url=wanted.url, error=str(error))
                await self._database.write(partial(_tried, wanted.url, str(error)))
            return
        self._attempts.pop(wanted.url, None)
        await self._database.write(partial(_tried, wanted.url, None))
        log.info("peer_joined", url=wanted.url)


def _want(url: str, transaction: Transaction) -> None:
    known = {peer.endpoint for peer in peers.every(transaction.connection) if peer.secret}
    if url.rstrip("/") not in known:
        mesh.want(transaction.connection, url.rstrip("/"))


def _tried(url: str, error: str | None, to: Transaction) -> None:
    if error is None:
        mesh.want_done(to.connection, url)
    else:
        mesh.want_failed(to.connection, url, error)
