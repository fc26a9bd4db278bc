"""Packets, files and requests for files that come from mesh peers: each is written once.

Of two with one id the earlier wins, on every node alike.
"""

from typing import Any

import orjson

from schemas.base import iso, stamp_of
from schemas.context import ContextPacket
from schemas.file import FileFact, FileRequestFact
from schemas.file_mesh import FileRequestSyncParams, FileSyncParams
from schemas.mesh import Signature
from schemas.sync import ContextSyncParams
from server.domain.files import winner
from server.domain.immutable import order
from server.methods.sync.peer_message import UNCHANGED, MergeOutcome, PeerMessage, no_claim
from server.methods.sync.signer_check import SignerCheck, kept_of
from server.store import context_packets, files
from server.store.files import File, FileRequestRow

ID_IN_USE = "id already in use; the earlier entry wins"


class ImmutableMerge:
    """Merges the packet, file or request that a message carries.

    Each method raises NotFound for an unknown project, or when the author has no claim on its repo
    here.
    """

    def __init__(self, message: PeerMessage) -> None:
        self._message = message
        self._signers = SignerCheck(message)
        self._ctx = message.ctx

    # --- context ------------------------------------------------------------------------------

    def context(self, params: ContextSyncParams, signature: Signature) -> MergeOutcome:
        """Take a packet."""
        ctx, project_id, sent = self._ctx, params.project_id, params.packet
        self._message.open_project(project_id)
        known = context_packets.signed(ctx.db, project_id, sent.packet_id)
        stamp = stamp_of(sent.timestamp)
        packet = ContextPacket.model_construct(
            packet_id=sent.packet_id,
            from_repo=sent.from_repo,
            from_agent=sent.from_agent,
            timestamp=iso(stamp),
            type=sent.type,
            content=sent.content,
            related_contracts=sent.related_contracts or [],
            reply_to=sent.reply_to,
        )
        body = packet.model_dump()
        if known is not None and self._known_packet_wins(project_id, known, body, signature):
            return UNCHANGED
        if self._signers.skip_banned("packet", project_id, body, packet.from_agent, signature):
            return UNCHANGED
        if (
            not self._message.has_claimed(project_id, sent.from_repo, sent.from_agent)
            and not signature.unkeyed
        ):
            raise no_claim(project_id, sent.from_repo, sent.from_agent)
        if not self._signers.accept("packet", project_id, body, packet.from_agent, signature):
            return UNCHANGED
        if not self._message.is_due(stamp):
            self._message.defer_until_due("cacp/context/sync", params, stamp)
            return UNCHANGED
        put = context_packets.insert if known is None else context_packets.replace
        put(ctx.db, project_id, packet, kept_of(ctx, signature))
        self._message.see(stamp)
        ctx.record("context", packet.packet_id, project_id, packet.type)
        return MergeOutcome(created=known is None, changed=True)

    def _known_packet_wins(
        self,
        project_id: str,
        known: tuple[str, str | None],
        sent: dict[str, Any],
        signature: Signature,
    ) -> bool:
        """Whether the stored packet wins. A different one with the same id is recorded."""
        before = {"reply_to": None, **orjson.loads(known[0])}
        if before == sent:
            return True
        at = (project_id, sent["packet_id"])
        stored = (before, known[1])
        self._signers.note_contradiction("packet", at, stored, sent, sent["from_agent"], signature)
        self._message.skip("packet", sent["packet_id"], ID_IN_USE)
        times = stamp_of(before["timestamp"]), stamp_of(sent["timestamp"])
        return order(times[0], before) < order(times[1], sent)

    # --- files --------------------------------------------------------------------------------

    def file(self, params: FileSyncParams) -> MergeOutcome:
        """Take what a file is, without its content."""
        ctx, project_id, sent = self._ctx, params.project_id, params.file
        self._message.open_project(project_id)
        known = files.find(ctx.db, project_id, sent.file_id)
        if known is not None and self._known_wins("file", params, known, sent):
            return UNCHANGED
        if not self._is_good_now("cacp/file/sync", "file", params, sent, sent.from_repo):
            return UNCHANGED
        files.put(ctx.db, project_id, File.of(sent, kept_of(ctx, params.signature)))
        self._message.see(sent.stamp)
        ctx.record("file", sent.file_id, project_id, "received")
        request = sent.fulfils and files.request(ctx.db, project_id, sent.fulfils)
        if request:
            ctx.record("file_request", request.request_id, project_id, "fulfilled")
        return MergeOutcome(created=known is None, changed=True)

    def file_request(self, params: FileRequestSyncParams) -> MergeOutcome:
        """Take a request for a file."""
        ctx, project_id, sent = self._ctx, params.project_id, params.request
        self._message.open_project(project_id)
        known = files.request(ctx.db, project_id, sent.request_id)
        kind, method = "file_request", "cacp/file/syncRequest"
        if known is not None and self._known_wins(kind, params, known, sent):
            return UNCHANGED
        if not self._is_good_now(method, kind, params, sent, sent.requested_by):
            return UNCHANGED
        request = FileRequestRow.of(sent, kept_of(ctx, params.signature))
        files.put_request(ctx.db, project_id, request)
        self._message.see(sent.stamp)
        is_fulfilled = files.fulfilled_by(ctx.db, project_id, sent.request_id) is not None
        ctx.record(kind, sent.request_id, project_id, "fulfilled" if is_fulfilled else "open")
        return MergeOutcome(created=known is None, changed=True)

    def _known_wins(
        self,
        kind: str,
        params: FileSyncParams | FileRequestSyncParams,
        known: File | FileRequestRow,
        sent: Any,
    ) -> bool:
        """Whether the stored file or request wins. A different one with the same id is recorded."""
        before: Any = known.fact()
        id = known[0]
        if before == sent:
            return True
        at, stored = (params.project_id, id), (before.model_dump(), known.signature)
        self._signers.note_contradiction(
            kind, at, stored, sent.model_dump(), sent.from_agent, params.signature
        )
        self._message.skip(kind, id, ID_IN_USE)
        return bool(winner(before, sent) == before)

    def _is_good_now(
        self,
        method: str,
        kind: str,
        params: FileSyncParams | FileRequestSyncParams,
        sent: FileFact | FileRequestFact,
        repo_id: str,
    ) -> bool:
        """Whether the file or request is its author's, and due. If too early, it is deferred."""
        project_id, author, signature = params.project_id, sent.from_agent, params.signature
        body = sent.model_dump()
        if self._signers.skip_banned(kind, project_id, body, author, signature):
            return False
        if not self._message.has_claimed(project_id, repo_id, author):
            raise no_claim(project_id, repo_id, author)
        if not self._signers.accept(kind, project_id, body, author, signature):
            return False
        if not self._message.is_due(sent.stamp):
            self._message.defer_until_due(method, params, sent.stamp)
            return False
        return True
