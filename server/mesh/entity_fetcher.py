"""Fetches entities from a mesh peer and merges them (design §7)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from peers.digest import Name
from schemas.mesh import PullResult, SyncMessage
from server.mesh.checked_link import CheckedLink
from server.rpc.sync_batch import Message, is_fault
from server.store.peers import Peer
from server.util.batches import batches
from server.util.log_once import RateLimitedLog

IN_ORDER = (
    "cacp/project/sync",
    "cacp/project/syncState",
    "cacp/contract/sync",
    "cacp/receipt/sync",
    "cacp/context/sync",
    "cacp/file/syncRequest",
    "cacp/file/sync",
)
"""The order in which messages are merged: a project before what is in it."""
PULL_MAX = 500
"""Entities of one request."""
MERGED_AT_ONCE = 50
"""Messages of one transaction: writes wait for it, some milliseconds."""
REASON_MAX = 200

TakeAll = Callable[[Peer, list[Message]], Awaitable[list[dict[str, Any] | Exception]]]


class EntityFetcher:
    """`take_all` merges messages of the peer and returns a result or an error for each."""

    def __init__(self, link: CheckedLink, peer: Peer, take_all: TakeAll) -> None:
        self._link = link
        self._peer = peer
        self._take_all = take_all
        # With two the writer never waits; more would hold up other writes.
        self._two_at_once = asyncio.Semaphore(2)
        self._notices = RateLimitedLog()
        self._faults: list[Exception] = []
        self.fetched = 0
        """Messages that were merged."""

    def take_faults(self) -> list[Exception]:
        """The messages that this node's own faults kept from being merged, since the last call."""
        faults, self._faults = self._faults, []
        return faults

    async def fetch(self, names: list[Name]) -> None:
        """Fetch entities and merge them, requesting the next while merging. Raises CallError."""
        names = sorted(names, key=lambda name: (name.entity != "project", name))
        start = piece = 0
        asking = self._pull(names[:PULL_MAX], piece) if names else None
        try:
            while asking is not None:
                pulled = await asking
                done = min(len(names) - start, PULL_MAX) - pulled.rest
                next_piece = pulled.next_piece or 0
                if done > 0 or (done == 0 and next_piece > piece):
                    start, piece = start + done, next_piece
                else:
                    # The peer gives nothing more.
                    start = len(names)
                rest = names[start : start + PULL_MAX]
                asking = self._pull(rest, piece) if rest else None
                await self._merge(pulled.messages)
        finally:
            if asking is not None:
                asking.cancel()

    def _pull(self, names: list[Name], piece: int) -> "asyncio.Task[PullResult]":
        """Ask for entities, for the first of them without its first `piece` messages."""
        entities = [name._asdict() for name in names]
        return asyncio.create_task(
            self._link.call(PullResult, "cacp/sync/pull", {"piece": piece}, entities=entities)
        )

    async def _merge(self, messages: list[SyncMessage]) -> None:
        for method in IN_ORDER:
            of_method = [message for message in messages if message.method == method]
            async with asyncio.TaskGroup() as group:
                for batch in batches(of_method, MERGED_AT_ONCE):
                    group.create_task(self._merge_batch(batch))

    async def _merge_batch(self, messages: list[SyncMessage]) -> None:
        calls = [{"method": message.method, "params": message.params} for message in messages]
        async with self._two_at_once:
            outcomes = await self._take_all(self._peer, calls)
        for message, outcome in zip(messages, outcomes, strict=True):
            if not isinstance(outcome, Exception):
                self.fetched += outcome["status"] != "skipped"
                continue
            if is_fault(outcome):
                self._faults.append(outcome)
            cause = (message.method, type(outcome).__name__)
            reason = str(outcome)[:REASON_MAX]
            self._notices.refused("fetched_refused", cause, peer=self._peer.agent_id, reason=reason)
