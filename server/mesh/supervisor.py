"""The node's side of the mesh: who its peers are, and the tasks that keep it equal with each.

Everything here runs beside the callers; what operators' commands write is read each second."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from peers.sender import Page, Sender
from schemas.base import iso, present
from server.domain.acp.handoff import ENDED
from server.domain.agents import identity
from server.domain.errors import HeldElsewhere, Unavailable
from server.mesh.anti_entropy import Comparison
from server.mesh.clock_settling import ClockSettling
from server.mesh.deferred_worker import DeferredWorker
from server.mesh.file_fetcher import FileFetcher, answers
from server.mesh.foreign_channel import ForeignChannel
from server.mesh.handoff_forwarder import forward
from server.mesh.handshake_client import HandshakeClient
from server.mesh.mail_sender import MailSender
from server.mesh.mesh_channel import MeshChannel
from server.mesh.send_progress import SendProgress, told_of
from server.mesh.wanted_peers import WantedPeers
from server.methods.base import Fetch, Session
from server.methods.sync import agent_homes, bans
from server.methods.sync.composer import Composer
from server.node import Node
from server.rpc.sync_batch import SyncIntake
from server.settings import Settings
from server.store import changes, digests, handoffs, mail_outbox, peers, untaken
from server.store.database import Database
from server.store.peers import Peer
from server.util.loops import Loop, Loops, Turns, cancel, each
from server.util.outgoing_client import make_client

OVERSEE_SECONDS = 1.0
COUNT_SECONDS = 0.5
"""What changes in this time is counted together."""
PAGE = 500
"""Changes that are read at once for a peer."""


class Supervisor:
    """Runs the senders and comparisons of every peer, from `start` to `stop`."""

    def __init__(self, settings: Settings, database: Database, node: Node, loops: Loops) -> None:
        self._loops = loops
        self._settings = settings
        self._database = database
        self._node = node
        self._clock = database.clock
        self._settling = ClockSettling(database, node)
        self._client = make_client(loopback_allowed=node.loopback)
        self._composer = Composer(database, node)
        self._incoming = SyncIntake(database, node)
        self._fetching = asyncio.Lock()
        self._joining = HandshakeClient(settings, database, node, self._client)
        self.senders: dict[str, Sender] = {}
        self.comparisons: dict[str, Comparison] = {}
        self.mail: dict[str, Sender] = {}
        self._links: dict[str, MeshChannel] = {}
        is_up = partial(answers, self.senders)
        self.files = FileFetcher(database, node, self._links, is_up, settings.file_copies_bytes)
        self.fetch: Fetch = self.files.fetch
        self._home = Session(
            database,
            node.caller,
            node,
            "acp/sync/agents",
            asyncio.Event(),
        )
        self._known: dict[str, Peer] = {}
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._own: list[asyncio.Task[None]] = []
        self._progress = SendProgress(database)
        self._wishes = WantedPeers(database, self._joining, settings.peers)
        self.deferred = DeferredWorker(database, node, self._client, self._incoming)

    async def start(self) -> None:
        self._clock.sends = False
        # A call that needs a peer may come as soon as this returns.
        with suppress(Unavailable):
            # Who can't be begun with, or what can't be noted, is tried again by the loops below.
            await self._match()
            # What is written from the first call on, nobody else has taken.
            await self._database.write(lambda one: untaken.begin(one.connection))
        loops: dict[str, Loop] = {
            "peers": self._oversee,
            "cursors": self._keep_cursors,
            "directory": self._keep_directory,
            "joining": self._wishes.run,
            "deferred": self.deferred.run,
            "digests": self._count,
        }
        self._own = [self._loops.start(name, loop) for name, loop in loops.items()]
        self._own.append(self._loops.start("clocks", self._settling.run, ends=True))

    async def stop(self) -> None:
        """End every task; what the peers have confirmed is written down."""
        await self.files.stop()
        await cancel(self._own)
        with suppress(Unavailable):
            # What was confirmed and can't be noted is sent again: it is known there.
            await self._progress.keep(self.senders)
        for agent_id in list(self._tasks):
            await self._forget(agent_id)
        await self._client.close()

    def heard_from(self, agent_id: str) -> None:
        """A peer has called: if it was down, it isn't any more."""
        if agent_id in self.comparisons:
            self._settling.meet()
        for sender in (self.senders.get(agent_id), self.mail.get(agent_id)):
            if sender is not None and sender.failures:
                self._wake(agent_id)

    async def forward(self, call: HeldElsewhere) -> Any:
        """The answer of the peer that holds what a call is about. Raises Refusal."""
        answer = await forward(self._links.get(call.node), call)
        about = answer.get("handoff") or {}
        if about.get("status") in ENDED:
            ended = about["handoffId"], call.node
            with suppress(Unavailable):
                # The step is taken, whether this can be noted now or with the next answer.
                await self._database.write(lambda to: handoffs.end_elsewhere(to.connection, *ended))
        return answer

    def _wake(self, agent_id: str) -> None:
        for kept in (self.senders, self.mail, self.comparisons):
            if agent_id in kept:
                kept[agent_id].wake()

    def state(self, peer: Peer) -> dict[str, Any] | None:
        """The PeerState of a peer; None while nothing is exchanged with it."""
        sender = self.senders.get(peer.agent_id)
        if sender is None:
            return None
        health = "down" if sender.failures else "up" if sender.last_contact else "unknown"
        contact = sender.last_contact
        held = told_of(sender)
        comparison = self.comparisons.get(peer.agent_id)
        state = {
            "health": health,
            "backlog": self._backlog(sender),
            "undelivered": len(sender.held),
            "undeliveredEntities": held or None,
            "mail": self._database.read(partial(mail_outbox.count_owed, node=peer.agent_id)),
            "lagSeconds": round(self._lag(sender), 3),
            "lastContact": iso(int(contact * 1e6)) if contact is not None else None,
            "lastError": sender.last_error or (held[0]["reason"] if held else None),
            "retries": sender.retries,
            "digestRounds": comparison.rounds if comparison else 0,
        }
        return present(state)

    def backlogs(self) -> dict[str, int]:
        """For each peer, how many entities wait for it."""
        return {agent_id: self._backlog(one) for agent_id, one in self.senders.items()}

    def lags(self) -> dict[str, float]:
        """For how many seconds the oldest of them has waited."""
        return {agent_id: self._lag(one) for agent_id, one in self.senders.items()}

    def clock_correction(self) -> float:
        """Seconds that are added to the machine's clock."""
        return self._clock.verdict.correction / 1e6

    def clocks_ahead(self) -> dict[str, int]:
        """How many seconds each peer's clock is ahead of the time, where it was measured."""
        found = {agent_id: self._clock.ahead(agent_id) for agent_id in self.comparisons}
        return {name: round(one / 1e6) for name, one in found.items() if one is not None}

    def _backlog(self, sender: Sender) -> int:
        own = self._node.agent_id
        found = self._database.read(partial(peers.backlog, cursor=sender.cursor, origin=own))
        return found + len(sender.held)

    def _lag(self, sender: Sender) -> float:
        own = self._node.agent_id
        first = partial(peers.waiting_since, cursor=sender.confirmed, origin=own)
        since = self._database.read(first)
        return 0.0 if since is None else max(0.0, (self._database.now() - since) / 1e6)

    # --- the overseer -------------------------------------------------------------------------

    async def _oversee(self) -> Turns:
        while True:
            if self._home.read(bans.is_due):
                await self._home.write(bans.enforce)
            failed = await self._match()
            self._clock.judge(self.comparisons)
            yield failed
            await asyncio.sleep(OVERSEE_SECONDS)

    async def _keep_cursors(self) -> Turns:
        while True:
            await self._progress.keep(self.senders)
            yield None
            await asyncio.sleep(OVERSEE_SECONDS)

    async def _keep_directory(self) -> Turns:
        """Who is at home here, for the peers."""
        while True:
            if self._home.read(agent_homes.is_stale):
                await self._home.write(agent_homes.publish)
            yield None
            await asyncio.sleep(OVERSEE_SECONDS)

    async def _match(self) -> Exception | None:
        """Run tasks for exactly the peers that are listed; what failed for some of them."""
        listed = self._database.read(peers.every)
        known = {peer.agent_id for peer in listed}
        for agent_id in [one for one in self._tasks if one not in known]:
            await self._forget(agent_id)
        return await each(listed, self._match_one)

    async def _match_one(self, peer: Peer) -> None:
        agent_id = peer.agent_id
        before = self._known.get(agent_id)
        if before is not None and _link_of(before) != _link_of(peer):
            # What it did after that is written down would be forgotten.
            await cancel(self._tasks.pop(agent_id, []))
            await self._progress.keep(self.senders)
            cursor = self.senders[agent_id].cursor
            await self._forget(agent_id)
            peer = peer._replace(cursor=max(cursor, peer.cursor))
        elif before is not None and before.retries != peer.retries:
            self._wake(agent_id)
        if agent_id not in self._tasks:
            self._begin(peer)
        self._known[agent_id] = peer

    def _begin(self, peer: Peer) -> None:
        tasks: dict[str, Loop] = {}
        comparison: Comparison | None = None
        link: MeshChannel | ForeignChannel
        if peer.secret is not None:
            link = MeshChannel(self._client, self._node, peer, self._composer, self._joining.rejoin)
            self._links[identity(peer.agent_id)] = link
            comparison = Comparison(
                self._database,
                self._node,
                peer,
                link,
                self._settings.sync_seconds,
                self._incoming.take_all,
                self._fetching,
            )
            self.comparisons[peer.agent_id] = comparison
            heard_time = partial(self._settling.heard_time, peer.agent_id)
            tasks["comparison"] = partial(comparison.run, heard_time)
            tasks["mail"] = self._begin_mail(link, peer)
        else:
            take_all = self._incoming.take_all
            link = ForeignChannel(self._client, self._database, self._node, peer, take_all)
            link.owes = lambda name, reason: self.senders[peer.agent_id].owe(name, reason)
            tasks["foreign"] = partial(link.follow, self._settings.sync_seconds)
        sender = self.senders[peer.agent_id] = Sender(
            peer.agent_id,
            peer.cursor,
            load=partial(self._load, peer),
            deliver=link.deliver,
            next_commit=lambda: self._database.next_commit,
            returned=comparison.wake if comparison else lambda: None,
        )
        self._progress.begin(sender)
        link.heard = sender.heard
        link.lost = sender.failed
        tasks["sender"] = sender.run
        self._tasks[peer.agent_id] = [
            self._loops.start(name, loop, peer=peer.agent_id) for name, loop in tasks.items()
        ]

    def _begin_mail(self, link: MeshChannel, peer: Peer) -> Loop:
        mail_sender = MailSender(link, self._database, self._node, peer, self._incoming.take)

        async def load(cursor: int) -> Page:
            await self._settling.settled.wait()
            return await mail_sender.load(cursor)

        self.mail[peer.agent_id] = Sender(
            peer.agent_id,
            0,
            load=load,
            deliver=mail_sender.deliver,
            next_commit=lambda: self._database.next_commit,
            returned=lambda: None,
            name="mail",
        )
        return self.mail[peer.agent_id].run

    async def _forget(self, agent_id: str) -> None:
        await cancel(self._tasks.pop(agent_id, []))
        for kept in (self.senders, self.mail, self.comparisons, self._known):
            kept.pop(agent_id, None)
        self._links.pop(identity(agent_id), None)

    async def _load(self, peer: Peer, cursor: int) -> Page:
        if peer.secret is not None:
            await self._settling.settled.wait()

        def read(db: Any) -> Page:
            rows = changes.after(db, cursor, PAGE)
            ours = (row for row in rows if self._goes_to(peer, row))
            names = {name: row.seq for row in ours if (name := digests.name_of(row))}
            ordered = sorted(names, key=lambda name: name.entity != "project")
            return Page(
                {name: names[name] for name in ordered},
                rows[-1].seq if rows else cursor,
                len(rows) == PAGE,
            )

        return self._database.read(read)

    def _goes_to(self, peer: Peer, change: changes.Change) -> bool:
        """What came by sync is not echoed; a foreign peer hears of all but its own and files."""
        if peer.secret is not None:
            return change.origin == self._node.agent_id
        if change.entity in ("file", "file_request"):
            return False
        return change.actor != peer.agent_id and change.origin != peer.agent_id

    async def _count(self) -> Turns:
        """Keep the digests up with the changes, step by step: a comparison finds them counted, and
        no write waits long."""
        while True:
            next_commit = self._database.next_commit
            while bool(self.comparisons) and self._database.read(digests.is_behind):
                await self._database.write(lambda one: digests.catch_up(one.connection))
            yield None
            await next_commit.wait()
            await asyncio.sleep(COUNT_SECONDS)


def _link_of(peer: Peer) -> tuple[str, str | None, str | None]:
    return peer.endpoint, peer.secret, peer.api_key
