"""Delivers entities to a mesh peer: in batches, with their facts (design §7)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import structlog

from peers.client import HttpClient, result_of
from peers.digest import Name
from peers.errors import CallError, PeerRefused
from schemas.errors import ErrorCode
from server.domain.errors import Refusal
from server.methods.base import PROJECT_DELETED
from server.methods.sync.composer import BuiltMessages, Composer
from server.node import Node
from server.store.peers import Peer
from server.util.log_once import name_once

log = structlog.get_logger()

BATCH_MESSAGES = 100
"""As many as a node takes by default; a batch that a peer refuses is halved."""
BATCH_BYTES = 512 * 1024
MADE_AT_ONCE = 100
NOT_THIS_BODY = frozenset({400, 413})
"""HTTP statuses by which a peer, or a proxy before it, refuses a body rather than its sender."""
SAID_MAX = 200

Wanted = list[tuple[Name, int | None]]
Making = asyncio.Task[tuple[list[tuple[Name, BuiltMessages]], Wanted]]
OnContact = Callable[[], None]
OnFailure = Callable[[CallError], None]


class CallOutcome(NamedTuple):
    """What a peer did not take, each with why. For what is `missing` it lacks the project or a
    claim."""

    missing: dict[Name, str]
    untaken: dict[Name, str]


class MeshChannel:
    """The calls to one mesh peer. `heard` and `lost` are called when it answers, or doesn't."""

    def __init__(
        self,
        client: HttpClient,
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
        self.on_contact: OnContact = lambda: None
        self.on_failure: OnFailure = lambda error: None

    async def call(self, method: str, newer: Mapping[str, Any] | None = None, **params: Any) -> Any:
        """The result of a call in this node's name, which counts for whether the peer is up.

        A peer of an older release refuses `newer` params: it is asked again without them. Raises
        CallError.
        """
        try:
            try:
                result = await self.ask(method, **params, **(newer or {}))
            except PeerRefused as refused:
                if not newer or refused.code != ErrorCode.INVALID_PARAMS:
                    raise
                result = await self.ask(method, **params)
        except CallError as error:
            self.on_failure(error)
            raise
        self.on_contact()
        return result

    async def ask(self, method: str, **params: Any) -> Any:
        """The result of a call that doesn't count for whether the peer is up. Raises CallError."""
        given = params | {"source_agent": self._node.agent_id}
        try:
            return await self._client.call(
                self._peer.endpoint, method, given, key=self._peer.secret
            )
        except CallError as error:
            await self._renew_keys(error)
            raise

    async def deliver(self, names: Mapping[Name, int]) -> dict[Name, str]:
        """Send entities, each as it was after the change of its number, or later. Returns those
        that can't be sent or that the peer refuses, each with why. Raises CallError when it takes
        nothing at all."""
        missing, untaken = await self._send(names)
        if missing:
            # The peer lacks the project or a claim: send these, then again what needs them.
            wanted = {Name("project", name.project_id, name.project_id) for name in missing}
            await self._send(dict.fromkeys(sorted(wanted)))
            again = await self._send({name: names[name] for name in missing})
            untaken = {name: why for name, why in untaken.items() if name not in missing}
            untaken |= again.missing | again.untaken
        return untaken

    async def _send(self, names: Mapping[Name, int | None]) -> CallOutcome:
        """Send entities; while the peer takes a batch, the next is made."""
        outcome = CallOutcome({}, {})
        making: Making | None = asyncio.create_task(self._make(list(names.items())))
        while making is not None:
            made, rest = await making
            making = asyncio.create_task(self._make(rest)) if rest else None
            outcome.untaken.update((name, built.problem) for name, built in made if built.problem)
            messages = [(name, text) for name, built in made for text in built.texts]
            try:
                for batch in _batches(messages, self._batch_messages):
                    await self._send_batch(batch, outcome)
            except BaseException:
                if making is not None:
                    making.cancel()
                raise
        return outcome

    async def _make(self, names: Wanted) -> tuple[list[tuple[Name, BuiltMessages]], Wanted]:
        """The messages of the first entities, and the entities that are left."""
        made = await self._composer.messages(dict(names[:MADE_AT_ONCE]))
        return made, names[len(made) :]

    async def _send_batch(self, batch: list[tuple[Name, bytes]], outcome: CallOutcome) -> None:
        numbered = (_request(number, message) for number, (_, message) in enumerate(batch))
        body = b"[" + b",".join(numbered) + b"]"
        try:
            answers = await self._client.post(self._peer.endpoint, body, key=self._peer.secret)
        except PeerRefused as error:
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
        """Note what the peer did not take of a batch. Raises PeerRefused if the answers don't match
        the batch."""
        if not isinstance(answers, list) or len(answers) != len(batch):
            raise PeerRefused("doesn't answer each call of a batch", status=200)
        for answer in answers:
            number = answer.get("id") if isinstance(answer, dict) else None
            if not isinstance(number, int) or not 0 <= number < len(batch):
                raise PeerRefused("answers a call that was not in the batch", status=200)
            name = batch[number][0]
            try:
                result = result_of(answer)
            except PeerRefused as refused:
                self._note_refused(name, refused, outcome)
            else:
                # A project brings its claims itself: nothing has to be sent before it.
                lacking = _lacking_claim(result) if name.entity != "project" else None
                if lacking is not None:
                    outcome.missing[name] = lacking

    def _note_refused(self, name: Name, refused: PeerRefused, outcome: CallOutcome) -> None:
        """Note why the peer refused an entity. Raises errors of the peer's storage: it may take the
        same message later."""
        reason = str(refused)[:SAID_MAX]
        if refused.data.get("reason") == PROJECT_DELETED:
            # The deletion itself comes from the peer, or by a comparison.
            name_once("peer_deleted_project", peer=self._peer.agent_id, reason=reason)
            return
        if refused.code == ErrorCode.METHOD_NOT_FOUND:
            # A peer of an earlier release, which doesn't know entities of this kind.
            name_once("peer_refuses", peer=self._peer.agent_id, reason=reason)
            return
        if refused.code == ErrorCode.SERVER_ERROR:
            if refused.data.get("reason") != "internal_error":
                raise refused
            # The peer's message has an id of this one try; the reason has to stay the same.
            reason = "an internal error of the peer; its log has the details"
        lacks = refused.data.get("kind") in ("project", "claim")
        (outcome.missing if lacks else outcome.untaken)[name] = reason

    async def _renew_keys(self, error: CallError) -> None:
        if isinstance(error, PeerRefused) and error.status == 401:
            try:
                await self._rejoin(self._peer)
            except (CallError, Refusal, ValueError) as failed:
                log.debug("rejoin_failed", peer=self._peer.agent_id, error=str(failed))


def _lacking_claim(result: Any) -> str | None:
    """Why the peer has skipped facts whose claims must come first; None if it has not."""
    skipped = result.get("skipped") if isinstance(result, dict) else None
    each = skipped if isinstance(skipped, list) else []
    claims = [entry for entry in each if isinstance(entry, dict) and entry.get("kind") == "claim"]
    return str(claims[0].get("reason"))[:SAID_MAX] if claims else None


def _request(number: int, message: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,' % number + message[1:]


def _batches(made: list[tuple[Name, bytes]], most: int) -> Iterator[list[tuple[Name, bytes]]]:
    batch: list[tuple[Name, bytes]] = []
    size = 0
    for message in made:
        if batch and (len(batch) == most or size + len(message[1]) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += len(message[1])
    if batch:
        yield batch
