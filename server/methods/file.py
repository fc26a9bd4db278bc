"""cacp/file/*: files that agents hand to each other (design §5)."""

import base64
import binascii
import hashlib
from typing import Any

import orjson

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
from server.domain.errors import Conflict, InvalidInput, NotFound, TooLarge
from server.methods.base import Context, check_scope, new_id, open_project, party, reads, writes
from server.methods.context import known_contracts
from server.store import files
from server.store.files import File


@writes("cacp/file/share", ShareFileParams, ShareFileResult, large=True)
def share(ctx: Context, params: ShareFileParams) -> dict[str, Any]:
    """Share a file of at most 10 MB, inline as base64."""
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
    """Ask the project's other agents for a file."""
    project = open_project(ctx, params.project_id)
    who = party(ctx, params.project_id, project)
    request_id = new_id()
    files.insert_request(
        ctx.db,
        params.project_id,
        request_id,
        who.repo_id,
        params.description,
        params.suggested_format,
        ctx.stamp,
    )
    ctx.record("file_request", request_id, params.project_id, "open")
    return {"status": "request_received", "requestId": request_id}


@reads("cacp/file/listRequests", ListFileRequestsParams, ListFileRequestsResult, wide=True)
def list_requests(ctx: Context, params: ListFileRequestsParams) -> dict[str, Any]:
    """The requests of a project that nobody has fulfilled yet."""
    open_project(ctx, params.project_id)
    return {"requests": files.open_requests(ctx.db, params.project_id)}


@writes("cacp/file/fulfillRequest", FulfillFileRequestParams, FulfillFileRequestResult, large=True)
def fulfill_request(ctx: Context, params: FulfillFileRequestParams) -> dict[str, Any]:
    """Share a file that was asked for, and close the request."""
    found = files.request(ctx.db, params.request_id)
    if found is None or params.project_id not in (None, found.project_id):
        raise NotFound(
            f"There is no file request {params.request_id}",
            kind="file_request",
            requestId=params.request_id,
        )
    check_scope(ctx, found.project_id)
    if found.fulfilled_by is not None:
        raise Conflict(
            f"File request {params.request_id} is fulfilled already",
            reason="already_fulfilled",
            fileId=found.fulfilled_by,
        )
    file = _store(ctx, found.project_id, params.file, f"For: {found.description}", [])
    files.fulfil(ctx.db, params.request_id, file.file_id)
    ctx.record("file_request", params.request_id, found.project_id, "fulfilled")
    return {
        "status": "fulfilled",
        "requestId": params.request_id,
        "fileId": file.file_id,
        "size": file.size,
        "sha256": file.sha256,
    }


@reads("cacp/file/list", ListFilesParams, ListFilesResult, wide=True)
def list_(ctx: Context, params: ListFilesParams) -> dict[str, Any]:
    """The files of a project, oldest first, without their contents."""
    open_project(ctx, params.project_id)
    found = files.after(ctx.db, params.project_id, params.cursor or "", params.limit + 1)
    result: dict[str, Any] = {"files": [files.summary(file) for file in found[: params.limit]]}
    if len(found) > params.limit:
        result["nextCursor"] = found[params.limit - 1].file_id
    return result


@reads("cacp/file/get", GetFileParams, GetFileResult, wide=True)
def get(ctx: Context, params: GetFileParams) -> dict[str, Any]:
    """A file with its content, as base64."""
    open_project(ctx, params.project_id)
    found = files.whole(ctx.db, params.project_id, params.file_id)
    if found is None:
        raise NotFound(
            f"There is no file {params.file_id} in the project",
            kind="file",
            fileId=params.file_id,
        )
    file, content = found
    return files.summary(file) | {"content": base64.b64encode(content).decode()}


def _store(
    ctx: Context, project_id: str, given: SharedFile, purpose: str | None, related: list[str]
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
        stamp=ctx.stamp,
    )
    files.insert(ctx.db, project_id, file, content)
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
