"""Reads what a foreign peer holds, and merges what is new of it (design §8)."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from itertools import islice

from pydantic import ValidationError

from peers.digest import Name
from peers.errors import PeerRefused
from peers.foreign_plan import Document, Shown
from server.domain.errors import Refusal
from server.domain.invalid import invalid_input
from server.mesh.foreign_exchange import may_read_parts, unmerged_messages
from server.mesh.foreign_peer import ForeignPeer
from server.rpc.sync_batch import Message, is_fault
from server.store.database import Database
from server.store.peers import Peer
from server.util.batches import batches
from server.util.log_once import RateLimitedLog

MERGED_AT_ONCE = 100
ONE_BY_ONE_MAX = 8
"""Entities that are read one by one; more of a project are read with the whole of it."""
NAMED_AT_ONCE = 20
"""Entities of one project that the log names as not merged."""
REASON_MAX = 200

TakeAll = Callable[[Peer, list[Message]], Awaitable[Sequence[object]]]


class ForeignReader:
    """Reads and merges one project at a time. `take_all` merges messages of the peer and returns a
    result or an error for each."""

    def __init__(
        self, database: Database, peer: Peer, remote: ForeignPeer, take_all: TakeAll
    ) -> None:
        self._database = database
        self._peer = peer
        self._remote = remote
        self._take_all = take_all
        self._shown: dict[str, Shown] = {}
        """The repos of each project as the peer showed them last, to read its contracts alone."""
        self._faults: list[Exception] = []
        self._notices = RateLimitedLog()

    def take_faults(self) -> list[Exception]:
        """What this node's own faults kept from being merged, since the last call."""
        faults, self._faults = self._faults, []
        return faults

    async def read(self, project_id: str) -> Shown | None:
        """The project as the peer holds it; None when it has none. Raises CallError."""
        shown = await self._remote.project(project_id)
        before = self._shown.pop(project_id, None)
        if shown is not None:
            self._shown[project_id] = shown.part({})
        elif before is not None:
            # A peer that has forgotten a project may have forgotten this node as well.
            self._remote.is_met = False
        return shown

    async def read_part(self, project_id: str, names: Collection[Name]) -> Shown | None:
        """The contracts among a few entities, as the peer holds them; None when the whole project
        has to be read. Raises CallError."""
        shown = self._shown.get(project_id)
        if (
            shown is None
            or len(names) > ONE_BY_ONE_MAX
            or any(name.entity == "project" for name in names)
            or not self._remote.knows("cacp/contract/get")
            or not await self._database.read(partial(may_read_parts, self._peer, project_id, shown))
        ):
            return None
        contracts: dict[str, Document] = {}
        for name in names:
            if name.entity != "contract":
                continue
            try:
                contract = await self._remote.contract(project_id, name.entity_id)
            except PeerRefused:
                return None
            if contract is not None:
                contracts[name.entity_id] = contract
        return shown.part(contracts)

    def forget(self, project_id: str) -> None:
        """Drop a project that was read and does not concern this node."""
        self._shown.pop(project_id, None)

    async def merge(self, project_id: str, shown: Shown) -> dict[Name, str]:
        """Merge what the peer has changed, as if it had sent it. Returns what could not be merged,
        each with why: that must not be replaced at the peer."""
        new = await self._database.read_wide(
            partial(unmerged_messages, self._peer, project_id, shown)
        )
        outcomes: list[object] = []
        for batch in batches(list(new.values()), MERGED_AT_ONCE):
            outcomes += await self._take_all(self._peer, batch)
        self._faults += [
            outcome for outcome in outcomes if isinstance(outcome, Exception) and is_fault(outcome)
        ]
        unmerged = {
            name: unmergeable(outcome)
            for name, outcome in zip(new, outcomes, strict=True)
            if isinstance(outcome, Exception)
        }
        for name, reason in islice(unmerged.items(), NAMED_AT_ONCE):
            self.log_unmerged(name, reason)
        return unmerged

    def log_unmerged(self, name: Name, reason: str) -> None:
        self._notices.refused(
            "peer_not_merged",
            (name, reason),
            peer=self._peer.agent_id,
            project=name.project_id,
            entity=name.entity,
            id=name.entity_id,
            reason=reason,
        )


def unmergeable(problem: Exception) -> str:
    """Why what a peer shows is not merged."""
    if isinstance(problem, ValidationError):
        problem = invalid_input(problem)
    message = problem.message if isinstance(problem, Refusal) else str(problem)
    return f"shows what can't be merged here: {message[:REASON_MAX]}"
