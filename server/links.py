"""How entities reach a node of our own make: in batches, with facts (design §6)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import structlog

from peers.client import CallError, Client, Refused, result_of
from peers.digest import Name
from schemas.errors import ErrorCode
from server.domain.errors import Refusal
from server.methods.base import Node
from server.notices import Notices
from server.outbox import Composer
from server.store.peers import Peer

log = structlog.get_logger()

BATCH_MESSAGES = 100
"""As many as a node takes by default; a peer that takes fewer says so."""
BATCH_BYTES = 512 * 1024
MADE_AT_ONCE = 100
TOO_LARGE = 413

Wanted = list[tuple[Name, int | None]]
Making = asyncio.Task[tuple[list[tuple[Name, bytes]], Wanted]]
Heard = Callable[[], None]
Lost = Callable[[CallError], None]


class MeshLink:
    """To a node of our own make."""

    def __init__(
        self,
        client: Client,
        node: Node,
        peer: Peer,
        composer: Composer,
        rejoin: Callable[[Peer], Awaitable[None]],
    ) -> None:
        self._client = client
        self._node = node
        self._peer = peer
        self._composer = composer
        self._rejoin = rejoin
        self._notices = Notices()
        self._batch_messages = BATCH_MESSAGES
        self.heard: Heard = lambda: None
        self.lost: Lost = lambda error: None

    async def call(self, method: str, newer: Mapping[str, Any] | None = None, **params: Any) -> Any:
        """The result of a call in this node's name. Raises CallError, which also counts.

        A peer of an older release refuses `newer` params: it is asked again without.
        """
        try:
            try:
                result = await self.ask(method, **params, **(newer or {}))
            except Refused as refused:
                if not newer or refused.code != ErrorCode.INVALID_PARAMS:
                    raise
                result = await self.ask(method, **params)
        except CallError as error:
            self.lost(error)
            raise
        self.heard()
        return result

    async def ask(self, method: str, **params: Any) -> Any:
        """The same, without counting for whether the peer is up."""
        given = params | {"source_agent": self._node.agent_id}
        try:
            return await self._client.call(
                self._peer.endpoint, method, given, key=self._peer.secret
            )
        except CallError as error:
            await self._renew_keys(error)
            raise

    async def deliver(self, names: Mapping[Name, int]) -> None:
        """Send entities, each as it was after a change or later; returns once the peer has taken or
        refused each. Raises CallError."""
        missing = await self._send(names)
        if missing:
            # The peer lacks the project or a claim: these first, then what needed them.
            wanted = {Name("project", name.project_id, name.project_id) for name in missing}
            await self._send(dict.fromkeys(sorted(wanted)))
            for name in await self._send({name: names[name] for name in missing}):
                log.info("peer_lacks_project", peer=self._peer.agent_id, project=name.project_id)

    async def _send(self, names: Mapping[Name, int | None]) -> list[Name]:
        """Those of the entities that the peer can't take before it has their project.

        While it takes a batch, the next is made.
        """
        missing: list[Name] = []
        making: Making | None = asyncio.create_task(self._make(list(names.items())))
        while making is not None:
            made, rest = await making
            making = asyncio.create_task(self._make(rest)) if rest else None
            try:
                for batch in _batches(made, self._batch_messages):
                    missing += await self._send_batch(batch)
            except BaseException:
                if making is not None:
                    making.cancel()
                raise
        return missing

    async def _make(self, names: Wanted) -> tuple[list[tuple[Name, bytes]], Wanted]:
        """Messages of the first of these entities, and those that are left."""
        found = await self._composer.messages(dict(names[:MADE_AT_ONCE]))
        return [(name, text) for name, text in found if text is not None], names[len(found) :]

    async def _send_batch(self, batch: list[tuple[Name, bytes]]) -> list[Name]:
        numbered = (_request(number, message) for number, (_, message) in enumerate(batch))
        body = b"[" + b",".join(numbered) + b"]"
        try:
            answers = await self._client.post(self._peer.endpoint, body, key=self._peer.secret)
        except Refused as error:
            if error.status == TOO_LARGE and len(batch) > 1:
                self._batch_messages = len(batch) // 2
                return [
                    name
                    for half in _batches(batch, self._batch_messages)
                    for name in await self._send_batch(half)
                ]
            await self._renew_keys(error)
            raise
        return self._missing(batch, answers)

    def _missing(self, batch: list[tuple[Name, bytes]], answers: Any) -> list[Name]:
        if not isinstance(answers, list) or len(answers) != len(batch):
            raise Refused("doesn't answer each member of a batch", status=200)
        missing = []
        for answer in answers:
            number = answer.get("id") if isinstance(answer, dict) else None
            if not isinstance(number, int) or not 0 <= number < len(batch):
                raise Refused("answers what was not asked", status=200)
            try:
                if _lacks_claim(result_of(answer)):
                    missing.append(batch[number][0])
            except Refused as refused:
                if refused.code == ErrorCode.SERVER_ERROR:
                    # The peer's own fault: it may take the same message later.
                    raise
                if refused.data.get("kind") in ("project", "claim"):
                    missing.append(batch[number][0])
                else:
                    self._name(refused)
        return missing

    def _name(self, refused: Refused) -> None:
        cause = (refused.code, refused.data.get("reason"))
        reason = str(refused)[:200]
        self._notices.refused("peer_refuses", cause, peer=self._peer.agent_id, reason=reason)

    async def _renew_keys(self, error: CallError) -> None:
        if isinstance(error, Refused) and error.status == 401:
            try:
                await self._rejoin(self._peer)
            except (CallError, Refusal, ValueError) as failed:
                log.debug("rejoin_failed", peer=self._peer.agent_id, error=str(failed))


def _lacks_claim(result: Any) -> bool:
    """Whether the peer has passed over facts whose claims must come first."""
    skipped = result.get("skipped") if isinstance(result, dict) else None
    each = skipped if isinstance(skipped, list) else []
    return any(isinstance(one, dict) and one.get("kind") == "claim" for one in each)


def _request(number: int, message: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,' % number + message[1:]


def _batches(made: list[tuple[Name, bytes]], most: int) -> Iterator[list[tuple[Name, bytes]]]:
    batch: list[tuple[Name, bytes]] = []
    size = 0
    for one in made:
        if batch and (len(batch) == most or size + len(one[1]) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += len(one[1])
    if batch:
        yield batch
