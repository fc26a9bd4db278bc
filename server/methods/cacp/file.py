"""cacp/file/*: files that agents share (design §5, §7).

Every node of the mesh knows which files exist and which are requested. A file's content stays on
the node where it was shared; other nodes fetch it on demand (`server.mesh.file_fetcher`).
"""

import asyncio
import base64
import binascii
import hashlib
from contextlib import suppress
from typing import Any

import orjson

from schemas.base import TEXT_MAX, iso, present
from schemas.file import (
    FILE_MAX,
    FulfillFileRequestParams,
    FulfillFileRequestResult,
    GetFileParams,
    GetFileResult,
    ListFileRequestsParams,
    ListFileRequestsResult,
    ListFilesParams,
    ListFilesResult,
    RequestFileParams,
    RequestFileResult,
    SharedFile,
    ShareFileParams,
    ShareFileResult,
)
from server.domain.access import check_project
from server.domain.errors import (
    Conflict,
    Damaged,
    InvalidInput,
    NodeAway,
    NotFound,
    TooLarge,
    Unavailable,
)
from server.methods.base import (
    CallSession,
    Context,
    cursor_after,
    new_id,
    open_project,
    page_of,
    parse_cursor,
    party,
    reads,
    waits,
    writes,
)
from server.methods.cacp import file_content
from server.methods.cacp.context import known_contracts
from server.store import files
from server.store.files import File, FileContent, FileRequestRow

TOUCH_MICROSECONDS = 60_000_000
"""How often the last use of a copy is recorded."""


@writes("cacp/file/share", ShareFileParams, ShareFileResult, large=True)
def share(ctx: Context, params: ShareFileParams) -> dict[str, Any]:
    """Share a file of at most 10 MB, inline as base64. Every node of the mesh lists it; this node
    holds its content."""
    file = _store(
        ctx, params.project_id, params.file, params.purpose, params.related_contracts or []
    )
    return {
        "status": "received",
        "fileId": file.file_id,
        "size": file.size,
        "sha256": file.sha256,
    }


@writes("cacp/file/request", RequestFileParams, RequestFileResult)
def request(ctx: Context, params: RequestFileParams) -> dict[str, Any]:
    """Request a file from the project's other agents, on every node."""
    project = open_project(ctx, params.project_id)
    who = party(ctx, params.project_id, project)
    asked = FileRequestRow(
        request_id=new_id(),
        requested_by=who.repo_id,
        from_agent=who.agent_id,
        description=params.description,
        suggested_format=params.suggested_format,
        stamp=ctx.stamp,
    )
    files.put_request(ctx.db, params.project_id, asked)
    ctx.record("file_request", asked.request_id, params.project_id, "open")
    return {"status": "request_received", "requestId": asked.request_id}


@reads("cacp/file/listRequests", ListFileRequestsParams, ListFileRequestsResult, wide=True)
def list_requests(ctx: Context, params: ListFileRequestsParams) -> dict[str, Any]:
    """List the open file requests of a project, oldest first."""
    open_project(ctx, params.project_id)
    after = parse_cursor(params.cursor)
    requests = files.open_requests(ctx.db, params.project_id, *after, params.limit + 1)
    page, more = page_of(
        requests, params.limit, lambda asked: cursor_after(asked.stamp, asked.request_id)
    )
    return {"requests": [_shown(params.project_id, asked) for asked in page], **more}


@writes(
    "cacp/file/fulfillRequest",
    FulfillFileRequestParams,
    FulfillFileRequestResult,
    large=True,
    reach="own",
)
def fulfill_request(ctx: Context, params: FulfillFileRequestParams) -> dict[str, Any]:
    """Share a requested file, and close the request. When two agents do so on different nodes, the
    first one has fulfilled the request; both files stay."""
    request_id = params.request_id
    if params.project_id is not None:
        check_project(ctx.caller.projects, params.project_id)
    project_id = params.project_id or files.project_of_request(ctx.db, request_id)
    asked = None if project_id is None else files.request(ctx.db, project_id, request_id)
    own = ctx.caller.projects
    if project_id is None or asked is None or (own is not None and project_id not in own):
        raise NotFound(
            f"There is no file request {request_id}", kind="file_request", requestId=request_id
        )
    fulfilled_by = files.fulfilled_by(ctx.db, project_id, request_id)
    if fulfilled_by is not None:
        raise Conflict(
            f"File request {request_id} is already fulfilled",
            reason="already_fulfilled",
            fileId=fulfilled_by,
        )
    purpose = f"For: {asked.description}"[:TEXT_MAX]
    file = _store(ctx, project_id, params.file, purpose, [], fulfils=request_id)
    ctx.record("file_request", request_id, project_id, "fulfilled")
    return {
        "status": "fulfilled",
        "requestId": request_id,
        "fileId": file.file_id,
        "size": file.size,
        "sha256": file.sha256,
    }


@reads("cacp/file/list", ListFilesParams, ListFilesResult, wide=True)
def list_(ctx: Context, params: ListFilesParams) -> dict[str, Any]:
    """List the files of a project, oldest first, without their contents. `holder` is the node that
    has a file's content."""
    open_project(ctx, params.project_id)
    after = parse_cursor(params.cursor)
    listed = files.after(ctx.db, params.project_id, *after, params.limit + 1)
    page, more = page_of(listed, params.limit, lambda file: cursor_after(file.stamp, file.file_id))
    return {"files": [files.summary(file, ctx.node.agent_id) for file in page], **more}


@waits("cacp/file/get", GetFileParams, GetFileResult, access="read")
async def get(session: CallSession, params: GetFileParams) -> bytes:
    """Return a file with its content as base64. The content of another node's file is fetched from
    that node, or from a node that has a copy. When no node provides it, the refusal's reason is
    `node_away` (try again later), `being_fetched` (try again soon), `content_mismatch`,
    `content_lost`, or `content_corrupt` (the content on this node is damaged, and no node has a
    copy).
    """
    project_id = params.project_id

    def look(ctx: Context) -> tuple[File, int | None, bytes | Damaged | None]:
        open_project(ctx, project_id)
        file = known_file(ctx, project_id, params.file_id)
        try:
            kept = file_content.content(ctx, project_id, file)
        except Damaged as damaged:
            return file, None, damaged
        if kept is None:
            return file, None, None
        return file, kept.used_at, _whole(file, ctx.node.agent_id, kept.data)

    file, used_at, content = await session.read_wide(look)
    if content is None or isinstance(content, Damaged):
        data = await _elsewhere(session, project_id, file, content)
        return await asyncio.to_thread(_whole, file, session.node.agent_id, data)
    if used_at is not None and session.database.now() - used_at > TOUCH_MICROSECONDS:
        with suppress(Unavailable):
            await session.write(lambda ctx: files.touch(ctx.db, project_id, file, ctx.now))
    return content


async def _elsewhere(
    session: CallSession, project_id: str, file: File, damaged: Damaged | None
) -> bytes:
    """The content, fetched from another node. That also replaces a damaged copy here."""
    assert session.fetch is not None
    if damaged is not None:
        await file_content.note(session, project_id, file)
    try:
        return await session.fetch(project_id, file)
    except (NotFound, NodeAway):
        if damaged is not None and file.signature is None:
            raise damaged from None
        raise


def known_file(ctx: Context, project_id: str, file_id: str) -> File:
    """A file of a project. Raises NotFound."""
    file = files.find(ctx.db, project_id, file_id)
    if file is None:
        raise NotFound(f"There is no file {file_id} in the project", kind="file", fileId=file_id)
    return file


def _whole(file: File, own: str, content: bytes) -> bytes:
    """The GetFileResult as JSON. It may be megabytes; call this off the event loop."""
    return orjson.dumps(files.summary(file, own) | {"content": base64.b64encode(content).decode()})


def _shown(project_id: str, asked: FileRequestRow) -> dict[str, Any]:
    return present(
        {
            "requestId": asked.request_id,
            "projectId": project_id,
            "requestedBy": asked.requested_by,
            "description": asked.description,
            "suggestedFormat": asked.suggested_format,
            "timestamp": iso(asked.stamp),
        }
    )


def _store(
    ctx: Context,
    project_id: str,
    given: SharedFile,
    purpose: str | None,
    related: list[str],
    fulfils: str | None = None,
) -> File:
    project = open_project(ctx, project_id)
    who = party(ctx, project_id, project)
    related = known_contracts(ctx, project_id, related)
    content = _decode(given.content)
    file = File(
        file_id=new_id(),
        name=given.name,
        content_type=given.content_type or "application/octet-stream",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        purpose=purpose,
        related_contracts=orjson.dumps(related).decode(),
        from_repo=who.repo_id,
        from_agent=who.agent_id,
        fulfils=fulfils,
        stamp=ctx.stamp,
    )
    files.put(ctx.db, project_id, file)
    files.put_content(ctx.db, project_id, file, FileContent(content, used_at=None))
    ctx.record("file", file.file_id, project_id, "received")
    return file


def _decode(text: str) -> bytes:
    size = len(text) * 3 // 4
    if size > FILE_MAX + 2:
        raise _too_large(size)
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("file.content: is not base64", path="file.content") from None
    if len(content) > FILE_MAX:
        raise _too_large(len(content))
    return content


def _too_large(size: int) -> TooLarge:
    return TooLarge(
        f"file.content: has about {size:,} bytes; the limit is {FILE_MAX:,} (10 MiB)",
        path="file.content",
    )
