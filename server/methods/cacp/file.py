"""cacp/file/*: files that agents hand to each other (design §5, §7).

What files there are and which are asked for, every node of the mesh knows; the content stays on the
node where a file was shared, and comes to others when it is asked for there
(`server.mesh.file_fetcher`).
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
    Context,
    Session,
    cursor_after,
    new_id,
    open_project,
    parse_cursor,
    party,
    reads,
    waits,
    writes,
)
from server.methods.cacp import file_content
from server.methods.cacp.context import known_contracts
from server.store import files
from server.store.files import File, FileContent, FileRequest

TOUCH_MICROSECONDS = 60_000_000
"""A copy that is asked for again and again is noted as used once in this time."""


@writes("cacp/file/share", ShareFileParams, ShareFileResult, large=True)
def share(ctx: Context, params: ShareFileParams) -> dict[str, Any]:
    """Share a file of at most 10 MB, inline as base64. Every node of the mesh lists it; this one
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
    """Ask the project's other agents for a file, on every node."""
    project = open_project(ctx, params.project_id)
    who = party(ctx, params.project_id, project)
    asked = FileRequest(
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
    """The requests of a project that nobody has fulfilled yet, oldest first."""
    open_project(ctx, params.project_id)
    after = parse_cursor(params.cursor)
    found = files.open_requests(ctx.db, params.project_id, *after, params.limit + 1)
    page = found[: params.limit]
    result: dict[str, Any] = {"requests": [_shown(params.project_id, one) for one in page]}
    if len(found) > params.limit:
        result["nextCursor"] = cursor_after(page[-1].stamp, page[-1].request_id)
    return result


@writes(
    "cacp/file/fulfillRequest",
    FulfillFileRequestParams,
    FulfillFileRequestResult,
    large=True,
    reach="own",
)
def fulfill_request(ctx: Context, params: FulfillFileRequestParams) -> dict[str, Any]:
    """Share a file that was asked for, and close the request. Of two agents that do so on nodes
    apart the first has fulfilled it; both files stay."""
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
            f"File request {request_id} is fulfilled already",
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
    """The files of a project, oldest first, without their contents. `holder` is the node that has a
    file's content."""
    open_project(ctx, params.project_id)
    after = parse_cursor(params.cursor)
    found = files.after(ctx.db, params.project_id, *after, params.limit + 1)
    page = found[: params.limit]
    own = ctx.node.agent_id
    result: dict[str, Any] = {"files": [files.summary(file, own) for file in page]}
    if len(found) > params.limit:
        result["nextCursor"] = cursor_after(page[-1].stamp, page[-1].file_id)
    return result


@waits("cacp/file/get", GetFileParams, GetFileResult, access="read")
async def get(session: Session, params: GetFileParams) -> bytes:
    """A file with its content, as base64. The content of another node's file is fetched from there,
    or from a node that has a copy; when nobody gives it, the refusal's reason is `node_away` (try
    again later), `being_fetched` (try again soon), `content_mismatch`, `content_lost`, or
    `content_corrupt`: what this node itself holds is damaged, and nobody has a copy.
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

    file, used_at, found = await session.read_wide(look)
    if found is None or isinstance(found, Damaged):
        data = await _elsewhere(session, project_id, file, found)
        return await asyncio.to_thread(_whole, file, session.node.agent_id, data)
    if used_at is not None and session.database.now() - used_at > TOUCH_MICROSECONDS:
        with suppress(Unavailable):
            await session.write(lambda ctx: files.touch(ctx.db, project_id, file, ctx.now))
    return found


async def _elsewhere(
    session: Session, project_id: str, file: File, damaged: Damaged | None
) -> bytes:
    """The content from another node. What is damaged here is mended by that."""
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
    """The answer as JSON: it may be megabytes, and is made off the event loop."""
    return orjson.dumps(files.summary(file, own) | {"content": base64.b64encode(content).decode()})


def _shown(project_id: str, asked: FileRequest) -> dict[str, Any]:
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
    if len(text) * 3 // 4 > FILE_MAX + 2:
        raise TooLarge("file.content: files may be 10 MB at most", path="file.content")
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("file.content: not base64", path="file.content") from None
    if len(content) > FILE_MAX:
        raise TooLarge("file.content: files may be 10 MB at most", path="file.content")
    return content
