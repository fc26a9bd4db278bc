"""Registers with the nodes that are to become peers, until each has (`handshake_client`)."""

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
from server.store.database import Database, Transaction
from server.store.mesh import Wanted
from server.util.loops import Turns, together

log = structlog.get_logger()

LOOK_SECONDS = 1.0


class WantedPeers:
    """The nodes that the settings name, and those that operators' commands have asked for."""

    def __init__(self, database: Database, joining: HandshakeClient, urls: Iterable[str]) -> None:
        self._database = database
        self._joining = joining
        self._urls = urls
        self._attempts: dict[str, tuple[int, float]] = {}
        """How often in a row each has failed, and when it is tried again: seconds, monotonic."""

    async def run(self) -> Turns:
        """Yields after each look; never ends. All that is due is tried at once: one that doesn't
        answer keeps nobody waiting."""
        for url in self._urls:
            await self._database.write(partial(_want, url))
        while True:
            found = await asyncio.gather(
                *map(self._try, self._database.read(mesh.wanted)), return_exceptions=True
            )
            yield together(one for one in found if isinstance(one, Exception))
            await asyncio.sleep(LOOK_SECONDS)

    async def _try(self, one: Wanted) -> None:
        failures, not_before = self._attempts.get(one.url, (0, 0.0))
        if time.monotonic() < not_before:
            return
        pause = delay(failures + 1, random.random())  # noqa: S311 - no secret
        self._attempts[one.url] = failures + 1, time.monotonic() + pause
        try:
            await self._joining.join(one.url, one.invite)
        except Unavailable:
            raise
        except (CallError, JoinRefused, Refusal) as error:
            if one.error != str(error):
                log.warning("peer_not_joined", url=one.url, error=str(error))
                await self._database.write(partial(_tried, one.url, str(error)))
            return
        self._attempts.pop(one.url, None)
        await self._database.write(partial(_tried, one.url, None))
        log.info("peer_joined", url=one.url)


def _want(url: str, transaction: Transaction) -> None:
    known = {peer.endpoint for peer in peers.every(transaction.connection) if peer.secret}
    if url.rstrip("/") not in known:
        mesh.want(transaction.connection, url.rstrip("/"))


def _tried(url: str, error: str | None, to: Transaction) -> None:
    if error is None:
        mesh.want_done(to.connection, url)
    else:
        mesh.want_failed(to.connection, url, error)
