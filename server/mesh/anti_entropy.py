"""Compare with a peer and fetch what differs (design §7).

On connection and now and then. Each side fetches what it lacks; a join on both makes them equal.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from itertools import islice
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from peers import digest
from peers.backoff import delay
from peers.clock import Reading
from peers.digest import Name
from peers.errors import CallError, Refused
from peers.unequal import Pair
from schemas.errors import ErrorCode
from schemas.mesh import (
    BansResult,
    DigestResult,
    EntityKind,
    EvidenceResult,
    PullResult,
    SyncMessage,
)
from server.auth.authenticator import Caller
from server.mesh.divergence import Divergence
from server.mesh.mesh_channel import MeshChannel
from server.methods.base import Session
from server.methods.sync import bans, equivocation
from server.node import Node
from server.rpc.sync_batch import Message, is_fault
from server.store import digests
from server.store.database import Database
from server.store.peers import Peer
from server.util.log_once import LogOnce
from server.util.loops import Turns, together

KINDS = list(get_args(EntityKind))
IN_ORDER = (
    "cacp/project/sync",
    "cacp/contract/sync",
    "cacp/context/sync",
    "cacp/file/syncRequest",
    "cacp/file/sync",
)
"""What is taken in first: a project before what is in it."""
PREFIXES_MAX = 256
PULL_MAX = 500
BEHIND_SECONDS = 0.5
TAKEN_AT_ONCE = 50
"""Messages of one transaction: writes wait for it, some milliseconds."""
EXACTLY = 4
"""Places of each comparison that are compared entity by entity, whatever their sums are: once a
minute, that is all of them in a day."""
OTHER_SECONDS = 60.0
"""How long what is fetched from another peer is waited for: it may be the same."""

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
HeardTime = Callable[[Reading], None]
TakeAll = Callable[[Peer, list[Message]], Awaitable[list[dict[str, Any] | Exception]]]


class Comparison:
    """Keeps this node equal with one peer."""

    def __init__(
        self,
        database: Database,
        node: Node,
        peer: Peer,
        link: MeshChannel,
        seconds: float,
        take_all: TakeAll,
        fetching: asyncio.Lock,
    ) -> None:
        self._database = database
        self._node = node
        self._peer = peer
        self._link = link
        self._seconds = seconds
        self._take_all = take_all
        self._fetching = fetching
        self._two_at_once = asyncio.Semaphore(2)
        self._wake = asyncio.Event()
        self._notices = LogOnce()
        self._divergence = Divergence(database, peer.agent_id)
        self._failed: list[Exception] = []
        """What went wrong with single messages of this round, by a fault of this node."""
        self._bans_known: str | None = None
        self._evidence_heard = 0
        start = random.randrange(digest.PLACES)  # noqa: S311 - no secret
        self.places = digest.places(start)
        """Those that are compared entity by entity, from the next on; endless."""
        caller = Caller(peer.agent_id, peer.repo_name or "", "peer", "key")
        self._session = Session(database, caller, node, "cacp/sync/bans", asyncio.Event())
        self.rounds = 0
        self.fetched = 0

    def wake(self) -> None:
        """Compare at once."""
        self._wake.set()

    async def run(self, heard_time: HeardTime) -> Turns:
        """Yields after each round; never ends. `heard_time` is called whenever the peer has told
        its clock."""
        failures = 0
        announced = False
        while True:
            self._wake.clear()
            chance = random.random()  # noqa: S311 - no secret
            pause = self._seconds * (0.5 + chance)
            self._failed = []
            try:
                if not announced:
                    await self._announce()
                    announced = True
                if not await self.round(heard_time):
                    pause = BEHIND_SECONDS
                await self._hear_bans()
                await self._hear_evidence()
                failures = 0
            except CallError:
                failures += 1
                pause = min(pause, delay(failures, chance))
            yield together(self._failed)
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _announce(self) -> None:
        """Say where this node listens: it may have moved since it registered."""
        await self._link.call(
            "cacp/peer/announce",
            agentId=self._node.agent_id,
            endpoint=self._node.url,
            repoName=self._node.repo,
        )

    async def _hear_bans(self) -> None:
        """Learn whom the peer has banned, and those that it heeds."""
        found = await self._told(BansResult, "cacp/sync/bans", known=self._bans_known)
        if found is not None and found.digest != self._bans_known:
            await self._session.write(lambda ctx: bans.take(ctx, found.bans))
            self._bans_known = found.digest

    async def _hear_evidence(self) -> None:
        """Learn who contradicted itself where the peer could see it."""
        after = self._evidence_heard
        found = await self._told(EvidenceResult, "cacp/sync/evidence", after=after)
        if found is None or found.last == after:
            return
        source = self._peer.agent_id
        await self._session.write(lambda ctx: equivocation.take(ctx, source, found))
        self._evidence_heard = found.last

    async def _told(self, model: type[M], method: str, **params: Any) -> M | None:
        """What the peer knows beside its content; None from one of an older release, which doesn't
        know the method. Raises CallError."""
        try:
            answer = await self._link.ask(method, **params)
        except CallError as error:
            if isinstance(error, Refused) and error.code == ErrorCode.METHOD_NOT_FOUND:
                return None
            self._link.lost(error)
            raise
        return self._checked(model, answer)

    async def round(self, heard_time: HeardTime) -> bool:
        """Compare once and fetch what differs; False when it is to be done again soon: one side
        has yet to count its changes, or much has come from another peer meanwhile.

        Raises CallError.
        """
        counted = False
        while not counted:
            counted = await self._database.write(lambda one: digests.catch_up(one.connection))
        # A member can choose what it writes so that two sets of it have one sum.
        prefixes, differing = ["", *islice(self.places, EXACTLY)], dict[Name, Pair]()
        for _ in range(digest.DEPTH + 1):
            below: list[str] = []
            for chunk in _chunks(prefixes, PREFIXES_MAX):
                found = await self._ask(chunk, heard_time)
                if found.behind:
                    return False
                below += self._differing(chunk, found)
                differing |= self._lacking(chunk, found)
            prefixes = below
            if not prefixes:
                break
        await self._divergence.note(differing)
        lacking = list(differing)
        if len(lacking) <= PULL_MAX:
            await self._fetch(lacking)
        elif self._fetching.locked() and await self._other_has_fetched():
            return False
        else:
            async with nullcontext() if self._fetching.locked() else self._fetching:
                await self._fetch(lacking)
        self.rounds += 1
        return True

    async def _other_has_fetched(self) -> bool:
        """Wait for what is fetched from another peer: a new node takes everything once. False when
        that takes too long: no slow peer keeps it from the others."""
        try:
            async with asyncio.timeout(OTHER_SECONDS), self._fetching:
                return True
        except TimeoutError:
            return False

    async def _ask(self, prefixes: list[str], heard_time: HeardTime) -> DigestResult:
        sent = self._database.clock.steady()
        answer = await self._link.call("cacp/sync/digest", {"kinds": KINDS}, prefixes=prefixes)
        received = self._database.clock.steady()
        found = self._checked(DigestResult, answer)
        heard_time(Reading(sent, found.time, received))
        return found

    def _differing(self, prefixes: list[str], found: DigestResult) -> list[str]:
        asked = [prefix for prefix in prefixes if len(prefix) < digest.DEPTH]
        ours: dict[str, str] = {}
        for prefix in asked:
            ours |= self._database.read(lambda db, p=prefix: digests.sums_below(db, p))  # type: ignore[misc]
        theirs = {
            prefix: one for prefix, one in found.sums.items() if prefix[:-1] in asked and prefix
        }
        return digest.differing(ours, theirs)

    def _lacking(self, prefixes: list[str], found: DigestResult) -> dict[Name, Pair]:
        ours: dict[Name, str] = {}
        for place in prefixes:
            if len(place) == digest.DEPTH:
                ours |= self._database.read(lambda db, p=place: digests.leaves_at(db, p))  # type: ignore[misc]
        return digest.lacking(ours, found.leaves)

    async def _fetch(self, names: list[Name]) -> None:
        """Ask for entities and take them in; while some are taken in, the next are on their way."""
        names = sorted(names, key=lambda name: (name.entity != "project", name))
        at = piece = 0
        asking = self._pull(names[:PULL_MAX], piece) if names else None
        try:
            while asking is not None:
                found = await asking
                done = min(len(names) - at, PULL_MAX) - found.rest
                more = found.next_piece or 0
                goes_on = done > 0 or (done == 0 and more > piece)
                at, piece = (at + done, more) if goes_on else (len(names), 0)
                asking = self._pull(names[at : at + PULL_MAX], piece) if at < len(names) else None
                for kind in IN_ORDER:
                    of_kind = [one for one in found.messages if one.method == kind]
                    async with asyncio.TaskGroup() as group:
                        for some in _chunks(of_kind, TAKEN_AT_ONCE):
                            group.create_task(self._take(some))
        finally:
            if asking is not None:
                asking.cancel()

    def _pull(self, names: list[Name], piece: int) -> "asyncio.Task[PullResult]":
        """Ask for entities; of the first, what comes after so many of its messages."""

        async def ask() -> PullResult:
            asked = [name._asdict() for name in names]
            answer = await self._link.call("cacp/sync/pull", {"piece": piece}, entities=asked)
            return self._checked(PullResult, answer)

        return asyncio.create_task(ask())

    async def _take(self, messages: list[SyncMessage]) -> None:
        given = [{"method": one.method, "params": one.params} for one in messages]
        # More would only stand in the way of other writes; with two the writer never waits.
        async with self._two_at_once:
            outcomes = await self._take_all(self._peer, given)
        for message, outcome in zip(messages, outcomes, strict=True):
            if not isinstance(outcome, Exception):
                self.fetched += outcome["status"] != "skipped"
                continue
            if is_fault(outcome):
                self._failed.append(outcome)
            cause = (message.method, type(outcome).__name__)
            reason = str(outcome)[:200]
            self._notices.refused("fetched_refused", cause, peer=self._peer.agent_id, reason=reason)

    def _checked(self, model: type[M], answer: Any) -> M:
        """Raises CallError. The peer is up, so that nothing but this names what it answers."""
        try:
            return model.model_validate(answer)
        except ValidationError:
            reason = f"answers with what is no {model.__name__}"
            peer = self._peer.agent_id
            self._notices.refused("comparison_failed", (reason,), peer=peer, reason=reason)
            raise CallError(reason) from None


def _chunks(items: list[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
