"""The peers that are listed, each with its channel and its tasks."""

import asyncio

from peers.sender import Sender
from server.domain.agents import identity
from server.mesh.mesh_channel import MeshChannel
from server.mesh.peer_tasks import PeerTasks, SharedParts
from server.mesh.send_progress import SendProgress
from server.store import peers
from server.store.peers import Peer
from server.util.loops import run_each


class PeerLinks:
    """Keeps the tasks of exactly the peers that are listed. They run while `exchanges`; otherwise
    the channels alone are used, by calls that need a peer."""

    def __init__(self, shared: SharedParts) -> None:
        self._shared = shared
        self._progress = SendProgress(shared.database)
        self._changing = asyncio.Lock()
        self.exchanges = False
        self.tasks: dict[str, PeerTasks] = {}
        self.channels: dict[str, MeshChannel] = {}
        """By agent id without version."""

    async def begin(self) -> Exception | None:
        """Run the tasks from here on, in the name of the caller's duty, from where the store says
        that they have come. Returns what failed for some peers."""
        async with self._changing:
            await self._remove_all()
            self.exchanges = True
        return await self.match(exchanges=True)

    async def end(self) -> None:
        """End all tasks. The channels are there again after the next `match`."""
        async with self._changing:
            self.exchanges = False
            await self._remove_all()

    async def match(self, *, exchanges: bool) -> Exception | None:
        """Have tasks for exactly the peers that are listed. Returns what failed for some of them.
        `exchanges`: whether the caller thinks that they run; it does nothing where that is no
        longer so."""
        async with self._changing:
            if exchanges != self.exchanges:
                return None
            listed = await self._shared.database.read(peers.every)
            known = {peer.agent_id for peer in listed}
            for agent_id in [agent_id for agent_id in self.tasks if agent_id not in known]:
                await self._remove(agent_id)
            return await run_each(listed, self._match)

    async def keep_progress(self) -> None:
        """Write down what the peers have confirmed."""
        await self._progress.keep(self._senders())

    @property
    def nodes(self) -> list[str]:
        """The mesh peers."""
        return [agent_id for agent_id, tasks in self.tasks.items() if tasks.comparison is not None]

    def is_up(self, node: str) -> bool:
        """Whether a peer, named without its version, answered when it was last called."""
        return any(
            identity(agent_id) == node and not tasks.sender.failures
            for agent_id, tasks in self.tasks.items()
        )

    def _senders(self) -> dict[str, Sender]:
        return {agent_id: tasks.sender for agent_id, tasks in self.tasks.items()}

    async def _match(self, peer: Peer) -> None:
        tasks = self.tasks.get(peer.agent_id)
        if tasks is None:
            await self._add(peer)
            return
        if _address_of(tasks.peer) == _address_of(peer):
            if tasks.peer.retries != peer.retries:
                tasks.wake()
            tasks.peer = peer
            return
        # The tasks end first: nothing that they do may be missing from what is written down.
        await tasks.stop()
        if self.exchanges:
            await self.keep_progress()
        await self._remove(peer.agent_id)
        await self._add(peer._replace(cursor=max(tasks.sender.cursor, peer.cursor)))

    async def _add(self, peer: Peer) -> None:
        tasks = PeerTasks(self._shared, peer)
        await self._progress.begin(tasks.sender)
        self.tasks[peer.agent_id] = tasks
        if tasks.mesh_channel is not None:
            self.channels[identity(peer.agent_id)] = tasks.mesh_channel
        if self.exchanges:
            tasks.start()

    async def _remove(self, agent_id: str) -> None:
        await self.tasks[agent_id].stop()
        del self.tasks[agent_id]
        self.channels.pop(identity(agent_id), None)

    async def _remove_all(self) -> None:
        for agent_id in list(self.tasks):
            await self._remove(agent_id)


def _address_of(peer: Peer) -> tuple[str, str | None, str | None]:
    """Where and with which keys a peer is called."""
    return peer.endpoint, peer.secret, peer.api_key
