"""Compares this node with a peer and fetches what differs (design §7).

On connection and about once a minute. Each side fetches what it lacks; the joins on both make them
equal.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from typing import NamedTuple

from peers.backoff import delay
from peers.errors import CallError
from schemas.mesh import BansResult, EvidenceResult
from server.auth.authenticator import Caller
from server.mesh.checked_link import CheckedLink
from server.mesh.digest_walk import DigestWalk, HeardTime
from server.mesh.divergence import Divergence
from server.mesh.entity_fetcher import PULL_MAX, EntityFetcher, TakeAll
from server.mesh.mesh_channel import MeshChannel
from server.methods.base import CallSession
from server.methods.sync import bans, equivocation
from server.node import Node
from server.store.database import Database
from server.store.peers import Peer
from server.util.loops import Turns, grouped

BEHIND_SECONDS = 0.5
OTHER_SECONDS = 60.0
"""How long a fetch from another peer is waited for: it may bring the same."""


class ComparisonResult(NamedTuple):
    """What a comparison found before it fetched. `at` is a stamp; `differing` counts, by kind, the
    entities that the peer holds otherwise or this node lacks. Where `is_equal` is false and nothing
    differs, the peer lacks something."""

    at: int
    is_equal: bool
    differing: Mapping[str, int]


class Comparison:
    """Keeps this node equal with one peer.

    `seconds` is the mean time between two rounds; `fetching` is shared by all peers, and held while
    much is fetched from one.
    """

    def __init__(
        self,
        database: Database,
        node: Node,
        peer: Peer,
        channel: MeshChannel,
        seconds: float,
        take_all: TakeAll,
        fetching: asyncio.Lock,
    ) -> None:
        self._database = database
        self._node = node
        self._peer = peer
        self._channel = channel
        self._seconds = seconds
        self._fetching = fetching
        self._link = CheckedLink(channel, peer)
        self.walk = DigestWalk(database, self._link)
        self._fetcher = EntityFetcher(self._link, peer, take_all)
        self._divergence = Divergence(database, peer.agent_id)
        caller = Caller(peer.agent_id, peer.repo_name or "", "peer", "key")
        self._session = CallSession(database, caller, node, "cacp/sync/bans", asyncio.Event())
        self._wake = asyncio.Event()
        self._bans_digest: str | None = None
        self._last_evidence = 0
        self.rounds = 0
        self.last: ComparisonResult | None = None

    @property
    def fetched(self) -> int:
        """Messages that comparisons have fetched and merged."""
        return self._fetcher.fetched

    def wake(self) -> None:
        """Compare at once."""
        self._wake.set()

    async def run(self, heard_time: HeardTime) -> Turns:
        """Yields after each round; never ends. `heard_time` is called with each reading of the
        peer's clock."""
        failures = 0
        announced = False
        while True:
            self._wake.clear()
            chance = random.random()  # noqa: S311 - no secret
            pause = self._seconds * (0.5 + chance)
            try:
                if not announced:
                    await self._announce()
                    announced = True
                if not await self.round(heard_time):
                    pause = BEHIND_SECONDS
                await self._fetch_bans()
                await self._fetch_evidence()
                failures = 0
            except CallError:
                failures += 1
                pause = min(pause, delay(failures, chance))
            yield grouped(self._fetcher.take_faults())
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def round(self, heard_time: HeardTime) -> bool:
        """Compare once and fetch what differs. Raises CallError.

        Returns False when it should be repeated soon: the peer has yet to count its changes, or
        another peer has sent much in that time.
        """
        differing = await self.walk.differing(heard_time)
        if differing is None:
            return False
        self.last = ComparisonResult(
            self._database.now(),
            is_equal=self.walk.sums_are_equal and not differing,
            differing=Counter(name.entity for name in differing),
        )
        await self._divergence.note(differing)
        names = list(differing)
        if len(names) <= PULL_MAX:
            await self._fetcher.fetch(names)
        elif self._fetching.locked() and await self._other_has_fetched():
            return False
        else:
            async with nullcontext() if self._fetching.locked() else self._fetching:
                await self._fetcher.fetch(names)
        self.rounds += 1
        return True

    async def _other_has_fetched(self) -> bool:
        """Wait for what is fetched from another peer, so that a new node fetches everything once.
        Returns False after OTHER_SECONDS: a slow peer must not keep this node from the others."""
        try:
            async with asyncio.timeout(OTHER_SECONDS), self._fetching:
                return True
        except TimeoutError:
            return False

    async def _announce(self) -> None:
        """Tell the peer where this node listens: it may have moved since it registered."""
        await self._channel.call(
            "cacp/peer/announce",
            agentId=self._node.agent_id,
            endpoint=self._node.url,
            repoName=self._node.repo,
        )

    async def _fetch_bans(self) -> None:
        """Learn whom the peer, and the nodes whose bans it applies, have banned."""
        result = await self._link.ask_newer(BansResult, "cacp/sync/bans", known=self._bans_digest)
        if result is not None and result.digest != self._bans_digest:
            await self._session.write(lambda ctx: bans.take(ctx, result.bans))
            self._bans_digest = result.digest

    async def _fetch_evidence(self) -> None:
        """Learn which nodes have contradicted themselves where the peer could see it."""
        after = self._last_evidence
        result = await self._link.ask_newer(EvidenceResult, "cacp/sync/evidence", after=after)
        if result is None or result.last == after:
            return
        source = self._peer.agent_id
        await self._session.write(lambda ctx: equivocation.take(ctx, source, result))
        self._last_evidence = result.last
