"""Finds what differs between this node and a peer, by their digests (design §7)."""

import random
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import get_args

from peers import digest
from peers.clock import Reading
from peers.digest import Name
from peers.unequal import Pair
from schemas.mesh import DigestResult, EntityKind
from server.mesh.checked_link import CheckedLink
from server.store import digests, lifecycle
from server.store.database import Database
from server.util.batches import batches

KINDS = list(get_args(EntityKind))
PREFIXES_MAX = 256
"""Prefixes of one request."""
EXACTLY = 4
"""Places that each walk compares entity by entity, whatever their sums are: with a walk a minute,
all places in a day."""

HeardTime = Callable[[Reading], None]


class DigestWalk:
    """Walks down the digest trees of both from the root, where their sums differ."""

    def __init__(self, database: Database, link: CheckedLink) -> None:
        self._database = database
        self._link = link
        start = random.randrange(digest.PLACES)  # noqa: S311 - no secret
        self.places = digest.places(start)
        """Endless: the places to compare entity by entity, the next ones first."""
        self.sums_are_equal = False
        """Whether the sums over everything were equal in the last walk: also false when only the
        peer lacks something, which `differing` does not tell."""

    async def differing(self, heard_time: HeardTime) -> dict[Name, Pair] | None:
        """The entities that differ or are missing here; None when the peer has changes to count.

        `heard_time` is called with each reading of the peer's clock. Raises CallError.
        """
        await self._count_changes()
        # A member can choose what it writes so that two different sets have one sum.
        prefixes, differing = ["", *islice(self.places, EXACTLY)], dict[Name, Pair]()
        for level in range(digest.DEPTH + 1):
            below: list[str] = []
            for batch in batches(prefixes, PREFIXES_MAX):
                peer_digest = await self._ask(batch, heard_time)
                if peer_digest.behind:
                    return None
                below += await self._prefixes_below(batch, peer_digest)
                differing |= await self._entities_at(batch, peer_digest)
            if level == 0:
                self.sums_are_equal = not below
            prefixes = below
            if not prefixes:
                break
        return differing

    async def _count_changes(self) -> None:
        counted = False
        while not counted:
            counted = await self._database.write(
                lambda transaction: digests.catch_up(transaction.connection)
            )

    async def _ask(self, prefixes: list[str], heard_time: HeardTime) -> DigestResult:
        sent = self._database.clock.steady()
        peer_digest = await self._link.call(
            DigestResult, "cacp/sync/digest", {"kinds": KINDS}, prefixes=prefixes
        )
        received = self._database.clock.steady()
        heard_time(Reading(sent, peer_digest.time, received))
        return peer_digest

    async def _prefixes_below(self, prefixes: list[str], peer_digest: DigestResult) -> list[str]:
        """The prefixes, one digit longer, whose sums differ."""
        asked = [prefix for prefix in prefixes if len(prefix) < digest.DEPTH]
        own_sums: dict[str, str] = {}
        for prefix in asked:
            own_sums |= await self._database.read(partial(digests.sums_below, prefix=prefix))
        peer_sums = {
            prefix: sum
            for prefix, sum in peer_digest.sums.items()
            if prefix and prefix[:-1] in asked
        }
        return digest.differing(own_sums, peer_sums)

    async def _entities_at(
        self, prefixes: list[str], peer_digest: DigestResult
    ) -> dict[Name, Pair]:
        """The entities at places of full depth that differ."""
        own_leaves: dict[Name, str] = {}
        for place in prefixes:
            if len(place) == digest.DEPTH:
                own_leaves |= await self._database.read(partial(digests.leaves_at, place=place))
        lacking = digest.lacking(own_leaves, peer_digest.leaves)
        # The peer is about to hear of the deletion; nothing of such a project is taken from it.
        deleted = await self._database.read(
            lambda db: lifecycle.deleted_of(db, {name.project_id for name in lacking})
        )
        return {
            name: pair
            for name, pair in lacking.items()
            if name.entity == "project" or name.project_id not in deleted
        }
