"""How mail reaches a mesh peer: by a sender of its own (`peers.sender`), from what the
store owes the peer (acp-canonical §10; design §7).

What is owed is confirmed row by row, so there is no cursor to lose: what was sent and not confirmed
is sent again, and the other node knows each message by its id.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from peers.digest import Name
from peers.errors import CallError, NotConnected, Refused
from peers.sender import Page
from schemas.acp_mesh import AgentsResult, MailResult
from schemas.errors import ErrorCode
from server.domain.agents import identity
from server.domain.authorship import statement
from server.domain.errors import Refusal
from server.mesh.mesh_channel import MeshChannel
from server.node import Node
from server.store import mail_outbox, mailboxes, messages
from server.store.database import Database
from server.store.mail_outbox import Owed
from server.store.peers import Peer

OWED_AT_ONCE = 50
BATCH_BYTES = 256 * 1024
WRONG = frozenset({ErrorCode.INVALID_PARAMS, ErrorCode.TOO_LARGE})
"""What the peer will never take as it is: invalid, or too large."""

Apply = Callable[[Peer, dict[str, Any]], Awaitable[Any]]


class PreparedMail(NamedTuple):
    """Letters (schemas.acp_mesh.Carried) by their messages' ids, receipts, and the messages that
    were never offered before."""

    letters: dict[str, dict[str, Any]]
    receipts: list[dict[str, Any]]
    first_offered: list[str]


class MailSender:
    """Brings one peer its mail and our receipts, and who is at home here.

    It greets the peer after each failure: it tells and asks who is at home, so that a message is
    only offered to a node that answers, and what is not offered can still expire here.
    """

    def __init__(
        self, link: MeshChannel, database: Database, node: Node, peer: Peer, apply: Apply
    ) -> None:
        self._link = link
        self._database = database
        self._node = node
        self._peer = peer
        self._apply = apply
        self._told = 0
        """The stamp of the directory that the peer has confirmed since it last failed."""

    async def load(self, cursor: int) -> Page:
        """What is owed to the peer, the first of it. There is no cursor."""

        def read(db: sqlite3.Connection) -> Page:
            owed = mail_outbox.owed(db, self._peer.agent_id, OWED_AT_ONCE)
            names = {Name(one.kind, "", one.message_id): one.seq for one in owed}
            kept = mail_outbox.directory(db, self._node.agent_id)
            if kept is not None and kept.stamp != self._told:
                names[Name("directory", "", "")] = kept.stamp
            return Page(names, cursor, len(owed) == OWED_AT_ONCE)

        return self._database.read(read)

    async def deliver(self, names: Mapping[Name, int]) -> None:
        """Say what is owed; returns once the peer has taken or refused each. Raises CallError."""
        try:
            await self._greet()
            owed = [
                Owed(seq, name.entity, name.entity_id)  # type: ignore[arg-type]
                for name, seq in names.items()
                if name.entity != "directory"
            ]
            while owed:
                batch, owed = self._first(owed)
                await self._say(batch)
        except CallError:
            self._told = 0
            raise

    async def _greet(self) -> None:
        kept = self._database.read(lambda db: mail_outbox.directory(db, self._node.agent_id))
        if kept is None or kept.stamp == self._told:
            return
        answer = await self._link.ask("acp/sync/agents", listed=orjson.Fragment(kept.document))
        try:
            theirs = AgentsResult.model_validate(answer).listed
        except ValidationError:
            raise Refused("answers with what is no directory", status=200) from None
        if theirs is not None:
            await self._take("acp/sync/agents", {"listed": theirs.model_dump()})
        self._told = kept.stamp

    def _first(self, owed: list[Owed]) -> tuple[list[Owed], list[Owed]]:
        """As many as make about a batch's bytes, and the rest."""

        def read(db: sqlite3.Connection) -> int:
            size = 0
            for place, one in enumerate(owed):
                found = messages.find(db, one.message_id)
                size += len(found.payload_json) + len(found.context_json or "") if found else 0
                if size > BATCH_BYTES:
                    return max(place, 1)
            return len(owed)

        cut = self._database.read(read)
        return owed[:cut], owed[cut:]

    async def _say(self, batch: list[Owed]) -> None:
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
            except Refused as refused:
                if refused.code not in WRONG:
                    raise
                if len(batch) > 1:
                    for one in batch:
                        await self._say([one])
                    return
                answer = {"answers": [{"error": f"its node {refused}"}] * len(made.letters)}
            await self._settle(made.letters, answer)
        await self._database.write(lambda to: mail_outbox.said(to.connection, batch))

    def _made(self, db: sqlite3.Connection, batch: list[Owed]) -> PreparedMail:
        """What is said, the letters signed for the peer and noted as offered to it."""
        to = identity(self._peer.agent_id)
        texts: dict[str, str] = {}
        made = PreparedMail({}, [], [])
        for one in batch:
            if one.kind == "receipts":
                deliveries = mailboxes.deliveries(db, one.message_id)
                reached = [mailboxes.reached(found) for found in deliveries]
                made.receipts.append({"message_id": one.message_id, "reached": reached})
                continue
            text = self._letter(db, one.message_id)
            if text is not None:
                texts[one.message_id] = text
                if mail_outbox.offer(db, one.message_id, to):
                    made.first_offered.append(one.message_id)
        said = [statement("mail", to, {"text": text}) for text in texts.values()]
        signed = self._node.key.sign_all(said)
        for (message_id, text), by in zip(texts.items(), signed, strict=True):
            signature = {"node": self._node.agent_id, **by._asdict()}
            made.letters[message_id] = {"text": text, "signature": signature}
        return made

    def _letter(self, db: sqlite3.Connection, message_id: str) -> str | None:
        """The text of a `schemas.acp_mesh.Letter`; None when nobody there waits for it any more."""
        message = messages.find(db, message_id)
        waiting = mail_outbox.waiting(db, message_id, identity(self._peer.agent_id))
        if message is None or message.held is not None or not waiting:
            return None
        envelope = messages.envelope(message._replace(status="pending", updated_at=None))
        whole = {"message": envelope, "hop": message.hop, "recipients": waiting}
        return orjson.dumps(whole).decode()

    async def _settle(self, letters: dict[str, dict[str, Any]], answer: Any) -> None:
        """Take in how far the peer says that our messages are, as if it had called to say so."""
        try:
            answers = MailResult.model_validate(answer).answers
        except ValidationError:
            raise Refused("answers with what is no word on its mail", status=200) from None
        if len(answers) != len(letters):
            raise Refused("doesn't answer for each message", status=200)
        receipts = []
        for (message_id, letter), one in zip(letters.items(), answers, strict=True):
            reached = [found.model_dump() for found in one.reached]
            if one.error is not None:
                recipients = orjson.loads(letter["text"])["recipients"]
                reached = [
                    {"recipient": address, "status": "failed", "error": one.error}
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
            raise Refused(f"said what is refused here: {error}"[:200], status=200) from None
