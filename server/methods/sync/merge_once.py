"""What is written once and comes from mesh peers: packets, files, requests for files.

Joined as facts are (`merge`): of two with one id the earlier stays, on every node alike.
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
from server.methods.sync.merge import FactMerge, kept_of, no_claim
from server.store import context_packets, files
from server.store.files import File, FileRequest

TAKEN = "that id is taken: of the two the earlier stays"


class ImmutableMerge(FactMerge):
    """One message that carries a packet, a file or a request."""

    # --- context ------------------------------------------------------------------------------

    def context(self, params: ContextSyncParams, signature: Signature) -> tuple[bool, bool]:
        """Take a packet: (created, changed). Raises NotFound for an unknown project."""
        ctx, theirs = self.ctx, params.packet
        self._open_project(params.project_id)
        known = context_packets.signed(ctx.db, params.project_id, theirs.packet_id)
        stamp = stamp_of(theirs.timestamp)
        packet = ContextPacket.model_construct(
            packet_id=theirs.packet_id,
            from_repo=theirs.from_repo,
            from_agent=theirs.from_agent,
            timestamp=iso(stamp),
            type=theirs.type,
            content=theirs.content,
            related_contracts=theirs.related_contracts or [],
            reply_to=theirs.reply_to,
        )
        body = packet.model_dump()
        if known is not None and self._packet_stays(params.project_id, known, body, signature):
            return False, False
        if self._after_ban("packet", params.project_id, body, packet.from_agent, signature):
            return False, False
        if (
            not self._has_claimed(params.project_id, theirs.from_repo, theirs.from_agent)
            and not signature.unkeyed
        ):
            raise no_claim(params.project_id, theirs.from_repo, theirs.from_agent)
        if not self._vouched("packet", params.project_id, body, packet.from_agent, signature):
            return False, False
        if not self._is_due(stamp):
            self._defer("cacp/context/sync", params, stamp)
            return False, False
        put = context_packets.insert if known is None else context_packets.replace
        put(ctx.db, params.project_id, packet, kept_of(ctx, signature))
        self._see(stamp)
        ctx.record("context", packet.packet_id, params.project_id, packet.type)
        return known is None, True

    def _packet_stays(
        self,
        project_id: str,
        known: tuple[str, str | None],
        theirs: dict[str, Any],
        by: Signature,
    ) -> bool:
        """Whether the packet that is known of an id stays."""
        ours = {"reply_to": None, **orjson.loads(known[0])}
        if ours == theirs:
            return True
        at = (project_id, theirs["packet_id"])
        self._compare("packet", at, (ours, known[1]), theirs, theirs["from_agent"], by)
        self._skip("packet", theirs["packet_id"], TAKEN)
        times = stamp_of(ours["timestamp"]), stamp_of(theirs["timestamp"])
        return order(times[0], ours) < order(times[1], theirs)

    # --- files --------------------------------------------------------------------------------

    def file(self, params: FileSyncParams) -> tuple[bool, bool]:
        """Take what a file is: (created, changed). Raises NotFound as `context` does."""
        ctx, project_id, theirs = self.ctx, params.project_id, params.file
        self._open_project(project_id)
        known = files.find(ctx.db, project_id, theirs.file_id)
        if known is not None and self._stays("file", params, known, theirs):
            return False, False
        if not self._file_holds("cacp/file/sync", "file", params, theirs, theirs.from_repo):
            return False, False
        files.put(ctx.db, project_id, File.of(theirs, kept_of(ctx, params.signature)))
        self._see(theirs.stamp)
        ctx.record("file", theirs.file_id, project_id, "received")
        asked = theirs.fulfils and files.request(ctx.db, project_id, theirs.fulfils)
        if asked:
            ctx.record("file_request", asked.request_id, project_id, "fulfilled")
        return known is None, True

    def file_request(self, params: FileRequestSyncParams) -> tuple[bool, bool]:
        """Take a request for a file: (created, changed). Raises NotFound as `context` does."""
        ctx, project_id, theirs = self.ctx, params.project_id, params.request
        self._open_project(project_id)
        known = files.request(ctx.db, project_id, theirs.request_id)
        kind = "file_request"
        if known is not None and self._stays(kind, params, known, theirs):
            return False, False
        if not self._file_holds("cacp/file/syncRequest", kind, params, theirs, theirs.requested_by):
            return False, False
        asked = FileRequest.of(theirs, kept_of(ctx, params.signature))
        files.put_request(ctx.db, project_id, asked)
        self._see(theirs.stamp)
        done = files.fulfilled_by(ctx.db, project_id, theirs.request_id) is not None
        ctx.record(kind, theirs.request_id, project_id, "fulfilled" if done else "open")
        return known is None, True

    def _stays(
        self,
        kind: str,
        params: FileSyncParams | FileRequestSyncParams,
        known: File | FileRequest,
        theirs: Any,
    ) -> bool:
        """Whether what is known of an id stays. Two facts of one id are named in the log."""
        ours: Any = known.fact()
        id = known[0]
        if ours == theirs:
            return True
        at, held = (params.project_id, id), (ours.model_dump(), known.signature)
        said, author = theirs.model_dump(), theirs.from_agent
        self._compare(kind, at, held, said, author, params.signature)
        self._skip(kind, id, TAKEN)
        return bool(winner(ours, theirs) == ours)

    def _file_holds(
        self,
        method: str,
        kind: str,
        params: FileSyncParams | FileRequestSyncParams,
        theirs: FileFact | FileRequestFact,
        repo_id: str,
    ) -> bool:
        """Whether it is due, and its author's node has signed it."""
        body = theirs.model_dump()
        if self._after_ban(kind, params.project_id, body, theirs.from_agent, params.signature):
            return False
        if not self._has_claimed(params.project_id, repo_id, theirs.from_agent):
            raise no_claim(params.project_id, repo_id, theirs.from_agent)
        if not self._vouched(kind, params.project_id, body, theirs.from_agent, params.signature):
            return False
        if not self._is_due(theirs.stamp):
            self._defer(method, params, theirs.stamp)
            return False
        return True
