"""Delivers mail to a mesh peer, from the rows of the outbox that are owed to it (acp-canonical §10;
design §7).

Rows are confirmed one by one, so there is no cursor: what was sent and not confirmed is sent again,
and the other node knows each message by its id.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from peers.digest import Name
from peers.errors import CallError, NotConnected, PeerRefused
from peers.sender import ChangePage
from schemas.acp_mesh import AgentsResult, MailResult
from schemas.errors import ErrorCode
from server.domain.agents import identity
from server.domain.authorship import statement
from server.domain.errors import Refusal
from server.mesh.mesh_channel import MeshChannel
from server.node import Node
from server.store import mail_outbox, mailboxes, messages
from server.store.connection import Connection
from server.store.database import Database
from server.store.mail_outbox import OutboxEntry
from server.store.peers import Peer

OWED_AT_ONCE = 50
BATCH_BYTES = 256 * 1024
WRONG = frozenset({ErrorCode.INVALID_PARAMS, ErrorCode.TOO_LARGE})
"""Errors that mean that the peer will never take the message as it is."""

Apply = Callable[[Peer, dict[str, Any]], Awaitable[Any]]


class PreparedMail(NamedTuple):
    """Letters (schemas.acp_mesh.Carried) by message id, receipts, and the ids of the messages that
    were never offered before."""

    letters: dict[str, dict[str, Any]]
    receipts: list[dict[str, Any]]
    first_offered: list[str]


class MailSender:
    """Delivers mail, receipts and this node's directory to one peer.

    After each failure it exchanges directories with the peer first. So a message is offered only to
    a node that answers, and one that was not offered can still expire here.
    """

    def __init__(
        self, link: MeshChannel, database: Database, node: Node, peer: Peer, apply: Apply
    ) -> None:
        self._link = link
        self._database = database
        self._node = node
        self._peer = peer
        self._apply = apply
        self._confirmed_stamp = 0
        """The stamp of the directory that the peer has confirmed since the last failure."""

    async def load(self, cursor: int) -> ChangePage:
        """The first unconfirmed rows for the peer."""

        def read(db: Connection) -> ChangePage:
            owed = mail_outbox.entries(db, self._peer.agent_id, OWED_AT_ONCE)
            names = {Name(row.kind, "", row.message_id): row.seq for row in owed}
            kept = mail_outbox.directory(db, self._node.agent_id)
            if kept is not None and kept.stamp != self._confirmed_stamp:
                names[Name("directory", "", "")] = kept.stamp
            return ChangePage(names, cursor, len(owed) == OWED_AT_ONCE)

        return await self._database.read(read)

    async def deliver(self, names: Mapping[Name, int]) -> None:
        """Send the rows. Returns once the peer has accepted or refused each. Raises CallError."""
        try:
            await self._greet()
            owed = [
                OutboxEntry(seq, name.entity, name.entity_id)  # type: ignore[arg-type]
                for name, seq in names.items()
                if name.entity != "directory"
            ]
            while owed:
                batch, owed = await self._first(owed)
                await self._say(batch)
        except CallError:
            self._confirmed_stamp = 0
            raise

    async def _greet(self) -> None:
        kept = await self._database.read(lambda db: mail_outbox.directory(db, self._node.agent_id))
        if kept is None or kept.stamp == self._confirmed_stamp:
            return
        answer = await self._link.ask("acp/sync/agents", listed=orjson.Fragment(kept.document))
        try:
            directory = AgentsResult.model_validate(answer).listed
        except ValidationError:
            raise PeerRefused("answers with an invalid directory", status=200) from None
        if directory is not None:
            await self._take("acp/sync/agents", {"listed": directory.model_dump()})
        self._confirmed_stamp = kept.stamp

    async def _first(self, owed: list[OutboxEntry]) -> tuple[list[OutboxEntry], list[OutboxEntry]]:
        """The first rows, up to about BATCH_BYTES, and the rest."""

        def read(db: Connection) -> int:
            size = 0
            for place, owed_row in enumerate(owed):
                message = messages.find(db, owed_row.message_id)
                size += (
                    len(message.payload_json) + len(message.context_json or "") if message else 0
                )
                if size > BATCH_BYTES:
                    return max(place, 1)
            return len(owed)

        cut = await self._database.read(read)
        return owed[:cut], owed[cut:]

    async def _say(self, batch: list[OutboxEntry]) -> None:
        made = await self._database.write(lambda to: self._made(to.connection, batch))
        if made.letters or made.receipts:
            try:
                answer = await self._link.ask(
                    "acp/sync/mail",
                    messages=list(made.letters.values()),
                    receipts=made.receipts,
                )
            except NotConnected:
                peer = self._peer.agent_id
                await self._database.write(
                    lambda to: mail_outbox.withdraw(to.connection, made.first_offered, peer)
                )
                raise
            except PeerRefused as refused:
                if refused.code not in WRONG:
                    raise
                if len(batch) > 1:
                    for owed in batch:
                        await self._say([owed])
                    return
                answer = {"answers": [{"error": f"its node {refused}"}] * len(made.letters)}
            await self._settle(made.letters, answer)
        await self._database.write(lambda to: mail_outbox.confirm(to.connection, batch))

    def _made(self, db: Connection, batch: list[OutboxEntry]) -> PreparedMail:
        """The letters and receipts of a batch; letters are signed for the peer, and noted as
        offered to it."""
        to = identity(self._peer.agent_id)
        texts: dict[str, str] = {}
        made = PreparedMail({}, [], [])
        for owed in batch:
            if owed.kind == "receipts":
                deliveries = mailboxes.deliveries(db, owed.message_id)
                reached = [mailboxes.reached(delivery) for delivery in deliveries]
                made.receipts.append({"message_id": owed.message_id, "reached": reached})
                continue
            text = self._letter(db, owed.message_id)
            if text is not None:
                texts[owed.message_id] = text
                if mail_outbox.offer(db, owed.message_id, to):
                    made.first_offered.append(owed.message_id)
        statements = [statement("mail", to, {"text": text}) for text in texts.values()]
        signed = self._node.key.sign_all(statements)
        for (message_id, text), by in zip(texts.items(), signed, strict=True):
            signature = {"node": self._node.agent_id, **by._asdict()}
            made.letters[message_id] = {"text": text, "signature": signature}
        return made

    def _letter(self, db: Connection, message_id: str) -> str | None:
        """The text of a `schemas.acp_mesh.Letter`; None if no recipient there waits for it."""
        message = messages.find(db, message_id)
        waiting = mail_outbox.waiting(db, message_id, identity(self._peer.agent_id))
        if message is None or message.held is not None or not waiting:
            return None
        envelope = messages.envelope(message._replace(status="pending", updated_at=None))
        whole = {"message": envelope, "hop": message.hop, "recipients": waiting}
        return orjson.dumps(whole).decode()

    async def _settle(self, letters: dict[str, dict[str, Any]], answer: Any) -> None:
        """Take the receipts in the peer's answer, as if it had called with them."""
        try:
            answers = MailResult.model_validate(answer).answers
        except ValidationError:
            raise PeerRefused("answers with invalid receipts", status=200) from None
        if len(answers) != len(letters):
            raise PeerRefused("doesn't answer each message", status=200)
        receipts = []
        for (message_id, letter), outcome in zip(letters.items(), answers, strict=True):
            reached = [recipient.model_dump() for recipient in outcome.reached]
            if outcome.error is not None:
                recipients = orjson.loads(letter["text"])["recipients"]
                reached = [
                    {"recipient": address, "status": "failed", "error": outcome.error}
                    for address in recipients
                ]
            receipts.append({"message_id": message_id, "reached": reached})
        if receipts:
            await self._take("acp/sync/mail", {"receipts": receipts})

    async def _take(self, method: str, params: dict[str, Any]) -> None:
        given = params | {"source_agent": self._peer.agent_id}
        try:
            await self._apply(self._peer, {"method": method, "params": given})
        except (Refusal, ValidationError) as error:
            raise PeerRefused(
                f"answers what this node refuses: {error}"[:200], status=200
            ) from None
