"""What keeps a node equal with its peers, beside the callers: of several replicas, one does it.

What operators' commands write is read each second."""

import asyncio
from contextlib import suppress

from server.domain.errors import Unavailable
from server.mesh.deferred_worker import DeferredWorker
from server.mesh.peer_links import PeerLinks
from server.mesh.peer_tasks import SharedParts
from server.mesh.peers_to_join import PeersToJoin
from server.methods.base import CallSession
from server.methods.sync import agent_homes, bans
from server.store import digests, unreceived_changes
from server.util.loops import Loop, Turns
from server.util.service import Service

OVERSEE_SECONDS = 1.0
COUNT_SECONDS = 0.5
"""Changes within this time are counted together."""


class Exchange(Service):
    """Runs the tasks of the peers, and the loops that are about all of them."""

    def __init__(self, shared: SharedParts, links: PeerLinks, wanted: PeersToJoin) -> None:
        super().__init__(shared.loops)
        self._shared = shared
        self._database = shared.database
        self._links = links
        self._wanted = wanted
        self.deferred = DeferredWorker(shared.database, shared.node, shared.client, shared.intake)
        self._session = CallSession(
            shared.database, shared.node.caller, shared.node, "acp/sync/agents", asyncio.Event()
        )

    async def start(self) -> None:
        """Begin with every peer and loop. A call that needs a peer may come once it returns."""
        self._shared.settle_anew()
        # The loops below try again what can't be read or written now.
        with suppress(Unavailable):
            await self._links.begin()
            # No other node has what is written from the first call on.
            await self._database.write(
                lambda transaction: unreceived_changes.last_received(transaction.connection)
            )
        loops: dict[str, Loop] = {
            "peers": self._oversee,
            "cursors": self._keep_cursors,
            "directory": self._keep_directory,
            "joining": self._wanted.run,
            "deferred": self.deferred.run,
            "digests": self._count_digests,
        }
        for name, loop in loops.items():
            self.run(name, loop)
        self.run("clocks", self._shared.settling.run, ends=True)

    async def stop(self) -> None:
        """End every task, and write down what the peers have confirmed."""
        await super().stop()
        with suppress(Unavailable):
            # Peers recognise a message that is sent twice.
            await self._links.keep_progress()
        await self._links.end()

    async def _oversee(self) -> Turns:
        while True:
            if await self._session.read(bans.is_due):
                await self._session.write(bans.enforce)
            failed = await self._links.match(exchanges=True)
            self._database.clock.judge(self._links.nodes)
            yield failed
            await asyncio.sleep(OVERSEE_SECONDS)

    async def _keep_cursors(self) -> Turns:
        while True:
            await self._links.keep_progress()
            yield None
            await asyncio.sleep(OVERSEE_SECONDS)

    async def _keep_directory(self) -> Turns:
        """Keep the directory of the agents whose home is this node up to date."""
        while True:
            if await self._session.read(agent_homes.is_stale):
                await self._session.write(agent_homes.publish)
            yield None
            await asyncio.sleep(OVERSEE_SECONDS)

    async def _count_digests(self) -> Turns:
        """Keep the digests up with the changes, step by step: comparisons find them counted, and
        no write waits long."""
        while True:
            next_commit = self._database.next_commit
            while bool(self._links.channels) and await self._database.read(digests.is_behind):
                await self._database.write(
                    lambda transaction: digests.catch_up(transaction.connection)
                )
            yield None
            await next_commit.wait()
            await asyncio.sleep(COUNT_SECONDS)
