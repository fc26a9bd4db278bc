"""The node's side of the mesh: who its peers are, and the tasks that keep it equal with each.

Everything here runs beside the callers. The operator's commands write to the store; `_oversee`
reads it every second, so that they work on a node that runs.
"""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import orjson
import structlog

from peers import clock
from peers.backoff import delay
from peers.client import CallError, Unreachable
from peers.sender import Page, Sender
from schemas.base import iso
from server.anti_entropy import Comparison
from server.carrier import Carrier
from server.domain.agents import identity
from server.domain.errors import HeldElsewhere, Refusal
from server.forwarding import forward
from server.identity import Caller
from server.incoming import Incoming
from server.joining import Joining, JoinRefused
from server.links import ForeignLink, MeshLink
from server.methods import homes
from server.methods.base import Node, Session
from server.outbox import Composer
from server.outgoing import make_client
from server.settings import Settings
from server.store import changes, digests, mesh, peers, posting, projects
from server.store.database import Database, Transaction
from server.store.peers import Peer

log = structlog.get_logger()

OVERSEE_SECONDS = 1.0
RESTART_SECONDS = 5.0
COUNT_SECONDS = 0.5
"""What changes in this time is counted together."""
POSTPONED = 30_000_000
"""Microseconds until a peer that doesn't answer is asked for a project again."""
PAGE = 500
"""Changes that are read at once for a peer."""


class Mesh:
    """Runs the senders and comparisons of every peer, from `start` to `stop`."""

    def __init__(self, settings: Settings, database: Database, node: Node) -> None:
        self._settings = settings
        self._database = database
        self._node = node
        self._client = make_client(loopback_allowed=node.loopback)
        self._composer = Composer(database, node)
        self._incoming = Incoming(database, node)
        self._fetching = asyncio.Lock()
        self._joining = Joining(settings, database, node, self._client)
        self.senders: dict[str, Sender] = {}
        self.comparisons: dict[str, Comparison] = {}
        self.mail: dict[str, Sender] = {}
        self._links: dict[str, MeshLink] = {}
        self._home = Session(
            database,
            Caller(node.agent_id, node.repo, "verified", "local"),
            node,
            "acp/sync/agents",
            asyncio.Event(),
        )
        self._known: dict[str, Peer] = {}
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._own: list[asyncio.Task[None]] = []
        self._saved: dict[str, int] = {}

    async def start(self) -> None:
        self._own = [
            asyncio.create_task(_guarded(task))
            for task in (self._oversee, self._take_due, self._count)
        ]

    async def stop(self) -> None:
        """End every task; what the peers have confirmed is written down."""
        for agent_id in list(self._tasks):
            await self._forget(agent_id)
        for task in self._own:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        with suppress(Refusal):
            await self._save_cursors()
        await self._client.close()

    def heard_from(self, agent_id: str) -> None:
        """A peer has called: if it was down, it isn't any more."""
        for sender in (self.senders.get(agent_id), self.mail.get(agent_id)):
            if sender is not None and sender.failures:
                self._wake(agent_id)

    async def forward(self, call: HeldElsewhere) -> Any:
        """The answer of the peer that holds what a call is about. Raises Refusal."""
        return await forward(self._links.get(call.node), call)

    def _wake(self, agent_id: str) -> None:
        for kept in (self.senders, self.mail, self.comparisons):
            if agent_id in kept:
                kept[agent_id].wake()

    @property
    def clock_is_off(self) -> bool:
        """Whether this node's clock is far from those of its peers."""
        return clock.is_off(self._database.correction)

    def state(self, peer: Peer) -> dict[str, Any] | None:
        """The PeerState of a peer; None while nothing is exchanged with it."""
        sender = self.senders.get(peer.agent_id)
        if sender is None:
            return None
        waiting, lag = self._waiting(sender)
        health = "down" if sender.failures else "up" if sender.last_contact else "unknown"
        contact = sender.last_contact
        comparison = self.comparisons.get(peer.agent_id)
        return {
            "health": health,
            "backlog": waiting,
            "mail": self._database.read(partial(posting.count_owed, node=peer.agent_id)),
            "lagSeconds": round(lag, 3),
            "lastContact": iso(int(contact * 1e6)) if contact is not None else None,
            "lastError": sender.last_error,
            "retries": sender.retries,
            "digestRounds": comparison.rounds if comparison else 0,
        }

    def waiting(self, place: Literal[0, 1]) -> dict[str, float]:
        """For each peer, how many entities wait for it (0), or for how many seconds (1)."""
        return {agent_id: self._waiting(one)[place] for agent_id, one in self.senders.items()}

    def clock_correction(self) -> float:
        """Seconds that are added to the machine's clock."""
        return self._database.correction / 1e6

    def _waiting(self, sender: Sender) -> tuple[int, float]:
        count, since = self._database.read(
            partial(peers.backlog, cursor=sender.cursor, origin=self._node.agent_id)
        )
        return count, 0.0 if since is None else max(0.0, (self._database.now() - since) / 1e6)

    # --- the overseer -------------------------------------------------------------------------

    async def _oversee(self) -> None:
        for url in self._settings.peers:
            await self._database.write(partial(_want, url))
        attempts: dict[str, tuple[int, float]] = {}
        while True:
            with suppress(Refusal):
                await self._match(self._database.read(peers.every))
                await self._try_wanted(attempts)
                await self._save_cursors()
                if self._home.read(homes.is_stale):
                    await self._home.write(homes.publish)
            await asyncio.sleep(OVERSEE_SECONDS)

    async def _match(self, listed: list[Peer]) -> None:
        """Run tasks for exactly the peers that are listed."""
        wanted = {peer.agent_id: peer for peer in listed}
        for agent_id in [one for one in self._tasks if one not in wanted]:
            await self._forget(agent_id)
        for agent_id, peer in wanted.items():
            before = self._known.get(agent_id)
            if before is not None and _link_of(before) != _link_of(peer):
                cursor = self.senders[agent_id].cursor
                await self._forget(agent_id)
                peer = peer._replace(cursor=max(cursor, peer.cursor))
            elif before is not None and before.retries != peer.retries:
                self._wake(agent_id)
            if agent_id not in self._tasks:
                self._begin(peer)
            self._known[agent_id] = peer

    def _begin(self, peer: Peer) -> None:
        tasks: list[Callable[[], Coroutine[Any, Any, None]]] = []
        comparison: Comparison | None = None
        link: MeshLink | ForeignLink
        if peer.secret is not None:
            link = MeshLink(self._client, self._node, peer, self._composer, self._joining.rejoin)
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
            tasks.append(partial(comparison.run, self._set_clock))
            tasks.append(self._begin_mail(link, peer))
        else:
            take = self._incoming.take
            link = ForeignLink(self._client, self._database, self._node, peer, take)
        sender = Sender(
            peer.agent_id,
            peer.cursor,
            load=partial(self._load, peer),
            deliver=link.deliver,
            next_commit=lambda: self._database.next_commit,
            returned=comparison.wake if comparison else lambda: None,
        )
        self.senders[peer.agent_id] = sender
        link.heard = sender.heard
        link.lost = sender.failed
        tasks.append(sender.run)
        self._tasks[peer.agent_id] = [asyncio.create_task(_guarded(task)) for task in tasks]

    def _begin_mail(self, link: MeshLink, peer: Peer) -> Callable[[], Coroutine[Any, Any, None]]:
        carrier = Carrier(link, self._database, self._node, peer, self._incoming.take)
        self.mail[peer.agent_id] = Sender(
            peer.agent_id,
            0,
            load=carrier.load,
            deliver=carrier.deliver,
            next_commit=lambda: self._database.next_commit,
            returned=lambda: None,
            name="mail",
        )
        return self.mail[peer.agent_id].run

    async def _forget(self, agent_id: str) -> None:
        for task in self._tasks.pop(agent_id, []):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for kept in (self.senders, self.mail, self.comparisons, self._known):
            kept.pop(agent_id, None)
        self._links.pop(identity(agent_id), None)

    async def _load(self, peer: Peer, cursor: int) -> Page:
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
        """What came by sync is not echoed; a peer of another make hears of all but its own."""
        if peer.secret is not None:
            return change.origin == self._node.agent_id
        return change.actor != peer.agent_id and change.origin != peer.agent_id

    async def _save_cursors(self) -> None:
        moved = {
            agent_id: (sender.cursor, int((sender.last_contact or 0) * 1e6))
            for agent_id, sender in self.senders.items()
            if self._saved.get(agent_id) != sender.cursor
        }
        if not moved:
            return

        def save(transaction: Transaction) -> None:
            for agent_id, (cursor, contact) in moved.items():
                peers.put_cursor(transaction.connection, agent_id, cursor, contact)

        await self._database.write(save)
        self._saved |= {agent_id: cursor for agent_id, (cursor, _) in moved.items()}

    # --- joining ------------------------------------------------------------------------------

    async def _try_wanted(self, attempts: dict[str, tuple[int, float]]) -> None:
        for one in self._database.read(mesh.wanted):
            failures, not_before = attempts.get(one.url, (0, 0.0))
            if time.monotonic() < not_before:
                continue
            try:
                await self._joining.join(one.url, one.invite)
                attempts.pop(one.url, None)
                await self._database.write(partial(_done, one.url))
                log.info("peer_joined", url=one.url)
            except (CallError, JoinRefused, Refusal) as error:
                if one.error != str(error):
                    log.warning("peer_not_joined", url=one.url, error=str(error))
                    await self._database.write(partial(_failed, one.url, str(error)))
                pause = delay(failures + 1, random.random())  # noqa: S311 - no secret
                attempts[one.url] = (failures + 1, time.monotonic() + pause)

    # --- time, and what comes in --------------------------------------------------------------

    async def _count(self) -> None:
        """Keep the digests up with the changes, step by step: a comparison finds them counted, and
        no write waits long."""
        while True:
            next_commit = self._database.next_commit
            with suppress(Refusal):
                while bool(self.comparisons) and self._database.read(digests.is_behind):
                    await self._database.write(lambda one: digests.catch_up(one.connection))
            await next_commit.wait()
            await asyncio.sleep(COUNT_SECONDS)

    def _set_clock(self) -> None:
        offsets = {
            agent_id: one.offset
            for agent_id, one in self.comparisons.items()
            if one.offset is not None
        }
        before, self._database.correction = self._database.correction, clock.correction(offsets)
        if clock.is_off(self._database.correction) != clock.is_off(before):
            log.warning("clock", off_by_seconds=self._database.correction / 1e6)

    async def _take_due(self) -> None:
        """Take in what was put aside: what is due by now, and what waits for its project."""
        while True:
            with suppress(Refusal):
                for one in self._database.read(partial(mesh.due, now=self._database.now())):
                    await self._take(one)
            await asyncio.sleep(OVERSEE_SECONDS)

    async def _take(self, one: mesh.Aside) -> None:
        source = self._database.read(partial(peers.find, agent_id=one.source))
        try:
            if source is not None:
                await self._fetch_project(source, orjson.loads(one.params).get("projectId"))
                await self._incoming.take(source, {"method": one.method, "params": one.params})
        except Unreachable:
            due = self._database.now() + POSTPONED
            await self._database.write(lambda to: mesh.postpone(to.connection, one.digest, due))
            return
        except (CallError, Refusal, ValueError) as error:
            log.warning("put_aside_refused", peer=one.source, reason=str(error)[:200])
        await self._database.write(lambda to: mesh.drop_aside(to.connection, one.digest))

    async def _fetch_project(self, source: Peer, project_id: str | None) -> None:
        """Have the project that a message is for, before it is applied (design §6)."""
        if project_id is None:
            return
        if self._database.read(partial(projects.header, project_id=project_id)) is not None:
            return
        theirs = await self._client.call(
            source.endpoint, "cacp/project/get", {"projectId": project_id}, key=source.secret
        )
        params = {"project": theirs, "source_agent": source.agent_id}
        await self._incoming.take(source, {"method": "cacp/project/sync", "params": params})


def _link_of(peer: Peer) -> tuple[str, str | None]:
    return peer.endpoint, peer.secret


async def _guarded(task: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """A task that fails by our own fault, or the disk's, says so and is begun again."""
    while True:
        try:
            await task()
        except Exception as error:
            log.error("mesh_task_failed", exc_info=error)
        await asyncio.sleep(RESTART_SECONDS)


def _want(url: str, transaction: Transaction) -> None:
    known = {peer.endpoint for peer in peers.every(transaction.connection) if peer.secret}
    if url.rstrip("/") not in known:
        mesh.want(transaction.connection, url.rstrip("/"))


def _done(url: str, transaction: Transaction) -> None:
    mesh.want_done(transaction.connection, url)


def _failed(url: str, error: str, transaction: Transaction) -> None:
    mesh.want_failed(transaction.connection, url, error)
