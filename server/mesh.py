"""The node's side of the mesh: who its peers are, and the tasks that keep it equal with each.

Everything here runs beside the callers; what operators' commands write is read each second."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

import orjson
import structlog

from peers.backoff import delay
from peers.client import CallError, Refused
from peers.clock import Reading, Shift
from peers.foreign_plan import lacks_it
from peers.sender import Page, Sender
from schemas.base import iso, present
from server.anti_entropy import Comparison
from server.carrier import Carrier
from server.domain.acp.handoff import ENDED
from server.domain.agents import identity
from server.domain.errors import HeldElsewhere, RateLimited, Refusal, Unavailable
from server.fetching import Fetcher, answers
from server.foreign_link import ForeignLink
from server.forwarding import forward
from server.identity import Caller
from server.incoming import Incoming
from server.joining import Joining, JoinRefused
from server.links import MeshLink
from server.methods import homes
from server.methods.base import Fetch, Node, Session
from server.methods.sync import WAITS
from server.notices import Notices
from server.outbox import Composer
from server.outgoing import make_client
from server.settings import Settings
from server.store import changes, check, digests, handoffs, mesh, peers, posting, projects, untaken
from server.store.database import Database, Transaction
from server.store.peers import Peer

log = structlog.get_logger()

OVERSEE_SECONDS = 1.0
RESTART_SECONDS = 5.0
COUNT_SECONDS = 0.5
"""What changes in this time is counted together."""
SETTLE_SECONDS = 0.1
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
        self._clock = database.clock
        self._settled = asyncio.Event()
        self._met = asyncio.Event()
        self._client = make_client(loopback_allowed=node.loopback)
        self._composer = Composer(database, node)
        self._incoming = Incoming(database, node)
        self._fetching = asyncio.Lock()
        self._joining = Joining(settings, database, node, self._client)
        self.senders: dict[str, Sender] = {}
        self.comparisons: dict[str, Comparison] = {}
        self.mail: dict[str, Sender] = {}
        self._links: dict[str, MeshLink] = {}
        is_up = partial(answers, self.senders)
        self.files = Fetcher(database, node, self._links, is_up, settings.file_copies_bytes)
        self.fetch: Fetch = self.files.fetch
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
        self._notices = Notices()
        self.deferred_dropped = 0
        """Deferred messages that were refused for good, since this node started."""

    async def start(self) -> None:
        self._clock.sends = False
        # A call that needs a peer may come as soon as this returns.
        with suppress(Refusal):
            await self._match(self._database.read(peers.every))
            # What is written from the first call on, nobody else has taken.
            await self._database.write(lambda one: untaken.begin(one.connection))
        self._own = [
            asyncio.create_task(_guarded(task))
            for task in (self._oversee, self._take_due, self._count, self._settle)
        ]

    async def stop(self) -> None:
        """End every task; what the peers have confirmed is written down."""
        await self.files.stop()
        for task in self._own:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        with suppress(Refusal):
            await self._save_cursors()
        for agent_id in list(self._tasks):
            await self._forget(agent_id)
        await self._client.close()

    def heard_from(self, agent_id: str) -> None:
        """A peer has called: if it was down, it isn't any more."""
        if agent_id in self.comparisons:
            self._meet()
        for sender in (self.senders.get(agent_id), self.mail.get(agent_id)):
            if sender is not None and sender.failures:
                self._wake(agent_id)

    async def forward(self, call: HeldElsewhere) -> Any:
        """The answer of the peer that holds what a call is about. Raises Refusal."""
        answer = await forward(self._links.get(call.node), call)
        about = answer.get("handoff") or {}
        if about.get("status") in ENDED:
            ended = about["handoffId"], call.node
            with suppress(Refusal):
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
        held = next((one.reason for one in sender.held.values()), None)
        comparison = self.comparisons.get(peer.agent_id)
        state = {
            "health": health,
            "backlog": self._backlog(sender),
            "undelivered": len(sender.held),
            "mail": self._database.read(partial(posting.count_owed, node=peer.agent_id)),
            "lagSeconds": round(self._lag(sender), 3),
            "lastContact": iso(int(contact * 1e6)) if contact is not None else None,
            "lastError": sender.last_error or held,
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

    async def _oversee(self) -> None:
        for url in self._settings.peers:
            await self._database.write(partial(_want, url))
        attempts: dict[str, tuple[int, float]] = {}
        while True:
            with suppress(Refusal):
                await self._match(self._database.read(peers.every))
                self._clock.judge(self.comparisons)
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
                cursor = self.senders[agent_id].confirmed
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
            tasks.append(partial(comparison.run, partial(self._heard_time, peer.agent_id)))
            tasks.append(self._begin_mail(link, peer))
        else:
            take_all = self._incoming.take_all
            link = ForeignLink(self._client, self._database, self._node, peer, take_all)
            link.owes = lambda name, reason: self.senders[peer.agent_id].owe(name, reason)
            tasks.append(partial(link.follow, self._settings.sync_seconds))
        sender = self.senders[peer.agent_id] = Sender(
            peer.agent_id,
            peer.cursor,
            load=partial(self._load, peer),
            deliver=link.deliver,
            next_commit=lambda: self._database.next_commit,
            returned=comparison.wake if comparison else lambda: None,
        )
        link.heard = sender.heard
        link.lost = sender.failed
        tasks.append(sender.run)
        self._tasks[peer.agent_id] = [asyncio.create_task(_guarded(task)) for task in tasks]

    def _begin_mail(self, link: MeshLink, peer: Peer) -> Callable[[], Coroutine[Any, Any, None]]:
        carrier = Carrier(link, self._database, self._node, peer, self._incoming.take)

        async def load(cursor: int) -> Page:
            await self._settled.wait()
            return await carrier.load(cursor)

        self.mail[peer.agent_id] = Sender(
            peer.agent_id,
            0,
            load=load,
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
        if peer.secret is not None:
            await self._settled.wait()

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

    async def _save_cursors(self) -> None:
        moved = {
            agent_id: (sender.confirmed, int((sender.last_contact or 0) * 1e6))
            for agent_id, sender in self.senders.items()
            if self._saved.get(agent_id) != sender.confirmed
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
                await self._database.write(partial(_tried, one.url, None))
                log.info("peer_joined", url=one.url)
            except (CallError, JoinRefused, Refusal) as error:
                if one.error != str(error):
                    log.warning("peer_not_joined", url=one.url, error=str(error))
                    await self._database.write(partial(_tried, one.url, str(error)))
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

    def _heard_time(self, agent_id: str, reading: Reading) -> None:
        self._clock.heard(agent_id, reading)
        self._meet()

    def _meet(self) -> None:
        self._clock.begin()
        self._met.set()

    async def _settle(self) -> None:
        """Nothing goes to a peer before the clocks were compared: what was stamped by one that a
        majority calls wrong is stamped anew, while nobody else has it."""
        if self._settled.is_set():
            return
        await self._count_stamps()
        given = await self._database.write(lambda one: untaken.begin(one.connection))
        while not self._clock.is_settled:
            await self._met.wait()
            await asyncio.sleep(SETTLE_SECONDS)
        moved = await self._database.write(partial(self._bring_back, given))
        if moved is not None:
            log.warning("restamped", by_seconds=-moved.by / 1e6)
            await self._count_stamps()
        self._clock.sends = True
        self._settled.set()

    def _bring_back(self, given: int, transaction: Transaction) -> Shift | None:
        moved = untaken.bring_back(
            transaction.connection,
            node=self._node.agent_id,
            given=given,
            now=self._database.now(),
        )
        if moved is not None:
            self._database.stamps.newest = 0
        return moved

    async def _count_stamps(self) -> None:
        self._database.stamps.stored(await self._database.read_wide(check.newest_stamp))

    async def _take_due(self) -> None:
        """Take in what was deferred: what is due by now, and what waits for its project."""
        while True:
            with suppress(Refusal):
                for one in self._database.read(partial(mesh.due, now=self._clock.now())):
                    await self._take(one)
            await asyncio.sleep(OVERSEE_SECONDS)

    async def _take(self, one: mesh.Aside) -> None:
        """Dropped only when it is taken, or refused for good: by our own rules, or because who
        sent it has no such project."""
        try:
            still_waits = await self._taken(one)
        except (CallError, Refusal, ValueError) as error:
            reason = str(error)[:200]
            if may_pass(error):
                self._notices.refused(
                    "deferred_waits", (one.source, reason), peer=one.source, reason=reason
                )
                still_waits = True
            else:
                log.warning("deferred_refused", peer=one.source, method=one.method, reason=reason)
                self.deferred_dropped += 1
                still_waits = False
        due = self._clock.now() + POSTPONED
        await self._database.write(
            lambda to: (
                mesh.postpone(to.connection, one.digest, due)
                if still_waits
                else mesh.drop_aside(to.connection, one.digest)
            )
        )

    async def _taken(self, one: mesh.Aside) -> bool:
        """Take in a deferred message; whether it still waits for its project."""
        source = self._database.read(partial(peers.find, agent_id=one.source))
        if source is None:
            raise ValueError("it is no peer any more")
        await self._fetch_project(source, orjson.loads(one.params).get("projectId"))
        message = {"method": one.method, "params": one.params}
        return await self._incoming.take(source, message) == WAITS

    async def _fetch_project(self, source: Peer, project_id: str | None) -> None:
        """Have the project that a message is for, before it is applied (design §6)."""
        if project_id is None:
            return
        if self._database.read(partial(projects.header, project_id=project_id)) is not None:
            return
        theirs = await self._client.call(
            source.endpoint,
            "cacp/project/get",
            {"projectId": project_id},
            key=source.secret or source.api_key,
            agent_id=self._node.agent_id,
        )
        params = {"project": theirs, "source_agent": source.agent_id}
        await self._incoming.take(source, {"method": "cacp/project/sync", "params": params})


def _link_of(peer: Peer) -> tuple[str, str | None, str | None]:
    return peer.endpoint, peer.secret, peer.api_key


def may_pass(error: Exception) -> bool:
    """Whether what a refusal is for may be over later."""
    if isinstance(error, Refused):
        return not lacks_it(error)
    return isinstance(error, CallError | Unavailable | RateLimited)


async def _guarded(task: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """A task that fails by our own fault, or the disk's, says so and is begun again."""
    while True:
        try:
            await task()
        except Unavailable as refusal:
            log.warning("mesh_task_waits", reason=refusal.data["reason"])
        except Exception as error:
            log.error("mesh_task_failed", exc_info=error)
        await asyncio.sleep(RESTART_SECONDS)


def _want(url: str, transaction: Transaction) -> None:
    known = {peer.endpoint for peer in peers.every(transaction.connection) if peer.secret}
    if url.rstrip("/") not in known:
        mesh.want(transaction.connection, url.rstrip("/"))


def _tried(url: str, error: str | None, to: Transaction) -> None:
    if error is None:
        mesh.want_done(to.connection, url)
    else:
        mesh.want_failed(to.connection, url, error)
