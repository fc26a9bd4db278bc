"""The node's side of the mesh: who its peers are, and the tasks that keep it equal with each.

Everything here runs beside the callers; what operators' commands write is read each second."""

import asyncio
from contextlib import suppress
from typing import Any, get_args

from peers.sender import Sender
from schemas.handoff import HandoffStatus
from server.domain.acp.handoff import HeldElsewhere
from server.domain.agents import identity
from server.domain.errors import Unavailable
from server.mesh.clock_settling import ClockSettling
from server.mesh.deferred_worker import DeferredWorker
from server.mesh.file_fetcher import FileFetcher
from server.mesh.handoff_forwarder import forward
from server.mesh.handshake_client import HandshakeClient
from server.mesh.mesh_channel import MeshChannel
from server.mesh.peer_status import PeerStatus
from server.mesh.peer_tasks import PeerTasks, SharedParts
from server.mesh.peers_to_join import PeersToJoin
from server.mesh.send_progress import SendProgress
from server.methods.base import CallSession, Fetch
from server.methods.sync import agent_homes, bans
from server.methods.sync.composer import Composer
from server.node import Node
from server.rpc.sync_batch import SyncIntake
from server.settings import Settings
from server.store import digests, handoffs, peers, unreceived_changes
from server.store.database import Database
from server.store.peers import Peer
from server.util.loops import Loop, Loops, Turns, run_each
from server.util.outgoing_client import make_client
from server.util.service import Service

OVERSEE_SECONDS = 1.0
COUNT_SECONDS = 0.5
"""Changes within this time are counted together."""


class Supervisor(Service):
    """Runs the tasks of exactly the peers that are listed, from `start` to `stop`."""

    def __init__(self, settings: Settings, database: Database, node: Node, loops: Loops) -> None:
        super().__init__(loops)
        self._database = database
        client = make_client(loopback_allowed=node.loopback)
        self._shared = SharedParts(
            database,
            node,
            loops,
            client,
            Composer(database, node),
            SyncIntake(database, node),
            ClockSettling(database, node),
            HandshakeClient(settings, database, node, client),
            settings.sync_seconds,
        )
        self._peers: dict[str, PeerTasks] = {}
        self._mesh_channels: dict[str, MeshChannel] = {}
        """By agent id without version."""
        self.status = PeerStatus(database, node, self._peers)
        self.files = FileFetcher(
            database, node, self._mesh_channels, self._answers, settings.file_copies_bytes
        )
        self.fetch: Fetch = self.files.fetch
        self.deferred = DeferredWorker(database, node, client, self._shared.intake)
        self._wanted = PeersToJoin(database, self._shared.handshakes, settings.peers)
        self._progress = SendProgress(database)
        self._session = CallSession(database, node.caller, node, "acp/sync/agents", asyncio.Event())

    async def start(self) -> None:
        """Begin with every peer and loop. A call that needs a peer may come once it returns."""
        self._database.clock.sends = False
        # The loops below try again what can't be read or written now.
        with suppress(Unavailable):
            await self._match_peers()
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
        await self.files.stop()
        await super().stop()
        with suppress(Unavailable):
            # Peers recognise a message that is sent twice.
            await self._progress.keep(self._senders())
        for agent_id in list(self._peers):
            await self._remove(agent_id)
        await self._shared.client.close()

    def heard_from(self, agent_id: str) -> None:
        """A peer has called, so it isn't down any more."""
        tasks = self._peers.get(agent_id)
        if tasks is None:
            return
        if tasks.comparison is not None:
            self._shared.settling.meet()
        if tasks.sender.failures or (tasks.mail is not None and tasks.mail.failures):
            tasks.wake()

    async def forward(self, call: HeldElsewhere) -> Any:
        """The answer of the peer that holds what a call is about. Raises Refusal."""
        answer = await forward(self._mesh_channels.get(call.node), call)
        handoff = answer.get("handoff") or {}
        if handoff.get("status") in get_args(HandoffStatus):
            status = handoff["handoffId"], call.node, handoff["status"]
            # The peer has taken the step. What can't be noted now is noted with its next answer.
            with suppress(Unavailable):
                await self._database.write(
                    lambda transaction: handoffs.put_status_elsewhere(
                        transaction.connection, *status
                    )
                )
        return answer

    def _answers(self, node: str) -> bool:
        """Whether a peer, named without its version, answered when it was last called."""
        return any(
            identity(agent_id) == node and not tasks.sender.failures
            for agent_id, tasks in self._peers.items()
        )

    def _senders(self) -> dict[str, Sender]:
        return {agent_id: tasks.sender for agent_id, tasks in self._peers.items()}

    # --- the loops ----------------------------------------------------------------------------

    async def _oversee(self) -> Turns:
        while True:
            if await self._session.read(bans.is_due):
                await self._session.write(bans.enforce)
            failed = await self._match_peers()
            mesh_peers = [
                agent_id for agent_id, tasks in self._peers.items() if tasks.comparison is not None
            ]
            self._database.clock.judge(mesh_peers)
            yield failed
            await asyncio.sleep(OVERSEE_SECONDS)

    async def _keep_cursors(self) -> Turns:
        while True:
            await self._progress.keep(self._senders())
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
            while bool(self._mesh_channels) and await self._database.read(digests.is_behind):
                await self._database.write(
                    lambda transaction: digests.catch_up(transaction.connection)
                )
            yield None
            await next_commit.wait()
            await asyncio.sleep(COUNT_SECONDS)

    # --- the peers ----------------------------------------------------------------------------

    async def _match_peers(self) -> Exception | None:
        """Run tasks for exactly the peers that are listed. Returns what failed for some of them."""
        listed = await self._database.read(peers.every)
        known = {peer.agent_id for peer in listed}
        for agent_id in [agent_id for agent_id in self._peers if agent_id not in known]:
            await self._remove(agent_id)
        return await run_each(listed, self._match_peer)

    async def _match_peer(self, peer: Peer) -> None:
        tasks = self._peers.get(peer.agent_id)
        if tasks is None:
            (await self._add(peer)).start()
            return
        if _address_of(tasks.peer) == _address_of(peer):
            if tasks.peer.retries != peer.retries:
                tasks.wake()
            tasks.peer = peer
            return
        # The tasks end first: nothing that they do may be missing from what is written down.
        await tasks.stop()
        await self._progress.keep(self._senders())
        await self._remove(peer.agent_id)
        cursor = max(tasks.sender.cursor, peer.cursor)
        (await self._add(peer._replace(cursor=cursor))).start()

    async def _add(self, peer: Peer) -> PeerTasks:
        tasks = PeerTasks(self._shared, peer)
        await self._progress.begin(tasks.sender)
        self._peers[peer.agent_id] = tasks
        if tasks.mesh_channel is not None:
            self._mesh_channels[identity(peer.agent_id)] = tasks.mesh_channel
        return tasks

    async def _remove(self, agent_id: str) -> None:
        await self._peers[agent_id].stop()
        del self._peers[agent_id]
        self._mesh_channels.pop(identity(agent_id), None)


def _address_of(peer: Peer) -> tuple[str, str | None, str | None]:
    """Where and with which keys a peer is called."""
    return peer.endpoint, peer.secret, peer.api_key
