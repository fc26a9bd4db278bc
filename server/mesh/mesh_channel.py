"""How entities reach a mesh node: in batches, with facts (design §7)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import structlog

from peers.client import Client, result_of
from peers.digest import Name
from peers.errors import CallError, Refused
from schemas.errors import ErrorCode
from server.domain.errors import Refusal
from server.methods.sync.composer import BuiltMessages, Composer
from server.node import Node
from server.store.peers import Peer
from server.util.log_once import name_once

log = structlog.get_logger()

BATCH_MESSAGES = 100
"""As many as a node takes by default; a peer that takes fewer says so."""
BATCH_BYTES = 512 * 1024
MADE_AT_ONCE = 100
NOT_THIS_BODY = frozenset({400, 413})
"""HTTP statuses by which a peer, or a proxy before it, refuses a body and not who sends it."""
SAID_MAX = 200

Wanted = list[tuple[Name, int | None]]
Making = asyncio.Task[tuple[list[tuple[Name, BuiltMessages]], Wanted]]
Heard = Callable[[], None]
Lost = Callable[[CallError], None]


class CallOutcome(NamedTuple):
    """What a peer did not take, each with why; of `missing` it lacks the project or a claim."""

    missing: dict[Name, str]
    untaken: dict[Name, str]


class MeshChannel:
    """To a mesh node."""

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

    async def deliver(self, names: Mapping[Name, int]) -> dict[Name, str]:
        """Send entities, each as it was after a change or later; those that can't be sent or that
        the peer refuses, each with why. Raises CallError when it takes nothing at all."""
        missing, untaken = await self._send(names)
        if missing:
            # The peer lacks the project or a claim: these first, then what needed them.
            wanted = {Name("project", name.project_id, name.project_id) for name in missing}
            await self._send(dict.fromkeys(sorted(wanted)))
            again = await self._send({name: names[name] for name in missing})
            untaken = {name: why for name, why in untaken.items() if name not in missing}
            untaken |= again.missing | again.untaken
        return untaken

    async def _send(self, names: Mapping[Name, int | None]) -> CallOutcome:
        """Send entities as they are; while the peer takes a batch, the next is made."""
        outcome = CallOutcome({}, {})
        making: Making | None = asyncio.create_task(self._make(list(names.items())))
        while making is not None:
            made, rest = await making
            making = asyncio.create_task(self._make(rest)) if rest else None
            outcome.untaken.update((name, one.problem) for name, one in made if one.problem)
            messages = [(name, text) for name, one in made for text in one.texts]
            try:
                for batch in _batches(messages, self._batch_messages):
                    await self._send_batch(batch, outcome)
            except BaseException:
                if making is not None:
                    making.cancel()
                raise
        return outcome

    async def _make(self, names: Wanted) -> tuple[list[tuple[Name, BuiltMessages]], Wanted]:
        """Messages of the first of these entities, and those that are left."""
        found = await self._composer.messages(dict(names[:MADE_AT_ONCE]))
        return found, names[len(found) :]

    async def _send_batch(self, batch: list[tuple[Name, bytes]], outcome: CallOutcome) -> None:
        numbered = (_request(number, message) for number, (_, message) in enumerate(batch))
        body = b"[" + b",".join(numbered) + b"]"
        try:
            answers = await self._client.post(self._peer.endpoint, body, key=self._peer.secret)
        except Refused as error:
            if error.status not in NOT_THIS_BODY:
                await self._renew_keys(error)
                raise
            if len(batch) == 1:
                outcome.untaken[batch[0][0]] = str(error)[:SAID_MAX]
                return
            self._batch_messages = len(batch) // 2
            for half in _batches(batch, self._batch_messages):
                await self._send_batch(half, outcome)
            return
        self._note(batch, answers, outcome)

    def _note(self, batch: list[tuple[Name, bytes]], answers: Any, outcome: CallOutcome) -> None:
        """Note what the answers to a batch say that the peer did not take. Raises Refused for what
        is no answer to it."""
        if not isinstance(answers, list) or len(answers) != len(batch):
            raise Refused("doesn't answer each member of a batch", status=200)
        for answer in answers:
            number = answer.get("id") if isinstance(answer, dict) else None
            if not isinstance(number, int) or not 0 <= number < len(batch):
                raise Refused("answers what was not asked", status=200)
            name = batch[number][0]
            try:
                result = result_of(answer)
            except Refused as refused:
                self._note_refused(name, refused, outcome)
            else:
                # A project brings its claims itself: of what it refuses nothing is to come first.
                lacking = _lacking_claim(result) if name.entity != "project" else None
                if lacking is not None:
                    outcome.missing[name] = lacking

    def _note_refused(self, name: Name, refused: Refused, outcome: CallOutcome) -> None:
        """Raises what stands for the peer's disk: it may take the same message later."""
        reason = str(refused)[:SAID_MAX]
        if refused.code == ErrorCode.METHOD_NOT_FOUND:
            # An earlier release: it takes no part in what is of this kind.
            name_once("peer_refuses", peer=self._peer.agent_id, reason=reason)
            return
        if refused.code == ErrorCode.SERVER_ERROR:
            if refused.data.get("reason") != "internal_error":
                raise refused
            # Without the id of this one try: the reason stays the same.
            reason = "something breaks in the peer when it takes this; its log says what"
        lacks = refused.data.get("kind") in ("project", "claim")
        (outcome.missing if lacks else outcome.untaken)[name] = reason

    async def _renew_keys(self, error: CallError) -> None:
        if isinstance(error, Refused) and error.status == 401:
            try:
                await self._rejoin(self._peer)
            except (CallError, Refusal, ValueError) as failed:
                log.debug("rejoin_failed", peer=self._peer.agent_id, error=str(failed))


def _lacking_claim(result: Any) -> str | None:
    """Why the peer has passed over facts whose claims must come first, if it has."""
    skipped = result.get("skipped") if isinstance(result, dict) else None
    each = skipped if isinstance(skipped, list) else []
    said = [one for one in each if isinstance(one, dict) and one.get("kind") == "claim"]
    return str(said[0].get("reason"))[:SAID_MAX] if said else None


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
