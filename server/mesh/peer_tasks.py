"""The tasks that keep this node equal with one peer, and what they work on."""

import asyncio
from dataclasses import dataclass, field
from functools import partial

from peers.client import HttpClient
from peers.sender import ChangePage, Sender
from server.mesh.anti_entropy import Comparison
from server.mesh.clock_settling import ClockSettling
from server.mesh.foreign_channel import ForeignChannel
from server.mesh.handshake_client import HandshakeClient
from server.mesh.mail_sender import MailSender
from server.mesh.mesh_channel import MeshChannel
from server.methods.sync.composer import Composer
from server.node import Node
from server.rpc.sync_batch import SyncIntake
from server.store import changes, digests
from server.store.changes import Change
from server.store.connection import Connection
from server.store.database import Database
from server.store.peers import Peer
from server.util.loops import Loop, Loops, cancel

PAGE = 500
"""Changes that are read at once for a peer."""


@dataclass(slots=True)
class SharedParts:
    """What the tasks of all peers use."""

    database: Database
    node: Node
    loops: Loops
    client: HttpClient
    composer: Composer
    intake: SyncIntake
    settling: ClockSettling
    handshakes: HandshakeClient
    sync_seconds: float
    """Between two comparisons with a peer."""
    fetching: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while much is fetched from one peer."""

    def settle_anew(self) -> None:
        """Compare clocks before anything is sent: another replica has sent until now."""
        self.settling = ClockSettling(self.database, self.node)


class PeerTasks:
    """Everything that runs for one peer: `mesh_channel`, `comparison` and `mail` only for a mesh
    peer. Nothing runs before `start`."""

    def __init__(self, shared: SharedParts, peer: Peer) -> None:
        self._shared = shared
        self.peer = peer
        self.mesh_channel: MeshChannel | None = None
        self.comparison: Comparison | None = None
        self.mail: Sender | None = None
        self.running: list[asyncio.Task[None]] = []
        self._loops: dict[str, Loop] = {}
        channel = self._mesh_channel() if peer.secret is not None else self._foreign_channel()
        self.sender = Sender(
            peer.agent_id,
            peer.cursor,
            load=self.load,
            deliver=channel.deliver,
            next_commit=lambda: shared.database.next_commit,
            returned=self.comparison.wake if self.comparison else lambda: None,
        )
        channel.on_contact = self.sender.note_contact
        channel.on_failure = self.sender.note_failure
        self._loops["sender"] = self.sender.run

    def start(self) -> None:
        """Run each as a task until `stop`."""
        self.running = [
            self._shared.loops.start(name, loop, peer=self.peer.agent_id)
            for name, loop in self._loops.items()
        ]

    async def stop(self) -> None:
        """Returns once every task has ended."""
        running, self.running = self.running, []
        await cancel(running)

    def wake(self) -> None:
        """Retry at once everything that waits for a retry."""
        for part in (self.sender, self.mail, self.comparison):
            if part is not None:
                part.wake()

    async def load(self, cursor: int) -> ChangePage:
        """The changes after `cursor` that concern the peer, each entity once, projects first."""
        peer, database = self.peer, self._shared.database
        if peer.secret is not None:
            await self._shared.settling.settled.wait()

        def read(db: Connection) -> ChangePage:
            rows = changes.after(db, cursor, PAGE)
            relevant = (row for row in rows if self._concerns_peer(row))
            names = {name: row.seq for row in relevant if (name := digests.name_of(row))}
            ordered = sorted(names, key=lambda name: name.entity != "project")
            return ChangePage(
                {name: names[name] for name in ordered},
                rows[-1].seq if rows else cursor,
                len(rows) == PAGE,
            )

        return await database.read(read)

    def _concerns_peer(self, change: Change) -> bool:
        """A mesh peer gets what was written here, a foreign peer all but its own changes, files
        and receipts."""
        peer = self.peer
        if peer.secret is not None:
            return change.origin == self._shared.node.agent_id
        if change.entity in ("file", "file_request", "receipt"):
            return False
        return change.actor != peer.agent_id and change.origin != peer.agent_id

    def _mesh_channel(self) -> MeshChannel:
        shared, peer = self._shared, self.peer
        channel = MeshChannel(
            shared.client, shared.node, peer, shared.composer, shared.handshakes.rejoin
        )
        self.mesh_channel = channel
        self.comparison = Comparison(
            shared.database,
            shared.node,
            peer,
            channel,
            shared.sync_seconds,
            shared.intake.take_all,
            shared.fetching,
        )
        self.mail = self._mail_sender(channel)
        heard_time = partial(shared.settling.heard_time, peer.agent_id)
        self._loops["comparison"] = partial(self.comparison.run, heard_time)
        self._loops["mail"] = self.mail.run
        return channel

    def _mail_sender(self, channel: MeshChannel) -> Sender:
        shared, peer = self._shared, self.peer
        mail = MailSender(channel, shared.database, shared.node, peer, shared.intake.take)

        async def load(cursor: int) -> ChangePage:
            await shared.settling.settled.wait()
            return await mail.load(cursor)

        return Sender(
            peer.agent_id,
            0,
            load=load,
            deliver=mail.deliver,
            next_commit=lambda: shared.database.next_commit,
            returned=lambda: None,
            name="mail",
        )

    def _foreign_channel(self) -> ForeignChannel:
        shared = self._shared
        channel = ForeignChannel(
            shared.client, shared.database, shared.node, self.peer, shared.intake.take_all
        )
        channel.on_missing = lambda name, reason: self.sender.enqueue(name, reason)
        self._loops["foreign"] = partial(channel.follow, shared.sync_seconds)
        return channel
