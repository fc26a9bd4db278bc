"""cacp/file/sync and cacp/sync/file: files of mesh peers, and their content (design §6, §7)."""

import base64
from typing import Any

from schemas.file_mesh import (
    PIECE_MAX,
    FileContentParams,
    FileContentResult,
    FileRequestSyncParams,
    FileSyncParams,
)
from schemas.sync import SyncResult
from server.domain.errors import Damaged, NotFound
from server.methods.base import CallSession, Context, open_project, waits, writes
from server.methods.cacp import file_content
from server.methods.cacp.file import known_file
from server.methods.sync.digest import check_source
from server.methods.sync.entity_sync import result_of
from server.methods.sync.merge_immutable import ImmutableMerge
from server.methods.sync.peer_message import PeerMessage
from server.store.files import File


@writes("cacp/file/sync", FileSyncParams, SyncResult, access="sync", large=True)
def sync(ctx: Context, params: FileSyncParams) -> dict[str, Any]:
    """Take a file from a peer, without its content, which is fetched separately."""
    check_source(ctx, params.source_agent)
    message = PeerMessage(ctx, ctx.caller.agent_id, params.keys)
    return result_of(message.skipped, *ImmutableMerge(message).file(params))


@writes("cacp/file/syncRequest", FileRequestSyncParams, SyncResult, access="sync")
def sync_request(ctx: Context, params: FileRequestSyncParams) -> dict[str, Any]:
    """Take a request for a file from a peer."""
    check_source(ctx, params.source_agent)
    message = PeerMessage(ctx, ctx.caller.agent_id, params.keys)
    return result_of(message.skipped, *ImmutableMerge(message).file_request(params))


@waits("cacp/sync/file", FileContentParams, FileContentResult, access="sync")
async def content(session: CallSession, params: FileContentParams) -> dict[str, Any]:
    """A piece of a file's content, for a peer. With `relay`, content that is not here is fetched
    from its holder first; no other node is asked, so that no request goes in a circle."""

    def look(ctx: Context) -> tuple[File, str | Damaged | None]:
        check_source(ctx, params.source_agent)
        open_project(ctx, params.project_id)
        file = known_file(ctx, params.project_id, params.file_id)
        piece = None
        if file.sha256 == params.sha256:
            try:
                kept = file_content.content(ctx, params.project_id, file)
            except Damaged as damaged:
                return file, damaged
            piece = kept and kept.data[params.offset : params.offset + PIECE_MAX]
        return file, None if piece is None else base64.b64encode(piece).decode()

    file, piece = await session.read_wide(look)
    if isinstance(piece, Damaged):
        await file_content.note(session, params.project_id, file)
        if not params.relay:
            raise piece
        piece = None
    if piece is None and params.relay and file.sha256 == params.sha256:
        assert session.fetch is not None
        await session.fetch(params.project_id, file, direct=True)
        _, piece = await session.read_wide(look)
    if piece is None or isinstance(piece, Damaged):
        raise NotFound(
            f"The content of file {params.file_id} is not here",
            reason="no_content",
            kind="file_content",
            fileId=params.file_id,
        )
    return {"content": piece}
